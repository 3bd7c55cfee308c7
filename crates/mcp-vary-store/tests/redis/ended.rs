//! Sessions that end at one replica end at all.

use std::time::{Duration, Instant};

use mcp_vary_store::{MAX_ENDED, StoreEvent, StoreState};

use crate::server::{KEY, Redis, Replica, expiring, session};

#[tokio::test]
async fn a_session_that_ends_at_one_replica_ends_at_the_others_within_a_second() {
    let redis = Redis::start();
    let (a, b, c) = (
        Replica::start(&redis).await,
        Replica::start(&redis).await,
        Replica::start(&redis).await,
    );
    let ended = session(1);
    let began = Instant::now();
    a.store.end_session(ended).await;
    b.learns(&[ended]).await;
    c.learns(&[ended]).await;
    assert!(began.elapsed() < Duration::from_secs(1));
    // A replica does not learn of the sessions that it ended itself.
    assert!(a.learned.lock().unwrap().is_empty());
    assert_eq!(a.counted("end_session", "ok"), 1);
}

#[tokio::test]
async fn a_replica_that_starts_later_learns_of_all_ended_sessions_before_it_is_up() {
    let redis = Redis::start();
    let a = Replica::start(&redis).await;
    let all: Vec<_> = (0..100).map(session).collect();
    for ended in &all {
        a.store.end_session(*ended).await;
    }
    drop(a);
    let late = Replica::start(&redis).await;
    let learned = late.learned.lock().unwrap();
    assert_eq!(learned.len(), all.len());
    assert!(
        all.iter()
            .all(|it| learned.contains(&StoreEvent::Ended(*it)))
    );
}

#[tokio::test]
async fn a_replica_that_was_cut_off_reads_what_it_missed() {
    let redis = Redis::start();
    let (a, b) = (Replica::start(&redis).await, Replica::start(&redis).await);
    let () = redis.query(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    a.is(StoreState::Away).await;
    // Not even the replica at which it ends is connected.
    let ended = session(1);
    a.store.end_session(ended).await;
    b.learns(&[ended]).await;
    assert_eq!(b.store.state(), StoreState::Up);
}

#[tokio::test]
async fn an_empty_store_gets_back_what_replicas_know() {
    let redis = Redis::start();
    let port = redis.port;
    let (a, b) = (Replica::start(&redis).await, Replica::start(&redis).await);
    a.store.end_session(session(1)).await;
    b.learns(&[session(1)]).await;
    drop(redis);
    b.is(StoreState::Away).await;
    b.store.end_session(session(2)).await;
    drop(a);
    let redis = Redis::start_at(port);
    b.is(StoreState::Up).await;
    let late = Replica::start(&redis).await;
    late.learns(&[session(1), session(2)]).await;
}

#[tokio::test]
async fn the_store_forgets_a_session_when_it_would_have_expired() {
    let redis = Redis::start();
    let a = Replica::start(&redis).await;
    a.store
        .end_session(expiring(1, Duration::from_secs(5)))
        .await;
    a.store
        .end_session(expiring(2, Duration::from_secs(90)))
        .await;
    a.store
        .end_session(expiring(3, Duration::from_secs(60)))
        .await;
    let ttl: u64 = redis.query(&["TTL", &redis.ended()]);
    assert!((85..=90).contains(&ttl), "{ttl}");
    // Each key has an end, the one of the check, too.
    let keys = redis.keys("");
    assert_eq!(keys.len(), 2);
    for key in keys {
        let ttl: i64 = redis.query(&["TTL", &key]);
        assert!(ttl > 0 && key.starts_with("vary:{"), "{key}: {ttl}");
    }
}

#[tokio::test]
async fn what_others_write_to_the_store_ends_no_session() {
    let redis = Redis::start();
    let a = Replica::start(&redis).await;
    a.store.end_session(session(1)).await;
    let key = redis.ended();
    for forged in ["", "x", &"x".repeat(84), &"x".repeat(10_000)] {
        let () = redis.query(&["PUBLISH", &key, forged]);
        let () = redis.query(&["ZADD", &key, "1900000000", forged]);
    }
    // As many as make a set full.
    let fill = format!("for i = 1, {MAX_ENDED} do redis.call('ZADD', KEYS[1], 4900000000, i) end");
    let () = redis.query(&["EVAL", &fill, "1", &key]);
    // Gateways with other keys use the same store.
    let other = Replica::with_keys(&redis, [[2; 32]]);
    other.is(StoreState::Up).await;
    other.store.end_session(session(2)).await;
    let late = Replica::start(&redis).await;
    late.learns(&[session(1)]).await;
    a.store.end_session(session(3)).await;
    late.learns(&[session(3)]).await;
    assert_eq!(late.learned.lock().unwrap().len(), 2);
    assert!(a.learned.lock().unwrap().is_empty());
    assert!(other.learned.lock().unwrap().is_empty());
}

#[tokio::test]
async fn replicas_understand_each_other_while_keys_are_replaced() {
    let redis = Redis::start();
    let new = [2; 32];
    let before = Replica::with_keys(&redis, [KEY, new]);
    let after = Replica::with_keys(&redis, [new, KEY]);
    before.is(StoreState::Up).await;
    after.is(StoreState::Up).await;
    before.store.end_session(session(1)).await;
    after.store.end_session(session(2)).await;
    after.learns(&[session(1)]).await;
    before.learns(&[session(2)]).await;
}

#[tokio::test]
#[ignore = "ends a hundred thousand sessions, which takes half a minute"]
async fn a_set_that_is_full_loses_the_earliest_and_makes_earlier_sessions_doubtful() {
    let redis = Redis::start();
    let a = Replica::start(&redis).await;
    let first = expiring(1, Duration::from_secs(60));
    a.store.end_session(first).await;
    for number in 1..=MAX_ENDED {
        let mut other = session(2);
        other.id[..8].copy_from_slice(&number.to_be_bytes());
        a.store.end_session(other).await;
    }
    let size: usize = redis.query(&["ZCARD", &redis.ended()]);
    assert_eq!(size, MAX_ENDED);
    let late = Replica::start(&redis).await;
    let learned = late.learned.lock().unwrap().clone();
    let forgotten = StoreEvent::ForgottenUntil(session(2).expires);
    assert_eq!((learned.len(), &learned[0]), (MAX_ENDED + 1, &forgotten));
    assert!(!learned.contains(&StoreEvent::Ended(first)));
}
