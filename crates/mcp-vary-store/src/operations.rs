//! How many operations on the store went well, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// What is done at the store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    /// A request is counted by its limits.
    Count,
    /// An ended session is written.
    EndSession,
    /// A request is cancelled at another replica.
    Cancel,
    /// The ended sessions are read, or a tally is, after each connect.
    Read,
    /// A request is answered by another replica.
    Forward,
    /// A message of another replica is read.
    Receive,
    /// A value is written that other replicas may need.
    Save,
    /// A value is read that a replica has written.
    Load,
    /// Records of a tally are written.
    Tally,
}

/// How it went.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    /// The store has answered.
    Ok,
    /// The store has refused, or did not answer in time.
    Failed,
    /// It was not asked: it is away, or too many operations wait for it.
    Skipped,
}

const OPERATIONS: [&str; 9] = [
    "count",
    "end_session",
    "cancel",
    "read",
    "forward",
    "receive",
    "save",
    "load",
    "tally",
];
const OUTCOMES: [&str; 3] = ["ok", "failed", "skipped"];

/// The numbers of all operations by outcome.
#[derive(Debug, Default)]
pub(crate) struct Operations([[AtomicU64; OUTCOMES.len()]; OPERATIONS.len()]);

impl Operations {
    pub(crate) fn add(&self, operation: Operation, outcome: Outcome) {
        let outcomes = self.0.get(operation as usize);
        if let Some(number) = outcomes.and_then(|numbers| numbers.get(outcome as usize)) {
            number.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Each number with the names of its operation and outcome.
    pub(crate) fn all(&self) -> impl Iterator<Item = ([&'static str; 2], u64)> {
        OPERATIONS.iter().zip(&self.0).flat_map(|(operation, all)| {
            let outcomes = OUTCOMES.iter().zip(all);
            outcomes
                .map(|(outcome, number)| ([*operation, *outcome], number.load(Ordering::Relaxed)))
        })
    }
}
