//! Changes of the variant and wrong credentials are counted for all replicas together.

use mcp_vary_testkit::message::under;
use serde_json::Value;

use super::forwarding::{of, open};
use super::*;

const CHANGES: &str = "rates: [{name: changes, counts: variant-changes, rate: 3/h}]";

/// A list under a variant.
fn list(session: &str, variant: &str) -> HttpRequest {
    of(
        session,
        &request(json!(1), "tools/list", under(variant, json!({}))),
    )
}

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn a_session_changes_its_variant_as_often_as_one_gateway_would_allow() {
    let mut replicas = Replicas::start("changes", &[CHANGES; 3]).await;
    let [a, b, c] = replicas.all.as_slice() else {
        unreachable!("three were started")
    };
    let session = open(a, &json!({})).await;
    let passes = async |replica: &Gateway, variant: &str| {
        let answer = replica.ask(&list(&session, variant)).await.json();
        assert!(answer["result"].is_object(), "{variant}: {answer}");
    };
    // The same variant at another replica is not a change.
    for (replica, variant) in [
        (a, "standard"),
        (b, "standard"),
        (c, "compact"),
        (a, "compact"),
        (a, "standard"),
        (b, "compact"),
        (c, "compact"),
    ] {
        passes(replica, variant).await;
    }
    for replica in [a, b, c] {
        let refused = replica.ask(&list(&session, "read-only")).await;
        assert_eq!(refused.status, 429);
        let refused = refused.json();
        assert_eq!(code(&refused), -32000, "{refused}");
        assert_eq!(refused["error"]["data"]["activeVariant"], "compact");
        assert_eq!(refused["error"]["data"]["limit"], "changes");
        passes(replica, "compact").await;
    }
    // Another session has a variant of its own; the limit is that of the address.
    let other = open(b, &json!({})).await;
    let first = a.ask(&list(&other, "standard")).await.json();
    assert!(first["result"].is_object(), "{first}");
    let refused = c.ask(&list(&other, "compact")).await.json();
    assert_eq!(refused["error"]["data"]["activeVariant"], "standard");
    // Without the store, each counts for itself what it has seen.
    replicas.redis = None;
    let a = &replicas.all[0];
    a.is_ready_with_store("away").await;
    passes(a, "compact").await;
    passes(a, "standard").await;
    replicas.end();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn an_address_sends_as_many_wrong_keys_as_one_gateway_would_verify() {
    let limit =
        "rates: [{name: failures, per: address, counts: authentication-failures, rate: 4/h}]";
    let settings = format!("{KEYS}\n{limit}");
    let replicas = Replicas::start("failures", &[settings.as_str(); 3]).await;
    let [a, b, c] = replicas.all.as_slice() else {
        unreachable!("three were started")
    };
    let with = |key: &str| call("get_weather").with("Authorization", format!("Bearer {key}"));
    for replica in [a, b, b, a] {
        assert_eq!(replica.ask(&with("vary_wrong")).await.status, 401);
    }
    // A replica to which nobody has sent a wrong one does not ask, until the next wrong one.
    assert_eq!(c.ask(&with(KEY)).await.status, 200);
    for replica in [a, b] {
        assert_eq!(replica.ask(&with(KEY)).await.status, 429);
    }
    for replica in [a, b, c] {
        let refused = replica.ask(&with("vary_wrong")).await;
        assert_eq!(refused.status, 429);
        let retry: u64 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!((800..=900).contains(&retry), "{retry}");
        // Not even the right one is verified.
        assert_eq!(replica.ask(&with(KEY)).await.status, 429);
        assert_eq!(replica.ask(&call("get_weather")).await.status, 401);
    }
    replicas.end();
}

/// Each replica has refused, so each asks the store when its time is over.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn after_the_wait_one_more_wrong_key_is_verified_and_not_one_at_each_replica() {
    let limit = "rates: [{name: failures, per: address, counts: authentication-failures, rate: 10/min, burst: 1}]";
    let settings = format!("{KEYS}\n{limit}");
    let replicas = Replicas::start("later", &[settings.as_str(); 3]).await;
    let wrong = call("get_weather").with("Authorization", "Bearer vary_wrong");
    for replica in &replicas.all {
        until(async || replica.ask(&wrong).await.status == 429).await;
    }
    let first = &replicas.all[0];
    let mut verified = Instant::now();
    until(async || {
        verified = Instant::now();
        first.ask(&wrong).await.status == 401
    })
    .await;
    for replica in &replicas.all {
        let status = replica.ask(&wrong).await.status;
        // One becomes available again every six seconds.
        assert!(
            status == 429 || verified.elapsed() > Duration::from_secs(5),
            "{status}"
        );
    }
    replicas.end();
}
