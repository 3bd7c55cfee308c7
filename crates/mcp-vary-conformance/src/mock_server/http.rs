//! The mock server over streamable HTTP, on a port of this machine.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::era::Era;
use crate::json::text_at;
use crate::transport::http::SESSION;

use super::{MESSAGE, MockServer, Sink, WAITING};

/// How long a response is ahead of the changes that follow from its request.
pub(super) const HEAD_START: Duration = Duration::from_millis(100);

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Accepts connections until this is dropped.
pub(crate) async fn serve(listener: TcpListener, server: Arc<MockServer>) {
    while let Ok((stream, _)) = listener.accept().await {
        let server = Arc::clone(&server);
        let service = service_fn(move |request| respond(Arc::clone(&server), request));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn respond(
    server: Arc<MockServer>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    Ok(match (request.method(), server.era) {
        (&Method::POST, _) => post(server, request).await,
        (&Method::GET, Era::Legacy) => {
            let (sink, body) = event_stream();
            server.open_stream(&sink);
            server.send_changes();
            events(body)
        }
        (&Method::DELETE, Era::Legacy) => status(StatusCode::OK),
        _ => status(StatusCode::METHOD_NOT_ALLOWED),
    })
}

async fn post(server: Arc<MockServer>, request: Request<Incoming>) -> Response<Body> {
    let Ok(body) = Limited::new(request.into_body(), MESSAGE).collect().await else {
        return status(StatusCode::PAYLOAD_TOO_LARGE);
    };
    let Ok(message) = serde_json::from_slice::<Value>(&body.to_bytes()) else {
        return status(StatusCode::BAD_REQUEST);
    };
    let method = text_at(&message, &["method"]).unwrap_or_default();
    let opens_session = method == "initialize";
    let opens_stream = method == "subscriptions/listen" && server.era == Era::Modern;
    let (sink, stream) = event_stream();
    let answer = server.receive(message, opens_stream.then_some(&sink));
    drop(sink);
    tokio::spawn(async move {
        sleep(HEAD_START).await;
        server.send_changes();
    });
    let Some(answer) = answer else {
        return if opens_stream {
            events(stream)
        } else {
            status(StatusCode::ACCEPTED)
        };
    };
    let mut response = Response::new(Full::new(Bytes::from(answer.to_string())).boxed_unsync());
    if answer["error"]["code"] == -32022 {
        *response.status_mut() = StatusCode::BAD_REQUEST;
    }
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if opens_session && answer.get("result").is_some() {
        headers.insert(SESSION, HeaderValue::from_static("mock-session"));
    }
    response
}

fn status(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Full::default().boxed_unsync());
    *response.status_mut() = status;
    response
}

fn event_stream() -> (Sink, mpsc::Receiver<Value>) {
    mpsc::channel(WAITING)
}

/// A response of server-sent events, which stays open until the server drops its end.
fn events(messages: mpsc::Receiver<Value>) -> Response<Body> {
    let frames = stream::unfold(messages, async |mut messages| {
        let message = messages.recv().await?;
        let event = format!("event: message\ndata: {message}\n\n");
        Some((Ok(Frame::data(Bytes::from(event))), messages))
    });
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
