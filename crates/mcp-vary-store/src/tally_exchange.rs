//! Each replica writes what it counted for tallies, and reads what the others did.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use redis::RedisResult;
use redis::aio::MultiplexedConnection;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tracing::warn;

use crate::connection::{BACKGROUND_TIMEOUT, cause};
use crate::namespace::{Namespace, SEALED_RECORD};
use crate::operations::{Operation, Outcome};
use crate::store::Store;
use crate::tallies::{SharedTally, TallyRecord};

/// The bytes of the place of a record.
const PLACE: usize = 17;

/// The time between two writes.
const PAUSE: Duration = Duration::from_secs(2);
/// Records that are read or written at once.
const PIECE: usize = 200;
/// Pages after which reading ends, whatever the store answers.
const MAX_PAGES: usize = 10_000;
/// The second read is 2 to 6 seconds after the first, at another time at each replica. Who finds then that the store lacks
/// what others counted writes it: mostly one does.
const SECOND_READ: [u64; 2] = [2_000, 4_000];
/// The third read comes so long after it. By then, those that were connected before have written.
const THIRD_READ: Duration = Duration::from_secs(8);
/// The time between later reads, for what came in no message: 10 to 15 minutes, another one at each replica.
const LATER_READ: [u64; 2] = [600_000, 300_000];
/// Seconds after the last write until the store forgets a tally: 30 days.
const LIFETIME: u64 = 30 * 24 * 60 * 60;

impl Store {
    /// Shares these tallies from now on, in place of earlier ones. What the earlier ones counted is still written.
    pub fn share_tallies(&self, mut tallies: Vec<Arc<dyn SharedTally>>) {
        let earlier = self.tallies.all.load_full();
        for tally in earlier.iter() {
            let is_known = tallies.iter().any(|known| known.source() == tally.source());
            if !is_known && !tally.unwritten(1).is_empty() {
                tallies.push(Arc::clone(tally));
            }
        }
        self.tallies.all.store(Arc::new(tallies));
    }

    /// Names a tally: replicas with the same keys and the same store have the same name for it.
    pub fn tally_name(&self, id: u64) -> String {
        let namespace = self.namespaces.first();
        let url = self.url.to_string();
        namespace.map_or_else(String::new, |namespace| namespace.tally_name(id, &url))
    }

    /// Reads each tally every now and then, and writes what was counted, for as long as the connection is used.
    pub(crate) async fn follow_tallies(&self, connection: MultiplexedConnection) -> Infallible {
        let mut reads = BTreeMap::<u64, (u32, Instant)>::new();
        let mut pauses = interval(PAUSE);
        pauses.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            pauses.tick().await;
            for tally in self.tallies.all.load_full().iter() {
                let source = tally.source();
                let (number, next_read) = reads.get(&source).copied().unzip();
                if next_read.is_none_or(|at| at <= Instant::now()) {
                    let read = self.read_tally(connection.clone(), &**tally).await;
                    self.note_tally(Operation::Read, &read);
                    if read.is_ok() {
                        let read_count = number.unwrap_or(0_u32).saturating_add(1);
                        let next = Instant::now() + pause_after(read_count, source);
                        reads.insert(source, (read_count, next));
                        if read_count > 1 {
                            self.write_tally(connection.clone(), &**tally, true).await;
                        }
                    } else if number.is_none() {
                        continue;
                    }
                }
                self.write_tally(connection.clone(), &**tally, false).await;
            }
        }
    }

    /// Writes what was counted since the last write.
    pub(crate) async fn finish_tallies(&self, connection: MultiplexedConnection) {
        let written = async {
            for tally in self.tallies.all.load_full().iter() {
                self.write_tally(connection.clone(), &**tally, false).await;
            }
        };
        if timeout(BACKGROUND_TIMEOUT, written).await.is_err() {
            warn!("what was counted last for experiments was not written");
        }
    }

    /// Takes over the records of a message.
    pub(crate) fn receive_tally(&self, namespace: &Namespace, message: &[u8]) {
        let Some((id, sealed)) = message.split_first_chunk() else {
            return;
        };
        let id = u64::from_be_bytes(*id);
        for tally in self.tallies.all.load().iter().filter(|it| it.id() == id) {
            for record in sealed.chunks(SEALED_RECORD).take(PIECE) {
                if let Some(record) = namespace.open_record(id, record) {
                    tally.merge(&record);
                }
            }
        }
    }

    async fn read_tally(
        &self,
        mut connection: MultiplexedConnection,
        tally: &dyn SharedTally,
    ) -> RedisResult<()> {
        let id = tally.id();
        // The last one is that which writes: what only others have is written again.
        for namespace in self.namespaces.iter().rev() {
            tally.note_lost();
            let mut cursor = 0_u64;
            for _ in 0..MAX_PAGES {
                let mut scan = redis::cmd("HSCAN");
                scan.arg(namespace.tally(id)).arg(cursor);
                scan.arg("COUNT").arg(PIECE);
                let (next, page): (u64, Vec<Vec<u8>>) = scan.query_async(&mut connection).await?;
                for field in page.chunks(2) {
                    if let Some(record) = namespace.open_record(id, &field.concat()) {
                        tally.merge(&record);
                        tally.note_written(&record);
                    }
                }
                cursor = next;
                if cursor == 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Writes and publishes what was counted here, or writes what `others` counted that the store has lost.
    async fn write_tally(
        &self,
        connection: MultiplexedConnection,
        tally: &dyn SharedTally,
        others: bool,
    ) {
        let Some(namespace) = self.namespaces.first() else {
            return;
        };
        let source = tally.source().to_be_bytes();
        let mut records = tally.unwritten(usize::MAX);
        records.retain(|record| record[..PLACE].ends_with(&source) != others);
        for records in records.chunks(PIECE) {
            let pipe = write(namespace, tally.id(), records, others);
            let written = pipe.query_async::<()>(&mut connection.clone()).await;
            self.note_tally(Operation::Tally, &written);
            if written.is_err() {
                return;
            }
            records.iter().for_each(|record| tally.note_written(record));
        }
    }

    /// A failure does not end the connection: a user that may not do this can still do everything else.
    fn note_tally(&self, operation: Operation, result: &RedisResult<()>) {
        let outcome = result.as_ref().map_or(Outcome::Failed, |()| Outcome::Ok);
        self.operations.add(operation, outcome);
        if let Err(error) = result
            && self.tallies.failures.next().is_some()
        {
            warn!(store = %self.url, cause = cause(error), "counts of experiments not shared; trying again");
        }
    }
}

/// The time from this read of a tally to the next one.
const fn pause_after(number: u32, source: u64) -> Duration {
    let [least, spread] = match number {
        1 => SECOND_READ,
        2 => return THIRD_READ,
        _ => LATER_READ,
    };
    Duration::from_millis(least + source % spread)
}

/// The commands that write records and, if they were counted here, publish them.
fn write(namespace: &Namespace, id: u64, records: &[TallyRecord], others: bool) -> redis::Pipeline {
    let key = namespace.tally(id);
    let mut message = id.to_be_bytes().to_vec();
    let mut pipe = redis::pipe();
    // Who counted a record may have written a later one.
    let command = if others { "HSETNX" } else { "HSET" };
    for record in records {
        let sealed = namespace.seal_record(id, record);
        let (place, value) = sealed.split_at(PLACE);
        pipe.cmd(command).arg(&key).arg(place).arg(value).ignore();
        message.extend(&sealed);
    }
    pipe.cmd("EXPIRE").arg(&key).arg(LIFETIME).ignore();
    if !others {
        let publish = pipe.cmd("PUBLISH");
        publish.arg(&namespace.tallies).arg(message).ignore();
    }
    pipe
}
