//! Counting what comes of an experiment.

use std::sync::MutexGuard;
use std::time::Duration;

use mcp_vary_base::lock::ScopedLock;
use quick_cache::unsync::Cache;

use crate::assignment::{Experiment, Unit};
use crate::call::{Call, CallOutcome};
use crate::metric::Metric;
use crate::shared::{SharedUnits, Sharing};
use crate::totals::{ArmTotals, Sums, Totals};

/// The most clients of an experiment that are distinguished at a time.
///
/// If there are more, one that has not called for long is forgotten. Its calls still count; if it comes back, it is a
/// new client. Replicas that [share](Tally::shared) a tally count a sample of their clients then.
pub const MAX_UNITS: usize = 65_536;

/// How long after an error a successful call with other arguments is a repair of it.
pub const REPAIR_TIME: Duration = Duration::from_secs(60);

/// Requests of different clients seldom wait for each other.
pub(crate) const SHARDS: usize = 16;

/// The failures of a client that may still be repaired.
const MAX_FAILURES: usize = 4;

/// The greatest sum of one client, so that no sum of squares overflows: 35 years in microseconds.
pub(crate) const MAX_SUM: u64 = 1 << 50;

/// What came of an experiment so far.
pub struct Tally {
    experiment: Experiment,
    pub(crate) sharing: Option<Sharing>,
    pub(crate) shards: Vec<ScopedLock<Shard>>,
}

impl std::fmt::Debug for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tally")
            .field("experiment", &self.experiment)
            .finish_non_exhaustive()
    }
}

impl Tally {
    /// Nothing so far.
    #[must_use]
    pub fn new(experiment: Experiment) -> Self {
        Self::with_sharing(experiment, None)
    }

    /// The part of one replica in a tally that several share: it counts, and takes over what the others
    /// [wrote](Self::unwritten).
    #[must_use]
    pub fn shared(experiment: Experiment, sharing: Sharing) -> Self {
        Self::with_sharing(experiment, Some(sharing))
    }

    fn with_sharing(experiment: Experiment, sharing: Option<Sharing>) -> Self {
        let shard = || {
            let units = sharing.as_ref().map_or_else(
                || Units::Recent(Cache::new(MAX_UNITS / SHARDS)),
                |sharing| Units::Shared(SharedUnits::new(sharing.source)),
            );
            ScopedLock::new(Shard {
                units,
                sums: vec![ArmSums::default(); experiment.arms().len()],
            })
        };
        let shards = std::iter::repeat_with(shard).take(SHARDS).collect();
        Self {
            experiment,
            sharing,
            shards,
        }
    }

    /// What is counted.
    #[must_use]
    pub const fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// Counts a client that takes part, whether it calls anything or not.
    pub fn take_part(&self, unit: Unit, arm: usize) {
        self.with(unit, arm, |_| {});
    }

    /// Counts a call that has ended.
    pub fn record(&self, call: &Call) {
        self.with(call.unit, call.arm, |counts| counts.add(call));
    }

    fn with(&self, unit: Unit, arm: usize, change: impl FnOnce(&mut Client)) {
        let Some(mut shard) = self.shard(unit) else {
            return;
        };
        let Shard { units, sums } = &mut *shard;
        let units = match units {
            Units::Shared(units) => return units.count(sums, unit, arm, change),
            Units::Recent(units) => units,
        };
        let Some(sums) = sums.get_mut(arm) else {
            return; // an arm of an earlier configuration
        };
        let known = units.get_mut(&(unit, arm));
        if let Some(mut client) = known {
            let before = client.counts.pairs(true);
            change(&mut client);
            replace(sums, before, client.counts.pairs(true));
            return;
        }
        let mut client = Client::default();
        let before = client.counts.pairs(false);
        change(&mut client);
        replace(sums, before, client.counts.pairs(true));
        units.insert((unit, arm), client);
    }

    /// The part of the clients in which this one is.
    pub(crate) fn shard(&self, unit: Unit) -> Option<MutexGuard<'_, Shard>> {
        let shards = self.shards.len() as u64;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "less than the number of shards"
        )]
        let at = (unit.0 % shards) as usize;
        self.shards.get(at).map(ScopedLock::lock)
    }

    /// The sums so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let arms = self.experiment.arms();
        let mut totals = vec![ArmSums::default(); arms.len()];
        for shard in &self.shards {
            for (total, sums) in totals.iter_mut().zip(&shard.lock().sums) {
                for (total, sums) in total.iter_mut().zip(sums) {
                    total.add(sums);
                }
            }
        }
        let arms = arms.iter().zip(totals).map(|(arm, sums)| ArmTotals {
            variant: arm.variant.clone(),
            weight: arm.weight,
            metrics: Metric::ALL
                .into_iter()
                .zip(sums)
                .map(|(metric, sums)| (metric.name().to_owned(), sums.in_units_of(metric)))
                .collect(),
        });
        Totals {
            name: self.experiment.name().to_owned(),
            arms: arms.collect(),
            shared: self.sharing.as_ref().map(|it| it.name.clone()),
        }
    }
}

/// A part of the clients.
pub(crate) struct Shard {
    pub(crate) units: Units,
    /// For each arm.
    pub(crate) sums: Vec<ArmSums>,
}

/// The clients that are distinguished.
pub(crate) enum Units {
    /// Those that called last.
    Recent(Cache<(Unit, usize), Client>),
    /// Those that replicas share.
    Shared(SharedUnits),
}

/// The sums of an arm, for each metric.
pub(crate) type ArmSums = [ExactSums; 6];

/// One client.
#[derive(Clone, Default)]
pub(crate) struct Client {
    pub(crate) counts: Counts,
    failures: Vec<Failure>,
}

/// What one client did.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Counts {
    calls: u64,
    failed: u64,
    invalid: u64,
    repaired: u64,
    microseconds: u64,
    tokens: u64,
}

/// A failed call that may still be repaired.
#[derive(Clone, Copy)]
struct Failure {
    tool: u64,
    arguments: u64,
    ended: Duration,
}

impl Client {
    fn add(&mut self, call: &Call) {
        let microseconds = u64::try_from(call.duration.as_micros()).unwrap_or(u64::MAX);
        let is_failed = call.outcome != CallOutcome::Succeeded;
        let is_invalid = call.outcome == CallOutcome::InvalidArguments;
        let more = Counts {
            calls: 1,
            failed: u64::from(is_failed),
            invalid: u64::from(is_invalid),
            repaired: 0,
            microseconds,
            tokens: call.tokens,
        };
        self.counts = self.counts.plus(more);
        self.failures
            .retain(|failure| call.ended.saturating_sub(failure.ended) <= REPAIR_TIME);
        if !is_failed {
            self.repair(call);
            return;
        }
        if self.failures.len() == MAX_FAILURES {
            self.failures.remove(0);
        }
        self.failures.push(Failure {
            tool: call.tool,
            arguments: call.arguments,
            ended: call.ended,
        });
    }

    /// One success repairs one failure: the last one.
    fn repair(&mut self, call: &Call) {
        let repaired = self
            .failures
            .iter()
            .rposition(|it| it.tool == call.tool && it.arguments != call.arguments);
        if let Some(at) = repaired {
            self.failures.remove(at);
            self.counts.repaired += 1;
        }
    }
}

impl Counts {
    /// The sums of both.
    pub(crate) fn plus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    /// The greater of each.
    pub(crate) fn max(self, other: Self) -> Self {
        self.zip(other, u64::max)
    }

    fn zip(self, other: Self, join: fn(u64, u64) -> u64) -> Self {
        let (mine, others) = (self.to_array(), other.to_array());
        Self::from_array(std::array::from_fn(|at| join(mine[at], others[at])))
    }

    pub(crate) const fn to_array(self) -> [u64; 6] {
        [
            self.calls,
            self.failed,
            self.invalid,
            self.repaired,
            self.microseconds,
            self.tokens,
        ]
    }

    /// Of values that are too great, the greatest.
    pub(crate) fn from_array(values: [u64; 6]) -> Self {
        let [calls, failed, invalid, repaired, microseconds, tokens] =
            values.map(|value| value.min(MAX_SUM));
        Self {
            calls,
            failed,
            invalid,
            repaired,
            microseconds,
            tokens,
        }
    }

    /// The numerator and denominator of each metric.
    pub(crate) fn pairs(&self, takes_part: bool) -> [(u64, u64); 6] {
        Metric::ALL.map(|metric| match metric {
            Metric::Failed => (self.failed, self.calls),
            Metric::InvalidArguments => (self.invalid, self.calls),
            Metric::Repaired => (self.repaired, self.failed),
            Metric::Duration => (self.microseconds, self.calls),
            Metric::Tokens => (self.tokens, self.calls),
            Metric::Calls => (self.calls, u64::from(takes_part)),
        })
    }
}

pub(crate) fn replace(sums: &mut ArmSums, before: [(u64, u64); 6], after: [(u64, u64); 6]) {
    for (sums, (before, after)) in sums.iter_mut().zip(before.into_iter().zip(after)) {
        sums.change(before, after);
    }
}

/// The sums as integers: they are changed with each call, and must not drift.
#[derive(Clone, Copy, Default)]
pub(crate) struct ExactSums {
    units: u64,
    n: u128,
    x: u128,
    nn: u128,
    xx: u128,
    nx: u128,
}

impl ExactSums {
    /// Replaces a client's values, which are a part of each sum.
    fn change(&mut self, (x, n): (u64, u64), (new_x, new_n): (u64, u64)) {
        self.units = self.units + u64::from(new_n > 0) - u64::from(n > 0);
        let [x, n, new_x, new_n] = [x, n, new_x, new_n].map(u128::from);
        self.n = self.n + new_n - n;
        self.x = self.x + new_x - x;
        self.nn = self.nn + new_n * new_n - n * n;
        self.xx = self.xx + new_x * new_x - x * x;
        self.nx = self.nx + new_n * new_x - n * x;
    }

    fn add(&mut self, other: &Self) {
        self.units += other.units;
        self.n += other.n;
        self.x += other.x;
        self.nn += other.nn;
        self.xx += other.xx;
        self.nx += other.nx;
    }

    /// Durations are counted in microseconds and reported in milliseconds.
    #[expect(
        clippy::cast_precision_loss,
        reason = "an error in the sixteenth digit changes no interval"
    )]
    fn in_units_of(&self, metric: Metric) -> Sums {
        let scale = if metric == Metric::Duration {
            1_000.0
        } else {
            1.0
        };
        Sums {
            units: self.units as f64,
            n: self.n as f64,
            x: self.x as f64 / scale,
            nn: self.nn as f64,
            xx: self.xx as f64 / (scale * scale),
            nx: self.nx as f64 / scale,
        }
    }
}
