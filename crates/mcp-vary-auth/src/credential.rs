//! The credential in the head of a request.

use std::fmt;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use percent_encoding::percent_decode_str;

/// The longest bearer token, in bytes.
pub const MAX_TOKEN: usize = 8 << 10;

/// The credential that a request presents, before it is verified.
///
/// # Examples
///
/// ```
/// use http::HeaderMap;
/// use mcp_vary_auth::credential::{Credential, CredentialError};
///
/// let mut headers = HeaderMap::new();
/// assert!(matches!(Credential::read(&headers, None), Ok(Credential::None)));
/// headers.insert("authorization", "bearer e30.e30.AA".parse()?);
/// let Ok(Credential::Bearer(token)) = Credential::read(&headers, None) else { panic!() };
/// assert_eq!(token.as_str(), "e30.e30.AA");
///
/// // A token in the query is refused, even one beside a header: query strings are logged.
/// let refused = Credential::read(&headers, Some("access_token=e30.e30.AA"));
/// assert_eq!(refused.unwrap_err(), CredentialError::InQuery);
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Credential<'a> {
    /// There is no `Authorization`.
    None,
    /// A bearer token: an API key or an access token.
    Bearer(BearerToken<'a>),
}

/// The text of a bearer token. `Debug` does not show it.
#[derive(Clone, Copy)]
pub struct BearerToken<'a>(&'a str);

/// Why the head of a request is answered with 400 `invalid_request` (RFC 6750, section 3.1). It never contains a part
/// of the request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CredentialError {
    /// The scheme is not `Bearer`.
    Scheme,
    /// There is more than one `Authorization`.
    Repeated,
    /// The token is longer than [`MAX_TOKEN`].
    TooLong,
    /// The token is empty, or has a byte that a token cannot have.
    Malformed,
    /// The query has `access_token`.
    InQuery,
}

impl CredentialError {
    /// The `error_description`.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Scheme => "only the authorization scheme Bearer is supported",
            Self::Repeated => "the request has more than one Authorization header",
            Self::TooLong => "the bearer token is too long",
            Self::Malformed => "the bearer token is empty or has a character that is not allowed",
            Self::InQuery => {
                "a token in the query is not accepted; send it in the Authorization header"
            }
        }
    }
}

impl<'a> Credential<'a> {
    /// Reads the credential from the headers and the query of a request.
    ///
    /// The scheme is case-insensitive (RFC 9110, section 11.1); the token is `b64token` of RFC 6750, section 2.1.
    ///
    /// # Errors
    ///
    /// See [`CredentialError`]. RFC 6750, section 2: "Clients MUST NOT use more than one method to transmit the token
    /// in each request". The MCP specification: access tokens MUST NOT be included in the query string.
    pub fn read(headers: &'a HeaderMap, query: Option<&str>) -> Result<Self, CredentialError> {
        if query.is_some_and(has_access_token) {
            return Err(CredentialError::InQuery);
        }
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let Some(value) = values.next() else {
            return Ok(Self::None);
        };
        if values.next().is_some() {
            return Err(CredentialError::Repeated);
        }
        let token = bearer_text(value.as_bytes())?;
        BearerToken::parse(token).map(Self::Bearer)
    }
}

impl<'a> BearerToken<'a> {
    /// Parses the text after the scheme.
    ///
    /// # Errors
    ///
    /// [`CredentialError::TooLong`] and [`CredentialError::Malformed`].
    pub fn parse(text: &'a [u8]) -> Result<Self, CredentialError> {
        if text.len() > MAX_TOKEN {
            return Err(CredentialError::TooLong);
        }
        let end = text.iter().rposition(|byte| *byte != b'=');
        let without_padding = end.and_then(|end| text.get(..=end));
        let significant = without_padding.ok_or(CredentialError::Malformed)?;
        if !significant.iter().all(|byte| B64TOKEN[usize::from(*byte)]) {
            return Err(CredentialError::Malformed);
        }
        let text = str::from_utf8(text).map_err(|_| CredentialError::Malformed)?;
        Ok(Self(text))
    }

    /// The token. It is a secret: do not log, store or send it.
    pub const fn as_str(&self) -> &'a str {
        self.0
    }
}

impl fmt::Debug for BearerToken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BearerToken({} bytes)", self.0.len())
    }
}

/// The text after `Bearer` and its spaces.
fn bearer_text(value: &[u8]) -> Result<&[u8], CredentialError> {
    let (scheme, text) = match value.iter().position(|byte| *byte == b' ') {
        Some(at) => value.split_at(at),
        None => (value, &[][..]),
    };
    if !scheme.eq_ignore_ascii_case(b"Bearer") {
        return Err(CredentialError::Scheme);
    }
    let start = text.iter().position(|byte| *byte != b' ');
    Ok(start.and_then(|start| text.get(start..)).unwrap_or(&[]))
}

/// Which bytes a token can have, but for the `=` at its end. An access token has a thousand of them, and each is looked up.
const B64TOKEN: [bool; 256] = {
    let mut allowed = [false; 256];
    let mut byte = 0_u8;
    while byte < 0x80 {
        allowed[byte as usize] =
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/');
        byte += 1;
    }
    allowed
};

/// Whether `query` has a parameter `access_token`, in any spelling that a server would decode to it.
fn has_access_token(query: &str) -> bool {
    // Most queries are empty. A name of 12 characters that are all escaped has 36.
    query.split('&').any(|parameter| {
        let name = parameter.split('=').next().unwrap_or_default();
        let mut decoded = percent_decode_str(name).map(|byte| byte.to_ascii_lowercase());
        PARAMETER
            .iter()
            .all(|wanted| decoded.next() == Some(*wanted))
            && decoded.next().is_none()
    })
}

const PARAMETER: &[u8] = b"access_token";

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn read(values: &[&[u8]], query: Option<&str>) -> Result<Option<String>, CredentialError> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
        }
        Credential::read(&headers, query).map(|credential| match credential {
            Credential::None => None,
            Credential::Bearer(token) => Some(token.as_str().to_owned()),
        })
    }

    #[track_caller]
    fn gives(value: &[u8], token: &str) {
        assert_eq!(read(&[value], None), Ok(Some(token.to_owned())));
    }

    #[track_caller]
    fn refuses(value: &[u8], error: CredentialError) {
        assert_eq!(read(&[value], None), Err(error));
    }

    #[test]
    fn no_header_is_no_credential() {
        assert_eq!(read(&[], None), Ok(None));
        assert_eq!(read(&[], Some("a=b&c")), Ok(None));
    }

    #[test]
    fn the_scheme_is_bearer_in_any_case() {
        gives(b"Bearer a.b.c", "a.b.c");
        gives(b"bearer   a", "a");
        gives(b"BEARER a==", "a==");
        gives(b"Bearer aZ09-._~+/=", "aZ09-._~+/=");
    }

    #[test]
    fn other_schemes_are_refused() {
        for value in [
            &b"Basic YTpi"[..],
            b"DPoP a",
            b"Bearer\ta",
            b"Bearera",
            b"",
            b" Bearer a",
            b"\"Bearer\" a",
        ] {
            refuses(value, CredentialError::Scheme);
        }
    }

    #[test]
    fn a_token_is_one_b64token() {
        for value in [
            &b"Bearer"[..],
            b"Bearer ",
            b"Bearer =",
            b"Bearer a b",
            b"Bearer a,b",
            b"Bearer a=b",
            b"Bearer \"a\"",
            b"Bearer a, Bearer b",
            b"Bearer \xc3\xa9",
            b"Bearer a\tb",
            b"Bearer token=a",
        ] {
            refuses(value, CredentialError::Malformed);
        }
    }

    #[test]
    fn a_token_has_at_most_8_kib() {
        let longest = [b"Bearer ", &[b'a'; MAX_TOKEN][..]].concat();
        gives(&longest, &"a".repeat(MAX_TOKEN));
        refuses(&[&longest[..], b"a"].concat(), CredentialError::TooLong);
    }

    #[test]
    fn two_headers_are_refused_even_if_they_are_equal() {
        let found = read(&[b"Bearer a", b"Bearer a"], None);
        assert_eq!(found, Err(CredentialError::Repeated));
        let found = read(&[b"Bearer a", b""], None);
        assert_eq!(found, Err(CredentialError::Repeated));
    }

    #[test]
    fn a_token_in_the_query_is_refused_however_it_is_spelled() {
        for query in [
            "access_token=a",
            "x=1&access_token=",
            "access_token",
            "access%5Ftoken=a",
            "%61ccess_token=a",
            "ACCESS_TOKEN=a",
        ] {
            let found = read(&[b"Bearer a"], Some(query));
            assert_eq!(found, Err(CredentialError::InQuery), "{query}");
            let found = read(&[], Some(query));
            assert_eq!(found, Err(CredentialError::InQuery), "{query}");
        }
        for query in [
            "",
            "my_access_token=a",
            "access_token2=a",
            "a=access_token",
            "access_toke",
        ] {
            assert_eq!(read(&[], Some(query)), Ok(None), "{query}");
        }
    }

    #[test]
    fn debug_does_not_show_a_token() {
        let token = BearerToken::parse(b"s3cret").unwrap();
        let expected = "Bearer(BearerToken(6 bytes))";
        assert_eq!(format!("{:?}", Credential::Bearer(token)), expected);
    }
}
