//! How much memory clients can make the gateway hold, all of them together.
//!
//! What a client sends is leased from one [`MemoryBudget`] before it is held, and given back when it is dropped: bodies
//! of requests with what they become, subscriptions, and the trees that arguments are checked in. When the budget is
//! exhausted, the request is refused at once, and nothing that was accepted is lost.

use mcp_vary_view::MAX_CHECKED_VALUES;

/// What a message of so many bytes takes while it is worked on: itself, and what is sent on of it. Of small ones there
/// are never enough to matter, since connections and requests in flight are bounded: they cost no lease.
pub(crate) fn of_message(bytes: usize) -> usize {
    if bytes <= SMALL {
        0
    } else {
        bytes.saturating_mul(2)
    }
}

/// What the arguments `text` take as a tree that they are checked in; of more than [`MAX_CHECKED_VALUES`] none is made.
pub(crate) fn of_tree(text: &str) -> usize {
    if text.len() <= SMALL {
        return 0;
    }
    let values = mcp_vary::json::count_values(text).min(MAX_CHECKED_VALUES);
    text.len().saturating_add(values.saturating_mul(VALUE))
}

/// What a subscription to `uri` takes: what each side calls the resource, and what is remembered of it.
pub(crate) fn of_subscription(uri: &str) -> usize {
    uri.len().saturating_mul(3).saturating_add(SUBSCRIPTION)
}

/// Messages up to so many bytes are not leased for.
const SMALL: usize = 16 << 10;
/// What one value takes in a tree, beside its text: that of an object with one member, which takes most.
const VALUE: usize = 300;
const SUBSCRIPTION: usize = 1 << 10;
