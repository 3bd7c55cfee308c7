//! The memory that clients can make the gateway hold.

use std::sync::Arc;

use mcp_vary_base::memory_budget::{Lease, MemoryBudget};
use mcp_vary_wire::counters::{Counter, Counters};
use mcp_vary_wire::response::RpcError;

use mcp_vary_session::memory_cost;

/// The memory that clients can make the gateway hold: `limits.memory`.
#[derive(Debug)]
pub(crate) struct ClientMemory {
    budget: Arc<MemoryBudget>,
    /// The part for subscriptions, which are held as long as their sessions last.
    subscriptions: Arc<MemoryBudget>,
    counters: Arc<Counters>,
}

impl ClientMemory {
    pub(crate) fn new(bytes: usize, counters: Arc<Counters>) -> Self {
        let budget = MemoryBudget::new(bytes);
        Self {
            subscriptions: budget.sub_budget(bytes / SUBSCRIPTION_SHARE),
            budget,
            counters,
        }
    }

    /// Bytes that are leased now.
    pub(crate) fn used(&self) -> usize {
        self.budget.used()
    }

    /// An empty lease, which can grow.
    pub(crate) fn empty_lease(&self) -> Lease {
        self.budget.empty_lease()
    }

    /// Leases this many bytes for a request.
    ///
    /// # Errors
    ///
    /// When the limit is reached; that is counted.
    pub(crate) fn lease(&self, bytes: usize) -> Result<Lease, RpcError> {
        self.budget.lease(bytes).map_err(|exhausted| {
            self.counters.increment(Counter::RefusedForMemory);
            exhausted.into()
        })
    }

    /// Leases the bytes of a subscription to `uri`.
    ///
    /// # Errors
    ///
    /// When the limit, or the part of it for subscriptions, is reached; that is counted.
    pub(crate) fn lease_for_subscription(&self, uri: &str) -> Result<Lease, RpcError> {
        let lease = self.subscriptions.lease(memory_cost::of_subscription(uri));
        lease.map_err(|_| {
            self.counters.increment(Counter::RefusedForMemory);
            RpcError::internal(
                "subscriptions take a quarter of `limits.memory`, which is all they may; unsubscribe from some, or try \
                 again later",
            )
        })
    }
}

/// Subscriptions get at most this fraction of the limit: one part in so many.
const SUBSCRIPTION_SHARE: usize = 4;
