//! Requests for metadata and tokens: bounded, and only to addresses that the policy permits.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use mcp_vary_base::environment::Variables;
use mcp_vary_http_client::body::without_mark;
use mcp_vary_http_client::document::{OutgoingError, describe_failure, send_over};
use mcp_vary_http_client::resolver::AddressFilter;
use serde_json::{Map, Value};

use crate::address::{Address, AddressError, AddressPolicy};

/// Why a request got no answer that can be used. It never contains a part of the request or of the answer.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The address cannot be used.
    #[error("{0}")]
    Address(#[from] AddressError),
    /// There is no TLS, or the environment names a proxy that cannot be used.
    #[error("{0}")]
    Setup(String),
    /// No answer in time.
    #[error("there was no answer within {0:?}")]
    Timeout(Duration),
    /// The connection failed.
    #[error("it cannot be reached: {0}")]
    Connection(String),
    /// The answer is longer than allowed.
    #[error("the answer has more than {MAX_ANSWER} bytes")]
    TooLarge,
    /// The answer is a redirect, or another status that was not expected.
    #[error("it answered with HTTP {0}")]
    Status(StatusCode),
    /// The answer is not the JSON object that was expected.
    #[error("the answer is not the JSON object that the specification describes")]
    Malformed,
}

/// A client for the requests on behalf of one server. It follows no redirect: the addresses were chosen by others, and
/// secrets are in the requests.
#[derive(Clone, Debug)]
pub(crate) struct HttpClient {
    policy: Arc<AddressPolicy>,
    /// The file of authorities that are trusted beside those of the system.
    ca: Option<PathBuf>,
    /// The environment variables that name proxies.
    variables: Variables,
}

/// An answer, whatever its status.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn new(head: http::response::Parts, body: Bytes) -> Self {
        Self {
            status: head.status,
            headers: head.headers,
            body: without_mark(body),
        }
    }

    /// The body as a value.
    pub(crate) fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, HttpError> {
        let object = self.object().ok_or(HttpError::Malformed)?;
        serde_json::from_value(object.into()).map_err(|_| HttpError::Malformed)
    }

    /// The members of the JSON object that the body is. Those that are `null` count as absent.
    pub(crate) fn object(&self) -> Option<Map<String, Value>> {
        let mut object: Map<String, Value> = serde_json::from_slice(&self.body).ok()?;
        object.retain(|_, value| !value.is_null());
        Some(object)
    }
}

impl HttpClient {
    pub(crate) fn new(policy: AddressPolicy, ca: Option<PathBuf>, variables: Variables) -> Self {
        Self {
            policy: Arc::new(policy),
            ca,
            variables,
        }
    }

    /// The same client with another policy.
    pub(crate) fn with_policy(&self, policy: AddressPolicy) -> Self {
        Self::new(policy, self.ca.clone(), self.variables)
    }

    /// Parses an address that may be asked.
    pub(crate) fn check(&self, url: &str) -> Result<Address, AddressError> {
        self.policy.check(url)
    }

    /// Gets the document at `url`.
    pub(crate) async fn get(&self, url: &str) -> Result<Answer, HttpError> {
        self.send(url, Request::new(Full::default())).await
    }

    /// Posts a form, with `authorization` if there is one.
    pub(crate) async fn post_form(
        &self,
        url: &str,
        form: String,
        authorization: Option<HeaderValue>,
    ) -> Result<Answer, HttpError> {
        let mut request = post(form, "application/x-www-form-urlencoded");
        if let Some(authorization) = authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization);
        }
        self.send(url, request).await
    }

    /// Posts JSON text.
    pub(crate) async fn post_json(&self, url: &str, body: String) -> Result<Answer, HttpError> {
        self.send(url, post(body, "application/json")).await
    }

    async fn send(
        &self,
        url: &str,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Answer, HttpError> {
        let address = self.check(url)?;
        request.uri_mut().clone_from(address.uri());
        let accept = HeaderValue::from_static("application/json, text/event-stream;q=0.5");
        request.headers_mut().insert(ACCEPT, accept);
        let ca = self.ca.as_deref();
        let policy = Arc::clone(&self.policy);
        let filter: AddressFilter = Arc::new(move |host, mut found| {
            found.retain(|address| policy.permits(host, address.ip()));
            match &found[..] {
                [] => Err(io::Error::other(AddressError::Private)),
                _ => Ok(found),
            }
        });
        let sending = async {
            let sent = send_over(request, ca, self.variables, Some(filter)).await;
            let response = sent.map_err(|error| match error {
                OutgoingError::Transport { error, proxy } => {
                    through(proxy.as_deref(), failed(&error, ca))
                }
                error => HttpError::Setup(error.to_string()),
            })?;
            let (head, body) = response.into_parts();
            // A stream may never end, and nothing that is asked for here is one.
            if has_type(&head.headers, "text/event-stream") {
                return Ok(Answer::new(head, Bytes::new()));
            }
            match Limited::new(body, MAX_ANSWER).collect().await {
                Ok(body) => Ok(Answer::new(head, body.to_bytes())),
                Err(error) if !error.is::<LengthLimitError>() => Err(failed(&*error, ca)),
                // A web page is no document, however long it is.
                Err(_) if has_type(&head.headers, "text/html") => {
                    Ok(Answer::new(head, Bytes::new()))
                }
                Err(_) => Err(HttpError::TooLarge),
            }
        };
        let answered = tokio::time::timeout(TIMEOUT, sending).await;
        answered.unwrap_or(Err(HttpError::Timeout(TIMEOUT)))
    }
}

fn post(body: String, content_type: &'static str) -> Request<Full<Bytes>> {
    let mut request = Request::post("/")
        .body(Full::from(body))
        .unwrap_or_default();
    let content_type = HeaderValue::from_static(content_type);
    request.headers_mut().insert(CONTENT_TYPE, content_type);
    request
}

fn has_type(headers: &HeaderMap, media_type: &str) -> bool {
    let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let start = content_type.and_then(|value| value.get(..media_type.len()));
    start.is_some_and(|start| start.eq_ignore_ascii_case(media_type.as_bytes()))
}

/// What is wrong. `ca` is the file of further authorities.
fn failed(error: &(dyn Error + 'static), ca: Option<&Path>) -> HttpError {
    let mut causes = std::iter::successors(Some(error), |&error| error.source());
    let refused = causes.find_map(|cause| {
        let inner = cause.downcast_ref::<io::Error>()?.get_ref()?;
        inner.downcast_ref::<AddressError>().copied()
    });
    if let Some(refused) = refused {
        return HttpError::Address(refused);
    }
    HttpError::Connection(describe_failure(error, ca))
}

/// The failure of a connection, with the proxy that was asked.
fn through(proxy: Option<&str>, error: HttpError) -> HttpError {
    match (proxy, error) {
        (Some(proxy), HttpError::Connection(why)) => {
            HttpError::Connection(format!("through the proxy {proxy}: {why}"))
        }
        (_, error) => error,
    }
}

/// The largest answer, in bytes.
const MAX_ANSWER: usize = 64 << 10;
/// The time for one request.
const TIMEOUT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use mcp_vary_testkit::wait::soon;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    fn client(ca: Option<PathBuf>, variables: Variables) -> HttpClient {
        let server = Address::parse("https://mcp.example/mcp").unwrap();
        HttpClient::new(AddressPolicy::new(&server, None), ca, variables)
    }

    /// The proxy may be on this machine or in a private network, other than what it is asked for.
    #[tokio::test]
    async fn requests_go_through_the_proxy_of_the_environment() {
        static PROXY: OnceLock<String> = OnceLock::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        PROXY.set(format!("http://LOCALHOST:{port}")).unwrap();
        let proxying = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = [0; 1024];
            let length = socket.read(&mut head).await.unwrap();
            let refused = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n";
            socket.write_all(refused).await.unwrap();
            String::from_utf8_lossy(&head[..length]).into_owned()
        };
        let client = client(None, |name| {
            (name == "HTTPS_PROXY").then(|| PROXY.get().unwrap().clone())
        });
        let getting = client.get("https://idp.example/metadata");
        let (answer, head) = soon(async { tokio::join!(getting, proxying) }).await;
        assert!(matches!(answer.err(), Some(HttpError::Connection(_))));
        assert!(
            head.starts_with("CONNECT idp.example:443 HTTP/1.1\r\n"),
            "{head}"
        );
        let private = client.get("https://127.0.0.1/metadata").await;
        let refused = HttpError::Address(AddressError::Private);
        assert_eq!(private.err(), Some(refused));
    }

    /// Nothing is sent to a name that somebody has pointed at this machine.
    #[tokio::test]
    async fn a_name_with_a_private_address_is_not_connected_to() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = format!("https://localhost:{port}/metadata");
        let refused = soon(client(None, |_| None).get(&url)).await.err();
        assert_eq!(refused, Some(HttpError::Address(AddressError::Private)));
        let connecting = tokio::time::timeout(Duration::from_millis(50), listener.accept());
        assert!(connecting.await.is_err());
    }

    /// The head arrives, and the rest of the answer never does.
    #[tokio::test(start_paused = true)]
    async fn an_answer_that_does_not_end_within_five_seconds_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/metadata", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let length = socket.read(&mut [0; 1024]).await.unwrap();
            assert_ne!(length, 0);
            let head = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{";
            socket.write_all(head).await.unwrap();
            std::future::pending::<()>().await
        });
        let server = Address::parse(&url).unwrap();
        let client = HttpClient::new(AddressPolicy::new(&server, None), None, |_| None);
        let began = tokio::time::Instant::now();
        let error = client.get(&url).await.err();
        assert_eq!(error, Some(HttpError::Timeout(Duration::from_secs(5))));
        assert_eq!(began.elapsed().as_secs(), 5);
    }

    #[tokio::test]
    async fn the_authorities_of_the_server_are_read() {
        let client = client(Some("/nonexistent/ca.pem".into()), |_| None);
        let error = client.get("https://idp.example/").await.err();
        let Some(HttpError::Setup(why)) = error else {
            panic!("{error:?}");
        };
        assert!(
            why.starts_with("`ca`: /nonexistent/ca.pem cannot be read"),
            "{why}"
        );
    }
}
