//! The transport of the scripted server.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use mcp_vary_conformance::Target;
use serde_json::Value;
use tokio::net::TcpListener;

use super::{Peer, SELECTOR};

/// Starts a server with a fault on a port of its own.
pub(crate) async fn start(fault: &'static str) -> Target {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let peer = Arc::new(Peer::new(fault));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let peer = Arc::clone(&peer);
            let service = service_fn(move |request| respond(Arc::clone(&peer), request));
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    Target::http(&format!("http://{address}/mcp")).unwrap()
}

/// Starts a server that accepts connections and answers nothing.
pub(crate) async fn silent() -> Target {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut streams = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            streams.push(stream);
        }
    });
    Target::http(&format!("http://{address}/mcp")).unwrap()
}

async fn respond(
    peer: Arc<Peer>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let mut response = Response::new(Full::default());
    if head.method != Method::POST {
        return Ok(response);
    }
    let mut message: Value =
        serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap();
    if message.get("id").is_none() {
        *response.status_mut() = StatusCode::ACCEPTED;
        return Ok(response);
    }
    let session = head
        .headers
        .get("mcp-session-id")
        .map(|session| session.to_str().unwrap());
    if let (Some(variant), true) = (
        head.headers.get("mcp-server-variant"),
        peer.has("SV-18/meta-wins-over-the-header"),
    ) {
        message["params"]["_meta"][SELECTOR] = variant.to_str().unwrap().into();
    }
    if session.is_none() && message["method"] != "initialize" {
        let expected = message["method"].as_str().unwrap();
        assert_eq!(head.headers["mcp-method"], expected);
        assert_eq!(head.headers["mcp-protocol-version"], "2026-07-28");
    }
    let is_guest = head
        .headers
        .get("x-principal")
        .is_some_and(|it| it == "guest");
    let Some((answer, opened)) = peer.answer(&message, session, is_guest) else {
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        return Ok(response);
    };
    if let Some(opened) = opened {
        let id = HeaderValue::try_from(opened).unwrap();
        response.headers_mut().insert("mcp-session-id", id);
    }
    // Calls are answered with a stream, which has something else first.
    let (kind, text) = if message["method"] == "tools/call" {
        let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
        (
            "text/event-stream",
            format!("data: {log}\n\ndata: {answer}\n\n"),
        )
    } else {
        ("application/json", answer.to_string())
    };
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    *response.body_mut() = Full::from(text);
    Ok(response)
}
