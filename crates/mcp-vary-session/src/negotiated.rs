//! What a session is opened with.

use std::sync::Arc;

use mcp_vary::feature::Features;
use mcp_vary_access::PrincipalId;
use mcp_vary_catalog::selection::variant_selection::VariantReason;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::client_name::ClientName;
use mcp_vary_wire::revision::Revision;

/// What `initialize` negotiated for the lifetime of a session.
#[derive(Clone, Debug)]
pub struct Negotiated {
    /// The revision of the protocol.
    pub revision: Revision,
    /// Present when the client declared content negotiation.
    pub features: Option<Arc<Features>>,
    /// The ids of the variants offered, best first; empty when variants are off.
    pub order: Vec<String>,
    /// Whether the client declared server variants.
    pub declares_variants: bool,
    /// The capability class: the canonical JSON text of the forwardable capabilities, at most 512 bytes;
    /// [`BASE_CLASS`] if there are none.
    pub class: Arc<str>,
    /// The client's name and version.
    pub client: ClientName,
    /// Who opened the session; only they can use it. `None` where clients are not authenticated.
    pub principal: Option<PrincipalId>,
    /// Why its default variant is the default, without the names of access rules, which clients do not learn.
    pub reason: VariantReason,
}

/// Decides which servers and tools the clients of sessions may know.
///
/// Sessions know neither rules nor catalogs; this is implemented where both are known.
pub trait ServerVisibility: Send + Sync {
    /// Whether `client`, which has a session, may know that `server` exists: where there are access rules, if they show
    /// something of it.
    fn may_know(&self, client: ClientId, server: &str) -> bool;

    /// The same for a tool of `server`, by its name there: where there are access rules, if they show it.
    fn may_know_tool(&self, client: ClientId, server: &str, tool: &str) -> bool;
}

mcp_vary_base::debug_by_name!(dyn ServerVisibility);

/// The class of a client without forwardable capabilities.
pub const BASE_CLASS: &str = "{}";
