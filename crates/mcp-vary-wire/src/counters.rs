//! Counters of what the gateway rejected or dropped since it started.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counters. `Counter::ALL` has their names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Counter {
    /// Requests with a member that another reader may take for one of the protocol.
    RefusedLookalikeMembers,
    /// Requests with a repeated key in an object that the gateway checks.
    RefusedDuplicateMembers,
    /// Requests and notifications of extensions under a variant that hides something.
    RefusedExtensionMethods,
    /// Feature tags that did not fit into a session id.
    DroppedTags,
    /// Log messages of servers that may concern another client's call.
    DroppedLogs,
    /// HTTP connections that were closed to accept a new one, since the limit was reached.
    EvictedConnections,
    /// Requests with an ambiguous URI.
    RefusedUris,
    /// Requests that exceeded `limits.memory`.
    RefusedForMemory,
    /// Calls of tools that the client's variant does not list.
    RefusedUnknownTools,
    /// Requests about prompts that the client's variant does not list.
    RefusedUnknownPrompts,
    /// Requests about resources that the client's variant does not have.
    RefusedUnknownResources,
    /// Requests that select a variant that does not exist for the client.
    RefusedUnknownVariants,
    /// Requests about a visible item that access rules refuse.
    RefusedByAccessRules,
}

impl Counter {
    /// Every counter, in the order of declaration, with the name that `vary status` shows.
    const ALL: &[(Self, &'static str)] = &[
        (Self::RefusedLookalikeMembers, "refused-lookalike-members"),
        (Self::RefusedDuplicateMembers, "refused-duplicate-members"),
        (Self::RefusedExtensionMethods, "refused-extension-methods"),
        (Self::DroppedTags, "dropped-tags"),
        (Self::DroppedLogs, "dropped-logs"),
        (Self::EvictedConnections, "evicted-connections"),
        (Self::RefusedUris, "refused-uris"),
        (Self::RefusedForMemory, "refused-for-memory"),
        (Self::RefusedUnknownTools, "refused-unknown-tools"),
        (Self::RefusedUnknownPrompts, "refused-unknown-prompts"),
        (Self::RefusedUnknownResources, "refused-unknown-resources"),
        (Self::RefusedUnknownVariants, "refused-unknown-variants"),
        (Self::RefusedByAccessRules, "refused-by-access-rules"),
    ];
}

/// The counts, which only grow. They survive reloads.
#[derive(Debug, Default)]
pub struct Counters {
    counts: [AtomicU64; Counter::ALL.len()],
}

impl Counters {
    /// Adds one to `counter`, and returns the new count.
    pub fn increment(&self, counter: Counter) -> u64 {
        self.add(counter, 1)
    }

    /// Adds `amount` to `counter`, and returns the new count.
    pub fn add(&self, counter: Counter, amount: u64) -> u64 {
        self.counts[counter as usize].fetch_add(amount, Ordering::Relaxed) + amount
    }

    /// Every counter with its name, in the order of declaration.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = Counter::ALL.iter().zip(&self.counts);
        counts.map(|((_, name), count)| (*name, count.load(Ordering::Relaxed)))
    }

    /// The counters above zero, by name.
    pub fn above_zero(&self) -> BTreeMap<&'static str, u64> {
        self.all().filter(|(_, count)| *count > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_a_slot_and_a_kebab_case_name_of_its_own() {
        let counters = Counters::default();
        for (index, (counter, name)) in Counter::ALL.iter().enumerate() {
            assert_eq!(*counter as usize, index, "{name} is out of order");
            let is_kebab = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
            assert!(name.bytes().all(is_kebab), "{name}");
            counters.add(*counter, 2);
            counters.increment(*counter);
        }
        let shown = counters.above_zero();
        assert_eq!(shown.len(), Counter::ALL.len());
        assert!(shown.values().all(|count| *count == 3));
    }

    #[test]
    fn a_counter_at_zero_is_not_shown() {
        let counters = Counters::default();
        assert!(counters.above_zero().is_empty());
        counters.increment(Counter::RefusedDuplicateMembers);
        let shown = counters.above_zero();
        assert_eq!(shown.get("refused-duplicate-members"), Some(&1));
        assert_eq!(shown.len(), 1);
    }
}
