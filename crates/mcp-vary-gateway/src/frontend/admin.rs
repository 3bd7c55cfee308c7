//! The operator's listener, which shows the status of the gateway and changes nothing.

use std::io;
use std::sync::Arc;

use http::header::{ALLOW, HeaderValue};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use tokio::net::TcpListener;

use super::http::HttpServer;
use super::listener_kind::ListenerKind;
use super::recording;
use super::responses::typed_response;
use crate::frontend::sse_body::Body;
use crate::frontend::validation::{Addressing, Rejection};
use crate::gateway::Gateway;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::settings::listener::ListenerConfig;
use crate::status::Status;

/// The path of the status.
const STATUS: &str = "/status";

impl Gateway {
    /// Answers `GET /status` with the [`Status`](crate::Status) as JSON until `shutdown`.
    ///
    /// It is for the operator on this machine. Requests from pages of other origins, and under other names of the
    /// machine, are refused as they are on the MCP endpoint. The status contains no secrets.
    ///
    /// # Errors
    ///
    /// When `listener` is not on a loopback address.
    pub async fn serve_admin(
        self: &Arc<Self>,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() {
            let why = format!(
                "{address} can be reached from other machines, and the status is for this one; listen on 127.0.0.1:{}",
                address.port()
            );
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        let server = HttpServer::new(ListenerKind::Admin, self);
        self.serve(server, listener, shutdown, None).await
    }
}

/// Answers a request to the operator's listener, and records it if there is an audit log.
pub(super) fn recorded_response(
    snapshot: &ConfigSnapshot,
    head: &Parts,
) -> Result<Response<Body>, Rejection> {
    let response = respond(snapshot, head);
    if let Some(audit) = &snapshot.services.audit {
        let status = match &response {
            Ok(response) => response.status(),
            Err(rejection) => rejection.status,
        };
        let request = format!("{} {}", head.method, head.uri.path());
        let origin = recording::origin(snapshot, head, None);
        audit.admin_request(&request, status, &origin, snapshot.config.digest.as_ref());
    }
    response
}

/// Answers a request to the operator's listener.
fn respond(snapshot: &ConfigSnapshot, head: &Parts) -> Result<Response<Body>, Rejection> {
    Addressing::new(&ListenerConfig::default(), true).check(&head.uri, &head.headers)?;
    if head.uri.path() != STATUS {
        return Err(Rejection {
            status: StatusCode::NOT_FOUND,
            reason: format!("there is nothing here; the status is at {STATUS}"),
        });
    }
    if head.method != Method::GET {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        let allowed = HeaderValue::from_static("GET");
        response.headers_mut().insert(ALLOW, allowed);
        return Ok(response);
    }
    let status = serde_json::to_string(&Status::of(snapshot)).unwrap_or_default();
    let body = Body::from(bytes::Bytes::from(status));
    Ok(typed_response(StatusCode::OK, "application/json", body))
}
