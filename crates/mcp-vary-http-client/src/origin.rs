//! The origin of an address.

use http::Uri;

/// The part of `url` that logs and errors may contain: its origin, since user, path and query may contain keys.
pub fn origin(url: &Uri) -> String {
    let scheme = url.scheme_str().unwrap_or("http");
    let host = url.host().unwrap_or("");
    let port = url.port().map(|port| format!(":{port}"));
    format!("{scheme}://{host}{}", port.unwrap_or_default())
}
