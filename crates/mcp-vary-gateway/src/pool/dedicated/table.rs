//! The dedicated connections that are open, and how many there may be.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_vary_base::lock::Lock;
use mcp_vary_wire::response::RpcError;
use tracing::warn;

use super::connection::{ConnectSpec, DedicatedConnection, DedicatedKey, Owner};

/// The dedicated connections to all servers.
pub(super) type DedicatedTable = Lock<Entries>;

pub(super) type Entries = BTreeMap<DedicatedKey, Arc<DedicatedConnection>>;

/// Makes room for another connection, by closing idle ones if necessary; at most `limit` are open to all servers.
///
/// # Errors
///
/// When all are in use, or those of the principal, so that no principal takes all.
pub(super) fn evict_until_fits(
    entries: &mut Entries,
    limit: usize,
    spec: &ConnectSpec<'_>,
) -> Result<(), RpcError> {
    let server_limit = spec.config.limits.dedicated_connections;
    let share = (server_limit / 4).max(MIN_SHARE);
    let is_of_server = |key: &DedicatedKey| key.server == spec.server.index;
    let is_of_principal = |key: &DedicatedKey, connection: &DedicatedConnection| {
        is_of_server(key) && spec.principal.is_some() && connection.principal == spec.principal
    };
    let has_share = |entries: &Entries| {
        let all = entries.iter();
        let known = all.filter(|(key, connection)| is_of_principal(key, connection));
        known.count() >= share
    };
    let is_server_full = |entries: &Entries| {
        let all = entries.iter();
        let known = all.filter(|(key, it)| is_of_server(key) && !it.is_adopted);
        known.count() >= server_limit.max(1)
    };
    let is_full = |entries: &Entries| {
        let known = entries.values().filter(|connection| !connection.is_adopted);
        known.count() >= limit.max(1)
    };
    if has_share(entries) {
        evict_idle(entries, is_of_principal);
    }
    if is_server_full(entries) {
        evict_idle(entries, |key, _| is_of_server(key));
    }
    if is_full(entries) {
        evict_idle(entries, |_, _| true);
    }
    let reason = if is_server_full(entries) || is_full(entries) {
        "all are in use; try again later".to_owned()
    } else if has_share(entries) {
        format!(
            "the {share} of {server_limit} that one user may have are in use; end one of your calls or sessions that use \
             them, or raise its `dedicated-connections`"
        )
    } else {
        return Ok(());
    };
    let server = spec.config.name.as_str();
    warn!(server, reason, "no dedicated connection is left");
    Err(RpcError::internal(format!(
        "server `{server}` needs a dedicated connection for each client that accepts server requests, and {reason}"
    )))
}

/// Closes the connection that has been idle longest, of those for which `may` returns true; if none is idle, one whose
/// callers are gone without a word.
fn evict_idle(entries: &mut Entries, may: impl Fn(&DedicatedKey, &DedicatedConnection) -> bool) {
    let is_idle = |it: &DedicatedConnection| !it.is_adopted && (!it.is_used() || it.is_abandoned());
    let idle = entries
        .iter()
        .filter(|(key, connection)| may(key, connection) && is_idle(connection));
    let oldest = idle.min_by_key(|(key, connection)| {
        // Connections without a session are closed first.
        let has_session = matches!(key.owner, Owner::Session(_));
        (
            connection.is_used(),
            has_session,
            Reverse(connection.used.elapsed()),
        )
    });
    let key = oldest.map(|(key, _)| *key);
    if let Some((key, connection)) = key.and_then(|key| entries.remove_entry(&key)) {
        connection.evicted.cancel();
        if let Some(evictions) = &connection.evictions {
            evictions.lock().note_evicted(key.owner.session());
        }
    }
}

/// The least share of a principal.
const MIN_SHARE: usize = 2;
