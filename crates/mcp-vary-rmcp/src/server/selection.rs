//! Which variants were chosen: how often that may change, and who wants to know.

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

use crate::limit::SwitchLimit;

/// What became of a client's choice of a variant: see [`Builder::with_audit`](super::Builder::with_audit).
///
/// Hints and the refused selector are the client's words: escape them before they meet a log or a terminal.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Selection<'a> {
    /// Who asked; empty for nobody in particular.
    pub principal: &'a str,
    /// What the client said of itself.
    pub hints: &'a VariantHints,
    /// What it sees, in its order, with the points of each and what they are for.
    pub ranking: &'a Ranking,
    /// What came of it.
    pub outcome: Outcome<'a>,
}

/// How a choice ended.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Outcome<'a> {
    /// The client is in this variant now.
    #[non_exhaustive]
    Chosen {
        /// This one.
        variant: &'a VariantId,
        /// In which it was; none when this is its first choice.
        before: Option<&'a VariantId>,
        /// Who chose.
        by: Chooser,
    },
    /// The request was refused with this error.
    Refused(&'a ErrorData),
}

/// Who chose a variant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Chooser {
    /// The request, in `_meta`.
    Selector,
    /// The request, in its HTTP header.
    Header,
    /// The author's rule: [`Builder::with_default`](super::Builder::with_default).
    Rule,
    /// Nobody: it stands first by the client's hints.
    Ranking,
}

pub(super) type Audit = Arc<dyn Fn(&RequestContext<RoleServer>, &Selection<'_>) + Send + Sync>;

/// Where one client stands: a legacy session, or a principal.
#[derive(Debug, Default)]
pub(super) struct Asker {
    variant: Option<VariantId>,
    /// When it changed, oldest first.
    switches: VecDeque<Instant>,
    /// Of the hints that were recorded last.
    hints: u64,
    latest: Option<Instant>,
}

/// A step from one variant to another, or to none.
pub(super) struct Step {
    /// The variant before.
    pub(super) before: Option<VariantId>,
    /// Whether that is worth a record.
    pub(super) is_new: bool,
}

/// A client that changes its variant too often: where it is, and when it may go on.
pub(super) struct TooOften {
    pub(super) variant: VariantId,
    pub(super) wait: Duration,
}

impl Asker {
    /// Goes to `variant`, unless it has changed as often as `limit` allows.
    pub(super) fn go(
        &mut self,
        variant: &VariantId,
        hints: &VariantHints,
        limit: Option<SwitchLimit>,
        now: Instant,
    ) -> Result<Step, TooOften> {
        self.latest = Some(now);
        let switches = self.variant.as_ref().is_some_and(|known| known != variant);
        if let (true, Some(limit)) = (switches, limit) {
            self.take(limit, now)?;
        }
        let hints = hash(hints);
        let before = self.variant.replace(variant.clone());
        let is_new = before.as_ref() != Some(variant) || self.hints != hints;
        self.hints = hints;
        Ok(Step { before, is_new })
    }

    /// Counts one switch, if there is room for it.
    fn take(&mut self, limit: SwitchLimit, now: Instant) -> Result<(), TooOften> {
        self.switches
            .retain(|at| now.duration_since(*at) < limit.within);
        if self.switches.len() < limit.most {
            self.switches.push_back(now);
            return Ok(());
        }
        let passed = self.switches.front().map(|at| now.duration_since(*at));
        let wait = limit.within.saturating_sub(passed.unwrap_or_default());
        match self.variant.clone() {
            Some(variant) => Err(TooOften { variant, wait }),
            None => Ok(()),
        }
    }
}

/// The principals that were seen of late, for requests that belong to no session.
#[derive(Debug, Default)]
pub(super) struct Askers(Mutex<BTreeMap<String, Asker>>);

impl Askers {
    pub(super) fn with<T>(&self, principal: &str, act: impl FnOnce(&mut Asker) -> T) -> T {
        let mut askers = self.lock();
        if !askers.contains_key(principal) && askers.len() >= MAX_ASKERS {
            let oldest = askers.iter().min_by_key(|(_, asker)| asker.latest);
            if let Some(oldest) = oldest.map(|(principal, _)| principal.clone()) {
                askers.remove(&oldest);
            }
        }
        act(askers.entry(principal.to_owned()).or_default())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Asker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash(hints: &VariantHints) -> u64 {
    let mut hasher = DefaultHasher::new();
    hints.hash(&mut hasher);
    hasher.finish()
}

/// How many principals are remembered; the one that was away longest is forgotten first.
const MAX_ASKERS: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    /// SV-21: who was away longest is forgotten first, and nobody else.
    #[test]
    fn principals_are_bounded() {
        let askers = Askers::default();
        let (start, hints) = (Instant::now(), VariantHints::default());
        let variant: VariantId = "v".parse().unwrap();
        let go = |principal: &str, at: u64| {
            askers.with(principal, |asker| {
                let step = asker.go(&variant, &hints, None, start + Duration::from_secs(at));
                step.is_ok_and(|step| step.is_new)
            })
        };
        for at in 0..MAX_ASKERS as u64 {
            assert!(go(&at.to_string(), at));
        }
        let later = MAX_ASKERS as u64;
        assert!(!go("0", later));
        assert!(go("new", later + 1));
        assert!(!go("0", later + 2));
        assert!(!go("2", later + 2));
        assert!(go("1", later + 3));
        assert_eq!(askers.lock().len(), MAX_ASKERS);
    }
}
