//! Why the params of a request are rejected.

use mcp_vary::json::{JsonError, quoted};

use crate::counters::{Counter, Counters};
use crate::response::RpcError;

/// Why the params of a request are rejected, with the counter for it.
#[derive(Debug)]
pub struct ParamsError {
    counter: Option<Counter>,
    reason: String,
}

impl ParamsError {
    /// The value at `place` is not an object with unique keys.
    pub fn unreadable(place: &str, error: &JsonError) -> Self {
        let is_repeated = error.duplicate_key().is_some();
        Self {
            counter: is_repeated.then_some(Counter::RefusedDuplicateMembers),
            reason: format!("`{place}`: {error}"),
        }
    }

    /// A key in `place` that a reader may take for `known`; the client's key is truncated.
    pub fn lookalike(place: &str, key: &str, known: &str) -> Self {
        let cut: String = key.chars().take(64).collect();
        Self {
            counter: Some(Counter::RefusedLookalikeMembers),
            reason: format!(
                "`{place}` has a member {}, which some servers read as {}; leave it out",
                quoted(&cut),
                quoted(known)
            ),
        }
    }

    /// Two keys of a request with a state that a reader may take for the same one.
    pub fn ambiguous(key: &str) -> Self {
        let cut: String = key.chars().take(64).collect();
        Self {
            counter: Some(Counter::RefusedDuplicateMembers),
            reason: format!(
                "`arguments`: the key {} is given twice; with a `requestState` each is given once, in one spelling",
                quoted(&cut)
            ),
        }
    }

    /// Counts the rejection, and converts it to the error for the client.
    pub fn into_counted_error(self, counters: &Counters) -> RpcError {
        if let Some(counter) = self.counter {
            counters.increment(counter);
        }
        self.into()
    }
}

impl From<ParamsError> for RpcError {
    fn from(refusal: ParamsError) -> Self {
        Self::invalid_params(refusal.reason)
    }
}
