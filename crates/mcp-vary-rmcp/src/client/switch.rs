//! Switching: which variant was chosen when and why, and how often it may change.

use std::collections::VecDeque;

use mcp_vary::variant::VariantId;
use tokio::time::Instant;

use super::choose::{Choice, Reason};
use super::offers::Offers;
use crate::limit::SwitchLimit;

/// How many choices are remembered.
pub const RECORDS: usize = 256;

/// One choice, for an audit.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Record {
    /// What was chosen, and why.
    pub choice: Choice,
    /// Whether it was another variant than before.
    pub switched: bool,
    /// When.
    pub at: std::time::Instant,
}

/// Where a client stands, and how it came there.
#[derive(Debug, Default)]
pub(super) struct Switching {
    pub(super) limit: SwitchLimit,
    current: Option<VariantId>,
    switches: VecDeque<Instant>,
    records: VecDeque<Record>,
}

impl Switching {
    /// Takes `wanted`, or stays where the limit holds; either is recorded.
    pub(super) fn settle(&mut self, wanted: Choice, offers: &Offers, now: Instant) -> Choice {
        let within = self.limit.within;
        self.switches.retain(|at| now.duration_since(*at) < within);
        let choice = self.limited(wanted, offers);
        let switched = self.current.is_some() && choice.variant != self.current;
        if switched {
            while self.switches.len() >= self.limit.most.max(1) {
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
        self.record(choice.clone(), switched, now);
        choice
    }

    /// The choices, oldest first.
    pub(super) fn records(&self) -> Vec<Record> {
        self.records.iter().cloned().collect()
    }

    fn limited(&self, wanted: Choice, offers: &Offers) -> Choice {
        let (Some(current), Some(variant)) = (&self.current, &wanted.variant) else {
            return wanted;
        };
        let own = !matches!(wanted.reason, Reason::Wish | Reason::Named);
        let full = self.switches.len() >= self.limit.most;
        if current == variant || !own || !full || !offers.admit(current) {
            return wanted;
        }
        let reason = Reason::Limited {
            switches: self.switches.len(),
            seconds: self.limit.within.as_secs(),
            wanted: variant.clone(),
        };
        Choice::new(Some(current), reason)
    }

    fn record(&mut self, choice: Choice, switched: bool, now: Instant) {
        if self.records.len() == RECORDS {
            self.records.pop_front();
        }
        let at = now.into_std();
        self.records.push_back(Record {
            choice,
            switched,
            at,
        });
    }
}
