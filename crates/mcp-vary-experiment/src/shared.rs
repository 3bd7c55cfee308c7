//! A tally that replicas share: each counts for itself, and takes over what the others counted.

use std::collections::{BTreeMap, BTreeSet};

use crate::assignment::{MAX_ARMS, Unit};
use crate::tally::{ArmSums, Client, Counts, MAX_UNITS, SHARDS, Shard, Tally, Units, replace};

/// The most records of an experiment: what one replica counted of one client, each.
///
/// If there are more, all replicas leave out the same clients, with all that they did: those with the greatest digests.
/// Digests say nothing of a client, so the others are a sample.
pub const MAX_RECORDS: usize = 4 * MAX_UNITS;

/// The bytes of a [`Record`].
pub const RECORD: usize = 8 + 1 + 8 + VALUES * 8;

const VALUES: usize = 6;

/// How a replica takes part in a tally.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the gateway builds it")]
pub struct Sharing {
    /// A random number, by which the records of this tally are known among those of others.
    pub source: u64,
    /// What is shared: see [`Totals::shared`](crate::Totals::shared).
    pub name: String,
}

/// What one replica counted of one client. Its values only grow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Record {
    place: Place,
    counts: Counts,
}

/// The client, its arm, and the source that counted it.
type Place = (Unit, u8, u64);

impl Record {
    /// Where it belongs in 17 bytes, of which the last 8 are its source; then its values.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; RECORD] {
        let (unit, arm, source) = self.place;
        let mut bytes = [0; RECORD];
        bytes[..8].copy_from_slice(&unit.0.to_be_bytes());
        bytes[8] = arm;
        bytes[9..17].copy_from_slice(&source.to_be_bytes());
        for (to, value) in bytes[17..].chunks_mut(8).zip(self.counts.to_array()) {
            to.copy_from_slice(&value.to_be_bytes());
        }
        bytes
    }

    /// The record of these bytes; `None` if its arm cannot exist. Values that are too great are lowered.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; RECORD]) -> Option<Self> {
        let (unit, others) = bytes.split_first_chunk()?;
        let ([arm], others) = others.split_first_chunk()?;
        let (source, values) = others.split_first_chunk()?;
        let mut counts = [0; VALUES];
        for (value, bytes) in counts.iter_mut().zip(values.as_chunks().0) {
            *value = u64::from_be_bytes(*bytes);
        }
        let unit = Unit(u64::from_be_bytes(*unit));
        (usize::from(*arm) < MAX_ARMS).then_some(Self {
            place: (unit, *arm, u64::from_be_bytes(*source)),
            counts: Counts::from_array(counts),
        })
    }
}

/// Without [`shared`](Tally::shared), none of these does anything.
impl Tally {
    /// The number of this replica in the records that it counts; `None` if it shares none.
    #[must_use]
    pub fn source(&self) -> Option<u64> {
        self.sharing.as_ref().map(|it| it.source)
    }

    /// Takes over a record. In any order and any number of times, the same records make the same totals.
    pub fn merge(&self, record: &Record) {
        let Some(mut shard) = self.shard(record.place.0) else {
            return;
        };
        let Shard { units, sums } = &mut *shard;
        if let Units::Shared(units) = units {
            units.change(sums, record.place, |it| {
                it.counts = it.counts.max(record.counts);
            });
        }
    }

    /// Records that the others may not have, at most so many.
    #[must_use]
    pub fn unwritten(&self, most: usize) -> Vec<Record> {
        let mut records = Vec::new();
        for shard in &self.shards {
            if let Units::Shared(units) = &shard.lock().units {
                let unwritten = units.unwritten.iter().take(most - records.len());
                records.extend(unwritten.filter_map(|place| units.record(*place)));
            }
        }
        records
    }

    /// The others have this record, unless it has changed meanwhile.
    pub fn note_written(&self, record: &Record) {
        if let Some(mut shard) = self.shard(record.place.0)
            && let Units::Shared(units) = &mut shard.units
            && units.record(record.place) == Some(*record)
        {
            units.unwritten.remove(&record.place);
        }
    }

    /// The others may have lost all records, also those that this replica took over.
    pub fn note_lost(&self) {
        for shard in &self.shards {
            if let Units::Shared(units) = &mut shard.lock().units {
                units.unwritten = units.records.keys().copied().collect();
            }
        }
    }
}

/// A part of the clients, by what each replica counted.
pub(crate) struct SharedUnits {
    source: u64,
    records: BTreeMap<Place, Client>,
    unwritten: BTreeSet<Place>,
    /// This client and those with greater digests are left out.
    end: Option<Unit>,
}

impl SharedUnits {
    pub(crate) const fn new(source: u64) -> Self {
        Self {
            source,
            records: BTreeMap::new(),
            unwritten: BTreeSet::new(),
            end: None,
        }
    }

    /// Counts what happened here.
    pub(crate) fn count(
        &mut self,
        sums: &mut [ArmSums],
        unit: Unit,
        arm: usize,
        change: impl FnOnce(&mut Client),
    ) {
        if let Ok(arm) = u8::try_from(arm) {
            self.change(sums, (unit, arm, self.source), change);
        }
    }

    fn change(&mut self, sums: &mut [ArmSums], place: Place, change: impl FnOnce(&mut Client)) {
        let (unit, arm, source) = place;
        let Some(arm_sums) = sums.get_mut(usize::from(arm)) else {
            return; // an arm of an earlier configuration
        };
        if self.is_left_out(unit) {
            return;
        }
        let (earlier, before) = (self.record(place), self.pairs(unit, arm));
        change(self.records.entry(place).or_default());
        replace(arm_sums, before, self.pairs(unit, arm));
        if source == self.source && self.record(place) != earlier {
            self.unwritten.insert(place);
        }
        while let Some((&last, _)) = self.records.last_key_value()
            && (self.records.len() > MAX_RECORDS / SHARDS || self.is_left_out(last.0))
        {
            self.leave_out(sums, last);
        }
    }

    fn is_left_out(&self, unit: Unit) -> bool {
        self.end.is_some_and(|end| unit >= end)
    }

    fn leave_out(&mut self, sums: &mut [ArmSums], place: Place) {
        let (unit, arm, _) = place;
        let before = self.pairs(unit, arm);
        self.records.remove(&place);
        self.unwritten.remove(&place);
        self.end = Some(unit);
        if let Some(sums) = sums.get_mut(usize::from(arm)) {
            replace(sums, before, self.pairs(unit, arm));
        }
    }

    fn record(&self, place: Place) -> Option<Record> {
        let counts = self.records.get(&place)?.counts;
        Some(Record { place, counts })
    }

    /// What all replicas together counted of a client.
    fn pairs(&self, unit: Unit, arm: u8) -> [(u64, u64); 6] {
        let records = self.records.range((unit, arm, 0)..=(unit, arm, u64::MAX));
        let counts = records.map(|(_, client)| client.counts);
        let counts = counts.reduce(Counts::plus);
        counts.unwrap_or_default().pairs(counts.is_some())
    }
}
