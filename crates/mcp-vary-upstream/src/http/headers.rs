//! The headers of requests and responses.

use http::header::{ACCEPT_ENCODING, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use mcp_vary_base::user_agent;
use mcp_vary_wire::headers::{MCP_METHOD, MCP_NAME, header_value, name_key};

/// Sets the headers of everything that Vary sends, unless they are configured.
///
/// > If no Accept-Encoding header field is in the request, any content coding is considered acceptable by the user agent.
/// > (RFC 9110, section 12.5.3)
pub(crate) fn set_common_headers(headers: &mut HeaderMap) {
    headers.entry(USER_AGENT).or_insert(VARY);
    headers.entry(ACCEPT_ENCODING).or_insert(IDENTITY);
}

/// The headers that mirror the body of a modern request.
///
/// Source: MCP 2026-07-28, basic/transports/streamable-http, "Standard Request Headers".
pub(super) fn modern_headers(method: &str, name: Option<&str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(MCP_METHOD, header_value(method));
    if name_key(method).is_some()
        && let Some(name) = name
    {
        headers.insert(MCP_NAME, header_value(name));
    }
    headers
}

/// Whether the body is a stream of events.
pub(super) fn is_stream(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE);
    let text = content_type.and_then(|value| value.to_str().ok());
    let media_type = text.and_then(|value| value.split(';').next());
    media_type.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream"))
}

pub(super) const VARY: HeaderValue = HeaderValue::from_static(user_agent::USER_AGENT);
const IDENTITY: HeaderValue = HeaderValue::from_static("identity");
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(super) const JSON_OR_STREAM: HeaderValue =
    HeaderValue::from_static("application/json, text/event-stream");
pub(super) const STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
