//! What selects the variant for a client.

use std::sync::Arc;

use http::{HeaderMap, HeaderName};
use mcp_vary::variant::VariantId;
use mcp_vary_wire::endpoint_path::EndpointPath;

use crate::index::VariantIndex;
use crate::selection::client_rule::ClientRule;

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
    /// Reads the head of a request to the endpoint at `path`.
    pub fn read(path: &EndpointPath, headers: &HeaderMap, config: &SelectionConfig) -> Self {
        // A repeated header is a list, which does not name a variant.
        let values = headers.get_all(HEADER).iter();
        let header: Vec<_> = values
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
            .collect();
        let reads_headers = |rule: &ClientRule| !rule.headers.is_empty();
        let rules = &config.rules;
        Self {
            pin: None,
            path: path.variant().map(|id| id.as_str().to_owned()),
            header: (!header.is_empty()).then(|| header.join(", ")),
            headers: rules.iter().any(reads_headers).then(|| headers.clone()),
        }
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
            let mut texts = values.filter_map(|value| value.to_str().ok());
            texts.any(|value| pattern.matches(value))
        })
    }
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
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
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
        let by = DecidedBy::ALL.into_iter().find(|part| part.as_str() == by);
        by.map_or_else(Self::default, |by| Self::new(by, rule.map(Arc::from)))
    }
}

impl From<DecidedBy> for VariantReason {
    fn from(by: DecidedBy) -> Self {
        Self::new(by, None)
    }
}

/// What selected the variant of a request.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
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
    /// The ranking by the client's hints.
    #[default]
    Ranking,
}

impl DecidedBy {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Selector,
        Self::Address,
        Self::Header,
        Self::Pin,
        Self::Rule,
        Self::Experiment,
        Self::Model,
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
}
