//! The operator's listener, which shows the status of the gateway and changes nothing.

use http::header::{ALLOW, HeaderValue};
use http::request::Parts;
use http::{Method, Response, StatusCode};

use super::peer;
use super::responses::{Body, typed_response};
use crate::frontend::validation::{Addressing, Rejection};
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::settings::listener::ListenerConfig;
use crate::status::Status;

/// The path of the status.
const STATUS: &str = "/status";

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
        let origin = peer::origin(snapshot, head, None);
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
