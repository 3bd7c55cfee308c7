//! The client of a request, with its declarations, which are parsed once and cached by their bytes.

use std::any::Any;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::IpAddr;
use std::sync::Arc;

use mcp_vary::extension::{Carrier, Declaration, Declared, declared};
use mcp_vary::feature::Features;
use mcp_vary::hints::VariantHints;
use mcp_vary_access::{Principal, PrincipalId};
use mcp_vary_base::caller_token::CallerToken;
use mcp_vary_catalog::selection::rules::{JsonRule, Presentation};
use mcp_vary_catalog::selection::variant_selection::Offers;
use mcp_vary_rates::{AddressGroup, Caller as RateCaller};
use mcp_vary_results::negotiation_log::IgnoredCounter;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::meta::PROTOCOL_VERSION;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::{Era, Revision};
use mcp_vary_wire::server_request_support::ServerRequestSupport;
use serde_json::Value;

use crate::caller::sealed_principal;
use crate::{PoolKey, Session};
use mcp_vary_observation::Observation;
use mcp_vary_settings::rates::VariantUser;

/// What a client's capabilities declare for the extensions that the gateway negotiates itself.
#[derive(Clone, Debug, Default)]
pub struct DeclaredFeatures(BTreeMap<&'static str, DeclaredExtension>);

/// What a client declares of one extension.
#[derive(Clone, Debug)]
pub struct DeclaredExtension {
    /// Where the client put it; the response uses the same place (EXT-6).
    carrier: Carrier,
    value: Arc<dyn Any + Send + Sync>,
}

/// Reads the declarations of one extension. Invalid settings are dropped one by one, counted and logged (EXT-5).
pub type ReadExtension = fn(&Value, &IgnoredCounter) -> Option<DeclaredExtension>;

impl DeclaredExtension {
    /// The declaration of an extension, if the client made it.
    pub fn of<T: Declaration + Send + Sync + 'static>(declared: Declared<T>) -> Option<Self> {
        let carrier = declared.carrier?;
        let value = Arc::new(declared.value);
        Some(Self { carrier, value })
    }
}

impl FromIterator<(&'static str, DeclaredExtension)> for DeclaredFeatures {
    fn from_iter<I: IntoIterator<Item = (&'static str, DeclaredExtension)>>(all: I) -> Self {
        Self(all.into_iter().collect())
    }
}

impl DeclaredFeatures {
    /// What the client declares of the extension `T`, if it does.
    pub fn get<T: Declaration + Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        Arc::clone(&self.0.get(T::ID)?.value).downcast().ok()
    }

    /// Where the client declared the extension `id`, if it did.
    pub fn carrier(&self, id: &str) -> Option<Carrier> {
        self.0.get(id).map(|declared| declared.carrier)
    }
}

/// Reads the feature tags of a client.
pub fn read_features(
    capabilities: &Value,
    ignorings: &IgnoredCounter,
) -> Option<DeclaredExtension> {
    let features = declared::<Features>(capabilities);
    let declares = features.carrier.map(|_| &features.value);
    ignorings.features_declared(declares, &features.ignored);
    DeclaredExtension::of(features)
}

/// Reads the hints of a client.
pub fn read_hints(capabilities: &Value, ignorings: &IgnoredCounter) -> Option<DeclaredExtension> {
    let hints = declared::<VariantHints>(capabilities);
    ignorings.hints_declared(&hints.value, &hints.ignored);
    DeclaredExtension::of(hints)
}

/// The client of one request.
#[derive(Clone, Debug)]
pub struct Client {
    /// The revision that it speaks.
    pub revision: Revision,
    /// That of its session; without one, of this request alone.
    pub id: ClientId,
    /// The id, if it belongs to a connection that no other client uses.
    pub connection: Option<ClientId>,
    /// The features that it negotiated; `None` if it did not declare content negotiation.
    pub features: Option<Arc<Features>>,
    /// The variants that it can select.
    pub offers: Offers,
    /// Whether it declared server variants, or selects one by the address or the header.
    pub knows_variants: bool,
    /// The presentation of its variants that rules choose.
    pub presentation: Presentation,
    /// The features that rules presume it to have.
    pub presumed_features: Option<Arc<Features>>,
    /// The form of JSON that rules choose for it.
    pub json: JsonRule,
    /// The names of the MCP capabilities that it declared with the request, and of their members: `elicitation`,
    /// `elicitation/url`. `None` for the client of a session.
    pub capabilities: Option<Arc<BTreeSet<String>>>,
    /// Its capabilities that may be forwarded to servers, JSON text.
    pub forwardable: Arc<str>,
    /// Their hash, for a client without a session; `None` if there are none.
    pub forwardable_hash: Option<u64>,
    /// The class whose connections it uses; `None` without special capabilities.
    pub class: Option<PoolKey>,
    /// The session of a legacy client.
    pub session: Option<Arc<Session>>,
    /// Who sent the request; `None` where clients are not authenticated.
    pub principal: Option<Arc<Principal>>,
    /// Its address, if limits need it; none on stdio.
    pub address: Option<IpAddr>,
    /// What is observed of the request.
    pub observation: Observation,
}

/// See [`Client::quota_key`].
pub type QuotaKey = (Option<PrincipalId>, Option<ClientId>);

impl Client {
    /// The era of its revision.
    pub fn era(&self) -> Era {
        self.revision.era()
    }

    /// The principal in sealed texts: its id, or nothing where clients are not authenticated.
    pub fn sealed_principal(&self) -> &str {
        sealed_principal(self.principal.as_ref())
    }

    /// The access token by which the client was recognised, where a server needs it.
    pub fn access_token(&self) -> Option<&CallerToken> {
        self.principal.as_ref()?.access_token()
    }

    /// The principal that sent the request; `None` where clients are not authenticated.
    pub fn principal_id(&self) -> Option<PrincipalId> {
        self.principal.as_ref().map(|principal| principal.id())
    }

    /// The key by which calls and tasks count together: the principal; where clients are not known the connection. Clients
    /// without one count together.
    pub fn quota_key(&self) -> QuotaKey {
        let principal = self.principal.as_ref().filter(|it| !it.is_anonymous());
        match principal {
            Some(principal) => (Some(principal.id()), None),
            None => (None, self.connection),
        }
    }

    /// The owner of lists that its calls changed on a dedicated connection: the client of a connection; without one, all
    /// clients of a principal with the same capabilities together, since nothing distinguishes them.
    pub fn list_owner(&self) -> Option<ClientId> {
        self.connection.or_else(|| {
            let mut hasher = DefaultHasher::new();
            (self.forwardable_hash?, self.principal_id()).hash(&mut hasher);
            Some(hasher.finish())
        })
    }

    /// The client as rate limits see it.
    pub fn rate_caller(&self) -> RateCaller<'_, PrincipalId> {
        let principal = self.principal.as_ref().filter(|it| !it.is_anonymous());
        RateCaller {
            principal: principal.map(|principal| principal.id()),
            key: principal.and_then(|principal| principal.key_name()),
            address: self.address,
        }
    }

    /// The user whose changes of the variant are counted; `None` if nothing distinguishes the client from others.
    pub fn variant_user(&self) -> Option<VariantUser> {
        let caller = self.rate_caller();
        let connection = self.connection.map(VariantUser::Connection);
        let principal = caller.principal.map(VariantUser::Principal);
        let address = caller.address.map(AddressGroup::of);
        connection
            .or(principal)
            .or(address.map(VariantUser::Address))
    }

    /// The client, if it can resume streams that begin with a priming event.
    pub fn resumable_id(&self) -> Option<ClientId> {
        let is_resumable = understands_priming(self.revision) && self.era() == Era::Legacy;
        is_resumable.then_some(self.id)
    }

    /// The server requests that it accepts.
    pub fn server_request_support(&self) -> ServerRequestSupport {
        ServerRequestSupport::from_capabilities(&self.forwardable)
    }
}

/// The version that a modern request declares; `-32602` without it.
pub fn modern_version<'p>(params: &'p Params<'_>) -> Result<Cow<'p, str>, RpcError> {
    params.meta.get_text(PROTOCOL_VERSION).ok_or_else(|| {
        RpcError::invalid_params(format!(
            "`_meta` must name its `{PROTOCOL_VERSION}`, a string"
        ))
    })
}

/// The revision of a modern request; `-32022` if it is not supported.
pub fn check_version(version: &str) -> Result<Revision, RpcError> {
    Revision::parse(version)
        .filter(|revision| revision.era() == Era::Modern)
        .ok_or_else(|| RpcError::unsupported_version(version))
}

/// Whether clients of `revision` know that events without data are not messages.
pub fn understands_priming(revision: Revision) -> bool {
    revision >= Revision::V2025_11_25
}
