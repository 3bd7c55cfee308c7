//! The name under which Vary sends requests.

/// The value of `User-Agent`. Firewalls refuse requests without one.
///
/// > A user agent SHOULD send a User-Agent header field in each request unless specifically configured not to do so.
/// > (RFC 9110, section 10.1.5)
pub const USER_AGENT: &str = concat!("vary/", env!("CARGO_PKG_VERSION"));
