//! Limits while the gateway runs: reloads, the status, and what is shown of who was counted.

use mcp_vary_gateway::settings::rates::RateLimits;
use mcp_vary_rates::{Counted, Limit, Per};

use super::clients::{Client, calls, limited, limited_with, limits, with_keys};
use crate::support::*;

/// Serves under other limits from now on.
async fn reload(harness: &Harness, rates: RateLimits) {
    let mut next = config(Target::http(harness.peer.url.clone()));
    next.rates = rates;
    harness.reload(next).await;
}

fn refused(harness: &Harness) -> Value {
    json!(harness.gateway.status())["rateLimits"].clone()
}

#[tokio::test]
async fn equal_limits_keep_what_they_counted_and_others_begin_at_zero() {
    let all = || {
        vec![
            calls("a", Per::Principal, "2/min"),
            calls("b", Per::Tool, "9/s"),
        ]
    };
    let (harness, clock) = limited(all()).await;
    let mut client = Client::open(&harness, ClientKind::HttpLegacy).await;
    client.call("odd").await.passes();
    client.call("odd").await.passes();
    client.call("odd").await.is_refused_by("a", 30);
    reload(&harness, limits(all()).0).await;
    client.call("odd").await.is_refused_by("a", 30);
    assert_eq!(refused(&harness), json!({"a": 2, "b": 0}));
    // The clock is still the one from before.
    clock.advance(Duration::from_secs(30));
    client.call("odd").await.passes();
    client.call("odd").await.is_refused_by("a", 30);
    let mut other = all();
    other[1] = calls("b", Per::Tool, "10/s");
    reload(&harness, limits(other).0).await;
    assert_eq!(refused(&harness), json!({"a": 0, "b": 0}));
    client.call("odd").await.passes();
    reload(&harness, RateLimits::default()).await;
    for _ in 0..5 {
        client.call("odd").await.passes();
    }
    assert_eq!(refused(&harness), Value::Null);
}

#[tokio::test]
async fn limits_differ_by_everything_that_they_count() {
    let of = |per, counted| Limit::new("a", per, counted, "1/s".parse().unwrap()).unwrap();
    let plain = || of(Per::Principal, Counted::Calls);
    let others = [
        calls("b", Per::Principal, "1/s"),
        calls("a", Per::Principal, "1/min"),
        of(Per::Address, Counted::Calls),
        of(Per::Principal, Counted::Switches),
        plain().for_tools("*").unwrap(),
        plain().for_server("peer").unwrap(),
    ];
    assert_eq!(plain(), plain());
    for (at, other) in others.iter().enumerate() {
        assert_ne!(*other, plain(), "{at}");
    }
    let for_tools = |pattern| plain().for_tools(pattern).unwrap();
    assert_eq!(for_tools("a*"), for_tools("a*"));
    assert_ne!(for_tools("a*"), for_tools("b*"));
}

#[tokio::test]
async fn the_status_counts_refusals_of_each_limit() {
    let wrong = Limit::new(
        "wrong",
        Per::Address,
        Counted::AuthFailures,
        "1/h".parse().unwrap(),
    );
    let changes = Limit::new(
        "changes",
        Per::Principal,
        Counted::Switches,
        "1/h".parse().unwrap(),
    );
    let all = vec![
        calls("calls", Per::Principal, "1/h"),
        wrong.unwrap(),
        changes.unwrap(),
    ];
    let (harness, _clock) = limited_with(all, with_keys).await;
    let expected = json!({"calls": 0, "changes": 0, "wrong": 0});
    assert_eq!(refused(&harness), expected);
    let mut client = Client::of(&harness, ClientKind::HttpModern, "ann").await;
    client.call("odd").await.passes();
    for _ in 0..3 {
        client.call("odd").await.is_refused_by("calls", 3_600);
    }
    for variant in ["compact", "standard", "read-only"] {
        let params = under(variant, json!({}));
        client.response("tools/list", params).await;
    }
    let eve = format!("Bearer {}", super::clients::key("eve"));
    let mut eve =
        Client::open_with(&harness, ClientKind::HttpModern, &[("Authorization", &eve)]).await;
    for _ in 0..2 {
        eve.response("tools/list", json!({})).await;
    }
    let expected = json!({"calls": 3, "changes": 2, "wrong": 1});
    assert_eq!(refused(&harness), expected);
}

#[tokio::test]
async fn a_call_that_a_limit_refuses_is_one_line_in_the_log() {
    let (harness, _clock) = limited(vec![calls("calls", Per::Principal, "1/h")]).await;
    let mut client = Client::open(&harness, ClientKind::HttpModern).await;
    client.call("odd").await.passes();
    let (log, _listening) = CapturedLog::listen("mcp_vary_gateway::requests", Level::INFO);
    client.call("odd").await.is_refused_by("calls", 3_600);
    let lines = log.take();
    let [line] = &lines[..] else {
        panic!("{lines:?}");
    };
    for part in [r#"tool="odd";"#, r#"outcome="denied"; code=-32005;"#] {
        assert!(line.contains(part), "{part} in {line}");
    }
    assert!(!line.contains("server="), "{line}");
}

#[tokio::test]
async fn without_limits_there_is_nothing_to_look_up() {
    let harness = Harness::start().await;
    let config = config(Target::http(harness.peer.url.clone()));
    assert!(config.rates.is_empty());
    assert!(limits(Vec::new()).0.is_empty());
    assert_eq!(refused(&harness), Value::Null);
}

/// Principals and addresses are in the tables of limits, and in no log.
#[tokio::test]
async fn a_configuration_shows_the_names_of_its_limits_only() {
    let (rates, _clock) = limits(vec![calls("calls", Per::Principal, "1/h")]);
    let harness = Harness::of(|config| config.rates = rates.clone());
    let harness = Arc::new(harness.await);
    let mut client = Client::open(&harness, ClientKind::HttpModern).await;
    client.call("odd").await.passes();
    assert_eq!(format!("{rates:?}"), r#"RateLimits(["calls"])"#);
}
