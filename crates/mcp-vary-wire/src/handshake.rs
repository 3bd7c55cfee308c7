//! What a server declared about itself when the connection was opened.

mod bounds;

pub use self::bounds::{MAX_HANDSHAKE, bound_variants};

use mcp_vary::error::Era;
use mcp_vary::extension::{EXTENSIONS, SERVER_VARIANTS, declared, settings};
use mcp_vary::feature::Features;
use mcp_vary::json::{Members, edit, to_value};
use mcp_vary::variant::VariantId;
use serde_json::Value;

use crate::revision::Revision;

/// The declarations of a server about itself, each part as JSON text.
#[derive(Clone, Debug)]
pub struct Handshake {
    /// The revision of the connection, which determines the era.
    pub revision: Revision,
    /// The whole result of `initialize` or `server/discover`.
    pub result: String,
    /// `serverInfo`, when it is an object.
    pub server_info: Option<String>,
    /// `capabilities`, an object.
    pub capabilities: String,
    /// `instructions`, when it is a string.
    pub instructions: Option<String>,
    /// Whether the server rejected or ignored an `initialize` at the start.
    pub refused_initialize: bool,
    /// Whether the server declared more of its variants than is kept.
    pub has_cut_variants: bool,
}

impl Handshake {
    /// The era of the connection.
    pub fn era(&self) -> Era {
        self.revision.era()
    }

    /// The same, for a server that rejected or ignored `initialize`.
    pub fn refusing_initialize(self) -> Self {
        Self {
            refused_initialize: true,
            ..self
        }
    }

    /// Whether `other` declares the same revision, server, capabilities and instructions.
    pub fn is_equivalent_to(&self, other: &Self) -> bool {
        self.revision == other.revision
            && self.server_info == other.server_info
            && self.capabilities == other.capabilities
            && self.instructions == other.instructions
    }

    /// Whether the server supports a revision with `initialize`, on this connection or another.
    ///
    /// > `supportedVersions`: MCP Protocol Versions this server supports. (MCP 2026-07-28, schema)
    pub fn supports_sessions(&self) -> bool {
        let result = Members::parse(&self.result).unwrap_or_default();
        let listed = result.get("supportedVersions").unwrap_or("[]");
        let versions: Vec<String> = serde_json::from_str(listed).unwrap_or_default();
        let mut supported = versions
            .iter()
            .filter_map(|version| Revision::parse(version));
        self.era() == Era::Legacy || supported.any(|revision| revision.era() == Era::Legacy)
    }

    /// The ids of the variants that the server itself offers, best first, at most [`MAX_OFFERED_VARIANTS`]. The first one
    /// answers requests without a selector.
    pub fn offered_variants(&self) -> Vec<VariantId> {
        let settings = self.variant_settings();
        let offered = settings.get("availableVariants").and_then(Value::as_array);
        let id_of = |variant: &Value| variant.get("id")?.as_str()?.parse().ok();
        let ids = offered.into_iter().flatten().filter_map(id_of);
        ids.take(MAX_OFFERED_VARIANTS).collect()
    }

    /// Whether the server itself has more variants than it advertises.
    pub fn has_more_variants(&self) -> bool {
        self.variant_settings().get("moreVariantsAvailable") == Some(&Value::Bool(true))
    }

    /// Whether the server itself negotiates content, so that it can receive the feature tags of clients.
    pub fn negotiates_content(&self) -> bool {
        let capabilities = to_value(&self.capabilities).unwrap_or_default();
        declared::<Features>(&capabilities).carrier.is_some()
    }

    /// The extensions that the server declares, besides those that the gateway negotiates itself, by identifier.
    pub fn other_extensions(&self) -> Vec<String> {
        let declared = edit::get(&self.capabilities, "extensions").unwrap_or("{}");
        let declared = Members::parse(declared).unwrap_or_default();
        let is_other = |id: &str| !EXTENSIONS.iter().any(|negotiated| negotiated.id == id);
        let ids = declared.iter().map(|(id, _)| id);
        ids.filter(|id| is_other(id)).map(str::to_owned).collect()
    }

    /// What the server declares of the extension server-variants; null without it.
    fn variant_settings(&self) -> Value {
        let capabilities = to_value(&self.capabilities).unwrap_or_default();
        let declared = settings(&capabilities, SERVER_VARIANTS);
        declared.map_or(Value::Null, |declared| declared.value().clone())
    }

    /// Whether the server has the capability `kind`.
    pub fn has_capability(&self, kind: &str) -> bool {
        let capabilities = Members::parse(&self.capabilities).unwrap_or_default();
        capabilities
            .get(kind)
            .is_some_and(|value| value.starts_with('{'))
    }

    /// Whether the capability `kind` has the flag `flag`, as in `"tools":{"listChanged":true}`.
    pub fn has_capability_flag(&self, kind: &str, flag: &str) -> bool {
        let capabilities = Members::parse(&self.capabilities).unwrap_or_default();
        let kind = capabilities.get(kind).unwrap_or_default();
        let kind = Members::parse(kind).unwrap_or_default();
        kind.get(flag) == Some("true")
    }
}

/// The most variants of a server that are read. A server should advertise at most 5 (SEP-2053).
pub const MAX_OFFERED_VARIANTS: usize = 32;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn offers(capabilities: &Value, expected: &[&str]) {
        for revision in [Revision::LATEST_LEGACY, Revision::LATEST_MODERN] {
            let hello = Handshake {
                revision,
                result: "{}".to_owned(),
                server_info: None,
                capabilities: capabilities.to_string(),
                instructions: None,
                refused_initialize: false,
                has_cut_variants: false,
            };
            let ids: Vec<_> = hello.offered_variants();
            let ids: Vec<_> = ids.iter().map(VariantId::as_str).collect();
            assert_eq!(ids, expected, "{capabilities}");
        }
    }

    /// EXT-9: the variants of a server are found wherever it declares them, in both eras; what cannot be read is ignored.
    #[test]
    fn the_variants_that_a_server_offers_are_read() {
        let offered = |ids: &[Value]| {
            let all: Vec<_> = ids
                .iter()
                .map(|id| json!({"id": id, "status": "stable"}))
                .collect();
            json!({SERVER_VARIANTS: {"availableVariants": all}})
        };
        let two = offered(&[json!("agent"), json!("human")]);
        offers(&json!({"extensions": two}), &["agent", "human"]);
        offers(&json!({"experimental": two}), &["agent", "human"]);
        let odd = offered(&[json!(7), json!(""), json!("a")]);
        offers(&json!({"extensions": odd}), &["a"]);
        let in_text = json!({"$serde_json::private::RawValue": two.to_string()});
        offers(&json!({"extensions": in_text}), &[]);
        for none in [json!({}), json!({"extensions": {SERVER_VARIANTS: {}}})] {
            offers(&none, &[]);
        }
        let many: Vec<_> = (0..100).map(|at| json!(format!("v{at}"))).collect();
        let capabilities = json!({"extensions": offered(&many)}).to_string();
        let hello = Handshake {
            revision: Revision::LATEST_MODERN,
            result: "{}".to_owned(),
            server_info: None,
            capabilities,
            instructions: None,
            refused_initialize: false,
            has_cut_variants: false,
        };
        assert_eq!(hello.offered_variants().len(), MAX_OFFERED_VARIANTS);
    }
}
