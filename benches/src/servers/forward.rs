//! The limit of a call: an HTTP proxy that reads only the envelope.
//!
//! It replaces the id of each request, forwards the request over a pooled connection with its headers, and restores the
//! client's id in the answer. No proxy of JSON-RPC can do less.

use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use clap::Parser;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{empty, serve_http};

/// The limit of a call.
#[derive(Debug, Parser)]
pub(crate) struct Options {
    /// The URL of the upstream server
    #[arg(long)]
    to: Uri,
}

struct Proxy {
    to: Uri,
    client: Client<HttpConnector, Full<Bytes>>,
    next: Cell<u64>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// Serves until standard input closes.
pub(crate) fn serve(options: Options) -> io::Result<()> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let proxy = Rc::new(Proxy {
        to: options.to,
        client: Client::builder(TokioExecutor::new()).build(connector),
        next: Cell::new(1),
    });
    serve_http("/mcp", move |request| {
        let proxy = Rc::clone(&proxy);
        async move { proxy.respond(request).await }
    })
}

impl Proxy {
    async fn respond(&self, request: Request<Incoming>) -> Response<Body> {
        let answered = self.forward(request).await;
        answered.unwrap_or_else(|| empty(StatusCode::BAD_GATEWAY))
    }

    async fn forward(&self, request: Request<Incoming>) -> Option<Response<Body>> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.ok()?.to_bytes();
        let envelope: Envelope<'_> = serde_json::from_slice(&body).ok()?;
        let (id, sent) = match envelope.method {
            Some(_) => self.upward(&envelope)?,
            // A response to a server request has the server's id.
            None => (None, body.clone()),
        };
        let mut request = Request::new(Full::new(sent));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.to.clone();
        *request.headers_mut() = end_to_end(head.headers);
        let response = self.client.request(request).await.ok()?;
        let (head, body) = response.into_parts();
        let body = match id {
            Some(id) if is_stream(&head.headers) => Body::events(body, id),
            Some(id) => Body::whole(with_id(&body.collect().await.ok()?.to_bytes(), &id)?),
            None => Body::default(),
        };
        let mut response = Response::new(body);
        *response.status_mut() = head.status;
        *response.headers_mut() = end_to_end(head.headers);
        Some(response)
    }

    /// The client's id, and the message with an id of the proxy.
    fn upward(&self, envelope: &Envelope<'_>) -> Option<(Option<String>, Bytes)> {
        let method = envelope.method?.get();
        let mut sent = String::with_capacity(96 + envelope.params.map_or(0, |p| p.get().len()));
        sent.push_str(r#"{"jsonrpc":"2.0","#);
        if envelope.id.is_some() {
            let id = self.next.replace(self.next.get() + 1);
            sent.push_str(r#""id":"#);
            sent.push_str(&id.to_string());
            sent.push(',');
        }
        sent.push_str(r#""method":"#);
        sent.push_str(method);
        if let Some(params) = envelope.params {
            sent.push_str(r#","params":"#);
            sent.push_str(params.get());
        }
        sent.push('}');
        Some((envelope.id.map(|id| id.get().to_owned()), sent.into()))
    }
}

/// The headers that are not about one connection.
fn end_to_end(mut headers: HeaderMap) -> HeaderMap {
    for name in [HOST, CONTENT_LENGTH, CONNECTION, TRANSFER_ENCODING] {
        headers.remove(name);
    }
    headers
}

fn is_stream(headers: &HeaderMap) -> bool {
    let media = headers.get(CONTENT_TYPE);
    media.is_some_and(|media| media.as_bytes().starts_with(b"text/event-stream"))
}

/// An answer with the client's id, or an unchanged notification.
fn with_id(message: &[u8], id: &str) -> Option<Bytes> {
    let envelope: Envelope<'_> = serde_json::from_slice(message).ok()?;
    let (key, value) = match (envelope.result, envelope.error) {
        (Some(result), _) => ("result", result.get()),
        (None, Some(error)) => ("error", error.get()),
        (None, None) => return Some(Bytes::copy_from_slice(message)),
    };
    let mut answer = String::with_capacity(40 + id.len() + value.len());
    answer.push_str(r#"{"jsonrpc":"2.0","id":"#);
    answer.push_str(id);
    answer.push_str(",\"");
    answer.push_str(key);
    answer.push_str("\":");
    answer.push_str(value);
    answer.push('}');
    Some(answer.into())
}

/// One message, or the events of a stream as they arrive.
#[derive(Default)]
struct Body {
    whole: Option<Bytes>,
    stream: Option<Events>,
}

struct Events {
    body: Incoming,
    /// The beginning of an event whose end has not arrived yet.
    partial: BytesMut,
    id: String,
}

impl Body {
    fn whole(message: Bytes) -> Self {
        Self {
            whole: Some(message),
            stream: None,
        }
    }

    fn events(body: Incoming, id: String) -> Self {
        Self {
            whole: None,
            stream: Some(Events {
                body,
                partial: BytesMut::new(),
                id,
            }),
        }
    }
}

impl Events {
    /// The complete events so far. The answer among them gets the client's id.
    fn take(&mut self) -> Option<Bytes> {
        let end = self.partial.windows(2).rposition(|two| two == b"\n\n")? + 2;
        let events = self.partial.split_to(end);
        let mut out = BytesMut::with_capacity(events.len() + 16);
        for line in events.split_inclusive(|byte| *byte == b'\n') {
            match line.strip_prefix(b"data: ") {
                Some(data) => {
                    out.extend_from_slice(b"data: ");
                    out.extend_from_slice(&with_id(data, &self.id)?);
                    out.extend_from_slice(b"\n");
                }
                None => out.extend_from_slice(line),
            }
        }
        Some(out.freeze())
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(events) = self.take() {
                return Poll::Ready(Some(events));
            }
            let Some(Ok(frame)) = ready!(Pin::new(&mut self.body).poll_frame(cx)) else {
                return Poll::Ready(None);
            };
            if let Ok(data) = frame.into_data() {
                self.partial.extend_from_slice(&data);
            }
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = match &mut self.stream {
            Some(events) => ready!(events.poll(cx)),
            None => self.whole.take(),
        };
        Poll::Ready(data.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_none() && self.whole.is_none()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match self.stream {
            Some(_) => http_body::SizeHint::default(),
            None => {
                http_body::SizeHint::with_exact(self.whole.as_ref().map_or(0, Bytes::len) as u64)
            }
        }
    }
}
