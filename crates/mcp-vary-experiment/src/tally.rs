//! Counting what comes of an experiment.

use std::time::Duration;

use mcp_vary_base::lock::ScopedLock;
use quick_cache::unsync::Cache;

use crate::assignment::{Experiment, Unit};
use crate::call::{Call, CallOutcome};
use crate::metric::Metric;
use crate::totals::{ArmTotals, Sums, Totals};

/// The most clients of an experiment that are distinguished at a time.
///
/// If there are more, one that has not called for long is forgotten. Its calls still count; if it comes back, it is a
/// new client.
pub const MAX_UNITS: usize = 65_536;

/// How long after an error a successful call with other arguments is a repair of it.
pub const REPAIR_TIME: Duration = Duration::from_secs(60);

/// Requests of different clients seldom wait for each other.
const SHARDS: usize = 16;

/// The failures of a client that may still be repaired.
const MAX_FAILURES: usize = 4;

/// The greatest sum of one client, so that no sum of squares overflows: 35 years in microseconds.
const MAX_SUM: u64 = 1 << 50;

/// What came of an experiment so far.
pub struct Tally {
    experiment: Experiment,
    shards: Vec<ScopedLock<Shard>>,
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
        let shard = || {
            ScopedLock::new(Shard {
                units: Cache::new(MAX_UNITS / SHARDS),
                sums: vec![<[ExactSums; 6]>::default(); experiment.arms().len()],
            })
        };
        let shards = std::iter::repeat_with(shard).take(SHARDS).collect();
        Self { experiment, shards }
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

    fn with(&self, unit: Unit, arm: usize, change: impl FnOnce(&mut Counts)) {
        let shards = self.shards.len() as u64;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "less than the number of shards"
        )]
        let at = (unit.0 % shards) as usize;
        let Some(shard) = self.shards.get(at) else {
            return;
        };
        let mut shard = shard.lock();
        let Shard { units, sums } = &mut *shard;
        let Some(sums) = sums.get_mut(arm) else {
            return; // an arm of an earlier configuration
        };
        let known = units.get_mut(&(unit, arm));
        if let Some(mut counts) = known {
            let before = counts.pairs(true);
            change(&mut counts);
            replace(sums, before, counts.pairs(true));
            return;
        }
        let mut counts = Counts::default();
        let before = counts.pairs(false);
        change(&mut counts);
        replace(sums, before, counts.pairs(true));
        units.insert((unit, arm), counts);
    }

    /// The sums so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let arms = self.experiment.arms();
        let mut totals = vec![<[ExactSums; 6]>::default(); arms.len()];
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
        }
    }
}

/// A part of the clients.
struct Shard {
    units: Cache<(Unit, usize), Counts>,
    /// For each arm and metric.
    sums: Vec<[ExactSums; 6]>,
}

/// What one client did.
#[derive(Clone, Default)]
struct Counts {
    calls: u64,
    failed: u64,
    invalid: u64,
    repaired: u64,
    microseconds: u64,
    tokens: u64,
    failures: Vec<Failure>,
}

/// A failed call that may still be repaired.
#[derive(Clone, Copy)]
struct Failure {
    tool: u64,
    arguments: u64,
    ended: Duration,
}

impl Counts {
    fn add(&mut self, call: &Call) {
        let microseconds = u64::try_from(call.duration.as_micros()).unwrap_or(u64::MAX);
        let sums = [
            (&mut self.calls, 1),
            (&mut self.microseconds, microseconds),
            (&mut self.tokens, call.tokens),
        ];
        for (sum, more) in sums {
            *sum = sum.saturating_add(more).min(MAX_SUM);
        }
        self.failures
            .retain(|failure| call.ended.saturating_sub(failure.ended) <= REPAIR_TIME);
        if call.outcome == CallOutcome::Succeeded {
            self.repair(call);
            return;
        }
        self.failed += 1;
        self.invalid += u64::from(call.outcome == CallOutcome::InvalidArguments);
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
            self.repaired += 1;
        }
    }

    /// The numerator and denominator of each metric.
    fn pairs(&self, takes_part: bool) -> [(u64, u64); 6] {
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

fn replace(sums: &mut [ExactSums; 6], before: [(u64, u64); 6], after: [(u64, u64); 6]) {
    for (sums, (before, after)) in sums.iter_mut().zip(before.into_iter().zip(after)) {
        sums.change(before, after);
    }
}

/// The sums as integers: they are changed with each call, and must not drift.
#[derive(Clone, Copy, Default)]
struct ExactSums {
    units: u64,
    n: u128,
    x: u128,
    nn: u128,
    xx: u128,
    nx: u128,
}

impl ExactSums {
    /// Counts a client's values. What a client did only grows, so each sum does.
    fn change(&mut self, (x, n): (u64, u64), (new_x, new_n): (u64, u64)) {
        self.units += u64::from(n == 0 && new_n > 0);
        let [x, n, new_x, new_n] = [x, n, new_x, new_n].map(u128::from);
        self.n += new_n - n;
        self.x += new_x - x;
        self.nn += new_n * new_n - n * n;
        self.xx += new_x * new_x - x * x;
        self.nx += new_n * new_x - n * x;
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
