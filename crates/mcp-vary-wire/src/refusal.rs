//! Why the params of a request are refused.

use mcp_vary::json::JsonError;
use mcp_vary_view::ArgumentError;

use crate::counters::{Counter, Counters};
use crate::response::Failure;

/// Why the params of a request are refused, and what counts that.
#[derive(Debug)]
pub struct Refusal {
    counter: Option<Counter>,
    reason: String,
}

impl Refusal {
    /// `place` cannot be read as an object with unique keys.
    pub fn unreadable(place: &str, error: &JsonError) -> Self {
        let is_repeated = error.duplicate_key().is_some();
        Self {
            counter: is_repeated.then_some(Counter::RefusedDuplicateMembers),
            reason: format!("`{place}`: {error}"),
        }
    }

    /// A key in `place` that a reader may take for `known`; a client's key is cut.
    pub fn lookalike(place: &str, key: &str, known: &str) -> Self {
        let key: String = key.chars().take(64).collect();
        Self {
            counter: Some(Counter::RefusedLookalikeMembers),
            reason: format!(
                "`{place}` has a member {key:?}, which some servers read as {known:?}; leave it out"
            ),
        }
    }

    /// Two keys of a request with a state that a reader may take for the same.
    pub fn ambiguous(key: &str) -> Self {
        let key: String = key.chars().take(64).collect();
        Self {
            counter: Some(Counter::RefusedDuplicateMembers),
            reason: format!(
                "`arguments`: the key {key:?} is given twice; with a `requestState` each is given once, in one spelling"
            ),
        }
    }

    /// The refusal of arguments for `faults`, where one of them is about how keys are spelled or repeated.
    pub fn of_arguments(faults: &[ArgumentError]) -> Option<Self> {
        faults.iter().find_map(|fault| {
            let counter = match fault {
                ArgumentError::Lookalike { .. } => Counter::RefusedLookalikeMembers,
                ArgumentError::DuplicateKey { .. } => Counter::RefusedDuplicateMembers,
                _ => return None,
            };
            Some(Self {
                counter: Some(counter),
                reason: format!("invalid arguments: {fault}"),
            })
        })
    }

    /// Counts it, and makes it the error that the client gets.
    pub fn counted(self, counters: &Counters) -> Failure {
        if let Some(counter) = self.counter {
            counters.increment(counter);
        }
        self.into()
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::invalid_params(refusal.reason)
    }
}
