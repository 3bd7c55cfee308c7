//! What is observed of requests: who did what, under which variant and rule, and with what outcome.
//!
//! Every request has an [`Observation`] from its arrival to its outcome. If the audit log or the log has the request, a
//! [`RequestRecord`] is part of it, from which the log's line is written, too. Otherwise nothing of that is computed.

pub(crate) mod call_counters;
mod events;
mod observation;
mod outcome;
pub(crate) mod participation;
mod request_line;
mod request_record;
mod spans;
mod subject;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary_access::{Principal, PrincipalId};
use mcp_vary_audit::{
    Actor, AuditLog, AuditStats, LongText, OnFull, Permit, QueueFull, Record, SessionId, Text,
    Transport,
};
use mcp_vary_auth::key::KeyDigest;
use mcp_vary_traces::Carrier;
use mcp_vary_wire::client_id::ClientId;
use mcp_vary_wire::client_name::ClientName;
use quick_cache::sync::Cache;
use tokio::time::Instant;

pub(crate) use self::observation::{ExchangeObservation, Observation};
pub(crate) use self::request_line::milliseconds;
pub(crate) use self::request_record::{AuditedRequest, RequestRecord};

/// The audit log of a gateway, from its start to its end.
pub(crate) struct AuditService {
    log: AuditLog,
    /// The latest variant of each recent client.
    selections: Cache<ClientKey, Arc<str>>,
    /// The credentials that were accepted recently.
    credentials: Cache<CredentialKey, ()>,
}

/// Omits the tables, which have names of clients.
impl fmt::Debug for AuditService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditService").finish_non_exhaustive()
    }
}

/// What ranked the variants of a client.
#[derive(Clone, Debug, Default)]
pub(crate) struct RankingDetails {
    /// The client's hints: `contextSize=compact useCase=planning`.
    pub(crate) hints: Option<LongText>,
    /// The variants that it is offered, with their points: `compact=60 standard=20`.
    pub(crate) order: Option<LongText>,
}

/// From where a request comes, beside its principal.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) transport: Transport,
    /// The address of the client; behind a trusted proxy, the one that the proxy reports.
    pub(crate) address: Option<IpAddr>,
    /// The id of the session, as the client sent it.
    pub(crate) session: Option<SessionId>,
    /// The trace in the headers.
    pub(crate) trace_id: Option<[u8; 16]>,
    /// The context in the headers, if requests are traced.
    pub(crate) carrier: Option<Carrier>,
    /// The client that the token was issued to.
    pub(crate) oauth_client: Option<Arc<str>>,
}

impl Default for Origin {
    fn default() -> Self {
        Self {
            transport: Transport::Http,
            address: None,
            session: None,
            trace_id: None,
            carrier: None,
            oauth_client: None,
        }
    }
}

/// Who counts as the same client when its variant changes: a session or connection; without one a principal or
/// address, and the name that the client gives itself.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum ClientKey {
    Connected(ClientId),
    Stateless {
        principal: Option<PrincipalId>,
        address: Option<IpAddr>,
        name: String,
    },
}

/// What distinguishes credentials. A refreshed token is another one than before.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct CredentialKey {
    principal: PrincipalId,
    expires_at: Option<u64>,
    key: Option<KeyDigest>,
}

/// How many clients and credentials are remembered. One that was forgotten is recorded again.
const REMEMBERED: usize = 4096;

/// Between two attempts to record a request that waits for room.
const RETRY: Duration = Duration::from_millis(5);

impl AuditService {
    pub(crate) fn new(log: AuditLog) -> Self {
        Self {
            log,
            selections: Cache::new(REMEMBERED),
            credentials: Cache::new(REMEMBERED),
        }
    }

    /// Begins the record of a request, before it does anything.
    ///
    /// # Errors
    ///
    /// When there is no room for the record, and the request must be refused for that reason.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        request: &AuditedRequest<'_>,
    ) -> Result<Arc<RequestRecord>, QueueFull> {
        let permit = self.reserve().await?;
        let log = (Arc::clone(self), permit);
        Ok(Arc::new(RequestRecord::new(Some(log), request)))
    }

    async fn reserve(&self) -> Result<Permit, QueueFull> {
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

    /// Records something that happened in any case; it is lost and counted if there is no room.
    fn record(&self, record: Record) {
        self.log.submit_or_lose(record);
    }

    /// Remembers the variant of a client. Returns whether it had none, or another one.
    fn is_new_variant(&self, key: ClientKey, variant: &str) -> bool {
        let known = self.selections.get(&key);
        let is_new = known.is_none_or(|known| *known != *variant);
        if is_new {
            self.selections.insert(key, variant.into());
        }
        is_new
    }

    /// Opens the file again, after a rotation.
    pub(crate) fn reopen(&self) {
        self.log.reopen();
    }

    /// Writes what waits, and ends the log.
    pub(crate) async fn close(&self) {
        let log = self.log.clone();
        let closed = tokio::task::spawn_blocking(move || log.close(CLOSE_TIMEOUT)).await;
        if !matches!(closed, Ok(true)) {
            let lost = self.log.stats().queued;
            tracing::warn!(lost, "the audit log could not be written to its end");
        }
    }

    pub(crate) fn stats(&self) -> AuditStats {
        self.log.stats()
    }
}

/// How long the last records may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// A principal as records have it; `None` for anonymous ones.
fn actor(principal: &Principal, oauth_client: Option<&Arc<str>>) -> Option<Arc<Actor>> {
    let mut actor = Actor::of(principal)?;
    actor.client_id = oauth_client.map(Text::shared);
    Some(Arc::new(actor))
}

/// The name of a client as a key; its version does not matter.
fn key_of(name: &ClientName) -> String {
    name.name.clone()
}
