//! The record of choices, and the limit on switches.

use std::collections::VecDeque;

use mcp_vary::variant::VariantId;
use tokio::time::Instant;

use super::choice::{Choice, ChoiceReason};
use super::offers::Offers;
use super::switch_limit::SwitchLimit;

/// The largest number of stored records.
pub const MAX_CHOICE_RECORDS: usize = 256;

/// One choice, for an audit.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ChoiceRecord {
    /// The choice and its reason.
    pub choice: Choice,
    /// Whether the variant differs from the one before.
    pub switched: bool,
    /// The time of the choice.
    pub at: std::time::Instant,
}

/// The client's current variant, its recent switches and the record of choices.
#[derive(Debug, Default)]
pub(super) struct SwitchLog {
    pub(super) limit: SwitchLimit,
    current: Option<VariantId>,
    switches: VecDeque<Instant>,
    records: VecDeque<ChoiceRecord>,
}

impl SwitchLog {
    /// Applies the switch limit to `preferred`, and records the choice.
    pub(super) fn record_choice(
        &mut self,
        preferred: Choice,
        offers: &Offers,
        now: Instant,
    ) -> Choice {
        let within = self.limit.window;
        self.switches.retain(|at| now.duration_since(*at) < within);
        let choice = self.apply_limit(preferred, offers);
        let switched = self.current.is_some() && choice.variant != self.current;
        if switched {
            while self.switches.len() >= self.limit.max_switches.max(1) {
                self.switches.pop_front();
            }
            self.switches.push_back(now);
        }
        if choice.variant.is_some() {
            self.current.clone_from(&choice.variant);
        }
        tracing::debug!(
            variant = choice.variant.as_ref().map(VariantId::as_str),
            reason = %choice.reason,
            switched,
            "variant chosen"
        );
        self.push(choice.clone(), switched, now);
        choice
    }

    /// The records, oldest first.
    pub(super) fn records(&self) -> Vec<ChoiceRecord> {
        self.records.iter().cloned().collect()
    }

    fn apply_limit(&self, preferred: Choice, offers: &Offers) -> Choice {
        let Some((current, variant)) = self.current.as_ref().zip(preferred.variant.as_ref()) else {
            return preferred;
        };
        let is_limited = !matches!(
            preferred.reason,
            ChoiceReason::Requested | ChoiceReason::Named
        );
        let full = self.switches.len() >= self.limit.max_switches;
        if current == variant || !is_limited || !full || !offers.allows(current) {
            return preferred;
        }
        let reason = ChoiceReason::SwitchLimited {
            switches: self.switches.len(),
            seconds: self.limit.window.as_secs(),
            preferred: variant.clone(),
        };
        Choice::new(Some(current), reason)
    }

    fn push(&mut self, choice: Choice, switched: bool, now: Instant) {
        if self.records.len() == MAX_CHOICE_RECORDS {
            self.records.pop_front();
        }
        let at = now.into_std();
        self.records.push_back(ChoiceRecord {
            choice,
            switched,
            at,
        });
    }
}
