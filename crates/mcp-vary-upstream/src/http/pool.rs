//! The sockets to an endpoint, which stay open between requests, and the cookies of its server.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::HOST;
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Uri};
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::ResponseFuture;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use mcp_vary_http_client::proxy::Proxy;
use mcp_vary_http_client::tls::Connector;
use tower_service::Service;

use super::cookies::Cookies;

type Sockets = Client<EndpointConnector, Full<Bytes>>;

/// The sockets to one endpoint, and its cookies.
pub(super) struct Pool {
    sockets: ArcSwap<Sockets>,
    connector: EndpointConnector,
    /// `None` if a proxy reads the address of each request.
    short_address: Option<ShortAddress>,
    pub(super) cookies: Cookies,
    /// How long an idle socket stays.
    idle: Duration,
}

impl Pool {
    /// The sockets to the endpoint at `url`, on which all requests have its origin.
    pub(super) fn new(connector: Connector, url: &Uri, proxy: Option<&Proxy>) -> Self {
        let idle = match url.scheme_str() {
            Some("https") => IDLE_BEHIND_PROXY,
            _ => IDLE,
        };
        let is_read_by_proxy = proxy.is_some_and(|proxy| !proxy.is_tunnel());
        let short_address = ShortAddress::of(url);
        let url = url.clone();
        let connector = EndpointConnector(Arc::new(ConnectorTo { connector, url }));
        Self {
            sockets: ArcSwap::from_pointee(sockets(&connector, idle)),
            short_address: short_address.filter(|_| !is_read_by_proxy),
            connector,
            cookies: Cookies::default(),
            idle,
        }
    }

    pub(super) fn request(&self, mut request: http::Request<Full<Bytes>>) -> ResponseFuture {
        self.cookies.add_to(&mut request);
        if let Some(short_address) = &self.short_address {
            short_address.set(&mut request);
        }
        self.sockets.load().request(request)
    }

    /// Drops all idle sockets: the server was lost on one of them, and the others may turn out to be dead only later.
    /// Running requests keep their sockets.
    pub(super) fn renew(&self) {
        self.sockets
            .store(Arc::new(sockets(&self.connector, self.idle)));
    }
}

/// Connects to one endpoint, whatever address a request has. `hyper-util` copies it for each request.
#[derive(Clone)]
struct EndpointConnector(Arc<ConnectorTo>);

struct ConnectorTo {
    connector: Connector,
    url: Uri,
}

impl Service<Uri> for EndpointConnector {
    type Response = <Connector as Service<Uri>>::Response;
    type Error = <Connector as Service<Uri>>::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let mut connector = self.0.connector.clone();
        let url = self.0.url.clone();
        Box::pin(async move {
            poll_fn(|context| connector.poll_ready(context)).await?;
            connector.call(url).await
        })
    }
}

/// A name of one letter in the place of an endpoint's host and port, and the header that names these: `hyper-util` hashes the
/// name letter by letter, thrice for each request, and formats the header each time.
struct ShortAddress {
    authority: Authority,
    host: HeaderValue,
}

impl ShortAddress {
    fn of(url: &Uri) -> Option<Self> {
        let default_port = if url.scheme() == Some(&Scheme::HTTPS) {
            443
        } else {
            80
        };
        let host = match (url.host()?, url.port_u16()) {
            (host, Some(port)) if port != default_port => format!("{host}:{port}"),
            (host, _) => host.to_owned(),
        };
        Some(Self {
            authority: Authority::from_static("a"),
            host: HeaderValue::from_str(&host).ok()?,
        })
    }

    fn set<T>(&self, request: &mut http::Request<T>) {
        let mut parts = request.uri().clone().into_parts();
        parts.authority = Some(self.authority.clone());
        if let Ok(shortened) = Uri::from_parts(parts) {
            *request.uri_mut() = shortened;
            let host = request.headers_mut().entry(HOST);
            host.or_insert_with(|| self.host.clone());
        }
    }
}

fn sockets(connector: &EndpointConnector, idle: Duration) -> Sockets {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_address_leaves_path_query_and_the_host_that_the_server_reads() {
        for (url, shortened, host) in [
            ("http://a.example/mcp?k=1", "http://a/mcp?k=1", "a.example"),
            ("http://a.example:80/mcp", "http://a/mcp", "a.example"),
            ("https://a.example:443/", "https://a/", "a.example"),
            ("http://a.example:443/", "http://a/", "a.example:443"),
            ("https://[::1]:8443/mcp", "https://a/mcp", "[::1]:8443"),
        ] {
            let url: Uri = url.parse().unwrap();
            let mut request = http::Request::new(());
            *request.uri_mut() = url.clone();
            ShortAddress::of(&url).unwrap().set(&mut request);
            assert_eq!(request.uri(), shortened, "{url}");
            assert_eq!(request.headers()[HOST], host, "{url}");
        }
        let mut request = http::Request::new(());
        *request.uri_mut() = "http://b.example/".parse().unwrap();
        let configured = HeaderValue::from_static("behind.example");
        request.headers_mut().insert(HOST, configured.clone());
        ShortAddress::of(request.uri()).unwrap().set(&mut request);
        assert_eq!(request.headers()[HOST], configured);
    }
}
