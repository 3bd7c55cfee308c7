//! The responses of the page.

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderValue,
    REFERRER_POLICY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{Method, Response, StatusCode};
use mcp_vary_operator::PageBody;
use serde::Serialize;
use serde_json::json;

/// A response of the page.
pub(crate) type PageAnswer = Response<PageBody>;

/// The value of a request, as JSON.
pub(crate) fn json(value: &impl Serialize) -> PageAnswer {
    match serde_json::to_vec(value) {
        Ok(text) => typed(StatusCode::OK, JSON, Bytes::from(text)),
        Err(error) => failure(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

/// JSON text.
pub(crate) fn json_text(text: String) -> PageAnswer {
    typed(StatusCode::OK, JSON, Bytes::from(text))
}

/// Text of this type.
pub(crate) fn typed(status: StatusCode, media_type: &'static str, text: Bytes) -> PageAnswer {
    let mut response = Response::new(PageBody::Whole(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// JSON text that a browser need not get again while its digest is the same.
pub(crate) fn tagged(text: Bytes, tag: &HeaderValue, known: Option<&HeaderValue>) -> PageAnswer {
    let mut response = if known == Some(tag) {
        typed(StatusCode::NOT_MODIFIED, JSON, Bytes::new())
    } else {
        typed(StatusCode::OK, JSON, text)
    };
    response.headers_mut().insert(ETAG, tag.clone());
    response
}

/// Why a request fails, as a sentence.
pub(crate) fn failure(status: StatusCode, why: &str) -> PageAnswer {
    let text = json!({"error": why}).to_string();
    typed(status, JSON, Bytes::from(text))
}

pub(crate) fn unauthorized() -> PageAnswer {
    let why = "the token is missing or wrong; open the page with `vary open`, or send `Authorization: Bearer TOKEN` with \
         `admin-token` of the configuration";
    let mut response = failure(StatusCode::UNAUTHORIZED, why);
    let challenge = HeaderValue::from_static("Bearer");
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    response
}

pub(crate) fn not_allowed(allowed: &Method) -> PageAnswer {
    let mut response = failure(
        StatusCode::METHOD_NOT_ALLOWED,
        &format!("only {allowed} is allowed"),
    );
    let allowed = HeaderValue::from_static(match *allowed {
        Method::POST => "POST",
        _ => "GET",
    });
    response.headers_mut().insert(ALLOW, allowed);
    response
}

/// Adds what every response of the page has.
pub(crate) fn protected(mut response: PageAnswer) -> PageAnswer {
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

const JSON: &str = "application/json";

/// Names, descriptions and results are written by others: nothing of them is run, and nothing is loaded for them.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
     base-uri 'none'; frame-ancestors 'none'; form-action 'none'";
