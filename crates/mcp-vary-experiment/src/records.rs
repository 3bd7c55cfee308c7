//! What each replica counted of each client.

use std::collections::{BTreeMap, BTreeSet};

use crate::assignment::{MAX_ARMS, Unit};
use crate::client::{Client, Counts, MAX_SUM};
use crate::exact_sums::{ArmSums, replace};

/// The bytes of a [`Record`].
pub const RECORD: usize = 8 + 1 + 8 + VALUES * 8;

const VALUES: usize = 6;

/// What one replica counted of one client. Its values only grow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Record {
    pub(crate) place: Place,
    counts: Counts,
}

/// The client, its arm, and the source that counted it.
type Place = (Unit, u8, u64);

impl Record {
    /// Where it belongs in 17 bytes, of which the last 8 are its source; then its values.
    pub fn to_bytes(&self) -> [u8; RECORD] {
        let (unit, arm, source) = self.place;
        let mut bytes = [0; RECORD];
        bytes[..8].copy_from_slice(&unit.0.to_be_bytes());
        bytes[8] = arm;
        bytes[9..17].copy_from_slice(&source.to_be_bytes());
        for (to, value) in bytes[17..].chunks_mut(8).zip(self.counts.0) {
            to.copy_from_slice(&value.to_be_bytes());
        }
        bytes
    }

    /// The record of these bytes; `None` if its arm cannot exist. Values that are too great are lowered.
    pub fn from_bytes(bytes: &[u8; RECORD]) -> Option<Self> {
        let (unit, others) = bytes.split_first_chunk()?;
        let ([arm], others) = others.split_first_chunk()?;
        let (source, values) = others.split_first_chunk()?;
        let mut counts = [0; VALUES];
        for (value, bytes) in counts.iter_mut().zip(values.as_chunks().0) {
            *value = u64::from_be_bytes(*bytes).min(MAX_SUM);
        }
        let unit = Unit(u64::from_be_bytes(*unit));
        (usize::from(*arm) < MAX_ARMS).then_some(Self {
            place: (unit, *arm, u64::from_be_bytes(*source)),
            counts: Counts(counts),
        })
    }
}

/// A part of the clients, by what each replica counted.
pub(crate) struct SharedUnits {
    source: u64,
    records: BTreeMap<Place, Client>,
    /// Those that the others may not have.
    pub(crate) unwritten: BTreeSet<Place>,
    most: usize,
    /// This client and those with greater digests are left out.
    end: Option<Unit>,
}

impl SharedUnits {
    pub(crate) const fn new(source: u64, most: usize) -> Self {
        Self {
            source,
            records: BTreeMap::new(),
            unwritten: BTreeSet::new(),
            most,
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

    /// Takes over what was counted elsewhere.
    pub(crate) fn merge(&mut self, sums: &mut [ArmSums], record: &Record) {
        self.change(sums, record.place, |known| {
            known.counts = known.counts.max(record.counts);
        });
    }

    pub(crate) fn note_lost(&mut self) {
        self.unwritten = self.records.keys().copied().collect();
    }

    fn change(&mut self, sums: &mut [ArmSums], place: Place, change: impl FnOnce(&mut Client)) {
        let (unit, arm, source) = place;
        let Some(arm_sums) = sums.get_mut(usize::from(arm)) else {
            return; // an arm of an earlier configuration
        };
        if self.is_left_out(unit) {
            return;
        }
        let earlier = self.record(place);
        let before = self.pairs(unit, arm);
        change(self.records.entry(place).or_default());
        replace(arm_sums, before, self.pairs(unit, arm));
        if source == self.source && self.record(place) != earlier {
            self.unwritten.insert(place);
        }
        while let Some((&last, _)) = self.records.last_key_value()
            && (self.records.len() > self.most || self.is_left_out(last.0))
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

    pub(crate) fn record(&self, place: Place) -> Option<Record> {
        let counts = self.records.get(&place)?.counts;
        Some(Record { place, counts })
    }

    /// What all replicas together counted of a client.
    fn pairs(&self, unit: Unit, arm: u8) -> [(u64, u64); 6] {
        let records = self.records.range((unit, arm, 0)..=(unit, arm, u64::MAX));
        let of_sources = records.map(|(_, client)| client.counts);
        let counts = of_sources.reduce(Counts::plus);
        counts.unwrap_or_default().pairs(counts.is_some())
    }
}
