//! The operator's listeners: the status of the gateway, its page, and commands. If other users of this machine can connect,
//! every request needs the operator's token. Without a page, `/status` alone needs none, but then leaves out people and what
//! programs wrote to standard error.

use std::sync::Arc;
use std::time::Instant;

use http::header::{AUTHORIZATION, CACHE_CONTROL, HeaderValue, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use mcp_vary_operator::{
    Command, Operator, PAGE_CODE, PAGE_TOKEN, PageAccess, PageBody, RefusedCommand,
};
use mcp_vary_wire::endpoint_path::{ENDPOINT, EndpointPath};
use serde_json::json;

use super::authentication::{self, Authenticated};
use super::request_body::RequestBody;
use super::responses::{Body, Stream, not_allowed, rejected, typed_response};
use super::stopping::Stopping;
use super::{peer, post};
use crate::frontend::validation::{Addressing, Rejection};
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::readings;
use crate::status::Status;
use mcp_vary_settings::listener::ListenerConfig;

/// The path of the status.
const STATUS: &str = "/status";

/// Answers a request to the operator's listener, and records it if there is an audit log.
pub(super) async fn recorded_response(
    snapshot: &Arc<ConfigSnapshot>,
    head: &Parts,
    body: RequestBody,
    needs_token: bool,
    stopping: &Stopping,
) -> Response<Body> {
    let response = respond(snapshot, head, body, needs_token, stopping)
        .await
        .unwrap_or_else(rejected);
    if let Some(audit) = &snapshot.services.observers.audit {
        let request = format!("{} {}", head.method, head.uri.path());
        let origin = peer::origin(snapshot, head, None);
        let config = snapshot.config.digest.as_ref();
        audit.admin_request(&request, response.status(), &origin, config);
    }
    response
}

/// Answers a request to the operator's listener.
async fn respond(
    snapshot: &Arc<ConfigSnapshot>,
    head: &Parts,
    body: RequestBody,
    needs_token: bool,
    stopping: &Stopping,
) -> Result<Response<Body>, Rejection> {
    Addressing::new(&ListenerConfig::default(), true).check(&head.uri, &head.headers)?;
    let path = head.uri.path();
    let operator = snapshot.services.operator.as_ref();
    let command = operator.and_then(|operator| Some((operator, Command::at(path)?)));
    let method = match (path, command) {
        (STATUS, _) => "GET",
        (_, Some(_)) => "POST",
        (_, None) => return page(snapshot, head, body, needs_token, stopping).await,
    };
    if head.method != method {
        return Ok(not_allowed(method));
    }
    let Some((operator, command)) = command else {
        let is_reader = !needs_token || may_read(snapshot, head).await;
        if !is_reader && operator.is_some_and(Operator::has_page) {
            return Ok(unauthorized(NO_TOKEN));
        }
        return Ok(status(snapshot, head.uri.query() == Some("tokens"), is_reader).await);
    };
    if needs_token && !is_admitted(&head.headers, |value| operator.admits(value)) {
        return Ok(unauthorized(NO_TOKEN));
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

/// Whether the sender of a request may read what the page shows.
async fn may_read(snapshot: &ConfigSnapshot, head: &Parts) -> bool {
    let operator = snapshot.services.operator.as_ref();
    let admits = |value: &[u8]| operator.is_some_and(|operator| operator.admits_to_page(value));
    is_admitted(&head.headers, admits) || reader(snapshot, head).await.is_some()
}

/// The status, with its people for a reader, and with the tokens of lists if they are requested.
async fn status(
    snapshot: &Arc<ConfigSnapshot>,
    has_tokens: bool,
    is_reader: bool,
) -> Response<Body> {
    let snapshot = Arc::clone(snapshot);
    // Tokens of lists that have changed are counted, which would hold up other requests.
    let written = tokio::task::spawn_blocking(move || {
        let whole = Status::of(&snapshot);
        let status = if is_reader {
            whole
        } else {
            whole.without_people()
        };
        let counted = has_tokens.then(|| readings::list_tokens(&snapshot));
        serde_json::to_string(&status.with_tokens(counted.unwrap_or_default()))
    });
    let text = written.await.ok().and_then(Result::ok);
    json_response(StatusCode::OK, text.unwrap_or_default())
}

/// The response of the page, if the program has one.
async fn page(
    snapshot: &ConfigSnapshot,
    head: &Parts,
    body: RequestBody,
    needs_token: bool,
    stopping: &Stopping,
) -> Result<Response<Body>, Rejection> {
    let operator = snapshot.services.operator.as_ref();
    let page = operator.and_then(|operator| Some((operator, operator.page()?)));
    let (operator, page) = page.ok_or_else(|| Rejection {
        status: StatusCode::NOT_FOUND,
        reason: format!("there is nothing here; the status is at {STATUS}"),
    })?;
    let has_token = || is_admitted(&head.headers, |value| operator.admits_to_page(value));
    let is_operator = !needs_token || has_token();
    if let Some(response) = page_session(snapshot, head, operator, is_operator) {
        return Ok(response);
    }
    let reader = if is_operator {
        None
    } else {
        reader(snapshot, head).await
    };
    let access = match (is_operator, &reader) {
        (true, _) => PageAccess::Full,
        (false, Some(reader)) => {
            let id = reader.admission.principal.id();
            PageAccess::Read(u128::from_be_bytes(*id.as_bytes()))
        }
        (false, None) => PageAccess::None,
    };
    let read = match access {
        PageAccess::None => None,
        PageAccess::Read(_) | PageAccess::Full => {
            Some(post::read_body(snapshot, head, body).await?)
        }
    };
    let (body, _memory) = read.unzip();
    let request = Request::from_parts(head.clone(), body.unwrap_or_default());
    let response = page.respond(request, access).await;
    Ok(response.map(|body| match body {
        PageBody::Whole(bytes) => Body::from(bytes),
        PageBody::Events(events) => {
            let lifetime = reader.map(|reader| reader.lifetime(snapshot));
            let end = authentication::stream_end(stopping.clone(), lifetime);
            Body::Stream(Stream::of_page(events, end))
        }
    }))
}

/// The response to a request for a code of the page, or for the token that is given for one.
fn page_session(
    snapshot: &ConfigSnapshot,
    head: &Parts,
    operator: &Operator,
    is_operator: bool,
) -> Option<Response<Body>> {
    if head.method != Method::POST {
        return None;
    }
    let now = Instant::now();
    let body = match head.uri.path() {
        PAGE_CODE if is_operator => {
            let mut random = [0; 32];
            (snapshot.config.environment.random)(&mut random);
            json!({"code": operator.page_code(random, now)})
        }
        PAGE_TOKEN => {
            let code = head.headers.get(AUTHORIZATION);
            let token = code.and_then(|code| operator.page_token(code.as_bytes(), now));
            let Some(token) = token else {
                return Some(unauthorized(USED_CODE));
            };
            json!({"token": token.expose()})
        }
        _ => return None,
    };
    let mut response = json_response(StatusCode::OK, body.to_string());
    let no_store = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, no_store);
    Some(response)
}

/// Who sends the request, if an access token shows that they may read the page.
async fn reader(snapshot: &ConfigSnapshot, head: &Parts) -> Option<Authenticated> {
    let readers = snapshot.config.admin_readers.as_ref()?;
    let path = EndpointPath::of_request(ENDPOINT)?;
    // A request without a token may be let in as anonymous.
    if !is_admitted(&head.headers, |_| true) {
        return None;
    }
    let sender = authentication::authenticate(snapshot, head, &path).await;
    sender.ok()?.filter(|sender| {
        let principal = &sender.admission.principal;
        !principal.is_anonymous() && readers.matches(principal)
    })
}

/// Whether a request has a token, once, that is right.
fn is_admitted(headers: &HeaderMap, is_right: impl Fn(&[u8]) -> bool) -> bool {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let first = values.next();
    values.next().is_none() && first.is_some_and(|value| is_right(value.as_bytes()))
}

fn unauthorized(why: &str) -> Response<Body> {
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

const NO_TOKEN: &str = "the token is missing or wrong; send `Authorization: Bearer TOKEN` with `admin-token` of the configuration, or \
     without one with the token that this gateway wrote into its state directory";
const USED_CODE: &str =
    "the address has been opened already, or is older than a minute; run `vary open` again";
