//! Documents at fixed addresses: metadata and keys of authorization servers, answers of models and collectors.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use mcp_vary_base::environment::Variables;

use crate::body::{Incoming, without_mark};
use crate::failure::root_cause;
use crate::headers::set_common_headers;
use crate::proxy::Proxy;
use crate::resolver::{AddressFilter, Resolver};
use crate::tls::{self, Connector, TlsFiles};

/// The time in which a connection must be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a document could not be fetched. It never contains a part of the answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The address is not a URL of `http` or `https`.
    #[error("it is not an http:// or https:// URL")]
    Url,
    /// There is no TLS, or the environment names a proxy that cannot be used.
    #[error("{0}")]
    Setup(String),
    /// No answer in time.
    #[error("there was no answer within {0:?}")]
    Timeout(Duration),
    /// The connection failed.
    #[error("{0}")]
    Connection(String),
    /// A redirect. It is not followed: whoever can redirect could choose the answer.
    #[error("it answered with a redirect (HTTP {0}), which is not followed; name the final URL")]
    Redirect(StatusCode),
    /// Another status than 200.
    #[error("it answered with HTTP {0}")]
    Status(StatusCode),
    /// The document is longer than allowed.
    #[error("the document has more than {0} bytes")]
    TooLarge(usize),
}

/// Fetches the document at `url`, of at most `limit` bytes, within `timeout`, through the proxy that `variables` name.
///
/// # Errors
///
/// See [`DocumentError`]. Redirects are not followed.
pub async fn fetch(
    url: &str,
    limit: usize,
    timeout: Duration,
    variables: Variables,
) -> Result<Bytes, DocumentError> {
    let client = DocumentClient::new(url, variables)?;
    client.send(Request::default(), limit, timeout).await
}

/// Posts `body`, JSON text, to `url`, with `authorization` if there is one. Returns the answer of at most `limit` bytes
/// that arrives within `timeout`.
///
/// # Errors
///
/// See [`DocumentError`]. Redirects are not followed: the header would go elsewhere.
pub async fn post_json(
    url: &str,
    body: String,
    authorization: Option<&HeaderValue>,
    limit: usize,
    (timeout, variables): (Duration, Variables),
) -> Result<Bytes, DocumentError> {
    let header = authorization.map(|value| (AUTHORIZATION, value.clone()));
    let headers = header.into_iter().collect();
    let content = ("application/json", body.into());
    let client = DocumentClient::new(url, variables)?;
    client.post(content, headers, (limit, timeout)).await
}

/// A client for one address, whose connection stays open between requests.
#[derive(Debug)]
pub struct DocumentClient {
    url: Uri,
    client: OutgoingClient,
}

impl DocumentClient {
    /// A client for `url`, through the proxy that `variables` name. It connects with the first request.
    ///
    /// # Errors
    ///
    /// See [`DocumentError`].
    pub fn new(url: &str, variables: Variables) -> Result<Self, DocumentError> {
        let url: Uri = url.parse().map_err(|_| DocumentError::Url)?;
        let created = OutgoingClient::new(&url, None, variables, None);
        let client = created.map_err(DocumentError::Setup)?;
        Ok(Self { url, client })
    }

    /// Posts a body of some content type with `headers`. Returns the answer of at most `limit` bytes that arrives within
    /// `timeout`.
    ///
    /// # Errors
    ///
    /// See [`DocumentError`]. Redirects are not followed: the headers would go elsewhere.
    pub async fn post(
        &self,
        (content_type, body): (&'static str, Bytes),
        headers: HeaderMap,
        (limit, timeout): (usize, Duration),
    ) -> Result<Bytes, DocumentError> {
        let mut request = Request::new(Full::from(body));
        *request.method_mut() = Method::POST;
        *request.headers_mut() = headers;
        let content_type = HeaderValue::from_static(content_type);
        request.headers_mut().insert(CONTENT_TYPE, content_type);
        self.send(request, limit, timeout).await
    }

    /// Sends `request`, and returns the answer of at most `limit` bytes that arrives within `timeout`.
    async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
        limit: usize,
        timeout: Duration,
    ) -> Result<Bytes, DocumentError> {
        request.uri_mut().clone_from(&self.url);
        // A document is JSON, unless another kind was sent and is expected back.
        let sent = request.headers().get(CONTENT_TYPE).cloned();
        let accept = sent.unwrap_or(HeaderValue::from_static("application/json"));
        request.headers_mut().insert(ACCEPT, accept);
        let by_proxy = self.client.proxy.as_deref();
        let sending = async {
            let sent = self.client.send(request).await;
            let response = sent.map_err(|error| failed(&error, by_proxy))?;
            match response.status() {
                StatusCode::OK => {}
                status if status.is_redirection() => return Err(DocumentError::Redirect(status)),
                status => return Err(DocumentError::Status(status)),
            }
            let received = Limited::new(response.into_body(), limit).collect().await;
            let body = received.map_err(|error| {
                if error.is::<http_body_util::LengthLimitError>() {
                    DocumentError::TooLarge(limit)
                } else {
                    failed(&*error, by_proxy)
                }
            })?;
            Ok(without_mark(body.to_bytes()))
        };
        let answered = tokio::time::timeout(timeout, sending).await;
        answered.unwrap_or(Err(DocumentError::Timeout(timeout)))
    }
}

/// Why a request that goes elsewhere than to a server has no response.
#[derive(Debug, thiserror::Error)]
pub enum OutgoingError {
    /// There is no TLS, or the environment names a proxy that cannot be used.
    #[error("{0}")]
    Setup(String),
    /// The connection failed.
    #[error("{error}")]
    Transport {
        /// Why.
        #[source]
        error: hyper_util::client::legacy::Error,
        /// The proxy that was asked, and the variable that names it.
        proxy: Option<String>,
    },
}

/// Sends `request` on a connection of its own, through the proxy that `variables` name. The authorities in the file `ca`
/// are trusted, too. `filter` says which addresses may be connected to; that of a proxy may.
///
/// # Errors
///
/// See [`OutgoingError`].
pub async fn send_over(
    request: Request<Full<Bytes>>,
    ca: Option<&Path>,
    variables: Variables,
    filter: Option<AddressFilter>,
) -> Result<Response<Incoming>, OutgoingError> {
    let created = OutgoingClient::new(request.uri(), ca, variables, filter);
    let client = created.map_err(OutgoingError::Setup)?;
    let response = client.send(request).await;
    response.map_err(|error| OutgoingError::Transport {
        error,
        proxy: client.proxy,
    })
}

/// Sends requests to one address, through a proxy if the environment names one.
#[derive(Debug)]
struct OutgoingClient {
    client: Client<Connector, Full<Bytes>>,
    /// What the proxy asks for.
    authorization: Option<HeaderValue>,
    /// The proxy, and the variable that names it.
    proxy: Option<String>,
}

impl OutgoingClient {
    fn new(
        url: &Uri,
        ca: Option<&Path>,
        variables: Variables,
        filter: Option<AddressFilter>,
    ) -> Result<Self, String> {
        let proxy = Proxy::find(url, variables)?;
        let authorization = proxy.as_ref().and_then(Proxy::authorization).cloned();
        let described = proxy.as_ref().map(Proxy::describe);
        let resolver = Resolver {
            filter,
            proxy: proxy.as_ref().map(|it| it.host().to_ascii_lowercase()),
        };
        let files = TlsFiles { ca, client: None };
        let connector = tls::connector(url, CONNECT_TIMEOUT, files, proxy, resolver)?;
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            authorization,
            proxy: described,
        })
    }

    async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, hyper_util::client::legacy::Error> {
        let headers = request.headers_mut();
        set_common_headers(headers);
        if let Some(authorization) = &self.authorization {
            headers.insert(PROXY_AUTHORIZATION, authorization.clone());
        }
        let response = self.client.request(request).await?;
        Ok(Incoming::of_response(response))
    }
}

fn failed(error: &(dyn Error + 'static), proxy: Option<&str>) -> DocumentError {
    let cause = describe_failure(error, None);
    DocumentError::Connection(match proxy {
        Some(proxy) => format!("through the proxy {proxy}: {cause}"),
        None => cause,
    })
}

/// Why a request failed, and what helps if that is known. `ca` is the file of further authorities for its address.
pub fn describe_failure(error: &(dyn Error + 'static), ca: Option<&Path>) -> String {
    let cause = root_cause(error);
    match tls::advice(error, ca) {
        Some(advice) => format!("{cause}; {advice}"),
        None => cause,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// Fetches at most 10 bytes from a server that writes `answer` and closes.
    async fn fetched(answer: &'static str) -> Result<Bytes, DocumentError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let _ = socket.read(&mut [0; 1024]).await.unwrap();
            socket.write_all(answer.as_bytes()).await.unwrap();
        });
        fetch(
            &format!("http://{address}/keys"),
            10,
            Duration::from_secs(5),
            |_| None,
        )
        .await
    }

    #[tokio::test]
    async fn a_document_is_fetched() {
        let document = fetched("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
        assert_eq!(document.unwrap(), "{}");
        let marked = fetched("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n\u{feff}{}").await;
        assert_eq!(marked.unwrap(), "{}");
    }

    #[tokio::test]
    async fn what_is_no_document_says_why() {
        for (answer, expected) in [
            (
                "HTTP/1.1 302 Found\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n",
                "it answered with a redirect (HTTP 302 Found), which is not followed; name the final URL",
            ),
            (
                "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
                "it answered with HTTP 404 Not Found",
            ),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-encoding: zstd\r\n\r\n{}",
                "it is compressed with `zstd`, though Vary accepts no compression",
            ),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{\"keys\":[]}",
                "the document has more than 10 bytes",
            ),
        ] {
            assert_eq!(fetched(answer).await.unwrap_err().to_string(), expected);
        }
        let elsewhere = fetch("ftp://a/", 10, Duration::from_secs(5), |_| None).await;
        let elsewhere = elsewhere.unwrap_err().to_string();
        assert_eq!(
            elsewhere,
            "its address `ftp://a` is neither http:// nor https:// with a host"
        );
    }

    #[tokio::test]
    async fn a_document_is_fetched_through_the_proxy_of_the_environment() {
        static PROXY: OnceLock<String> = OnceLock::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        PROXY.set(format!("http://{address}")).unwrap();
        let proxying = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = [0; 1024];
            let length = socket.read(&mut head).await.unwrap();
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
            socket.write_all(answer).await.unwrap();
            String::from_utf8_lossy(&head[..length]).into_owned()
        });
        let variables: Variables = |name| {
            let is_proxy = matches!(name, "HTTP_PROXY" | "HTTPS_PROXY");
            is_proxy.then(|| PROXY.get().unwrap().clone())
        };
        let limit = Duration::from_secs(5);
        let document = fetch("http://issuer.test/keys", 10, limit, variables).await;
        assert_eq!(document.unwrap(), "{}");
        let head = proxying.await.unwrap();
        assert!(
            head.starts_with("GET http://issuer.test/keys HTTP/1.1\r\n"),
            "{head}"
        );
        assert!(
            head.contains(concat!(
                "\r\nuser-agent: vary/",
                env!("CARGO_PKG_VERSION"),
                "\r\n"
            )) && head.contains("\r\naccept-encoding: identity\r\n"),
            "{head}"
        );
        let error = fetch("https://issuer.test/keys", 10, limit, variables).await;
        let error = error.unwrap_err().to_string();
        let expected = format!("through the proxy http://{address} (`HTTPS_PROXY`): ");
        assert!(error.starts_with(&expected), "{error}");
    }

    #[tokio::test]
    async fn a_server_that_does_not_answer_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let error = fetch(&url, 10, Duration::from_millis(50), |_| None)
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "there was no answer within 50ms");
    }
}
