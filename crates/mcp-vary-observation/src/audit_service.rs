//! The audit log, and what it remembers of clients and credentials.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary_access::PrincipalId;
use mcp_vary_audit::{AuditLog, AuditStats, OnFull, Permit, QueueFull, Record};
use mcp_vary_auth::key::KeyDigest;
use mcp_vary_wire::client_id::ClientId;
use quick_cache::sync::Cache;
use tokio::time::Instant;

/// The audit log of a gateway, from its start to its end.
pub struct AuditService {
    pub(super) log: AuditLog,
    /// The latest variant of each recent client.
    selections: Cache<ClientKey, Arc<str>>,
    /// The credentials that were accepted recently.
    pub(super) credentials: Cache<CredentialKey, ()>,
}

/// Omits the tables, which have names of clients.
impl fmt::Debug for AuditService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditService").finish_non_exhaustive()
    }
}

/// Who counts as the same client when its variant changes: a session or connection; without one a principal or
/// address, and the name that the client gives itself.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum ClientKey {
    Connected(ClientId),
    Stateless {
        principal: Option<PrincipalId>,
        address: Option<IpAddr>,
        name: String,
    },
}

/// What distinguishes credentials. A refreshed token is another one than before.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct CredentialKey {
    pub(super) principal: PrincipalId,
    pub(super) expires_at: Option<u64>,
    pub(super) key: Option<KeyDigest>,
}

/// How many clients and credentials are remembered. One that was forgotten is recorded again.
const REMEMBERED: usize = 4096;

/// Between two attempts to record a request that waits for room.
const RETRY: Duration = Duration::from_millis(5);

impl AuditService {
    /// Records in this log.
    pub fn new(log: AuditLog) -> Self {
        Self {
            log,
            selections: Cache::new(REMEMBERED),
            credentials: Cache::new(REMEMBERED),
        }
    }

    /// Room for the record of a request.
    ///
    /// # Errors
    ///
    /// When there is none, and the request must be refused for that reason.
    pub(super) async fn reserve(&self) -> Result<Permit, QueueFull> {
        if let Some(permit) = self.log.try_reserve() {
            return Ok(permit);
        }
        if let OnFull::Wait(limit) = self.log.on_full() {
            let deadline = Instant::now() + limit;
            while Instant::now() < deadline {
                tokio::time::sleep(RETRY).await;
                if let Some(permit) = self.log.try_reserve() {
                    return Ok(permit);
                }
            }
        }
        Err(self.log.refuse())
    }

    /// Records something that cannot be refused any more. If the queue is full, the record is lost and counted.
    pub(super) fn record(&self, record: Record) {
        self.log.submit_or_lose(record);
    }

    /// Remembers the variant of a client. Returns whether it had none, or another one.
    pub(super) fn is_new_variant(&self, key: ClientKey, variant: &str) -> bool {
        let known = self.selections.get(&key);
        let is_new = known.is_none_or(|known| *known != *variant);
        if is_new {
            self.selections.insert(key, variant.into());
        }
        is_new
    }

    /// Opens the file again, after a rotation.
    pub fn reopen(&self) {
        self.log.reopen();
    }

    /// Writes what waits, and ends the log.
    pub async fn close(&self) {
        let log = self.log.clone();
        let closed = tokio::task::spawn_blocking(move || log.close(CLOSE_TIMEOUT)).await;
        if !matches!(closed, Ok(true)) {
            let lost = self.log.stats().queued;
            tracing::warn!(lost, "the audit log could not be written to its end");
        }
    }

    /// What became of the records so far.
    pub fn stats(&self) -> AuditStats {
        self.log.stats()
    }
}

/// How long the last records may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
