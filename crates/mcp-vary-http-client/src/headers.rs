//! The headers of every request.

use http::header::{ACCEPT_ENCODING, USER_AGENT};
use http::{HeaderMap, HeaderValue};
use mcp_vary_base::user_agent;

/// Sets the headers of everything that Vary sends, unless they are configured.
///
/// > If no Accept-Encoding header field is in the request, any content coding is considered acceptable by the user agent.
/// > (RFC 9110, section 12.5.3)
pub fn set_common_headers(headers: &mut HeaderMap) {
    headers.entry(USER_AGENT).or_insert(VARY);
    headers.entry(ACCEPT_ENCODING).or_insert(IDENTITY);
}

pub(crate) const VARY: HeaderValue = HeaderValue::from_static(user_agent::USER_AGENT);
const IDENTITY: HeaderValue = HeaderValue::from_static("identity");
