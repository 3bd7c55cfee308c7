//! What selects the variant for a client.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderName};
use mcp_vary::variant::VariantId;
use percent_encoding::percent_decode_str;

use crate::index::VariantIndex;
use crate::selection::client_rule::ClientRule;

/// The path of the MCP endpoint.
pub const ENDPOINT: &str = "/mcp";

const VARIANT_PATH: &str = "/mcp/v/";

const HEADER: HeaderName = HeaderName::from_static("mcp-server-variant");

/// How the default variant of a client is selected, apart from its hints.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SelectionConfig {
    /// The operator's rules. For each setting, the first matching rule that has the setting decides.
    pub rules: Vec<ClientRule>,
    /// Whether the built-in rules for known clients apply after these (see [`KNOWN_CLIENTS`]).
    ///
    /// [`KNOWN_CLIENTS`]: super::known_clients::KNOWN_CLIENTS
    pub known_clients: bool,
    /// The variant for clients for which no rule sets one. If `None`, their hints decide.
    pub default: Option<VariantId>,
    /// Whether a header `MCP-Server-Variant` that contradicts `_meta` or the address is an error (SV-18).
    pub strict_header: bool,
}

/// What the head of a request says about the variant.
#[derive(Clone, Debug, Default)]
pub struct VariantRequest {
    /// The only variant that the credential of the request can use, if it is pinned to one (SV-9).
    pub pin: Option<VariantId>,
    /// The variant that the path names.
    pub path: Option<String>,
    /// The variant that the header `MCP-Server-Variant` names.
    pub header: Option<String>,
    /// All headers, if a rule matches on headers.
    pub headers: Option<HeaderMap>,
}

impl VariantRequest {
    /// Reads the head of a request to the endpoint. Returns `None` for other paths.
    pub fn read(head: &Parts, config: &SelectionConfig) -> Option<Self> {
        let path = match head.uri.path() {
            ENDPOINT => None,
            path => Some(path_variant(path)?),
        };
        // A repeated header is a list, which does not name a variant.
        let header = head.headers.get_all(HEADER).iter();
        let header: Vec<_> = header
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
            .collect();
        let asks_headers = |rule: &ClientRule| !rule.headers.is_empty();
        let rules = &config.rules;
        Some(Self {
            pin: None,
            path,
            header: (!header.is_empty()).then(|| header.join(", ")),
            headers: rules.iter().any(asks_headers).then(|| head.headers.clone()),
        })
    }

    /// Whether the path or a header names a variant.
    pub fn names_variant(&self) -> bool {
        self.path.is_some() || self.header.is_some()
    }

    /// Whether the headers match `rule`.
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

/// The id in `/mcp/v/<id>` or `/mcp/v/<server>/<id>`, percent-decoded, or `None` for other paths.
fn path_variant(path: &str) -> Option<String> {
    let encoded = path.strip_prefix(VARIANT_PATH)?;
    match encoded.split_once('/') {
        None => decoded_segment(encoded),
        Some((server, id)) => Some(format!(
            "{}/{}",
            decoded_segment(server)?,
            decoded_segment(id)?
        )),
    }
}

/// A segment of a path, percent-decoded; `None` if it is empty or not valid.
fn decoded_segment(encoded: &str) -> Option<String> {
    // The decoder keeps an incomplete escape as it is. A path with one does not name a variant.
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

/// The variants that a client can use.
#[derive(Clone, Debug, Default)]
pub struct Offers {
    /// The variants that the client is offered, best first; empty if variants are off.
    pub order: Arc<[VariantIndex]>,
    /// The only variant that the client can use, if it is pinned to one.
    pub pin: Option<VariantIndex>,
    /// The variants that exist for the client, advertised or not; `None` if all do.
    pub allowed: Option<Arc<[VariantIndex]>>,
    /// Why the default variant is the default.
    pub reason: VariantReason,
}

/// Why a client has its variant (SV-22). A session keeps the reason of its `initialize`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct VariantReason {
    /// What decided.
    pub by: DecidedBy,
    /// The rule that decided: `clients[0]`, `variant`, the name of an experiment, or that of an access rule.
    pub rule: Option<Arc<str>>,
}

impl VariantReason {
    /// The decision of one rule, if `by` has rules.
    pub fn new(by: DecidedBy, rule: Option<Arc<str>>) -> Self {
        Self { by, rule }
    }

    /// The text that a session id seals: `rule clients[0]`.
    pub fn seal(&self) -> String {
        let rule = self.rule.as_deref();
        let by = self.by.as_str();
        rule.map_or_else(|| by.to_owned(), |rule| format!("{by} {rule}"))
    }

    /// Reads what [`seal`](Self::seal) wrote; the default for other texts.
    pub fn open(sealed: &str) -> Self {
        let (by, rule) = match sealed.split_once(' ') {
            Some((by, rule)) => (by, Some(rule)),
            None => (sealed, None),
        };
        let by = DecidedBy::ALL.into_iter().find(|it| it.as_str() == by);
        by.map_or_else(Self::default, |by| Self::new(by, rule.map(Arc::from)))
    }
}

impl From<DecidedBy> for VariantReason {
    fn from(by: DecidedBy) -> Self {
        Self::new(by, None)
    }
}

/// What selected the variant of a request.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DecidedBy {
    /// The selector in `_meta`.
    Selector,
    /// The address `/mcp/v/<id>`.
    Address,
    /// The header `MCP-Server-Variant`.
    Header,
    /// A credential, or an access rule, that leaves the client only this variant.
    Pin,
    /// The operator's rules, or the operator's default.
    Rule,
    /// An experiment that the client takes part in (SV-24).
    Experiment,
    /// A model, which ranked the variants by the client's description.
    Model,
    /// A server, which ranked its own variants by the client's hints.
    Server,
    /// The ranking by the client's hints.
    #[default]
    Ranking,
}

impl DecidedBy {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Selector,
        Self::Address,
        Self::Header,
        Self::Pin,
        Self::Rule,
        Self::Experiment,
        Self::Model,
        Self::Server,
        Self::Ranking,
    ];

    /// The value for logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Selector => "selector",
            Self::Address => "address",
            Self::Header => "header",
            Self::Pin => "pin",
            Self::Rule => "rule",
            Self::Experiment => "experiment",
            Self::Model => "model",
            Self::Server => "server",
            Self::Ranking => "ranking",
        }
    }
}

impl Offers {
    /// The variant for requests that do not name one.
    pub fn default_variant(&self) -> VariantIndex {
        self.pin.or(self.order.first().copied()).unwrap_or_default()
    }

    /// Whether the client can use `variant`, advertised or not.
    pub fn allows(&self, variant: VariantIndex) -> bool {
        let allowed = self.allowed.as_ref();
        self.pin.is_none_or(|pin| pin == variant)
            && allowed.is_none_or(|allowed| allowed.contains(&variant))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn names(path: &str, expected: Option<&str>) {
        assert_eq!(path_variant(path).as_deref(), expected, "{path}");
    }

    /// SV-22: a session knows why it has its variant, on any replica.
    #[test]
    fn a_reason_opens_to_what_it_sealed() {
        for by in DecidedBy::ALL {
            for rule in [None, Some("clients[0]"), Some("two words")] {
                let reason = VariantReason::new(by, rule.map(Arc::from));
                assert_eq!(VariantReason::open(&reason.seal()), reason);
            }
        }
        assert_eq!(VariantReason::open("nix"), VariantReason::default());
    }

    #[test]
    fn an_address_names_a_variant() {
        names("/mcp/v/compact", Some("compact"));
        names("/mcp/v/f%C3%BCr%20mich", Some("für mich"));
        names("/mcp/v/", None);
        names("/mcp/v/crm/agent", Some("crm/agent"));
        names("/mcp/v/crm/a%2Fb", Some("crm/a/b"));
        names("/mcp/v/a/b/c", None);
        names("/mcp/v/a/", None);
        names("/mcp/v//b", None);
        names("/mcp/v/%", None);
        names("/mcp/v/%zz", None);
        names("/mcp/v/%ff", None);
        names("/mcp/x", None);
    }
}
