//! What all replicas count together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_vary_store::{SharedTally, StoreState, TALLY_RECORD, TallyRecord};
use mcp_vary_testkit::wait::until;

use crate::server::{KEY, Redis, Replica};

/// A tally that counts one thing of each client.
pub(crate) struct Counted {
    id: u64,
    source: u64,
    records: Mutex<BTreeMap<Place, u64>>,
    unwritten: Mutex<BTreeSet<Place>>,
}

/// The client and the source.
type Place = (u64, u64);

static SOURCES: AtomicU64 = AtomicU64::new(1);

impl Counted {
    fn new(id: u64) -> Arc<Self> {
        Arc::new(Self {
            id,
            source: SOURCES.fetch_add(1, Ordering::Relaxed),
            records: Mutex::default(),
            unwritten: Mutex::default(),
        })
    }

    /// The part of this replica in a tally.
    pub(crate) fn shared_by(replica: &Replica, id: u64) -> Arc<Self> {
        let tally = Self::new(id);
        replica.store.share_tallies(vec![Arc::clone(&tally) as _]);
        tally
    }

    /// Sets what was counted of a client here.
    pub(crate) fn count(&self, client: u64, value: u64) {
        let place = (client, self.source);
        self.records.lock().unwrap().insert(place, value);
        self.unwritten.lock().unwrap().insert(place);
    }

    fn known(&self) -> BTreeMap<Place, u64> {
        self.records.lock().unwrap().clone()
    }

    /// Waits until it knows these clients, sources and values, and checks that it knows no others.
    pub(crate) async fn has(&self, expected: &[(u64, u64, u64)]) {
        let expected = expected.iter().map(|it| ((it.0, it.1), it.2));
        let expected: BTreeMap<_, _> = expected.collect();
        until(async || self.known().len() >= expected.len() && self.known() == expected).await;
    }

    async fn is_written(&self) {
        until(async || self.unwritten.lock().unwrap().is_empty()).await;
    }
}

fn record((client, source): Place, value: u64) -> TallyRecord {
    let mut record = [0; TALLY_RECORD];
    record[..8].copy_from_slice(&client.to_be_bytes());
    record[9..17].copy_from_slice(&source.to_be_bytes());
    record[17..25].copy_from_slice(&value.to_be_bytes());
    record
}

fn read(record: &TallyRecord) -> (Place, u64) {
    let number = |at: usize| u64::from_be_bytes(record[at..at + 8].try_into().unwrap());
    ((number(0), number(9)), number(17))
}

impl SharedTally for Counted {
    fn id(&self) -> u64 {
        self.id
    }

    fn source(&self) -> u64 {
        self.source
    }

    fn merge(&self, record: &TallyRecord) {
        let (place, value) = read(record);
        let mut records = self.records.lock().unwrap();
        let known = records.entry(place).or_default();
        *known = value.max(*known);
    }

    fn unwritten(&self, most: usize) -> Vec<TallyRecord> {
        let (known, unwritten) = (self.known(), self.unwritten.lock().unwrap());
        let places = unwritten.iter().take(most);
        places.map(|place| record(*place, known[place])).collect()
    }

    fn note_written(&self, record: &TallyRecord) {
        let (place, value) = read(record);
        if self.known().get(&place) == Some(&value) {
            self.unwritten.lock().unwrap().remove(&place);
        }
    }

    fn note_lost(&self) {
        *self.unwritten.lock().unwrap() = self.known().into_keys().collect();
    }
}

/// The only key of a tally.
fn tally(redis: &Redis) -> String {
    let keys = redis.keys(":tally:*");
    assert_eq!(keys.len(), 1, "{keys:?}");
    keys[0].clone()
}

#[tokio::test]
async fn what_one_replica_counts_the_others_have_within_seconds() {
    let redis = Redis::start();
    let (a, b) = (Replica::start(&redis).await, Replica::start(&redis).await);
    let (here, there) = (Counted::shared_by(&a, 1), Counted::shared_by(&b, 1));
    let other = Counted::new(2);
    b.store
        .share_tallies(vec![Arc::clone(&there) as _, Arc::clone(&other) as _]);
    // More than one message takes.
    for client in 0..500 {
        here.count(client, 1);
    }
    there.count(7, 3);
    here.is_written().await;
    there.is_written().await;
    here.count(7, 2);
    until(async || there.known().get(&(7, here.source)) == Some(&2)).await;
    until(async || here.known() == there.known()).await;
    assert_eq!(there.known().len(), 501);
    assert!(other.known().is_empty());
    assert!(a.counted("tally", "ok") >= 4);
    here.is_written().await;
    // Nobody writes when nothing is counted.
    let written = a.counted("tally", "ok");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(a.counted("tally", "ok"), written);
}

#[tokio::test]
async fn a_replica_that_starts_later_knows_what_one_that_has_ended_counted_last() {
    let redis = Redis::start();
    let mut a = Replica::start(&redis).await;
    let ended = Counted::shared_by(&a, 1);
    ended.count(1, 1);
    ended.is_written().await;
    ended.count(1, 5);
    a.stop().await;
    let late = Replica::start(&redis).await;
    Counted::shared_by(&late, 1)
        .has(&[(1, ended.source, 5)])
        .await;
}

#[tokio::test]
async fn what_others_write_to_the_store_is_not_counted() {
    let redis = Redis::start();
    let a = Replica::start(&redis).await;
    let here = Counted::shared_by(&a, 1);
    here.count(1, 1);
    here.is_written().await;
    let key = tally(&redis);
    let all: Vec<Vec<u8>> = redis.query(&["HGETALL", &key]);
    let channel = format!("{}tallies", key.split("tally:").next().unwrap());
    let copy = "redis.call('HSET', KEYS[1], string.rep('x', 17), redis.call('HVALS', KEYS[1])[1])";
    let () = redis.query(&["EVAL", copy, "1", &key]);
    for forged in ["", "x", &"x".repeat(64), &"x".repeat(10_000)] {
        let () = redis.query(&["HSET", &key, forged, forged]);
        let () = redis.query(&["PUBLISH", &channel, forged]);
    }
    // The same in another tally.
    let other = Counted::new(2);
    a.store
        .share_tallies(vec![Arc::clone(&here) as _, Arc::clone(&other) as _]);
    other.count(2, 2);
    other.is_written().await;
    let keys = redis.keys(":tally:*");
    let another = keys.iter().find(|it| **it != key).unwrap();
    let copy = "for i, field in ipairs(redis.call('HGETALL', KEYS[1])) do
        if i % 2 == 1 then redis.call('HSET', KEYS[2], field, redis.call('HGET', KEYS[1], field)) end
    end";
    let () = redis.query(&["EVAL", copy, "2", &key, another]);
    let late = Replica::start(&redis).await;
    let read = [Counted::new(1), Counted::new(2)];
    let shared = read
        .each_ref()
        .map(|it| Arc::clone(it) as Arc<dyn SharedTally>);
    late.store.share_tallies(shared.into());
    read[0].has(&[(1, here.source, 1)]).await;
    read[1].has(&[(2, other.source, 2)]).await;
    assert_eq!(here.known().len(), 1);
    assert_eq!(all.len(), 2);
}

#[tokio::test]
async fn an_empty_store_gets_back_what_replicas_know_also_of_one_that_has_ended() {
    let redis = Redis::start();
    let port = redis.port;
    let (a, mut b) = (Replica::start(&redis).await, Replica::start(&redis).await);
    let (here, ended) = (Counted::shared_by(&a, 1), Counted::shared_by(&b, 1));
    here.count(1, 1);
    ended.count(1, 2);
    here.has(&[(1, here.source, 1), (1, ended.source, 2)]).await;
    b.stop().await;
    drop(redis);
    a.is(StoreState::Away).await;
    here.count(2, 1);
    // One that reads before they are written is sent them, one that reads later finds them.
    let redis = Redis::start_at(port);
    let early = Replica::start(&redis).await;
    let all = [
        (1, here.source, 1),
        (1, ended.source, 2),
        (2, here.source, 1),
    ];
    Counted::shared_by(&early, 1).has(&all).await;
    here.is_written().await;
    let late = Replica::start(&redis).await;
    Counted::shared_by(&late, 1).has(&all).await;
}

#[tokio::test]
async fn a_replica_that_was_cut_off_reads_what_it_missed() {
    let redis = Redis::start();
    let (a, b) = (Replica::start(&redis).await, Replica::start(&redis).await);
    let (here, there) = (Counted::shared_by(&a, 1), Counted::shared_by(&b, 1));
    here.count(1, 1);
    there.has(&[(1, here.source, 1)]).await;
    let () = redis.query(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    b.is(StoreState::Away).await;
    here.count(1, 2);
    there.count(2, 2);
    let all = [(1, here.source, 2), (2, there.source, 2)];
    there.has(&all).await;
    here.has(&all).await;
}

#[tokio::test]
async fn a_tally_that_is_shared_no_longer_is_written_to_its_end_and_goes_on_when_it_is_back() {
    let redis = Redis::start();
    let a = Replica::start(&redis).await;
    let first = Counted::shared_by(&a, 1);
    first.is_written().await;
    first.count(1, 1);
    let other = Counted::shared_by(&a, 2);
    first.is_written().await;
    let again = Counted::shared_by(&a, 1);
    again.count(1, 1);
    again
        .has(&[(1, first.source, 1), (1, again.source, 1)])
        .await;
    assert!(other.known().is_empty());
}

#[tokio::test]
async fn replicas_count_together_while_keys_are_replaced() {
    let redis = Redis::start();
    let new = [2; 32];
    let before = Replica::with_keys(&redis, [KEY, new]);
    let after = Replica::with_keys(&redis, [new, KEY]);
    let (old_key, new_key) = (
        Counted::shared_by(&before, 1),
        Counted::shared_by(&after, 1),
    );
    old_key.count(1, 1);
    new_key.count(1, 2);
    let all = [(1, old_key.source, 1), (1, new_key.source, 2)];
    old_key.has(&all).await;
    new_key.has(&all).await;
    // The next one knows both, and writes them for those who have the new key alone.
    let next = Replica::with_keys(&redis, [new, KEY]);
    let next = Counted::shared_by(&next, 1);
    next.has(&all).await;
    next.is_written().await;
    let last = Replica::with_keys(&redis, [new]);
    Counted::shared_by(&last, 1).has(&all).await;
}

#[tokio::test]
async fn the_store_forgets_a_tally_30_days_after_its_last_count_and_needs_200_bytes_for_a_record() {
    const CLIENTS: u64 = 600;
    let redis = Redis::start();
    let a = Replica::start(&redis).await;
    let here = Counted::shared_by(&a, 1);
    for client in 0..CLIENTS {
        here.count(client.wrapping_mul(0x9e37_79b9_7f4a_7c15), client);
    }
    here.is_written().await;
    let key = tally(&redis);
    let ttl: u64 = redis.query(&["TTL", &key]);
    assert!((2_591_900..=2_592_000).contains(&ttl), "{ttl}");
    let bytes: u64 = redis.query(&["MEMORY", "USAGE", &key, "SAMPLES", "0"]);
    assert!((100..=200).contains(&(bytes / CLIENTS)), "{bytes}");
}

#[tokio::test]
async fn a_tally_has_the_same_name_at_replicas_with_the_same_keys_and_store_only() {
    let redis = Redis::start();
    let name = |url: &str, key, id| Replica::at(url, [key]).store.tally_name(id);
    let first = name(&redis.url(), KEY, 1);
    assert_eq!(name(&redis.url(), KEY, 1), first);
    let other_user = redis.url().replace("redis://:", "redis://ann:");
    assert_eq!(name(&other_user, KEY, 1), first);
    let others = [
        name(&redis.url(), KEY, 2),
        name(&redis.url(), [2; 32], 1),
        name(&redis.url().replace("/1", "/2"), KEY, 1),
    ];
    assert!(!others.contains(&first), "{others:?}");
}
