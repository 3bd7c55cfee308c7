//! The keys of classes: which clients share connections and lists.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use mcp_vary_access::Principal;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::revision::Era;

use super::access::AccessControl;
use crate::pool::connections::servers::Servers;
use mcp_vary_session::{AccessKey, PoolKey};

/// Assigns clients to classes under one configuration.
#[derive(Debug)]
pub(crate) struct ClassKeys {
    pub(crate) servers: Arc<Servers>,
    /// The access rules, if there are any.
    pub(crate) access: Option<Arc<AccessControl>>,
    pub(crate) base_era: Arc<BaseEra>,
    /// The capabilities of the clients of the base class: none, or those of the only client.
    pub(crate) base_capabilities: Arc<str>,
}

/// The era of clients without special capabilities, fixed by the first of them. Until then, each server chooses the era
/// of its connection.
#[derive(Debug, Default)]
pub(crate) struct BaseEra {
    pub(crate) era: OnceLock<Era>,
    /// Whether the connections are of that era.
    pub(crate) is_settled: AtomicBool,
}

impl ClassKeys {
    /// The key of the class of a client of `era`; `None` for the base class.
    pub(crate) fn key(
        &self,
        capabilities: &Arc<str>,
        client: Option<ClientId>,
        principal: Option<&Arc<Principal>>,
        era: Era,
    ) -> Option<PoolKey> {
        let has_base_capabilities = **capabilities == *self.base_capabilities;
        let capabilities = self.servers.connection_capabilities(capabilities, era);
        let control = self.access.as_ref();
        let access = control.map(|control| AccessKey(control.class_of(principal)));
        let claims = self.servers.claim_headers(principal);
        let session = self.servers.isolates_sessions.then_some(client).flatten();
        let principal_id = match principal {
            Some(principal) if self.servers.isolate_principals(era) => Some(principal.id()),
            _ => None,
        };
        let is_base = session.is_none()
            && principal_id.is_none()
            && has_base_capabilities
            && self.era_of_base(era) == era
            && access.is_none();
        (!is_base).then_some(PoolKey {
            capabilities,
            session,
            principal: principal_id,
            access,
            claims,
            era,
        })
    }

    /// The key under this configuration of a client whose key was `key` under another one.
    pub(crate) fn renewed(
        &self,
        key: Option<&PoolKey>,
        principal: Option<&Arc<Principal>>,
    ) -> Option<PoolKey> {
        let era = key.map(|key| key.era).or(self.base_era.era.get().copied());
        let capabilities = key.map_or(&self.base_capabilities, |key| &key.capabilities);
        let session = key.and_then(|key| key.session);
        self.key(capabilities, session, principal, era.unwrap_or(Era::Modern))
    }

    /// The era of the clients of the base class. The first call fixes it.
    pub(crate) fn era_of_base(&self, era: Era) -> Era {
        *self.base_era.era.get_or_init(|| {
            for server in self.servers.iter() {
                server.prefer_era(era);
            }
            era
        })
    }
}
