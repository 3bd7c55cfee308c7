//! The proxy on the way to a server, as `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` name it.

use std::error::Error;
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::header::USER_AGENT;
use http::{HeaderMap, HeaderValue, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use mcp_vary_base::environment::Variables;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::headers::VARY;
use crate::origin::origin;
use crate::resolver::Resolver;

/// The proxy on the way to one address.
#[derive(Clone, Debug)]
pub struct Proxy {
    intercept: Intercept,
    /// The variable that names it.
    variable: &'static str,
    is_tunnel: bool,
}

impl Proxy {
    /// The proxy to `url` by the `variables` of the environment; `None` without one. No proxy leads to this machine.
    ///
    /// # Errors
    ///
    /// When the variable is not the URL of a proxy. The error does not contain it, since it may have a password.
    pub fn find(url: &Uri, variables: Variables) -> Result<Option<Self>, String> {
        let is_tunnel = url.scheme_str() == Some("https");
        let names = if is_tunnel { FOR_HTTPS } else { FOR_HTTP };
        let read = |name: &'static str| {
            let value = variables(name).filter(|value| !value.trim().is_empty());
            value.map(|value| (name, value.trim().to_owned()))
        };
        let Some((name, mut proxy)) = names.into_iter().chain(FOR_ALL).find_map(read) else {
            return Ok(None);
        };
        if url.host().is_none_or(is_loopback) {
            return Ok(None);
        }
        if !proxy.contains("://") {
            proxy.insert_str(0, "http://");
        }
        let exceptions = ["NO_PROXY", "no_proxy"].into_iter().find_map(read);
        let no = exceptions.map(|(_, no)| no).unwrap_or_default();
        if Matcher::builder()
            .all("http://a")
            .no(no)
            .build()
            .intercept(url)
            .is_none()
        {
            return Ok(None);
        }
        let found = Matcher::builder().all(proxy).build().intercept(url);
        let usable = found.filter(|proxy| proxy.uri().scheme_str() == Some("http"));
        let intercept = usable.ok_or_else(|| {
            format!(
                "`{name}` is not the URL of a proxy that Vary can use; write `http://HOST:PORT`, or name `{}` in `NO_PROXY`",
                url.host().unwrap_or_default()
            )
        })?;
        Ok(Some(Self {
            intercept,
            variable: name,
            is_tunnel,
        }))
    }

    /// Why `url` is reached directly, although the `variables` name a proxy.
    pub fn why_unused(url: &Uri, variables: Variables) -> Option<&'static str> {
        let is_set = |names: [&'static str; 2]| {
            let mut values = names.into_iter().chain(FOR_ALL).filter_map(variables);
            values.any(|value| !value.trim().is_empty())
        };
        let is_https = url.scheme_str() == Some("https");
        let for_https = is_set(FOR_HTTPS);
        let for_http = is_set(FOR_HTTP);
        match (is_https, for_https, for_http) {
            _ if url.host().is_none_or(is_loopback) => None,
            (true, false, true) => Some(
                "`HTTP_PROXY` is for http:// addresses, so name the proxy in `HTTPS_PROXY` if one leads there",
            ),
            (true, true, _) | (false, _, true) => {
                Some("it is reached without the proxy, since `NO_PROXY` names it")
            }
            _ => None,
        }
    }

    /// Its address, without user and password, and the variable that names it.
    pub fn describe(&self) -> String {
        format!("{} (`{}`)", origin(self.intercept.uri()), self.variable)
    }

    /// Whether it opens a tunnel to the server, rather than forwarding each request.
    pub const fn is_tunnel(&self) -> bool {
        self.is_tunnel
    }

    /// The name of its host.
    pub fn host(&self) -> &str {
        self.intercept.uri().host().unwrap_or_default()
    }

    /// The value of `Proxy-Authorization` for requests that it forwards. In a tunnel, the server would get it.
    pub fn authorization(&self) -> Option<&HeaderValue> {
        if self.is_tunnel {
            return None;
        }
        self.intercept.basic_auth()
    }
}

/// The variables that name the proxy to addresses of a scheme. The first one that is set counts.
const FOR_HTTPS: [&str; 2] = ["HTTPS_PROXY", "https_proxy"];
const FOR_HTTP: [&str; 2] = ["HTTP_PROXY", "http_proxy"];
/// The variables that count if there is none for the scheme.
const FOR_ALL: [&str; 2] = ["ALL_PROXY", "all_proxy"];

/// Whether `host` is this machine.
fn is_loopback(host: &str) -> bool {
    let unbracketed = host.trim_start_matches('[').trim_end_matches(']');
    let name = unbracketed.trim_end_matches('.').to_ascii_lowercase();
    let is_address = name
        .parse()
        .is_ok_and(|address: IpAddr| address.is_loopback());
    is_address || name == "localhost" || name.ends_with(".localhost")
}

/// Opens connections to one server, through a proxy if there is one.
#[derive(Clone, Debug)]
pub struct ProxyConnector {
    pub(crate) http: HttpConnector<Resolver>,
    pub(crate) proxy: Option<Proxy>,
}

type BoxError = Box<dyn Error + Send + Sync>;

impl Service<Uri> for ProxyConnector {
    type Response = Socket;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Socket, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.http.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, url: Uri) -> Self::Future {
        let mut http = self.http.clone();
        let proxy = self.proxy.clone();
        Box::pin(async move {
            let is_forwarded = proxy.as_ref().is_some_and(|proxy| !proxy.is_tunnel);
            let stream = match proxy {
                None => http.call(url).await?,
                Some(Proxy {
                    intercept,
                    is_tunnel: true,
                    ..
                }) => {
                    let headers = HeaderMap::from_iter([(USER_AGENT, VARY)]);
                    let mut tunnel =
                        Tunnel::new(intercept.uri().clone(), http).with_headers(headers);
                    if let Some(authorization) = intercept.basic_auth() {
                        tunnel = tunnel.with_auth(authorization.clone());
                    }
                    tunnel.call(url).await?
                }
                Some(proxy) => http.call(proxy.intercept.uri().clone()).await?,
            };
            Ok(Socket {
                stream,
                is_forwarded,
            })
        })
    }
}

/// A connection to a server, or to the proxy that forwards requests to it.
#[derive(Debug)]
pub struct Socket {
    stream: TokioIo<TcpStream>,
    is_forwarded: bool,
}

impl Connection for Socket {
    fn connected(&self) -> Connected {
        // Through such a proxy, requests name the whole URL. The addresses of the socket, which each response would get a
        // copy of, are of no use here.
        Connected::new().proxy(self.is_forwarded)
    }
}

impl Read for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The proxy to `url`: `direct`, its address, or why there is none.
    fn proxy_to(url: &'static str, variables: Variables) -> String {
        match Proxy::find(&Uri::from_static(url), variables) {
            Ok(Some(proxy)) => proxy.describe(),
            Ok(None) => "direct".to_owned(),
            Err(why) => why,
        }
    }

    fn company(name: &str) -> Option<String> {
        let value = match name {
            "HTTPS_PROXY" => "http://ann:pw@secure.example:3128",
            "http_proxy" => "plain.example:80",
            "NO_PROXY" => "internal.example, 10.0.0.0/8",
            _ => return None,
        };
        Some(value.to_owned())
    }

    #[test]
    fn the_environment_names_the_proxy_to_a_server() {
        for (url, expected) in [
            (
                "https://a.example/mcp",
                "http://secure.example:3128 (`HTTPS_PROXY`)",
            ),
            (
                "http://a.example/mcp",
                "http://plain.example:80 (`http_proxy`)",
            ),
            ("https://internal.example/mcp", "direct"),
            ("https://deep.internal.example/mcp", "direct"),
            ("http://10.1.2.3/mcp", "direct"),
            ("http://localhost:80/mcp", "direct"),
            ("http://127.0.0.1/mcp", "direct"),
            ("http://[::1]/mcp", "direct"),
        ] {
            assert_eq!(proxy_to(url, company), expected, "{url}");
        }
        assert_eq!(proxy_to("https://a.example/", |_| None), "direct");
        assert_eq!(
            proxy_to("https://a.example/", |_| Some(String::new())),
            "direct"
        );
    }

    #[test]
    fn a_proxy_for_http_alone_is_not_used_for_https() {
        fn http(name: &str) -> Option<String> {
            (name == "HTTP_PROXY").then(|| "http://plain.example".to_owned())
        }
        let why = |url, variables| Proxy::why_unused(&Uri::from_static(url), variables);
        let is_for_http =
            |url, variables| why(url, variables).is_some_and(|it| it.contains("HTTP_PROXY"));
        assert!(is_for_http("https://a.example/mcp", http));
        assert_eq!(why("https://localhost/mcp", http), None);
        assert_eq!(why("https://a.example/mcp", |_| None), None);
        // Asked of addresses without a proxy.
        let excluded = Some("it is reached without the proxy, since `NO_PROXY` names it");
        assert_eq!(why("http://a.example/mcp", http), excluded);
        assert_eq!(why("https://a.example/mcp", company), excluded);
    }

    #[test]
    fn a_proxy_for_all_is_used_where_there_is_none_for_the_scheme() {
        fn all(name: &str) -> Option<String> {
            let value = match name {
                "ALL_PROXY" => "http://all.example:1080",
                "HTTP_PROXY" => "http://plain.example",
                "NO_PROXY" => "internal.example",
                _ => return None,
            };
            Some(value.to_owned())
        }
        for (url, expected) in [
            (
                "https://a.example/mcp",
                "http://all.example:1080 (`ALL_PROXY`)",
            ),
            (
                "http://a.example/mcp",
                "http://plain.example (`HTTP_PROXY`)",
            ),
            ("https://internal.example/mcp", "direct"),
        ] {
            assert_eq!(proxy_to(url, all), expected, "{url}");
        }
        let socks: Variables =
            |name| (name == "all_proxy").then(|| "socks5://a.example:1080".to_owned());
        assert_eq!(
            proxy_to("https://a.example/", socks),
            "`all_proxy` is not the URL of a proxy that Vary can use; write `http://HOST:PORT`, or name `a.example` in `NO_PROXY`"
        );
    }

    #[test]
    fn what_is_not_the_url_of_a_proxy_is_named_without_its_value() {
        for variables in [
            (|name| (name != "NO_PROXY").then(|| "socks5://ann:pw@a".to_owned())) as Variables,
            |name| (name != "NO_PROXY").then(|| "https://ann:pw@a".to_owned()),
            |name| (name != "NO_PROXY").then(|| "http://ann:p w@a".to_owned()),
        ] {
            assert_eq!(
                proxy_to("https://a.example/", variables),
                "`HTTPS_PROXY` is not the URL of a proxy that Vary can use; write `http://HOST:PORT`, or name `a.example` in `NO_PROXY`"
            );
        }
    }
}
