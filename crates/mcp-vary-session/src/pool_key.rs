//! The key of the class of clients whose connections a client shares.

use std::sync::Arc;

use mcp_vary_access::PrincipalId;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::revision::Era;

use crate::access_key::AccessKey;
use crate::claim_headers::ClaimHeaders;

/// Identifies a class. Clients without special capabilities have none.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct PoolKey {
    /// The forwardable capabilities of the clients, canonical JSON text; `{}` if there are none.
    pub capabilities: Arc<str>,
    /// The only client of the class, where a server is not shared by sessions.
    pub session: Option<ClientId>,
    /// The only principal of the class, where a server is not shared by principals.
    pub principal: Option<PrincipalId>,
    /// What its clients may see, where there are access rules.
    pub access: Option<AccessKey>,
    /// The headers of servers from the claims of its principal, where a server has such headers.
    pub claims: Option<ClaimHeaders>,
    /// The era of the clients, and of connections to servers that support both.
    pub era: Era,
}

impl PoolKey {
    /// Whether the class belongs to one session, principal or access class, so that it must not be another's.
    pub const fn is_isolated(&self) -> bool {
        self.session.is_some() || self.principal.is_some() || self.access.is_some()
    }
}
