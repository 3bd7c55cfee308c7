//! What is counted, and what a refused client gets.

use mcp_vary_access::{AccessPolicy, AccessRule, Expression, ItemPattern, Presence, When};
use mcp_vary_gateway::settings::access::AccessSettings;
use mcp_vary_rates::Per;
use mcp_vary_view::{Rule, ToolOverride};

use super::clients::{Answer, Client, calls, limited, limited_with, limits, with_keys};
use crate::support::*;

#[tokio::test]
async fn clients_of_both_eras_and_transports_are_refused_until_the_limit_allows_a_call() {
    for kind in ClientKind::ALL {
        let (harness, clock) = limited(vec![calls("calls", Per::Principal, "2/min")]).await;
        let mut client = Client::open(&harness, kind).await;
        client.call("odd").await.passes();
        client.call("say").await.passes();
        client.call("odd").await.is_refused_by("calls", 30);
        clock.advance(Duration::from_secs(29));
        client.call("odd").await.is_refused_by("calls", 1);
        assert_eq!(harness.peer.of("tools/call").len(), 2, "{kind:?}");
        clock.advance(Duration::from_secs(1));
        client.call("odd").await.passes();
        client.call("odd").await.is_refused_by("calls", 30);
        assert_eq!(harness.peer.of("tools/call").len(), 3, "{kind:?}");
    }
}

#[tokio::test]
async fn reads_and_completions_are_counted_as_calls() {
    let complete = json!({
        "ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "a", "value": ""},
    });
    for (method, params) in [
        ("resources/read", json!({"uri": "place:bern"})),
        ("prompts/get", json!({"name": "greet"})),
        ("completion/complete", complete),
    ] {
        for kind in [ClientKind::HttpLegacy, ClientKind::HttpModern] {
            let (harness, _clock) = limited(vec![calls("calls", Per::Principal, "1/min")]).await;
            let mut client = Client::open(&harness, kind).await;
            client.response(method, params.clone()).await.passes();
            let refused = client.response(method, params.clone()).await;
            refused.is_refused_by("calls", 60);
            client.call("odd").await.is_refused_by("calls", 60);
            assert_eq!(harness.peer.of(method).len(), 1, "{kind:?} {method}");
        }
    }
}

#[tokio::test]
async fn lists_and_handshakes_are_not_counted() {
    for kind in [ClientKind::HttpLegacy, ClientKind::HttpModern] {
        let (harness, _clock) = limited(vec![calls("calls", Per::Principal, "1/day")]).await;
        let mut client = Client::open(&harness, kind).await;
        client.call("odd").await.passes();
        client.call("odd").await.is_refused_by("calls", 86_400);
        for list in ["tools/list", "resources/list", "prompts/list"] {
            client.response(list, json!({})).await.passes();
        }
        let mut client = Client::open(&harness, kind).await;
        let greeting = if kind.is_modern() {
            "server/discover"
        } else {
            "ping"
        };
        client.response(greeting, json!({})).await.passes();
    }
}

#[tokio::test]
async fn a_refused_request_uses_up_nothing() {
    let all = calls("all", Per::Principal, "3/h");
    let odd = calls("odd", Per::Principal, "2/h");
    let (harness, _clock) = limited(vec![all, odd.for_tools("o*").unwrap()]).await;
    let mut client = Client::open(&harness, ClientKind::HttpModern).await;
    client.call("odd").await.passes();
    client.call("odd").await.passes();
    for _ in 0..5 {
        client.call("odd").await.is_refused_by("odd", 1_800);
    }
    client.call("say").await.passes();
    client.call("say").await.is_refused_by("all", 1_200);
    // Of several limits, it is the one that refuses the longest.
    client.call("odd").await.is_refused_by("odd", 1_800);
}

#[tokio::test]
async fn a_limit_of_tools_has_a_budget_for_each_tool_or_for_all() {
    let each = calls("each", Per::Tool, "1/h").for_tools("{odd,say}");
    let (harness, _clock) = limited(vec![each.unwrap()]).await;
    let mut client = Client::open(&harness, ClientKind::HttpModern).await;
    client.call("odd").await.passes();
    client.call("say").await.passes();
    client.call("fail").await.passes();
    client.call("fail").await.passes();
    client.call("say").await.is_refused_by("each", 3_600);
    let mut other = Client::open(&harness, ClientKind::StdioLegacy).await;
    other.call("odd").await.is_refused_by("each", 3_600);
}

#[tokio::test]
async fn a_limit_of_a_server_is_for_all_of_its_clients_and_no_other_server() {
    let (one, two) = (
        places_server::start(Era::Modern).await,
        places_server::start(Era::Modern).await,
    );
    let mut config = before(&[("one", &one), ("two", &two)]);
    let limit = calls("one", Per::Server, "2/h").for_server("one").unwrap();
    let (rates, _clock) = limits(vec![limit]);
    config.rates = rates;
    let harness = Harness::behind(one, config).await;
    for kind in [ClientKind::HttpLegacy, ClientKind::StdioModern] {
        let mut client = Client::open(&harness, kind).await;
        client.call("one_odd").await.passes();
        client.call("two_odd").await.passes();
    }
    for kind in ClientKind::ALL {
        let mut client = Client::open(&harness, kind).await;
        client.call("one_odd").await.is_refused_by("one", 1_800);
        client.call("two_odd").await.passes();
    }
    assert_eq!(harness.peer.of("tools/call").len(), 2);
}

/// A variant calls `odd` another name; the limit goes by the one in `standard`.
#[tokio::test]
async fn another_variant_is_no_way_around_a_limit() {
    let mut renamed = variant("renamed");
    let name = default_with::<ToolOverride>(|it| it.name = Some("strange".into()));
    renamed.tool_overrides.insert("odd".into(), name);
    let variants = vec![variant("standard"), renamed];
    let odd = calls("odd", Per::Principal, "1/h")
        .for_tools("odd")
        .unwrap();
    let adapt = |config: Config| config.with_variants_of(variants).unwrap();
    let (harness, _clock) = limited_with(vec![odd], adapt).await;
    let mut client = Client::open(&harness, ClientKind::HttpModern).await;
    client.call("odd").await.passes();
    let call = json!({"name": "strange", "arguments": {}});
    let refused = client.response("tools/call", under("renamed", call)).await;
    let data = &refused.message["error"]["data"];
    let expected = json!({"limit": "odd", "retryAfter": 3_600, "activeVariant": "renamed"});
    assert_eq!(*data, expected, "{refused:?}");
}

#[tokio::test]
async fn without_variants_the_data_names_none() {
    let limit = calls("calls", Per::Principal, "1/min");
    let (harness, _clock) = limited_with(vec![limit], |config| config.with_variants(false)).await;
    let mut client = Client::open(&harness, ClientKind::HttpLegacy).await;
    client.call("odd").await.passes();
    let refused = client.call("odd").await;
    let data = &refused.message["error"]["data"];
    assert_eq!(*data, json!({"limit": "calls", "retryAfter": 60}));
    refused.has_status_429(60);
}

/// Rules that hide `fail`, and let `say` through with an argument only.
fn with_rules(config: Config) -> Config {
    let mut config = with_keys(config);
    let named = |pattern: &str| ItemPattern::any(Rule::by_name(pattern.parse().unwrap()));
    let for_dev = || {
        let groups = Presence::of(["dev"]).unwrap();
        AccessRule::new(When::new().with_claim("groups", groups).unwrap())
    };
    let condition = Expression::compile("args.please == true").unwrap();
    let rules = [
        for_dev().with_allow([named("odd")]),
        for_dev()
            .with_allow([named("say")])
            .with_condition(condition),
    ];
    config.access = Some(AccessSettings {
        policy: Arc::new(AccessPolicy::new(rules).unwrap()),
        trusted_annotations: Arc::default(),
    });
    config
}

#[tokio::test]
async fn what_is_hidden_is_answered_as_what_is_unknown_at_any_rate() {
    for kind in [ClientKind::HttpLegacy, ClientKind::HttpModern] {
        let limit = calls("calls", Per::Principal, "1/min");
        let (harness, _clock) = limited_with(vec![limit], with_rules).await;
        let mut client = Client::of(&harness, kind, "ann").await;
        // Neither counts, ...
        let (hidden, unknown) = (client.call("fail").await, client.call("fial").await);
        is_the_same(&hidden, &unknown);
        // ... nor does a call that a rule refuses by its arguments.
        let refused = client.call("say").await;
        assert_eq!(refused.message["error"]["code"], -32602, "{refused:?}");
        client.call("odd").await.passes();
        client.call("odd").await.is_refused_by("calls", 60);
        // And no limit tells them apart.
        let (hidden, unknown) = (client.call("fail").await, client.call("fial").await);
        is_the_same(&hidden, &unknown);
        assert_eq!(harness.peer.of("tools/call").len(), 1, "{kind:?}");
    }
}

#[track_caller]
fn is_the_same(hidden: &Answer, unknown: &Answer) {
    assert_eq!(hidden.message["error"]["code"], -32602, "{hidden:?}");
    let spelled = unknown.message["error"].to_string().replace("fial", "fail");
    assert_eq!(hidden.message["error"].to_string(), spelled);
    let head = |answer: &Answer| (answer.status, answer.retry_after.clone());
    assert_eq!(head(hidden), head(unknown));
}

/// Revision 2025-03-26: the answers of a batch have no status of their own.
#[tokio::test]
async fn in_a_batch_a_refused_call_is_an_error_among_answers() {
    let (harness, _clock) = limited(vec![calls("calls", Per::Principal, "1/min")]).await;
    let mut client = LegacyClient::open(&harness, "2025-03-26", &json!({})).await;
    let call = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "odd", "arguments": {}}});
    let ping = json!({"jsonrpc": "2.0", "id": 3, "method": "ping"});
    let post = client.post(&json!([call(1), call(2), ping]));
    client.http.send(&post.bytes()).await;
    assert_eq!(client.http.head().await.status, 200);
    let answers = client.http.events().await;
    let failed: Vec<&Value> = answers
        .iter()
        .filter(|answer| answer.get("error").is_some())
        .collect();
    assert_eq!((answers.len(), failed.len()), (3, 1), "{answers:?}");
    failed[0].has("/error/code", -32005);
    failed[0].has("/error/data/limit", "calls");
}
