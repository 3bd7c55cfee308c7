//! What one client of an experiment did.

use std::time::Duration;

use crate::call::{Call, CallOutcome};
use crate::metric::Metric;

/// How long after an error a successful call with other arguments is a repair of it.
pub const REPAIR_TIME: Duration = Duration::from_secs(60);

/// The failures of a client that may still be repaired.
const MAX_FAILURES: usize = 4;

/// The greatest sum of one client, so that no sum of squares overflows: 35 years in microseconds.
pub(crate) const MAX_SUM: u64 = 1 << 50;

/// One client.
#[derive(Clone, Default)]
pub(crate) struct Client {
    pub(crate) counts: Counts,
    failures: Vec<Failure>,
}

/// What one client did: its calls, those that failed, had invalid arguments or were repaired, their microseconds and
/// tokens.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Counts(pub(crate) [u64; 6]);

/// A failed call that may still be repaired.
#[derive(Clone, Copy)]
struct Failure {
    tool: u64,
    arguments: u64,
    ended: Duration,
}

impl Client {
    /// Counts a call that has ended.
    pub(crate) fn add(&mut self, call: &Call) {
        let microseconds = u64::try_from(call.duration.as_micros()).unwrap_or(u64::MAX);
        let is_failed = call.outcome != CallOutcome::Succeeded;
        let is_invalid = call.outcome == CallOutcome::InvalidArguments;
        let [failed, invalid] = [is_failed, is_invalid].map(u64::from);
        let counts = Counts([1, failed, invalid, 0, microseconds, call.tokens]);
        self.counts = self.counts.plus(counts);
        self.failures
            .retain(|failure| call.ended.saturating_sub(failure.ended) <= REPAIR_TIME);
        if !is_failed {
            self.repair(call);
            return;
        }
        if self.failures.len() == MAX_FAILURES {
            self.failures.remove(0);
        }
        self.failures.push(Failure {
            tool: call.tool,
            arguments: call.arguments,
            ended: call.ended,
        });
    }

    /// One success repairs one failure: the last one.
    fn repair(&mut self, call: &Call) {
        let repaired = self
            .failures
            .iter()
            .rposition(|failure| failure.tool == call.tool && failure.arguments != call.arguments);
        if let Some(at) = repaired {
            self.failures.remove(at);
            self.counts = self.counts.plus(Counts([0, 0, 0, 1, 0, 0]));
        }
    }
}

impl Counts {
    /// The sums of both.
    pub(crate) fn plus(self, other: Self) -> Self {
        self.zip(other, |mine, others| {
            mine.saturating_add(others).min(MAX_SUM)
        })
    }

    /// The greater of each.
    pub(crate) fn max(self, other: Self) -> Self {
        self.zip(other, u64::max)
    }

    fn zip(self, other: Self, join: fn(u64, u64) -> u64) -> Self {
        Self(std::array::from_fn(|at| join(self.0[at], other.0[at])))
    }

    /// The numerator and denominator of each metric.
    pub(crate) fn pairs(&self, takes_part: bool) -> [(u64, u64); 6] {
        let [calls, failed, invalid, repaired, microseconds, tokens] = self.0;
        Metric::ALL.map(|metric| match metric {
            Metric::Failed => (failed, calls),
            Metric::InvalidArguments => (invalid, calls),
            Metric::Repaired => (repaired, failed),
            Metric::Duration => (microseconds, calls),
            Metric::Tokens => (tokens, calls),
            Metric::Calls => (calls, u64::from(takes_part)),
        })
    }
}
