//! HTTP responses.

use std::sync::Arc;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{HeaderName, Response, StatusCode};
use mcp_vary::error_code::{INTERNAL_ERROR, INVALID_REQUEST};
use mcp_vary_wire::response::{Reply, RpcError};

use super::sse_body::Body;
use super::validation::Rejection;

/// Keeps reverse proxies from buffering events.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The response to a request that was rejected before it was read.
pub(super) fn rejected(rejection: Rejection) -> Response<Body> {
    let is_overloaded = rejection.status == StatusCode::SERVICE_UNAVAILABLE;
    let code = if is_overloaded {
        INTERNAL_ERROR
    } else {
        INVALID_REQUEST
    };
    let failure = RpcError::new(code, rejection.reason);
    let body = Body::from(failure.to_bytes(None));
    let mut response = typed_response(rejection.status, "application/json", body);
    if is_overloaded {
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

pub(super) fn json(reply: Reply) -> Response<Body> {
    let body = Body::from(reply.body);
    let mut response = typed_response(reply.status, "application/json", body);
    if let Some(seconds) = reply.retry_after {
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some(scopes) = reply.scopes {
        response.extensions_mut().insert(NeededScopes(scopes));
    }
    response
}

/// The scopes that a refused call needs, for the challenge of its response.
#[derive(Clone, Debug)]
pub(super) struct NeededScopes(pub(super) Arc<[String]>);

pub(super) fn event_stream(events: Body) -> Response<Body> {
    let mut response = typed_response(StatusCode::OK, "text/event-stream", events);
    let headers = response.headers_mut();
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    response
}

pub(super) fn accepted() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

pub(super) fn typed_response(
    status: StatusCode,
    media: &'static str,
    body: Body,
) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(media));
    response
}
