//! The audit log, and what it remembers of clients and credentials.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use mcp_vary_access::PrincipalId;
use mcp_vary_audit::{AuditLog, AuditStats, Event, OnFull, Permit, QueueFull, Record};
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
    /// What was recorded again and again: since when, and how often.
    repeats: Cache<RepeatKey, (Instant, u64)>,
}

// Omits the tables, which have names of clients.
mcp_vary_base::debug_by_name!(AuditService);

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

/// What counts as the same, where anybody who can connect causes a record.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct RepeatKey {
    event: Event,
    network: Option<IpAddr>,
    status: Option<u16>,
    /// The method of a request that was answered: others are made up by the sender.
    method: Option<String>,
}

/// How many clients and credentials are remembered. One that was forgotten is recorded again.
const REMEMBERED: usize = 4096;

/// For how long repeated records are counted, and how many of them are all written.
const WINDOW: Duration = Duration::from_secs(60);
const ALL_RECORDED: u64 = 60;

/// Between two attempts to record a request that waits for room.
const RETRY: Duration = Duration::from_millis(5);

impl AuditService {
    /// Records in this log.
    pub fn new(log: AuditLog) -> Self {
        Self {
            log,
            selections: Cache::new(REMEMBERED),
            credentials: Cache::new(REMEMBERED),
            repeats: Cache::new(REMEMBERED),
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

    /// Records what can be caused without end: of the same in a minute the first ones, then one whenever their number has
    /// doubled, with that number. So nobody fills a disk.
    pub(super) fn record_repeated(&self, mut record: Record) {
        let answered = record.method.as_ref().filter(|_| record.status.is_none());
        let key = RepeatKey {
            event: record.event,
            network: record.address.map(network),
            status: record.status,
            method: answered.map(|method| method.as_str().to_owned()),
        };
        let now = Instant::now();
        let counted = self.repeats.get(&key);
        let current = counted.filter(|(since, _)| now.duration_since(*since) < WINDOW);
        let (since, count) = current.map_or((now, 1), |(since, count)| (since, count + 1));
        self.repeats.insert(key, (since, count));
        if count > ALL_RECORDED {
            if !count.is_power_of_two() {
                return;
            }
            record.count = Some(count);
        }
        self.record(record);
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

/// An IPv4 address, or the /64 of an IPv6 address: its owner can use any address there (RFC 4291, section 2.5.4).
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(ip) if ip.to_ipv4_mapped().is_none() => {
            Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into()
        }
        other => other,
    }
}

/// How long the last records may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
