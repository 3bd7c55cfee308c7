//! The memory cost of requests.
//!
//! The memory for a client's data is leased from one
//! [`MemoryBudget`](mcp_vary_base::memory_budget::MemoryBudget) before the data is stored, and released when it is
//! dropped: the bodies of requests and the messages made from them, subscriptions, and the trees in which arguments are
//! checked. If the budget is exhausted, the request is refused at once. Accepted requests are not affected.

use mcp_vary_view::MAX_CHECKED_VALUES;

/// The cost of handling a message of this size: the message, and the messages that are sent for it. Small messages are
/// free: connections and requests in flight are bounded, so that their total cost is small.
pub fn of_message(bytes: usize) -> usize {
    if bytes <= SMALL {
        0
    } else {
        bytes.saturating_mul(2)
    }
}

/// The cost of the tree in which the arguments `text` are checked. Beyond [`MAX_CHECKED_VALUES`], no tree is built.
pub fn of_tree(text: &str) -> usize {
    if text.len() <= SMALL {
        return 0;
    }
    let values = mcp_vary::json::count_values(text).min(MAX_CHECKED_VALUES);
    text.len().saturating_add(values.saturating_mul(VALUE))
}

/// The cost of a subscription to `uri`: both URIs of the resource, and the bookkeeping.
pub fn of_subscription(uri: &str) -> usize {
    uri.len().saturating_mul(3).saturating_add(SUBSCRIPTION)
}

/// Smaller messages need no lease.
const SMALL: usize = 16 << 10;
/// The cost of one value in a tree besides its text, at most: that of an object with one member.
const VALUE: usize = 300;
const SUBSCRIPTION: usize = 1 << 10;
