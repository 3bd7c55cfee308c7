//! The operator's listeners: the status of the gateway, which changes nothing, and commands, which need the operator's token
//! where others of this machine can connect, too.

use http::header::{ALLOW, AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, Method, Response, StatusCode};
use mcp_vary_operator::{Command, Operator, RefusedCommand};
use serde_json::json;

use super::peer;
use super::responses::{Body, rejected, typed_response};
use crate::frontend::validation::{Addressing, Rejection};
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::settings::listener::ListenerConfig;
use crate::status::Status;

/// The path of the status.
const STATUS: &str = "/status";

/// Answers a request to the operator's listener, and records it if there is an audit log.
pub(super) async fn recorded_response(
    snapshot: &ConfigSnapshot,
    head: &Parts,
    needs_token: bool,
) -> Response<Body> {
    let response = respond(snapshot, head, needs_token)
        .await
        .unwrap_or_else(rejected);
    if let Some(audit) = &snapshot.services.audit {
        let request = format!("{} {}", head.method, head.uri.path());
        let origin = peer::origin(snapshot, head, None);
        let config = snapshot.config.digest.as_ref();
        audit.admin_request(&request, response.status(), &origin, config);
    }
    response
}

/// Answers a request to the operator's listener.
async fn respond(
    snapshot: &ConfigSnapshot,
    head: &Parts,
    needs_token: bool,
) -> Result<Response<Body>, Rejection> {
    Addressing::new(&ListenerConfig::default(), true).check(&head.uri, &head.headers)?;
    let path = head.uri.path();
    let operator = snapshot.services.operator.as_ref();
    let command = operator.and_then(|operator| Some((operator, Command::at(path)?)));
    let method = match (path, command) {
        (STATUS, _) => Method::GET,
        (_, Some(_)) => Method::POST,
        (_, None) => {
            return Err(Rejection {
                status: StatusCode::NOT_FOUND,
                reason: format!("there is nothing here; the status is at {STATUS}"),
            });
        }
    };
    if head.method != method {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        let allowed = HeaderValue::from_static(match method {
            Method::POST => "POST",
            _ => "GET",
        });
        response.headers_mut().insert(ALLOW, allowed);
        return Ok(response);
    }
    let Some((operator, command)) = command else {
        let status = serde_json::to_string(&Status::of(snapshot)).unwrap_or_default();
        return Ok(json_response(StatusCode::OK, status));
    };
    if needs_token && !is_admitted(operator, &head.headers) {
        return Ok(unauthorized());
    }
    Ok(match operator.run(command).await {
        Ok(message) => json_response(StatusCode::OK, json!({"message": message}).to_string()),
        Err(refused) => {
            let status = match &refused {
                RefusedCommand::Stopping => StatusCode::CONFLICT,
                _ => StatusCode::UNPROCESSABLE_ENTITY,
            };
            json_response(status, json!({"error": refused.to_string()}).to_string())
        }
    })
}

/// Whether a request has the operator's token, once.
fn is_admitted(operator: &Operator, headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let first = values.next();
    values.next().is_none() && first.is_some_and(|value| operator.admits(value.as_bytes()))
}

fn unauthorized() -> Response<Body> {
    let why = "the token is missing or wrong; send `Authorization: Bearer TOKEN` with `admin-token` of the configuration, or \
         without one with the token that this gateway wrote into its state directory";
    let body = json!({"error": why}).to_string();
    let mut response = json_response(StatusCode::UNAUTHORIZED, body);
    let challenge = HeaderValue::from_static("Bearer");
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    response
}

fn json_response(status: StatusCode, body: String) -> Response<Body> {
    let body = Body::from(bytes::Bytes::from(body));
    typed_response(status, "application/json", body)
}
