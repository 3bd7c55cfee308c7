//! Selections of variants: the limit on switches, and what an audit receives.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_vary::hints::VariantHints;
use mcp_vary::rank::Ranking;
use mcp_vary::variant::VariantId;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use tokio::time::Instant;

use crate::switch_limit::SwitchLimit;

/// One selection of a variant, for an audit: see
/// [`Builder::with_audit`](super::Builder::with_audit).
///
/// The hints and a rejected selector come from the client: escape them before you print or log
/// them.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct VariantSelection<'a> {
    /// The principal of the request; empty without one.
    pub principal: &'a str,
    /// The hints that the client declared.
    pub hints: &'a VariantHints,
    /// The variants that the client can see, in its order, with the score of each and the reasons
    /// for it.
    pub ranking: &'a Ranking,
    /// The outcome.
    pub outcome: SelectionOutcome<'a>,
}

/// The outcome of a selection.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum SelectionOutcome<'a> {
    /// The client is in this variant now.
    #[non_exhaustive]
    Selected {
        /// The selected variant.
        variant: &'a VariantId,
        /// The variant before; `None` for the client's first selection.
        previous: Option<&'a VariantId>,
        /// What selected it.
        source: SelectionSource,
    },
    /// The request was rejected with this error.
    Rejected(&'a ErrorData),
}

/// What selected a variant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SelectionSource {
    /// The selector in the request's `_meta`.
    Selector,
    /// The request's HTTP header.
    Header,
    /// The author's rule: [`Builder::with_default_variant`](super::Builder::with_default_variant).
    Rule,
    /// The ranking: it comes first by the client's hints.
    Ranking,
}

/// Receives each selection.
pub(super) type AuditFn =
    Arc<dyn Fn(&RequestContext<RoleServer>, &VariantSelection<'_>) + Send + Sync>;

/// Counts the switches of one client: a legacy session, or a principal.
#[derive(Debug, Default)]
pub(super) struct SwitchCounter {
    variant: Option<VariantId>,
    /// The times of recent switches, oldest first.
    switches: VecDeque<Instant>,
    /// A hash of the hints at the last audit.
    hints_hash: u64,
    last_used: Option<Instant>,
}

/// A selection that is within the limit.
pub(super) struct Switch {
    /// The variant before it.
    pub(super) previous: Option<VariantId>,
    /// Whether the variant or the hints differ from the selection before.
    pub(super) is_new: bool,
}

/// The client has reached the limit: its active variant, and the time until it may switch.
pub(super) struct SwitchLimitReached {
    pub(super) active: VariantId,
    pub(super) retry_after: Duration,
}

impl SwitchCounter {
    /// Records the selection of `variant`, or returns an error if `limit` is reached.
    pub(super) fn record(
        &mut self,
        variant: &VariantId,
        hints: &VariantHints,
        limit: Option<SwitchLimit>,
        now: Instant,
    ) -> Result<Switch, SwitchLimitReached> {
        self.last_used = Some(now);
        let switches = self.variant.as_ref().is_some_and(|known| known != variant);
        if let (true, Some(limit)) = (switches, limit) {
            self.count_switch(limit, now)?;
        }
        let hints = hash(hints);
        let before = self.variant.replace(variant.clone());
        let is_new = before.as_ref() != Some(variant) || self.hints_hash != hints;
        self.hints_hash = hints;
        Ok(Switch {
            previous: before,
            is_new,
        })
    }

    /// Counts one switch, or returns an error if `limit` is reached.
    fn count_switch(&mut self, limit: SwitchLimit, now: Instant) -> Result<(), SwitchLimitReached> {
        self.switches
            .retain(|at| now.duration_since(*at) < limit.window);
        if self.switches.len() < limit.max_switches {
            self.switches.push_back(now);
            return Ok(());
        }
        let passed = self.switches.front().map(|at| now.duration_since(*at));
        let wait = limit.window.saturating_sub(passed.unwrap_or_default());
        match self.variant.clone() {
            Some(variant) => Err(SwitchLimitReached {
                active: variant,
                retry_after: wait,
            }),
            None => Ok(()),
        }
    }
}

/// The switch counters of recent principals, for requests without a session.
#[derive(Debug, Default)]
pub(super) struct SwitchCounters(Mutex<BTreeMap<String, SwitchCounter>>);

impl SwitchCounters {
    pub(super) fn with_principal<T>(
        &self,
        principal: &str,
        act: impl FnOnce(&mut SwitchCounter) -> T,
    ) -> T {
        let mut counters = self.lock();
        if !counters.contains_key(principal) && counters.len() >= MAX_PRINCIPALS {
            let oldest = counters.iter().min_by_key(|(_, counter)| counter.last_used);
            if let Some(oldest) = oldest.map(|(principal, _)| principal.clone()) {
                counters.remove(&oldest);
            }
        }
        act(counters.entry(principal.to_owned()).or_default())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, SwitchCounter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash(hints: &VariantHints) -> u64 {
    let mut hasher = DefaultHasher::new();
    hints.hash(&mut hasher);
    hasher.finish()
}

/// The largest number of stored principals; the least recently used is evicted first.
const MAX_PRINCIPALS: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    /// SV-21: the least recently used principal is evicted first, and no other.
    #[test]
    fn principals_are_bounded() {
        let counters = SwitchCounters::default();
        let (start, hints) = (Instant::now(), VariantHints::default());
        let variant: VariantId = "v".parse().unwrap();
        let record = |principal: &str, at: u64| {
            counters.with_principal(principal, |counter| {
                let switch =
                    counter.record(&variant, &hints, None, start + Duration::from_secs(at));
                switch.is_ok_and(|switch| switch.is_new)
            })
        };
        for at in 0..MAX_PRINCIPALS as u64 {
            assert!(record(&at.to_string(), at));
        }
        let later = MAX_PRINCIPALS as u64;
        assert!(!record("0", later));
        assert!(record("new", later + 1));
        assert!(!record("0", later + 2));
        assert!(!record("2", later + 2));
        assert!(record("1", later + 3));
        assert_eq!(counters.lock().len(), MAX_PRINCIPALS);
    }
}
