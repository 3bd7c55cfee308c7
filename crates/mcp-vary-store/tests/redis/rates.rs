//! Replicas count together.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_vary_store::{Count, Verdict};
use mcp_vary_testkit::wait::until;

use crate::server::{Redis, Replica};

/// A limit of one request in `interval`, with a burst.
fn count(name: &str, interval: Duration, burst: u32) -> Count {
    Count {
        name: name.to_owned(),
        interval,
        tolerance: interval * (burst - 1),
    }
}

/// How many of `requests` pass, and the last verdict.
async fn passed(replica: &Replica, counts: &[Count], requests: usize) -> (usize, Verdict) {
    let (mut passed, mut last) = (0, Verdict::Allowed);
    for _ in 0..requests {
        last = replica.store.count(counts.to_vec()).await.unwrap();
        passed += usize::from(last == Verdict::Allowed);
    }
    (passed, last)
}

#[tokio::test]
async fn three_replicas_allow_one_burst_and_say_when_the_next_is_allowed() {
    let redis = Redis::start();
    let minute = Duration::from_secs(60);
    let limit = [count("ann", minute, 10)];
    let mut all = 0;
    for _ in 0..3 {
        let replica = Replica::start(&redis).await;
        let (passed, last) = passed(&replica, &limit, 8).await;
        all += passed;
        if let Verdict::Refused { index, wait } = last {
            assert_eq!(index, 0);
            assert!(
                wait <= minute && wait > minute - Duration::from_secs(20),
                "{wait:?}"
            );
        }
    }
    assert_eq!(all, 10);
    let replica = Replica::start(&redis).await;
    assert_eq!(passed(&replica, &[count("bob", minute, 3)], 5).await.0, 3);
}

#[tokio::test]
async fn a_request_is_counted_by_all_limits_or_by_none() {
    let redis = Redis::start();
    let replica = Replica::start(&redis).await;
    let hour = Duration::from_secs(3600);
    let (wide, narrow) = (count("wide", hour, 5), count("narrow", 2 * hour, 2));
    let both = [wide.clone(), narrow];
    let (number, last) = passed(&replica, &both, 9).await;
    assert_eq!(number, 2);
    assert!(matches!(last, Verdict::Refused { index: 1, wait } if wait > hour));
    // The seven that the narrow one refused have used up nothing of the wide one.
    assert_eq!(passed(&replica, std::slice::from_ref(&wide), 9).await.0, 3);
    // Of several that refuse, the one that does so the longest is named.
    let last = passed(&replica, &both, 1).await.1;
    assert!(
        matches!(last, Verdict::Refused { index: 1, .. }),
        "{last:?}"
    );
}

#[tokio::test]
async fn requests_that_come_together_share_a_round_trip_and_each_has_its_own_verdict() {
    let redis = Redis::start();
    let replica = Replica::start(&redis).await;
    let hour = Duration::from_secs(3600);
    let mut requests = tokio::task::JoinSet::new();
    for number in 0..200 {
        let store = Arc::clone(&replica.store);
        let name = format!("client {}", number % 10);
        let counts = vec![count("all", hour, 150), count(&name, hour, 18)];
        requests.spawn(async move { (number % 10, store.count(counts).await.unwrap()) });
    }
    let mut passed = [0; 10];
    while let Some(counted) = requests.join_next().await {
        match counted.unwrap() {
            (client, Verdict::Allowed) => passed[client] += 1,
            (_, Verdict::Refused { index, .. }) => assert_eq!(index, 0),
        }
    }
    // Twenty of each, of which eighteen may pass, but the first hundred and fifty of all.
    assert_eq!(passed.iter().sum::<usize>(), 150);
    let statistics: String = redis.query(&["INFO", "commandstats"]);
    let line = statistics
        .lines()
        .find(|line| line.starts_with("cmdstat_evalsha"));
    let scripts = line.and_then(|line| line.split(['=', ',']).nth(1)?.parse::<usize>().ok());
    assert!(scripts.is_some_and(|it| it < 50), "{line:?}");
}

#[tokio::test]
async fn clients_at_full_speed_get_the_burst_and_the_rate() {
    let redis = Redis::start();
    let limit = [count("ann", Duration::from_millis(10), 20)];
    let began = Instant::now();
    let mut clients = Vec::new();
    for _ in 0..3 {
        let (replica, limit) = (Replica::start(&redis).await, limit.clone());
        clients.push(tokio::spawn(async move {
            let mut number = 0;
            let end = Instant::now() + Duration::from_secs(2);
            while Instant::now() < end {
                number += passed(&replica, &limit, 1).await.0;
            }
            number
        }));
    }
    let mut all = 0;
    for client in clients {
        all += client.await.unwrap();
    }
    let most = 20 + began.elapsed().as_millis() / 10 + 2;
    // Three that count by themselves would allow more than 600.
    assert!(all >= 150 && (all as u128) <= most, "{all} of {most}");
}

#[tokio::test]
async fn a_bucket_that_is_full_again_is_not_stored_any_more() {
    let redis = Redis::start();
    let replica = Replica::start(&redis).await;
    passed(&replica, &[count("ann", Duration::from_secs(1), 5)], 3).await;
    let rates = || {
        let mut keys = redis.keys("");
        keys.retain(|key| key.contains(":rate:"));
        keys
    };
    let stored = rates();
    assert_eq!(stored.len(), 1);
    assert!(!stored[0].contains("ann"));
    until(async || rates().is_empty()).await;
}

#[tokio::test]
async fn a_value_beyond_a_full_bucket_ends_when_the_bucket_is_full_again() {
    let redis = Redis::start();
    let replica = Replica::start(&redis).await;
    let limit = [count("ann", Duration::from_millis(200), 3)];
    passed(&replica, &limit, 1).await;
    let rates = || {
        redis
            .keys("")
            .into_iter()
            .find(|key| key.contains(":rate:"))
    };
    let key = rates().unwrap();
    // A clock that was a century ahead, or somebody who can write the store.
    for stored in ["3155760000000000", "inf", "1e308"] {
        let () = redis.query(&["SET", &key, stored]);
        let (allowed, last) = passed(&replica, &limit, 1).await;
        assert!(
            allowed == 0 && matches!(last, Verdict::Refused { .. }),
            "{stored}: {last:?}"
        );
        until(async || rates().is_none()).await;
        assert_eq!(passed(&replica, &limit, 4).await.0, 3, "{stored}");
    }
}
