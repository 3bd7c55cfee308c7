//! The client of a request, with its declarations, which are parsed once and cached by their bytes.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use mcp_vary::extension::{Carrier, declared};
use mcp_vary::feature::Features;
use mcp_vary::hints::VariantHints;
use mcp_vary_access::{Principal, PrincipalId};
use mcp_vary_catalog::selection::rules::{JsonRule, Presentation};
use mcp_vary_catalog::selection::variant_selection::Offers;
use mcp_vary_rates::{AddressGroup, Caller as RateCaller};
use mcp_vary_results::negotiation_log::IgnoredCounter;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::meta::PROTOCOL_VERSION;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::revision::Revision;
use mcp_vary_wire::server_request_support::ServerRequestSupport;
use serde_json::Value;

use crate::audit::RequestRecord;
use crate::session::caller::sealed_principal;
use crate::session::participation::Participation;
use crate::session::{PoolKey, Session};
use crate::settings::rates::VariantUser;

/// What a client's capabilities declare for the two extensions.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeclaredFeatures {
    /// Present when the client declared content negotiation.
    pub(crate) features: Option<Features>,
    pub(crate) hints: VariantHints,
    /// Where the client put its declarations; the response uses the same place (EXT-6).
    pub(crate) negotiation: Option<Carrier>,
    pub(crate) variants: Option<Carrier>,
}

impl DeclaredFeatures {
    /// Reads a client's capabilities. Invalid settings are dropped one by one, counted and logged (EXT-5).
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
    /// The same, if it belongs to a connection that no other client uses.
    pub(crate) connection: Option<ClientId>,
    pub(crate) features: Option<Arc<Features>>,
    /// The variants that it can select.
    pub(crate) offers: Offers,
    /// The presentation of its variants that rules choose.
    pub(crate) presentation: Presentation,
    /// The features that rules presume it to have.
    pub(crate) presumed_features: Option<Arc<Features>>,
    /// The form of JSON that rules choose for it.
    pub(crate) json: JsonRule,
    /// The names of the MCP capabilities that it declared, and of their members: `elicitation`, `elicitation/url`.
    pub(crate) capabilities: Arc<BTreeSet<String>>,
    /// Its capabilities that may be forwarded to servers, JSON text.
    pub(crate) forwardable: Arc<str>,
    /// The class whose connections it uses; `None` without special capabilities.
    pub(crate) class: Option<PoolKey>,
    /// The session of a legacy client.
    pub(crate) session: Option<Arc<Session>>,
    /// Who sent the request; `None` where clients are not authenticated.
    pub(crate) principal: Option<Arc<Principal>>,
    /// Its address, if limits need it; none on stdio.
    pub(crate) address: Option<IpAddr>,
    /// The part that it takes in an experiment.
    pub(crate) participation: Option<Arc<Participation>>,
    /// The lowest log level for this request.
    pub(crate) log_level: Option<u8>,
    /// The record of the request, if the audit log or the log has it.
    pub(crate) record: Option<Arc<RequestRecord>>,
}

/// See [`Client::quota_key`].
pub(crate) type QuotaKey = (Option<PrincipalId>, Option<ClientId>);

impl Client {
    pub(crate) fn era(&self) -> Era {
        self.revision.era()
    }

    /// The principal in sealed texts: its id, or nothing where clients are not authenticated.
    pub(crate) fn sealed_principal(&self) -> &str {
        sealed_principal(self.principal.as_ref())
    }

    pub(crate) fn principal_id(&self) -> Option<PrincipalId> {
        self.principal.as_ref().map(|principal| principal.id())
    }

    /// Whose calls and tasks count together: those of a principal; where clients are not known those of a connection,
    /// or all that have none.
    pub(crate) fn quota_key(&self) -> QuotaKey {
        let known = self.principal.as_ref().filter(|it| !it.is_anonymous());
        match known {
            Some(principal) => (Some(principal.id()), None),
            None => (None, self.connection),
        }
    }

    /// The client as rate limits see it.
    pub(crate) fn rate_caller(&self) -> RateCaller<'_, PrincipalId> {
        let known = self.principal.as_ref().filter(|it| !it.is_anonymous());
        RateCaller {
            principal: known.map(|principal| principal.id()),
            key: known.and_then(|principal| principal.key_name()),
            address: self.address,
        }
    }

    /// Whose variant changes when a request selects another one; `None` if nothing tells the client from others.
    pub(crate) fn variant_user(&self) -> Option<VariantUser> {
        let caller = self.rate_caller();
        let connection = self.connection.map(VariantUser::Connection);
        let principal = caller.principal.map(VariantUser::Principal);
        let address = caller.address.map(AddressGroup::of);
        connection
            .or(principal)
            .or(address.map(VariantUser::Address))
    }

    /// The server requests that it accepts.
    pub(crate) fn server_request_support(&self) -> ServerRequestSupport {
        ServerRequestSupport::from_capabilities(&self.forwardable)
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

pub(crate) fn check_version(version: &str) -> Result<Revision, RpcError> {
    Revision::parse(version)
        .filter(|revision| revision.era() == Era::Modern)
        .ok_or_else(|| RpcError::unsupported_version(version))
}
