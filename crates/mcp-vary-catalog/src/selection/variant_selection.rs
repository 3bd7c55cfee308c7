//! What says which variant a client gets.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderName};
use mcp_vary::variant::VariantId;
use percent_encoding::percent_decode_str;

use crate::index::VariantIndex;
use crate::selection::rules::ClientRule;

/// The path of the MCP endpoint.
pub const ENDPOINT: &str = "/mcp";

const VARIANT_PATH: &str = "/mcp/v/";

const HEADER: HeaderName = HeaderName::from_static("mcp-server-variant");

/// How the default variant of a client is chosen, beside its hints.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SelectionConfig {
    /// For each thing that rules say, the first rule decides that a client meets and that says something of it.
    pub rules: Vec<ClientRule>,
    /// Whether the rules that are shipped with the program come after these (see [`KNOWN_CLIENTS`]).
    ///
    /// [`KNOWN_CLIENTS`]: super::known_clients::KNOWN_CLIENTS
    pub known_clients: bool,
    /// The variant of clients that no rule is about; `None` leaves it to their hints.
    pub default: Option<VariantId>,
    /// Whether a header `MCP-Server-Variant` that contradicts `_meta` or the address is an error (SV-18).
    pub strict_header: bool,
}

/// What a request says of the variant outside of its message.
#[derive(Clone, Debug, Default)]
pub struct VariantRequest {
    /// The only variant that there is for the credential of the request. No credential has one yet.
    pub pin: Option<VariantId>,
    /// The variant that the path names.
    pub path: Option<String>,
    /// The variant that the header `MCP-Server-Variant` names.
    pub header: Option<String>,
    /// All headers, if a rule matches on headers.
    pub headers: Option<HeaderMap>,
}

impl VariantRequest {
    /// Reads the head of a request to the endpoint; `None` when its path is another.
    pub fn read(head: &Parts, choosing: &SelectionConfig) -> Option<Self> {
        let path = match head.uri.path() {
            ENDPOINT => None,
            path => Some(path_variant(path)?),
        };
        // Said twice it is a list, as any header, and so names no variant.
        let header = head.headers.get_all(HEADER).iter();
        let header: Vec<_> = header
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
            .collect();
        let asks_headers = |rule: &ClientRule| !rule.headers.is_empty();
        let rules = &choosing.rules;
        Some(Self {
            pin: None,
            path,
            header: (!header.is_empty()).then(|| header.join(", ")),
            headers: rules.iter().any(asks_headers).then(|| head.headers.clone()),
        })
    }

    /// Whether the headers are as `rule` has them.
    pub fn matches_headers(&self, rule: &ClientRule) -> bool {
        rule.headers.iter().all(|(name, pattern)| {
            let values = self
                .headers
                .iter()
                .flat_map(|headers| headers.get_all(name));
            let mut values = values.filter_map(|value| value.to_str().ok());
            values.any(|value| pattern.matches(value))
        })
    }
}

/// The id in `/mcp/v/<id>`, percent-decoded; `None` if the path is different.
fn path_variant(path: &str) -> Option<String> {
    let encoded = path.strip_prefix(VARIANT_PATH)?;
    // The decoder leaves an incomplete escape as it is; such a path names no variant.
    let is_escape = |after: &str| {
        let digits = after.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if encoded.contains('/') || !encoded.split('%').skip(1).all(is_escape) {
        return None;
    }
    let id = percent_decode_str(encoded).decode_utf8().ok()?;
    (!id.is_empty()).then(|| id.into_owned())
}

/// The variants that there are for a client.
#[derive(Clone, Debug, Default)]
pub struct Offers {
    /// The variants that the client is offered, best first; empty if variants are off.
    pub order: Arc<[VariantIndex]>,
    /// The only one that there is for it.
    pub pin: Option<VariantIndex>,
    /// What decided which variant is the default.
    pub decided_by: DecidedBy,
}

/// What decided under which variant a request runs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DecidedBy {
    /// The selector in `_meta`.
    Selector,
    /// The address `/mcp/v/<id>`.
    Address,
    /// The header `MCP-Server-Variant`.
    Header,
    /// The operator's rules, or the operator's default.
    Rule,
    /// What was decided when the session began.
    Session,
    /// The ranking by the client's hints.
    #[default]
    Ranking,
}

impl DecidedBy {
    /// As it is logged.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Selector => "selector",
            Self::Address => "address",
            Self::Header => "header",
            Self::Rule => "rule",
            Self::Session => "session",
            Self::Ranking => "ranking",
        }
    }
}

impl Offers {
    /// The one that a request runs under that names none.
    pub fn default_variant(&self) -> VariantIndex {
        self.pin.or(self.order.first().copied()).unwrap_or_default()
    }

    /// Whether `variant` exists for the client, advertised or not.
    pub fn allows(&self, variant: VariantIndex) -> bool {
        self.pin.is_none_or(|pin| pin == variant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn names(path: &str, expected: Option<&str>) {
        assert_eq!(path_variant(path).as_deref(), expected, "{path}");
    }

    #[test]
    fn an_address_names_a_variant() {
        names("/mcp/v/compact", Some("compact"));
        names("/mcp/v/f%C3%BCr%20mich", Some("für mich"));
        names("/mcp/v/", None);
        names("/mcp/v/a/b", None);
        names("/mcp/v/%", None);
        names("/mcp/v/%zz", None);
        names("/mcp/v/%ff", None);
        names("/mcp/x", None);
    }
}
