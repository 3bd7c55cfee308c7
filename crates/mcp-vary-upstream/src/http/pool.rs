//! The sockets to an endpoint, which stay open between requests, and the cookies of its server.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::Uri;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::ResponseFuture;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use mcp_vary_http_client::tls::Connector;

use super::cookies::Cookies;

type Sockets = Client<Connector, Full<Bytes>>;

/// The sockets to one endpoint, and its cookies.
pub(super) struct Pool {
    sockets: ArcSwap<Sockets>,
    connector: Connector,
    pub(super) cookies: Cookies,
    /// How long an idle socket stays.
    idle: Duration,
}

impl Pool {
    pub(super) fn new(connector: Connector, url: &Uri) -> Self {
        let idle = match url.scheme_str() {
            Some("https") => IDLE_BEHIND_PROXY,
            _ => IDLE,
        };
        Self {
            sockets: ArcSwap::from_pointee(sockets(&connector, idle)),
            connector,
            cookies: Cookies::default(),
            idle,
        }
    }

    pub(super) fn request(&self, mut request: http::Request<Full<Bytes>>) -> ResponseFuture {
        self.cookies.add_to(&mut request);
        self.sockets.load().request(request)
    }

    /// Drops all idle sockets: the server was lost on one of them, and the others may turn out to be dead only later.
    /// Running requests keep their sockets.
    pub(super) fn renew(&self) {
        self.sockets
            .store(Arc::new(sockets(&self.connector, self.idle)));
    }
}

fn sockets(connector: &Connector, idle: Duration) -> Sockets {
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(idle)
        .build(connector.clone())
}

/// Shorter than the 5 seconds after which Node and uvicorn close an idle socket: a request that is sent in that moment
/// has no answer, and calls are not repeated.
const IDLE: Duration = Duration::from_secs(4);
/// As [`IDLE`]: proxies that have a certificate keep sockets for a minute.
const IDLE_BEHIND_PROXY: Duration = Duration::from_secs(50);
