//! Who asks: what a client declared, read once and remembered by its bytes.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use mcp_vary::extension::{Carrier, declared};
use mcp_vary::feature::Features;
use mcp_vary::hints::VariantHints;
use mcp_vary_catalog::selection::rules::{JsonRule, Presentation};
use mcp_vary_catalog::selection::variant_selection::Offers;
use mcp_vary_results::negotiation_log::IgnoredCounter;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::meta::PROTOCOL_VERSION;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::revision::Revision;
use mcp_vary_wire::server_request_support::ServerRequestSupport;
use serde_json::Value;

use crate::pool::PoolKey;
use crate::session::{BASE_CLASS, Session};

/// What a client's capabilities declare of the two extensions.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeclaredFeatures {
    /// Present when the client declared content negotiation.
    pub(crate) features: Option<Features>,
    pub(crate) hints: VariantHints,
    /// Where the client put its declarations; the answer is mirrored there (EXT-6).
    pub(crate) negotiation: Option<Carrier>,
    pub(crate) variants: Option<Carrier>,
}

impl DeclaredFeatures {
    /// Reads a client's capabilities. Bad settings are dropped alone, counted and logged (EXT-5).
    pub(crate) fn read(capabilities: &Value, ignorings: &IgnoredCounter) -> Self {
        let features = declared::<Features>(capabilities);
        let hints = declared::<VariantHints>(capabilities);
        let declares = features.carrier.map(|_| &features.value);
        ignorings.features_declared(declares, &features.ignored);
        ignorings.hints_declared(&hints.value, &hints.ignored);
        Self {
            features: features.carrier.is_some().then_some(features.value),
            hints: hints.value,
            negotiation: features.carrier,
            variants: hints.carrier,
        }
    }
}

/// The client of one request.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) revision: Revision,
    pub(crate) id: ClientId,
    /// The same where it is that of a connection that nobody else uses.
    pub(crate) connection: Option<ClientId>,
    pub(crate) features: Option<Arc<Features>>,
    /// The variants that there are for it.
    pub(crate) offers: Offers,
    /// How rules have it shown what its variant shows.
    pub(crate) presentation: Presentation,
    /// The features that rules take it to have declared.
    pub(crate) presumed_features: Option<Arc<Features>>,
    /// What rules say of the JSON that it gets.
    pub(crate) json: JsonRule,
    /// The names of the MCP capabilities that it declared, and of what they have: `elicitation`, `elicitation/url`.
    pub(crate) capabilities: Arc<BTreeSet<String>>,
    /// The class whose connections it uses; `None` when it can do nothing particular.
    pub(crate) class: Option<PoolKey>,
    /// The session of a legacy client.
    pub(crate) session: Option<Arc<Session>>,
    /// The least severe level that it wants logged for this request.
    pub(crate) log_level: Option<u8>,
}

impl Client {
    pub(crate) fn era(&self) -> Era {
        self.revision.era()
    }

    /// On whose behalf it asks: nobody's in particular, since no client is asked who it is.
    #[expect(
        clippy::unused_self,
        reason = "what differs between clients is asked of the client"
    )]
    pub(crate) fn principal(&self) -> &'static str {
        ""
    }

    /// What servers are told of its capabilities, JSON text.
    pub(crate) fn forwardable(&self) -> &str {
        self.class
            .as_ref()
            .map_or(BASE_CLASS, |class| &class.capabilities)
    }

    /// What it can be asked.
    pub(crate) fn server_request_support(&self) -> ServerRequestSupport {
        ServerRequestSupport::from_capabilities(self.forwardable())
    }
}

/// The version that a modern request declares; `-32602` without it.
pub(crate) fn modern_version<'p>(params: &'p Params<'_>) -> Result<Cow<'p, str>, RpcError> {
    params.meta.get_text(PROTOCOL_VERSION).ok_or_else(|| {
        RpcError::invalid_params(format!(
            "`_meta` must name its `{PROTOCOL_VERSION}`, a string"
        ))
    })
}

pub(crate) fn check_version(told: &str) -> Result<Revision, RpcError> {
    Revision::parse(told)
        .filter(|revision| revision.era() == Era::Modern)
        .ok_or_else(|| RpcError::unsupported_version(told))
}
