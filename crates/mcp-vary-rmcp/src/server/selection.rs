//! Selections of variants: the limit on switches, and what an audit receives.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::error::Error;
use mcp_vary::hints::VariantHints;
use mcp_vary::rank::Ranking;
use mcp_vary::variant::VariantId;
use mcp_vary_access::Principal;
use mcp_vary_base::lock::Lock;
use mcp_vary_rates::LimitExceeded;
use rmcp::ErrorData;
use tokio::time::Instant;

use super::errors::{data_with_active_variant, to_error_data};
use super::rules::Context;
use crate::switch_limit::SwitchLimit;

/// One selection of a variant: see [`Builder::with_audit`](super::Builder::with_audit).
///
/// The hints and a rejected selector come from the client: escape them before you print or log
/// them.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct VariantSelection<'a> {
    /// The principal of the request; `None` for anonymous clients.
    pub principal: Option<&'a Principal>,
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
pub(super) type AuditFn = Arc<dyn Fn(&Context, &VariantSelection<'_>) + Send + Sync>;

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

/// The client has reached a limit.
pub(super) struct SwitchRefused<'l> {
    /// The variant that stays active.
    active: VariantId,
    by: RefusedBy<'l>,
}

/// What refuses a change of the variant.
enum RefusedBy<'l> {
    /// The [`SwitchLimit`], and the time until the client may switch.
    SwitchLimit(Duration),
    /// One of the rate limits.
    Rate(LimitExceeded<'l>),
}

impl SwitchRefused<'_> {
    /// The name of the limit.
    pub(super) fn limit(&self) -> &str {
        match &self.by {
            RefusedBy::SwitchLimit(_) => "switch limit",
            RefusedBy::Rate(limit) => limit.limit(),
        }
    }

    /// The error for the client.
    pub(super) fn to_error(&self) -> ErrorData {
        let (retry_after, data) = match &self.by {
            RefusedBy::SwitchLimit(wait) => (wait.as_secs_f64().ceil() as u64, None),
            RefusedBy::Rate(limit) => (limit.retry_after(), Some(limit.data())),
        };
        let error = to_error_data(&Error::TooManySwitches {
            active: self.active.clone(),
            retry_after,
        });
        match data {
            None => error,
            Some(data) => {
                let data = data_with_active_variant(data, Some(&self.active));
                ErrorData::new(error.code, error.message, Some(data))
            }
        }
    }
}

impl SwitchCounter {
    /// Records the selection of `variant`, or returns an error if `limit` is reached, or `rate`
    /// refuses a change.
    pub(super) fn record<'l>(
        &mut self,
        variant: &VariantId,
        hints: &VariantHints,
        limit: Option<SwitchLimit>,
        rate: impl FnOnce() -> Result<(), LimitExceeded<'l>>,
        now: Instant,
    ) -> Result<Switch, SwitchRefused<'l>> {
        self.last_used = Some(now);
        if let Some(active) = self.variant.clone().filter(|known| known != variant) {
            let counted = match limit {
                Some(limit) => self.count_switch(limit, now),
                None => Ok(()),
            };
            let by = counted
                .map_err(RefusedBy::SwitchLimit)
                .and_then(|()| rate().map_err(RefusedBy::Rate));
            by.map_err(|by| SwitchRefused { active, by })?;
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

    /// Counts one switch, or returns the time to wait if `limit` is reached.
    fn count_switch(&mut self, limit: SwitchLimit, now: Instant) -> Result<(), Duration> {
        self.switches
            .retain(|at| now.duration_since(*at) < limit.window);
        if self.switches.len() < limit.max_switches {
            self.switches.push_back(now);
            return Ok(());
        }
        let passed = self.switches.front().map(|at| now.duration_since(*at));
        Err(limit.window.saturating_sub(passed.unwrap_or_default()))
    }
}

/// The switch counters of recent clients, for requests without a session.
#[derive(Debug, Default)]
pub(super) struct SwitchCounters(Lock<BTreeMap<String, SwitchCounter>>);

impl SwitchCounters {
    /// Calls `act` with the counter of the client that `key` identifies.
    pub(super) fn with_client<T>(&self, key: &str, act: impl FnOnce(&mut SwitchCounter) -> T) -> T {
        let mut counters = self.0.lock();
        if !counters.contains_key(key) && counters.len() >= MAX_CLIENTS {
            let oldest = counters.iter().min_by_key(|(_, counter)| counter.last_used);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                counters.remove(&oldest);
            }
        }
        act(counters.entry(key.to_owned()).or_default())
    }
}

fn hash(hints: &VariantHints) -> u64 {
    let mut hasher = DefaultHasher::new();
    hints.hash(&mut hasher);
    hasher.finish()
}

/// The largest number of stored clients; the least recently used is evicted first.
const MAX_CLIENTS: usize = 1024;

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
            counters.with_client(principal, |counter| {
                let at = start + Duration::from_secs(at);
                let switch = counter.record(&variant, &hints, None, || Ok(()), at);
                switch.is_ok_and(|switch| switch.is_new)
            })
        };
        for at in 0..MAX_CLIENTS as u64 {
            assert!(record(&at.to_string(), at));
        }
        let later = MAX_CLIENTS as u64;
        assert!(!record("0", later));
        assert!(record("new", later + 1));
        assert!(!record("0", later + 2));
        assert!(!record("2", later + 2));
        assert!(record("1", later + 3));
        assert_eq!(counters.0.lock().len(), MAX_CLIENTS);
    }
}
