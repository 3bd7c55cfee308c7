//! The parts of the gateway that requests in flight use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mcp_vary_base::environment::Environment;
use mcp_vary_base::tasks::TaskTracker;
use mcp_vary_http::replay::ReplayStreams;
use mcp_vary_results::link_index::LinkIndex;
use mcp_vary_wire::counters::Counters;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::leases::Leases;
use crate::mrtr::{MrtrServices, SuspendedCalls};
use crate::tasks::TaskRegistry;

/// The parts of the gateway that requests in flight use, from its start to its end.
///
/// A request in flight holds these, but no part of the configuration, so that it does not delay the end of a replaced
/// configuration.
#[derive(Debug)]
pub(crate) struct ExchangeServices {
    pub(crate) mrtr: Arc<MrtrServices>,
    pub(crate) suspended_calls: Arc<SuspendedCalls<Leases>>,
    pub(crate) task_registry: Arc<TaskRegistry>,
    /// The links in results.
    pub(crate) link_index: Arc<LinkIndex>,
    /// Streams that clients can resume.
    pub(crate) replay_streams: ReplayStreams,
    /// Permits for requests whose client has disconnected.
    pub(crate) orphan_permits: Arc<Semaphore>,
    pub(crate) progress_tokens: ProgressTokenCounter,
    pub(crate) counters: Arc<Counters>,
    pub(crate) environment: Environment,
    /// Cancelled when the gateway stops.
    pub(crate) shutdown: CancellationToken,
    pub(crate) background_tasks: TaskTracker,
}

impl ExchangeServices {
    /// Seconds since 1970-01-01 UTC.
    pub(crate) fn now(&self) -> u64 {
        (self.environment.now)()
    }
}

/// Numbers the progress tokens towards servers.
#[derive(Debug)]
pub(crate) struct ProgressTokenCounter(AtomicU64);

impl Default for ProgressTokenCounter {
    fn default() -> Self {
        // Some servers treat the token 0 as missing.
        Self(AtomicU64::new(1))
    }
}

impl ProgressTokenCounter {
    /// A token that no other request to a server has.
    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}
