//! What a replica saves, and others load.

use std::time::Duration;

use mcp_vary_store::{MAX_SAVED, MAX_SAVED_TOTAL, SavedKind, StoreAway};
use mcp_vary_testkit::wait::until;

use crate::server::{Redis, Replica, session};

const HOUR: Duration = Duration::from_secs(3600);

fn values(redis: &Redis) -> Vec<String> {
    let mut keys = redis.keys("");
    keys.retain(|key| key.contains(":result:") || key.contains(":task:"));
    keys
}

#[tokio::test]
async fn what_one_replica_saves_another_loads_also_after_its_end() {
    let redis = Redis::start();
    let (a, b) = (Replica::start(&redis).await, Replica::start(&redis).await);
    let long = vec![7; MAX_SAVED];
    a.store
        .save(SavedKind::Result, "ann's", b"one".to_vec(), HOUR);
    a.store.save(SavedKind::Task, "ann's", long.clone(), HOUR);
    until(async || a.counted("save", "ok") == 2).await;
    assert_eq!(values(&redis).len(), 2);
    a.store.end_session(session(1)).await;
    let used: Vec<_> = a.store.used().collect();
    // With what each of the two values takes beside its bytes.
    let copies = (MAX_SAVED + 3 + 2 * 256) as f64 / MAX_SAVED_TOTAL as f64;
    let expected = [
        ("ended_sessions", 1e-5),
        ("exchanges", 0.0),
        ("copies", copies),
        ("variants", 0.0),
    ];
    assert_eq!(used, expected);
    drop(a);
    let load = async |kind| b.store.load(kind, "ann's").await.unwrap();
    assert_eq!(load(SavedKind::Result).await.as_deref(), Some(&b"one"[..]));
    assert_eq!(load(SavedKind::Task).await, Some(long));
    assert_eq!(load(SavedKind::Stream).await, None);
    assert_eq!(b.store.load(SavedKind::Result, "bob's").await, Ok(None));
    assert_eq!(
        (b.counted("load", "ok"), b.counted("load", "failed")),
        (4, 0)
    );
    for key in values(&redis) {
        assert!(!key.contains("ann"), "{key}");
        let remaining: i64 = redis.query(&["TTL", &key]);
        assert!((3590..=3600).contains(&remaining), "{remaining}");
        // A value that somebody moves or writes is none.
        let () = redis.query(&["SET", &key, "forged"]);
    }
    assert_eq!(load(SavedKind::Result).await, None);
    assert_eq!(load(SavedKind::Task).await, None);
}

#[tokio::test]
async fn a_value_that_is_too_long_or_comes_while_the_store_is_away_is_not_saved() {
    let redis = Redis::start();
    let a = Replica::start(&redis).await;
    a.store
        .save(SavedKind::Result, "long", vec![0; MAX_SAVED + 1], HOUR);
    assert_eq!(a.counted("save", "skipped"), 1);
    assert!(a.store.can_save(MAX_SAVED) && !a.store.can_save(MAX_SAVED + 1));
    drop(redis);
    until(async || a.store.state() == mcp_vary_store::StoreState::Away).await;
    let loaded = a.store.load(SavedKind::Result, "short").await;
    assert_eq!(loaded, Err(StoreAway));
    assert!(!a.store.can_save(1), "it is away");
    assert_eq!(a.counted("save", "skipped"), 3);
}
