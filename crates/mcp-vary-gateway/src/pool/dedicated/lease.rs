//! The leases that keep a dedicated connection open.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_vary_upstream::{
    ConnectionState, ServerRequest, SupervisedConnection, UpstreamConnection, UpstreamError,
};
use mcp_vary_wire::server_request_support::LIST_ROOTS;
use tokio_util::sync::CancellationToken;

use super::connection::{DedicatedConnection, DedicatedKey, Owner};
use super::table::DedicatedTable;
use crate::pool::lists::ids::ConnectionId;
use crate::pool::lists::source::ServerSource;

/// A leased dedicated connection. Dropping it ends the lease.
#[derive(Debug)]
pub(crate) struct DedicatedLease {
    connection: Arc<DedicatedConnection>,
    key: DedicatedKey,
    table: Arc<DedicatedTable>,
    /// Whether the call was answered, so that no later message belongs to it.
    is_clean: AtomicBool,
    /// Whether the server may have learned something about the client (its roots), so that the connection must not be
    /// leased to another client.
    is_tainted: AtomicBool,
    /// Whether its caller is gone without a word.
    is_abandoned: AtomicBool,
}

impl DedicatedLease {
    pub(super) fn new(
        connection: Arc<DedicatedConnection>,
        key: DedicatedKey,
        table: &Arc<DedicatedTable>,
    ) -> Self {
        connection.in_use.fetch_add(1, Ordering::Relaxed);
        Self {
            connection,
            key,
            table: Arc::clone(table),
            is_clean: AtomicBool::new(false),
            is_tainted: AtomicBool::new(false),
            is_abandoned: AtomicBool::new(false),
        }
    }

    /// Notes whether its caller is gone. If all callers are, the connection can make room for another one.
    pub(crate) fn set_abandoned(&self, is_abandoned: bool) {
        let was_abandoned = self.is_abandoned.swap(is_abandoned, Ordering::Relaxed);
        let count = &self.connection.abandoned;
        match (was_abandoned, is_abandoned) {
            (false, true) => count.fetch_add(1, Ordering::Relaxed),
            (true, false) => count.fetch_sub(1, Ordering::Relaxed),
            _ => 0,
        };
    }

    /// Cancelled when the connection was closed for another client.
    pub(crate) fn evicted(&self) -> CancellationToken {
        self.connection.evicted.clone()
    }

    pub(crate) fn connection(&self) -> &Arc<SupervisedConnection> {
        &self.connection.upstream
    }

    /// The connection. The first use waits as long as a server may take to start.
    pub(crate) async fn ready(&self) -> Result<Arc<UpstreamConnection>, UpstreamError> {
        let upstream = &self.connection.upstream;
        let is_connecting = || matches!(*upstream.state().borrow(), ConnectionState::Connecting);
        if upstream.current().is_none() && is_connecting() {
            let limit = upstream.config().limits.handshake;
            // `ready` returns the error.
            let _ = tokio::time::timeout(limit, upstream.first_attempt()).await;
        }
        upstream.ready().await
    }

    /// Before a call: forwards its resource updates to the subscribers on `class`, and compares its lists with those of
    /// `class`.
    pub(crate) async fn mirror_subscriptions(&self, class: &Arc<ServerSource>) {
        if let Some(lists) = &self.connection.lists {
            lists.compare_with(class);
        }
        if let Some(mirror) = &self.connection.mirror {
            mirror.serve(&class.connection).await;
        }
    }

    /// Whether the class reads its lists on it, too.
    pub(crate) fn is_adopted(&self) -> bool {
        self.connection.is_adopted
    }

    /// Keeps it open after the call.
    pub(crate) fn keep_alive(&self) -> KeepAliveLease {
        KeepAliveLease::new(&self.connection)
    }

    /// Keeps it open for this long after the call.
    pub(crate) fn keep_for(&self, time: Duration) {
        self.connection.keep_for(time);
    }

    /// Whether other calls of the client are running on it.
    pub(crate) fn has_others(&self) -> bool {
        self.connection.in_use.load(Ordering::Relaxed) > 1
    }

    /// Notes a server request. A server remembers the roots of a client until they change, so the connection must not
    /// be leased to another client afterwards.
    pub(crate) fn note_request(&self, request: &ServerRequest) {
        if request.method() == LIST_ROOTS {
            self.is_tainted.store(true, Ordering::Relaxed);
            self.connection.has_roots.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the server has asked for roots in this call or an earlier one.
    pub(crate) fn has_roots(&self) -> bool {
        self.connection.has_roots.load(Ordering::Relaxed)
    }

    /// The call was answered.
    pub(crate) fn mark_clean(&self) {
        self.is_clean.store(true, Ordering::Relaxed);
    }
}

impl Drop for DedicatedLease {
    fn drop(&mut self) {
        self.connection.keep_for(Duration::ZERO);
        self.set_abandoned(false);
        self.connection.in_use.fetch_sub(1, Ordering::Relaxed);
        // A server may continue to send requests for a cancelled call. The next call must not receive them.
        let is_clean =
            self.is_clean.load(Ordering::Relaxed) && !self.is_tainted.load(Ordering::Relaxed);
        if matches!(self.key.owner, Owner::Request(_)) && !is_clean {
            self.table.lock().remove(&self.key);
        }
    }
}

/// Keeps a dedicated connection open until it is dropped.
#[derive(Debug)]
pub(crate) struct KeepAliveLease(Arc<DedicatedConnection>);

impl KeepAliveLease {
    fn new(connection: &Arc<DedicatedConnection>) -> Self {
        connection.keep_alive.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(connection))
    }

    pub(crate) fn connection(&self) -> &Arc<SupervisedConnection> {
        &self.0.upstream
    }

    /// Identifies it as the source of resource updates.
    pub(crate) fn id(&self) -> ConnectionId {
        self.0.id
    }
}

impl Clone for KeepAliveLease {
    fn clone(&self) -> Self {
        Self::new(&self.0)
    }
}

impl Drop for KeepAliveLease {
    fn drop(&mut self) {
        self.0.keep_for(Duration::ZERO);
        self.0.keep_alive.fetch_sub(1, Ordering::Relaxed);
    }
}
