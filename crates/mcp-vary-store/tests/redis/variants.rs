//! Changes of the variant, at any replica.

use std::sync::Arc;
use std::time::Duration;

use mcp_vary_store::{Count, RefusedChange, VariantUse, Verdict};

use crate::server::{Redis, Replica};

const HOUR: Duration = Duration::from_secs(3600);

/// A limit of one change in an hour, with a burst.
fn changes(burst: u32) -> [Count; 1] {
    [Count {
        name: "changes of ann".to_owned(),
        interval: HOUR,
        tolerance: HOUR * (burst - 1),
    }]
}

const AVAILABLE: [&str; 3] = ["standard", "compact", "read-only"];

/// What the store says of a request of ann under this variant.
async fn uses(replica: &Replica, variant: &str, burst: u32) -> Option<RefusedChange> {
    let used = VariantUse {
        client: "ann",
        variant,
        available: &AVAILABLE,
        counts: &changes(burst),
    };
    replica.store.use_variant(&used).await.unwrap()
}

#[tokio::test]
async fn a_change_is_counted_wherever_its_requests_arrive_and_a_refused_one_changes_nothing() {
    let redis = Redis::start();
    let (a, b) = (Replica::start(&redis).await, Replica::start(&redis).await);
    for (replica, variant) in [
        (&a, "standard"),
        (&b, "standard"),
        (&b, "compact"),
        (&a, "compact"),
        (&a, "standard"),
    ] {
        assert_eq!(uses(replica, variant, 2).await, None, "{variant}");
    }
    for replica in [&a, &b] {
        let refused = uses(replica, "compact", 2).await.unwrap();
        assert_eq!((refused.active, refused.index), (0, 0));
        assert!(refused.wait <= HOUR && refused.wait > HOUR - Duration::from_secs(60));
        assert_eq!(uses(replica, "standard", 2).await, None);
    }
    // A variant that the client may not use any more was not left by choice.
    let used = VariantUse {
        client: "ann",
        variant: "compact",
        available: &["compact", "read-only"],
        counts: &changes(2),
    };
    assert_eq!(a.store.use_variant(&used).await, Ok(None));
    assert_eq!(uses(&b, "read-only", 2).await.map(|it| it.active), Some(1));
    let keys = redis.keys("");
    let key = keys.iter().find(|key| key.contains(":variant:")).unwrap();
    let remaining: i64 = redis.query(&["TTL", key]);
    assert!((7190..=7200).contains(&remaining), "{remaining}");
}

#[tokio::test]
async fn a_client_takes_room_once_however_often_it_changes() {
    let redis = Redis::start();
    let replica = Replica::start(&redis).await;
    for variant in ["standard", "compact", "standard"] {
        assert_eq!(uses(&replica, variant, 3).await, None, "{variant}");
    }
    let used = replica.store.used().filter(|(_, share)| *share > 0.0);
    let used: Vec<_> = used.collect();
    assert_eq!(used, [("variants", 256.0 / f64::from(16 << 20))]);
}

/// What the store says of twenty requests of ann under this variant that come at the same time.
async fn use_together(replica: &Replica, variant: &'static str) -> Vec<Option<RefusedChange>> {
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let store = Arc::clone(&replica.store);
        requests.spawn(async move {
            let used = VariantUse {
                client: "ann",
                variant,
                available: &AVAILABLE,
                counts: &changes(1),
            };
            store.use_variant(&used).await.unwrap()
        });
    }
    requests.join_all().await
}

#[tokio::test]
async fn requests_that_come_together_after_a_change_are_one_change() {
    let redis = Redis::start();
    let replica = Replica::start(&redis).await;
    assert_eq!(uses(&replica, "standard", 1).await, None);
    let answers = use_together(&replica, "compact").await;
    assert!(answers.iter().all(Option::is_none), "{answers:?}");
    // And no pair of requests is a way around the limit.
    let answers = use_together(&replica, "read-only").await;
    assert!(answers.iter().all(Option::is_some), "{answers:?}");
}

#[tokio::test]
async fn a_question_counts_nothing() {
    let redis = Redis::start();
    let replica = Replica::start(&redis).await;
    let limit = changes(1).to_vec();
    for _ in 0..3 {
        let answer = replica.store.would_refuse(limit.clone()).await;
        assert_eq!(answer, Ok(Verdict::Allowed));
    }
    assert_eq!(
        replica.store.count(limit.clone()).await,
        Ok(Verdict::Allowed)
    );
    let answer = replica.store.would_refuse(limit).await.unwrap();
    assert!(
        matches!(answer, Verdict::Refused { index: 0, .. }),
        "{answer:?}"
    );
}
