//! How many calls each server got, how they ended, and how long they took.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mcp_vary_audit::Outcome;
use mcp_vary_base::histogram::Histogram;
use mcp_vary_catalog::index::ServerIndex;
use mcp_vary_upstream::UpstreamConfig;
use mcp_vary_wire::response::Reply;
use tokio::time::Instant;

use super::outcome::outcome;

/// The calls of one server.
///
/// # Properties
///
/// Counting takes no lock, and the size is fixed.
#[derive(Debug, Default)]
pub(crate) struct CallCounters {
    ended: AtomicU64,
    errors: AtomicU64,
    cancelled: AtomicU64,
    /// Of the calls that the client got a response to.
    durations: Histogram,
}

impl CallCounters {
    /// The calls that have ended, in whichever way.
    pub(crate) fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }

    /// Those whose response was an error, or a result that reports the failure of a tool.
    pub(crate) fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// Those that the client did not wait for.
    pub(crate) fn cancelled(&self) -> u64 {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// The time that `percent` percent of the responses did not exceed; `None` without responses.
    pub(crate) fn percentile(&self, percent: u64) -> Option<Duration> {
        self.durations.percentile(percent)
    }
}

/// The counters of all servers, in the order of configuration.
#[derive(Debug)]
pub(crate) struct ServerCalls(Vec<(String, Arc<CallCounters>)>);

impl ServerCalls {
    /// The counters of `servers`. A server that was there `before` keeps its counters, even if its entry has changed.
    pub(crate) fn new(servers: &[UpstreamConfig], before: Option<&Self>) -> Self {
        let known = |name: &str| before?.of(name).cloned();
        let counters = servers.iter().map(|server| {
            let counters = known(&server.name).unwrap_or_default();
            (server.name.clone(), counters)
        });
        Self(counters.collect())
    }

    /// The counters of the server with this name.
    pub(crate) fn of(&self, name: &str) -> Option<&Arc<CallCounters>> {
        let mut servers = self.0.iter();
        servers.find_map(|(server, counters)| (server == name).then_some(counters))
    }

    /// A call of `server` begins.
    pub(crate) fn begin(&self, server: ServerIndex) -> CountedCall {
        let counters = server.get(&self.0);
        CountedCall {
            counters: counters.map(|(_, counters)| Arc::clone(counters)),
            began: Instant::now(),
        }
    }
}

/// One call that is counted.
///
/// # Properties
///
/// It is counted once: with the first outcome that it gets, or as cancelled if it is dropped without one.
#[derive(Debug)]
pub(crate) struct CountedCall {
    /// `None` after the outcome.
    counters: Option<Arc<CallCounters>>,
    began: Instant,
}

impl CountedCall {
    /// Counts the call by the response to the client. `is_tool`: whether the result of a tool is expected, which can
    /// report a failure.
    pub(crate) fn finish(&mut self, reply: &Reply, is_tool: bool) {
        let (outcome, _) = outcome(&reply.body, is_tool);
        self.end(outcome != Outcome::Allowed);
    }

    /// Counts the call as one that the gateway answers with an error.
    pub(crate) fn fail(&mut self) {
        self.end(true);
    }

    fn end(&mut self, is_error: bool) {
        if let Some(counters) = self.counters.take() {
            counters.durations.record(self.began.elapsed());
            counters
                .errors
                .fetch_add(u64::from(is_error), Ordering::Relaxed);
            counters.ended.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The client does not wait for the response.
    pub(crate) fn cancel(&mut self) {
        if let Some(counters) = self.counters.take() {
            counters.cancelled.fetch_add(1, Ordering::Relaxed);
            counters.ended.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for CountedCall {
    fn drop(&mut self) {
        self.cancel();
    }
}
