//! How many calls each server got, how they ended, and how long they took.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mcp_vary_base::histogram::Histogram;
use mcp_vary_catalog::index::ServerIndex;
use mcp_vary_metrics::{ClientOperation, Code, Metrics, RequestLabels, ServerMetrics};
use mcp_vary_upstream::UpstreamConfig;
use tokio::time::Instant;

/// The calls of one server.
///
/// # Properties
///
/// Counting takes no lock, and the size is fixed.
#[derive(Debug, Default)]
pub struct CallCounters {
    ended: AtomicU64,
    errors: AtomicU64,
    cancelled: AtomicU64,
    /// Of the calls that the client got a response to.
    durations: Histogram,
    /// The series of the server, if requests are measured.
    metrics: Option<Arc<ServerMetrics>>,
}

impl CallCounters {
    /// The calls that have ended, in whichever way.
    pub fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }

    /// Those whose response was an error, or a result that reports the failure of a tool.
    pub fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// Those that the client did not wait for.
    pub fn cancelled(&self) -> u64 {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// The time that `percent` percent of the responses did not exceed; `None` without responses.
    pub fn percentile(&self, percent: u64) -> Option<Duration> {
        self.durations.percentile(percent)
    }
}

/// The counters of all servers, in the order of configuration.
#[derive(Debug)]
pub struct ServerCalls(Vec<(String, Arc<CallCounters>)>);

impl ServerCalls {
    /// The counters of `servers`. A server that was there `before` keeps its counters, even if its entry has changed.
    pub fn new(
        servers: &[UpstreamConfig],
        before: Option<&Self>,
        metrics: Option<&Metrics>,
    ) -> Self {
        let known = |name: &str| before?.of(name).cloned();
        let counters = servers.iter().map(|server| {
            let new = || CallCounters {
                metrics: metrics.map(|metrics| metrics.server(&server.name)),
                ..CallCounters::default()
            };
            let counters = known(&server.name).unwrap_or_else(|| Arc::new(new()));
            (server.name.clone(), counters)
        });
        Self(counters.collect())
    }

    /// The counters of the server with this name.
    pub fn of(&self, name: &str) -> Option<&Arc<CallCounters>> {
        let mut servers = self.0.iter();
        servers.find_map(|(server, counters)| (server == name).then_some(counters))
    }

    /// A call of `server` begins, for a request with these `labels`: of `tool` by the server's name of it, or another method.
    pub fn begin(
        &self,
        server: ServerIndex,
        labels: RequestLabels,
        tool: Option<&str>,
    ) -> CountedCall {
        let counters = server.get(&self.0);
        let metrics = counters.and_then(|(_, counters)| counters.metrics.as_ref());
        CountedCall {
            operation: metrics.map(|metrics| metrics.begin(labels, tool)),
            counters: counters.map(|(_, counters)| Arc::clone(counters)),
            sent: None,
        }
    }
}

/// One call that is counted.
///
/// # Properties
///
/// It is counted once: with the first outcome that it gets, or as cancelled if it is dropped without one.
#[derive(Debug)]
pub struct CountedCall {
    /// `None` after the outcome.
    counters: Option<Arc<CallCounters>>,
    /// `None` after the outcome, and if requests are not measured.
    operation: Option<ClientOperation>,
    /// `None` while it waits for its server.
    sent: Option<Instant>,
}

impl CountedCall {
    /// The call is sent to its server. What it waited before is no time of the server.
    pub(crate) fn sent(&mut self, now: Instant) {
        self.sent = Some(now);
    }

    fn duration(&self, ended: Instant) -> Duration {
        self.sent.map(|sent| ended - sent).unwrap_or_default()
    }

    /// Counts the call by the outcome of the response to the client.
    pub fn finish(&mut self, code: Code, ended: Instant) {
        let is_error = code != Code::OK;
        let duration = self.duration(ended);
        if let Some(operation) = self.operation.take() {
            operation.end(code, duration);
        }
        if let Some(counters) = self.counters.take() {
            if self.sent.is_some() {
                counters.durations.record(duration);
            }
            counters
                .errors
                .fetch_add(u64::from(is_error), Ordering::Relaxed);
            counters.ended.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The client does not wait for the response.
    pub(crate) fn cancel(&mut self) {
        if let Some(operation) = self.operation.take() {
            operation.end(Code::CANCELLED, self.duration(Instant::now()));
        }
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
