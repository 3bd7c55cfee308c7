//! The streamable HTTP transport: one POST for each message, answered with JSON or server-sent events.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::time::timeout;

use crate::sse::EventReader;
use crate::target::Target;

/// The most bytes of a response that are read.
const BODY_LIMIT: usize = 4 << 20;

pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// A client of one endpoint.
pub(crate) struct Http {
    client: Client<HttpConnector, Full<Bytes>>,
    target: Target,
    limit: Duration,
}

/// A response to a POST.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) session: Option<HeaderValue>,
    /// The JSON-RPC response, if the body has one for the request.
    pub(crate) message: Option<Value>,
    /// The body, as far as it was read.
    pub(crate) body: String,
}

impl Http {
    /// `limit` is the longest that one request may take, with its response.
    pub(crate) fn new(target: &Target, limit: Duration) -> Self {
        Self {
            client: Client::builder(TokioExecutor::new()).build_http(),
            target: target.clone(),
            limit,
        }
    }

    /// Sends `body`, and reads until the response to the request `id` is there. Notifications have no `id`.
    pub(crate) async fn post(
        &self,
        headers: HeaderMap,
        body: String,
        id: Option<u64>,
    ) -> Result<Reply, String> {
        let mut request = self.request(Method::POST, headers, body);
        let accepted = HeaderValue::from_static("application/json, text/event-stream");
        request.headers_mut().insert(ACCEPT, accepted);
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(CONTENT_TYPE, json);
        let exchange = async {
            let response = self.client.request(request).await;
            read(response.map_err(|error| sentence(&error))?, id).await
        };
        timeout(self.limit, exchange)
            .await
            .map_err(|_| format!("no response within {} s", self.limit.as_secs()))?
    }

    /// Ends a session, as a client should. What the server says to it does not matter here.
    pub(crate) async fn end_session(&self, session: HeaderValue) {
        let headers = HeaderMap::from_iter([(SESSION, session)]);
        let request = self.request(Method::DELETE, headers, String::new());
        _ = timeout(Duration::from_secs(1), self.client.request(request)).await;
    }

    fn request(
        &self,
        method: Method,
        mut headers: HeaderMap,
        body: String,
    ) -> Request<Full<Bytes>> {
        for (name, value) in self.target.headers() {
            headers.append(name, value.clone());
        }
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = method;
        *request.uri_mut() = self.target.uri().clone();
        *request.headers_mut() = headers;
        request
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Http").field(&self.target).finish()
    }
}

async fn read(response: Response<Incoming>, id: Option<u64>) -> Result<Reply, String> {
    let (head, mut body) = response.into_parts();
    let content_type = head.headers.get(CONTENT_TYPE);
    let is_stream = content_type
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.starts_with("text/event-stream"));
    let mut events = EventReader::default();
    let mut bytes = Vec::new();
    let mut message = None;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| sentence(&error))?.into_data() else {
            continue;
        };
        if bytes.len() + data.len() > BODY_LIMIT {
            return Err(format!("the response is larger than {BODY_LIMIT} bytes"));
        }
        bytes.extend_from_slice(&data);
        if is_stream {
            message = events
                .read(&data)
                .into_iter()
                .find_map(|event| response_to(&event, id));
            if message.is_some() {
                break;
            }
        }
    }
    if !is_stream {
        message = response_to(&bytes, id);
    }
    Ok(Reply {
        status: head.status.as_u16(),
        session: head.headers.get(SESSION).cloned(),
        message,
        body: String::from_utf8_lossy(&bytes).into_owned(),
    })
}

/// `json` as a message, if it is the response to the request `id`. An error without an id is one, too: the server could
/// not read the request's.
fn response_to(json: &[u8], id: Option<u64>) -> Option<Value> {
    let message: Value = serde_json::from_slice(json).ok()?;
    let is_response = message.get("result").is_some() || message.get("error").is_some();
    let answered = message.get("id").and_then(Value::as_u64);
    let is_ours = answered == id || (answered.is_none() && message.get("error").is_some());
    (is_response && is_ours).then_some(message)
}

/// An error with its causes.
fn sentence(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
