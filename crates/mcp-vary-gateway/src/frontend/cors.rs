//! Cross-origin requests of web pages: the origins of the configuration (Fetch Standard, "HTTP CORS protocol").

use http::header::{
    ACCEPT, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, CONTENT_TYPE,
    HeaderName, HeaderValue, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, Method, Response, StatusCode};

use super::responses::{Body, empty};
use mcp_vary_settings::listener::ListenerConfig;

/// The origin of a request, if the configuration lists it.
pub(super) fn listed_origin(headers: &HeaderMap, listener: &ListenerConfig) -> Option<HeaderValue> {
    if listener.origins.is_empty() {
        return None;
    }
    let mut origins = headers.get_all(ORIGIN).iter();
    match (origins.next(), origins.next()) {
        (Some(origin), None) if listener.has_origin(origin.as_bytes()) => Some(origin.clone()),
        _ => None,
    }
}

/// The answer to a preflight request; `None` for other requests.
///
/// A browser sends it without credentials, so it is answered before they are looked at.
pub(super) fn preflight(head: &Parts) -> Option<Response<Body>> {
    let is_preflight =
        head.method == Method::OPTIONS && head.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    if !is_preflight {
        return None;
    }
    let mut response = empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    headers.append(VARY, HeaderValue::from_name(ACCESS_CONTROL_REQUEST_HEADERS));
    let values = head.headers.get_all(ACCESS_CONTROL_REQUEST_HEADERS);
    let texts = values.iter().filter_map(|value| value.to_str().ok());
    let names = texts.flat_map(|value| value.split(',')).map(str::trim);
    let allowed: Vec<_> = names.filter(|name| is_allowed(name)).collect();
    if let Ok(allowed) = HeaderValue::from_str(&allowed.join(", "))
        && !allowed.is_empty()
    {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    Some(response)
}

/// Whether a page may send the header `name`. Those of MCP are open-ended: `Mcp-Param-...` has names of parameters.
fn is_allowed(name: &str) -> bool {
    let Ok(name) = name.parse::<HeaderName>() else {
        return false;
    };
    [ACCEPT, AUTHORIZATION, CONTENT_TYPE].contains(&name)
        || name.as_str() == "last-event-id"
        || name.as_str().starts_with("mcp-")
}

/// Lets the page of `origin` read a response, with the headers that it needs to log in and to go on.
pub(super) fn expose(headers: &mut HeaderMap, origin: HeaderValue) {
    // The metadata is for every origin.
    if headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
        return;
    }
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(VARY, HeaderValue::from_name(ORIGIN));
}

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
/// How long a browser may remember the answer, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");
const EXPOSED: HeaderValue =
    HeaderValue::from_static("WWW-Authenticate, Mcp-Session-Id, Retry-After");
