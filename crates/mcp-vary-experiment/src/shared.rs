//! A tally that replicas share.

use crate::records::Record;
use crate::tally::{Shard, Tally, Units};

/// Without [`shared`](Tally::shared), none of these does anything.
impl Tally {
    /// Takes over a record. In any order and any number of times, the same records make the same totals.
    pub fn merge(&self, record: &Record) {
        let Some(mut shard) = self.shard(record.place.0) else {
            return;
        };
        let Shard { units, sums } = &mut *shard;
        if let Units::Shared(units) = units {
            units.merge(sums, record);
        }
    }

    /// Records that the others may not have, at most so many.
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
                units.note_lost();
            }
        }
    }
}
