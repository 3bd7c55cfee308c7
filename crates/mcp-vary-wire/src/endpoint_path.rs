//! The paths of the MCP endpoint: `/mcp`, and `/mcp/v/...` for one variant.

use std::borrow::Cow;
use std::fmt;

use mcp_vary::variant::{MAX_ID, VariantId};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

/// The path of the endpoint itself.
pub const ENDPOINT: &str = "/mcp";

/// The start of the paths of variants.
pub const VARIANTS: &str = "/mcp/v/";

/// The path of a request, of a token's audience, or of a metadata document.
///
/// Authorization and the selection of a variant read it with the same parser, so they agree on the variant.
///
/// # Examples
///
/// ```
/// use mcp_vary_wire::endpoint_path::EndpointPath;
///
/// assert_eq!(EndpointPath::parse("/mcp"), Some(EndpointPath::Base));
/// assert!(EndpointPath::parse("/mcp/v/f%C3%BCr%20mich").is_some());
/// assert!(EndpointPath::parse("/mcp/").is_none());
/// assert!(EndpointPath::parse("/mcp/v/crm/agent").is_some());
/// assert!(EndpointPath::parse("/mcp/v/a/b/c").is_none());
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum EndpointPath {
    /// `/mcp`
    Base,
    /// `/mcp/v/NAME` or `/mcp/v/SERVER/ID`
    Variant(VariantPath),
}

/// The path of a variant, which may not exist.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VariantPath {
    /// What follows [`VARIANTS`], percent-encoded.
    encoded: Box<str>,
    id: VariantId,
}

impl EndpointPath {
    /// Parses the canonical form of a path: segments of `pchar` (RFC 3986, section 3.3), everything else
    /// percent-encoded. A name has one segment, or two if it has a slash.
    ///
    /// A name is every id that a variant can have. Whether a variant has it does not matter here, so that clients
    /// cannot find out before they are known.
    pub fn parse(path: &str) -> Option<Self> {
        match path.strip_prefix(ENDPOINT)? {
            "" => Some(Self::Base),
            _ => VariantPath::parse(path.strip_prefix(VARIANTS)?).map(Self::Variant),
        }
    }

    /// Parses the path of a request, in which clients need not encode all bytes.
    pub fn of_request(path: &str) -> Option<Self> {
        if path == ENDPOINT {
            return Some(Self::Base);
        }
        Self::parse(&Cow::from(utf8_percent_encode(path, NOT_PCHAR)))
    }

    /// The id of the variant, if the path names one.
    pub const fn variant(&self) -> Option<&VariantId> {
        match self {
            Self::Base => None,
            Self::Variant(path) => Some(&path.id),
        }
    }
}

impl VariantPath {
    fn parse(encoded: &str) -> Option<Self> {
        let is_segment = |it: &str| {
            let canonical = Cow::from(utf8_percent_encode(it, NOT_PCHAR));
            !it.is_empty() && matches!(canonical, Cow::Borrowed(_))
        };
        if encoded.len() > MAX_ENCODED
            || encoded.split('/').count() > 2
            || !encoded.split('/').all(is_segment)
            || !has_whole_escapes(encoded)
        {
            return None;
        }
        let id = percent_decode_str(encoded).decode_utf8().ok()?;
        Some(Self {
            encoded: encoded.into(),
            id: id.parse().ok()?,
        })
    }
}

/// The path in its canonical form, which can stand in a quoted string of a header.
impl fmt::Display for EndpointPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base => f.write_str(ENDPOINT),
            Self::Variant(path) => write!(f, "{VARIANTS}{}", path.encoded),
        }
    }
}

/// Whether each `%` is followed by two hexadecimal digits. The decoder would keep it as it is.
pub fn has_whole_escapes(path: &str) -> bool {
    path.split('%').skip(1).all(|after| {
        let digits = after.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

/// The ASCII characters that are neither `pchar` nor `/`.
const NOT_PCHAR: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The longest id with every byte escaped.
const MAX_ENCODED: usize = 3 * MAX_ID;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn names(path: &str, expected: Option<&str>) {
        let parsed = EndpointPath::parse(path);
        let id = parsed.as_ref().and_then(EndpointPath::variant);
        assert_eq!(id.map(VariantId::as_str), expected, "{path}");
        // Clients may send what is canonical.
        assert_eq!(EndpointPath::of_request(path), parsed, "{path}");
    }

    #[test]
    fn names_are_percent_encoded_ids() {
        for (path, id) in [
            ("/mcp/v/compact", "compact"),
            ("/mcp/v/f%C3%BCr%20mich", "für mich"),
            ("/mcp/v/f%c3%bcr", "für"),
            ("/mcp/v/crm/agent", "crm/agent"),
            ("/mcp/v/crm%2Fagent", "crm/agent"),
            ("/mcp/v/crm/a%2Fb", "crm/a/b"),
            ("/mcp/v/a:b@c!$&'()*+,;=", "a:b@c!$&'()*+,;="),
        ] {
            names(path, Some(id));
        }
    }

    #[test]
    fn other_paths_name_no_variant() {
        for path in [
            "/mcp",
            "/mcp/",
            "/mcp/v",
            "/mcp/v/",
            "/mcp/va",
            "/mcp/v/a/",
            "/mcp/v//b",
            "/mcp/v/a/b/c",
            "/mcp/v/%",
            "/mcp/v/%zz",
            "/mcp/v/%ff",
            "/mcp/v/%00",
            "/mcp/x",
            "/MCP/v/a",
            "/other/v/a",
            "mcp/v/a",
            "",
        ] {
            names(path, None);
        }
    }

    /// Audiences and documents have the canonical form. Requests were never held to it.
    #[test]
    fn requests_need_not_encode_all_bytes() {
        for (path, canonical) in [
            ("/mcp/v/a|b", "/mcp/v/a%7Cb"),
            ("/mcp/v/a\"b", "/mcp/v/a%22b"),
            ("/mcp/v/a b", "/mcp/v/a%20b"),
            ("/mcp/v/ü", "/mcp/v/%C3%BC"),
        ] {
            assert_eq!(EndpointPath::parse(path), None, "{path}");
            let parsed = EndpointPath::of_request(path).expect("a path");
            assert_eq!(parsed.to_string(), canonical);
        }
    }

    #[test]
    fn a_name_may_escape_each_byte_of_the_longest_id() {
        let id = |encoded: String| {
            let path = EndpointPath::parse(&format!("{VARIANTS}{encoded}"))?;
            path.variant().map(|id| id.as_str().len())
        };
        assert_eq!(id("a".repeat(128)), Some(128));
        assert_eq!(id("a".repeat(129)), None);
        assert_eq!(id("%61".repeat(128)), Some(128));
        assert_eq!(id("%61".repeat(129)), None);
        assert_eq!(id(format!("{}a", "%61".repeat(128))), None);
    }

    proptest! {
        /// Whatever a client sends, its canonical form names the same variant.
        #[test]
        fn the_canonical_form_is_read_as_the_request(encoded in "([a%0-9/ü\"|]|%[0-9a-f]{2}){0,12}") {
            if let Some(path) = EndpointPath::of_request(&format!("{VARIANTS}{encoded}")) {
                let canonical = path.to_string();
                prop_assert!(canonical.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"'));
                prop_assert_eq!(EndpointPath::parse(&canonical), Some(path));
            }
        }
    }
}
