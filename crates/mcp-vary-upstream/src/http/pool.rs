//! The sockets to an endpoint, which stay open between requests.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::ResponseFuture;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::proxy::ProxyConnector;

pub(super) type Connector = HttpsConnector<ProxyConnector>;
type Sockets = Client<Connector, Full<Bytes>>;

/// The sockets to one endpoint.
pub(super) struct Pool {
    sockets: ArcSwap<Sockets>,
    connector: Connector,
}

impl Pool {
    pub(super) fn new(connector: Connector) -> Self {
        Self {
            sockets: ArcSwap::from_pointee(sockets(&connector)),
            connector,
        }
    }

    pub(super) fn request(&self, request: http::Request<Full<Bytes>>) -> ResponseFuture {
        self.sockets.load().request(request)
    }

    /// Drops all idle sockets: the server was lost on one of them, and the others may turn out to be dead only later.
    /// Running requests keep their sockets.
    pub(super) fn renew(&self) {
        self.sockets.store(Arc::new(sockets(&self.connector)));
    }
}

fn sockets(connector: &Connector) -> Sockets {
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .build(connector.clone())
}

const IDLE: Duration = Duration::from_secs(60);
