//! Counting what comes of an experiment.

use std::sync::MutexGuard;

use mcp_vary_base::lock::ScopedLock;
use quick_cache::unsync::Cache;

use crate::assignment::{Experiment, Unit};
use crate::call::Call;
use crate::client::Client;
use crate::exact_sums::{ArmSums, replace};
use crate::metric::Metric;
use crate::records::SharedUnits;
use crate::totals::{ArmTotals, Totals};

/// The most clients of an experiment that are distinguished at a time.
///
/// If there are more, one that has not called for long is forgotten. Its calls still count; if it comes back, it is a
/// new client. A tally that replicas [share](Tally::shared) has [`MAX_RECORDS`] instead.
pub const MAX_UNITS: usize = 65_536;

/// The most records of an experiment: what one replica counted of one client, each.
///
/// If there are more, all replicas leave out the same clients, with all that they did: those with the greatest digests.
/// Digests say nothing of a client, so the others are a sample.
pub const MAX_RECORDS: usize = 4 * MAX_UNITS;

/// Requests of different clients seldom wait for each other.
const SHARDS: usize = 16;

/// How a replica takes part in a tally.
#[derive(Clone, Debug)]
pub struct Sharing {
    /// Identifies the experiment: see [`Experiment::id`].
    pub id: u64,
    /// A random number, by which the records of this tally are known among those of others.
    pub source: u64,
    /// What is shared: see [`Totals::shared`].
    pub name: String,
}

/// The counts of an experiment so far.
pub struct Tally {
    experiment: Experiment,
    /// How this replica takes part in a tally of several, if it does.
    pub sharing: Option<Sharing>,
    pub(crate) shards: Vec<ScopedLock<Shard>>,
}

mcp_vary_base::debug_by_name!(Tally);

impl Tally {
    /// Nothing so far.
    pub fn new(experiment: Experiment) -> Self {
        Self::with_sharing(experiment, None)
    }

    /// The part of one replica in a tally that several share: it counts, and takes over what the others
    /// [wrote](Self::unwritten).
    pub fn shared(experiment: Experiment, sharing: Sharing) -> Self {
        Self::with_sharing(experiment, Some(sharing))
    }

    fn with_sharing(experiment: Experiment, sharing: Option<Sharing>) -> Self {
        let shard = || {
            let units = sharing.as_ref().map_or_else(
                || Units::Recent(Cache::new(MAX_UNITS / SHARDS)),
                |sharing| Units::Shared(SharedUnits::new(sharing.source, MAX_RECORDS / SHARDS)),
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
        let counted = arms.iter().zip(totals).map(|(arm, sums)| ArmTotals {
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
            arms: counted.collect(),
            shared: self.sharing.as_ref().map(|sharing| sharing.name.clone()),
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
