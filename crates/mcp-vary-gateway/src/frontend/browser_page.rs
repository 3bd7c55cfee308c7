//! What a person sees who opens the address of the endpoint in a browser.
//!
//! It is the same for everybody: it names no server and no variant, and needs no credential.

use bytes::Bytes;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderMap, HeaderValue, REFERRER_POLICY,
    VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use mcp_vary_wire::endpoint_path::{ENDPOINT, EndpointPath};

use super::responses::{Body, typed_response};
use mcp_vary_settings::listener::ListenerConfig;

/// The response, if a browser opens the endpoint or `/`.
pub(super) fn response(listener: &ListenerConfig, head: &Parts) -> Option<Response<Body>> {
    let is_opened = matches!(head.uri.path(), "/" | ENDPOINT) && head.method == Method::GET;
    if !is_opened || !is_browser(&head.headers) {
        return None;
    }
    let body = Body::from(Bytes::from(page(&url(listener, head))));
    let mut response = typed_response(StatusCode::OK, "text/html; charset=utf-8", body);
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        (VARY, "Accept"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Some(response)
}

/// Whether the client asks for a page, and not for the stream of a session: clients of MCP name that.
fn is_browser(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter();
    let accepted: Vec<_> = values.filter_map(|value| value.to_str().ok()).collect();
    let names = |media: &str| accepted.iter().any(|value| value.contains(media));
    names("text/html") && !names("text/event-stream")
}

/// The URL of the endpoint: the public one, or that in the browser.
fn url(listener: &ListenerConfig, head: &Parts) -> String {
    if let Some(public) = &listener.public_url {
        return public.resource(&EndpointPath::Base);
    }
    let written = head.headers.get(HOST).and_then(|host| host.to_str().ok());
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
    let host = written.filter(|host| host.bytes().all(is_plain));
    let scheme = if listener.tls.is_some() {
        "https"
    } else {
        "http"
    };
    format!("{scheme}://{}{ENDPOINT}", host.unwrap_or("HOST"))
}

fn page(url: &str) -> String {
    let escaped = url.replace('&', "&amp;").replace('<', "&lt;");
    PAGE.replace("URL", &escaped)
}

const POLICY: &str =
    "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'";

const PAGE: &str = r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>An MCP endpoint</title>
<h1>This is an MCP endpoint</h1>
<p>AI applications connect to it, not browsers. It is served by Vary, which gives each application the tools that fit it.
<p>To connect an application, run one of these lines, or add the address <code>URL</code> to its configuration:
<pre>
vary connect claude-code URL --write
vary connect cursor URL --write
vary connect vscode URL --write
vary connect codex URL --write
</pre>
<p>Without <code>--write</code>, the command prints what it would write. Its other applications are in <code>vary connect --help</code>.
</html>
"#;

#[cfg(test)]
mod tests {
    use super::*;

    fn is_page(accept: &str, expected: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        assert_eq!(is_browser(&headers), expected, "{accept}");
    }

    #[test]
    fn only_browsers_get_the_page() {
        is_page(
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            true,
        );
        is_page("text/event-stream", false);
        is_page("application/json, text/event-stream", false);
        is_page("text/html, text/event-stream", false);
        is_page("*/*", false);
        assert!(!is_browser(&HeaderMap::new()));
    }
}
