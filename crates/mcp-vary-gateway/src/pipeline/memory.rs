//! The memory that clients and the answers to them can make the gateway hold.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use mcp_vary_base::lock::Lock;
use mcp_vary_base::memory_budget::{Lease, MemoryBudget};
use mcp_vary_session::client::QuotaKey;
use mcp_vary_upstream::AnswerMemory;
use mcp_vary_wire::counters::{Counter, Counters};
use mcp_vary_wire::response::RpcError;

use mcp_vary_session::memory_cost;

/// The memory that clients can make the gateway hold: `limits.memory`.
#[derive(Debug)]
pub(crate) struct ClientMemory {
    budget: Arc<MemoryBudget>,
    /// The part for subscriptions, which are held as long as their sessions last.
    subscriptions: Arc<MemoryBudget>,
    answers: Arc<AnswerShares>,
    counters: Arc<Counters>,
}

impl ClientMemory {
    pub(crate) fn new(bytes: usize, counters: Arc<Counters>) -> Self {
        let budget = MemoryBudget::new(bytes);
        Self {
            subscriptions: budget.sub_budget(bytes / SUBSCRIPTION_SHARE),
            answers: Arc::new(AnswerShares {
                budget: budget.sub_budget(bytes / ANSWER_SHARE),
                share: bytes / ANSWER_SHARE / CLIENT_SHARE,
                by_client: Lock::default(),
            }),
            budget,
            counters,
        }
    }

    /// Bytes that are leased now.
    pub(crate) fn used(&self) -> usize {
        self.budget.used()
    }

    /// The memory for large answers of servers to one client.
    pub(crate) fn answers_to(&self, client: QuotaKey) -> Arc<dyn AnswerMemory> {
        let shares = Arc::clone(&self.answers);
        Arc::new(AnswerShare { shares, client })
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

/// The memory for large answers of servers. No client takes it from all others.
#[derive(Debug)]
struct AnswerShares {
    budget: Arc<MemoryBudget>,
    /// The bytes of one client.
    share: usize,
    /// Those who have an answer now.
    by_client: Lock<BTreeMap<QuotaKey, Weak<MemoryBudget>>>,
}

/// The share of one client.
struct AnswerShare {
    shares: Arc<AnswerShares>,
    client: QuotaKey,
}

impl AnswerMemory for AnswerShare {
    fn lease(&self) -> Lease {
        let AnswerShares {
            budget,
            share,
            by_client,
        } = &*self.shares;
        let mut shares = by_client.lock();
        let known = shares.get(&self.client).and_then(Weak::upgrade);
        let client_share = known.unwrap_or_else(|| {
            shares.retain(|_, share| share.strong_count() > 0);
            let share = budget.sub_budget(*share);
            shares.insert(self.client, Arc::downgrade(&share));
            share
        });
        client_share.empty_lease()
    }
}

/// Answers of servers get at most this fraction of the limit, and those to one client this fraction of that.
const ANSWER_SHARE: usize = 2;
const CLIENT_SHARE: usize = 2;
/// Subscriptions get at most this fraction of the limit: one part in so many.
const SUBSCRIPTION_SHARE: usize = 4;
