//! Addresses of servers as people write them.

use http::Uri;

/// The URL of a streamable HTTP endpoint in `text`, if it is one.
pub fn parse_endpoint(text: &str) -> Option<Uri> {
    let uri: Uri = text.parse().ok()?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http" | "https"), Some(host)) if !host.is_empty() => Some(uri),
        _ => None,
    }
}

/// What to write in place of `written`, which is not the URL of an endpoint: the same with a scheme, if it begins with a host.
///
/// # Examples
///
/// ```
/// use mcp_vary_upstream::endpoint_url::endpoint_example;
///
/// assert_eq!(endpoint_example("localhost:8080"), "http://localhost:8080/mcp");
/// assert_eq!(endpoint_example("example.com/mcp?key=1"), "https://example.com/mcp");
/// assert_eq!(endpoint_example("ftp://x/"), "http://127.0.0.1:8800/mcp");
/// ```
pub fn endpoint_example(written: &str) -> String {
    const USUAL: &str = "http://127.0.0.1:8800/mcp";
    // A query may be secret, and so may a user.
    let address = written.split('?').next().unwrap_or_default();
    if address.contains(['@', '$']) || address.contains("://") {
        return USUAL.to_owned();
    }
    let uri = format!("http://{address}").parse::<Uri>().ok();
    let Some((uri, host)) = uri.as_ref().and_then(|uri| Some((uri, uri.host()?))) else {
        return USUAL.to_owned();
    };
    let has_port = uri.port_u16().is_some_and(|port| port != 443);
    let scheme = match host.contains('.') || has_port {
        false => return USUAL.to_owned(),
        true if has_port => "http",
        true => "https",
    };
    let path = if address.contains('/') { "" } else { "/mcp" };
    format!("{scheme}://{address}{path}")
}
