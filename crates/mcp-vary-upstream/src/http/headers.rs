//! The headers of requests and responses.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};
use mcp_vary_wire::headers::{MCP_METHOD, MCP_NAME, header_value, name_key};

/// The headers that mirror the body of a modern request.
///
/// Source: MCP 2026-07-28, basic/transports/streamable-http, "Standard Request Headers".
pub(super) fn modern_headers(method: &str, name: Option<&str>) -> Vec<Header> {
    let mut headers = vec![(MCP_METHOD, header_value(method))];
    if name_key(method).is_some()
        && let Some(name) = name
    {
        headers.push((MCP_NAME, header_value(name)));
    }
    headers
}

/// A header that one request has beside those of its session.
pub(super) type Header = (HeaderName, HeaderValue);

/// Whether the body is a stream of events.
pub(super) fn is_stream(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let mut parts = content_type.unwrap_or_default().split(|byte| *byte == b';');
    let media_type = parts.next().unwrap_or_default().trim_ascii();
    media_type.eq_ignore_ascii_case(b"text/event-stream")
}

pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(super) const JSON_OR_STREAM: HeaderValue =
    HeaderValue::from_static("application/json, text/event-stream");
pub(super) const STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
