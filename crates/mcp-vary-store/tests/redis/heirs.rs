//! Which replica serves the sessions of one that has ended.

use std::time::{Duration, Instant};

use http::{HeaderMap, Method, Uri};
use mcp_vary_store::{ForwardError, RequestHead, SessionHome};
use mcp_vary_testkit::wait::until;

use crate::server::{Redis, Replica};

fn head() -> RequestHead {
    RequestHead {
        method: Method::POST,
        uri: Uri::from_static("/mcp"),
        headers: HeaderMap::new(),
        address: None,
        certificate: None,
    }
}

fn session(replica: &Replica, client: u64) -> SessionHome {
    SessionHome {
        opened_by: replica.store.tag(),
        client,
    }
}

async fn three() -> (Redis, [Replica; 3]) {
    let redis = Redis::start();
    let replicas = [
        Replica::start(&redis).await,
        Replica::start(&redis).await,
        Replica::start(&redis).await,
    ];
    (redis, replicas)
}

#[tokio::test]
async fn a_replica_that_stops_has_heirs_at_once_which_share_its_sessions() {
    let (_redis, [a, b, c]) = three().await;
    a.store.hand_over().await;
    a.store.handed_over().await;
    let mut shares = [0, 0];
    for client in 0..40 {
        let session = session(&a, client);
        let there = a.store.home(session);
        for replica in [&b, &c] {
            replica.store.learn_home(session).await;
            assert_eq!(replica.store.home(session), there);
        }
        assert!([&b, &c].iter().any(|it| it.store.tag() == there));
        shares[usize::from(there == c.store.tag())] += 1;
    }
    assert!(shares.iter().all(|it| *it >= 10), "{shares:?}");
}

#[tokio::test]
async fn the_heirs_of_a_replica_that_died_are_the_same_for_all_and_stay_when_others_start() {
    let (redis, [a, b, c]) = three().await;
    // Others are missed by those that have been connected for a while.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let sessions: Vec<_> = (0..8).map(|client| session(&a, client)).collect();
    drop(a);
    let died = Instant::now();
    let is_ended = |refused: Option<ForwardError>| refused == Some(ForwardError::Ended);
    let tag = sessions[0].opened_by;
    until(async || is_ended(b.store.forward(tag, &head(), b"").await.err())).await;
    // The heir gets the request, and does not answer.
    let asked = b.store.forward_home(sessions[0], &head(), b"").await;
    let is_here = b.store.home(sessions[0]) == b.store.tag();
    assert!(asked.is_ok() == is_here, "{:?}", asked.err());
    let waited = died.elapsed();
    assert!(waited < Duration::from_secs(9), "{waited:?}");
    let homes = sessions.iter().map(|it| b.store.home(*it));
    let homes: Vec<_> = homes.collect();
    assert!(homes.iter().all(|it| *it != sessions[0].opened_by));
    let late = Replica::start(&redis).await;
    for replica in [&c, &late] {
        for (session, expected) in sessions.iter().zip(&homes) {
            replica.store.learn_home(*session).await;
            assert_eq!(replica.store.home(*session), *expected);
        }
    }
}

#[tokio::test]
async fn heirs_that_end_have_heirs_and_a_store_that_was_emptied_gets_all_back() {
    let (redis, [a, b, c]) = three().await;
    a.store.hand_over().await;
    b.store.hand_over().await;
    for client in 0..8 {
        let session = session(&a, client);
        c.store.learn_home(session).await;
        assert_eq!(c.store.home(session), c.store.tag());
    }
    // The last one has no heir, and serves what is left.
    c.store.hand_over().await;
    assert_eq!(c.store.home(session(&c, 1)), c.store.tag());
    assert_eq!(redis.keys("heirs:*").len(), 2);
    let () = redis.query(&["FLUSHALL"]);
    let () = redis.query(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    until(async || redis.keys("heirs:*").len() == 2).await;
}

#[tokio::test]
async fn what_others_write_to_the_store_is_no_heir() {
    let (redis, [a, b, _]) = three().await;
    let key =
        redis.keys("replicas")[0].replace("replicas", &format!("heirs:{:08x}", a.store.tag()));
    let () = redis.query(&["SET", &key, "a-text-of-20-letters"]);
    b.store.learn_home(session(&a, 1)).await;
    assert_eq!(b.store.home(session(&a, 1)), a.store.tag());
}

#[tokio::test]
async fn a_replica_that_was_taken_for_dead_hands_over_when_it_is_back() {
    let (redis, [a, b, c]) = three().await;
    a.store.hand_over().await;
    let heirs = redis.keys("heirs:*");
    let of_b = heirs[0].replace(
        &format!("{:08x}", a.store.tag()),
        &format!("{:08x}", b.store.tag()),
    );
    let () = redis.query(&["COPY", &heirs[0], &of_b]);
    let handed_over = b.store.handed_over();
    tokio::time::timeout(Duration::from_secs(5), handed_over)
        .await
        .unwrap();
    // It is one of the heirs in that list itself; on a slow machine the other may be missing there.
    let mut homes = (0..20).map(|client| b.store.home(session(&b, client)));
    assert!(homes.all(|home| [b.store.tag(), c.store.tag()].contains(&home)));
}
