//! Servers that offer variants themselves: what is reported of them, and how the operator selects one.

use mcp_vary::extension::{SERVER_VARIANT_META, SERVER_VARIANTS};

use super::rules_by_variant;
use crate::support::*;

/// The configuration of a gateway in front of `inner`, which selects `variant` of it.
pub(super) fn in_front_of(inner: &Harness, variant: Option<&str>) -> Config {
    let url = format!("http://{}/mcp", inner.address).parse().unwrap();
    let mut config = config(Target::http(url));
    config.servers[0].variant = variant.map(|id| id.parse().unwrap());
    config
}

/// A gateway in front of another one, whose variants are `standard`, `names` and `short`.
async fn chain(variant: Option<&str>) -> (Harness, Harness) {
    let inner = Harness::configured(rules_by_variant::server(), rules_by_variant::RULES).await;
    let config = in_front_of(&inner, variant);
    let outer = Harness::alone(config).await;
    (outer, inner)
}

/// EXT-9: a Vary behind a Vary. All methods of clients of both eras run under the variant that the operator selected.
#[tokio::test]
async fn every_method_runs_under_the_selected_variant_of_a_vary() {
    let (outer, _inner) = chain(Some("names")).await;
    let none = json!({});
    for way in ClientKind::ALL {
        let list = way.ask(&outer, &none, "tools/list", json!({})).await;
        assert_eq!(names(&list), ["list", "plain"], "{way:?}");
        let schema = &list["result"]["tools"][0]["outputSchema"];
        assert_eq!(schema["required"], json!(["names"]), "{way:?}");
        let called = way.ask(&outer, &none, "tools/call", tool("list")).await;
        let value = &called["result"]["structuredContent"];
        assert_eq!(*value, json!({"names": ["Bern", "Thun"]}), "{way:?}");
        let map = json!({"uri": "map://all"});
        let read = way.ask(&outer, &none, "resources/read", map).await;
        let text = &read["result"]["contents"][0]["text"];
        assert_eq!(*text, "2 stations", "{way:?}");
        let plan = json!({"name": "plan"});
        let prompt = way.ask(&outer, &none, "prompts/get", plan).await;
        let text = &prompt["result"]["messages"][0]["content"]["text"];
        assert_eq!(*text, "Plan it. Briefly.", "{way:?}");
    }
    let status = outer.status();
    assert_eq!(status["servers"][0].get("upstreamVariants"), None);
}

/// EXT-9: without a selection the server's default answers, and the others are reported.
#[tokio::test]
async fn the_variants_of_a_server_are_reported() {
    let (outer, _inner) = chain(None).await;
    let offered = json!(["standard", "names", "short"]);
    let status = outer.status();
    assert_eq!(status["servers"][0]["upstreamVariants"], offered);
    let servers = outer.gateway.servers();
    assert_eq!(json!(servers[0].upstream_variants), offered);
    for way in ClientKind::ALL {
        let params = tool("list");
        let called = way.ask(&outer, &json!({}), "tools/call", params).await;
        assert!(texts(&called["result"])[0].contains("stations"), "{way:?}");
    }
}

/// EXT-9: a server that does not offer the variant is not used, and the error has those that it offers.
#[tokio::test]
async fn a_server_without_the_selected_variant_is_not_used() {
    let inner = Harness::configured(rules_by_variant::server(), rules_by_variant::RULES).await;
    let mut config = in_front_of(&inner, Some("nmes"));
    let refused = Gateway::start(config.clone()).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "server `peer` has no variant `nmes`: it offers `standard`, `names`, `short`; change `variant` in its entry"
    );
    config = config.allow_empty_start(Duration::from_secs(60));
    let outer = Harness::alone(config).await;
    for way in ClientKind::ALL {
        let params = tool("list");
        let called = way.ask(&outer, &json!({}), "tools/call", params).await;
        assert!(called["error"]["code"].is_i64(), "{way:?}: {called}");
    }
}

/// EXT-9: two entries of one address show two of its variants side by side.
#[tokio::test]
async fn two_entries_show_two_variants_of_a_server() {
    let inner = Harness::configured(rules_by_variant::server(), rules_by_variant::RULES).await;
    let mut config = in_front_of(&inner, Some("standard"));
    config.servers[0].name = "whole".to_owned();
    let mut short = in_front_of(&inner, Some("names")).servers.remove(0);
    short.name = "short".to_owned();
    config.servers.push(short);
    let outer = Harness::alone(config).await;
    let whole = json!({"stations": [{"id": 1, "name": "Bern"}, {"id": 2, "name": "Thun"}]});
    let names_alone = json!({"names": ["Bern", "Thun"]});
    for way in ClientKind::ALL {
        for (name, expected) in [("whole_list", &whole), ("short_list", &names_alone)] {
            let called = way.ask(&outer, &json!({}), "tools/call", tool(name)).await;
            let value = &called["result"]["structuredContent"];
            assert_eq!(value, expected, "{way:?} {name}");
        }
    }
}

/// A server of either era that offers variants.
fn offering(era: Era) -> Script {
    let offered = json!({"availableVariants": [{"id": "agent"}, {"id": "human"}]});
    Script::new(era, "n")
        .declares(json!({
            "tools": {"listChanged": true}, "resources": {"subscribe": true}, "completions": {},
            "extensions": {SERVER_VARIANTS: offered},
        }))
        .tools(&["list"])
        .lists(json!({
            "resources": [{"uri": "map://all", "name": "all"}],
            "prompts": [{"name": "plan", "arguments": [{"name": "a"}]}],
        }))
        .results(json!({
            "tools/call": {"content": []},
            "resources/subscribe": {},
            "resources/unsubscribe": {},
            "ping": {},
            "resources/read": {"contents": []},
            "prompts/get": {"messages": []},
            "completion/complete": {"completion": {"values": []}},
        }))
}

/// EXT-9: a handshake without the selected variant ends the use of the server, and one with it begins it again.
#[tokio::test]
async fn a_server_is_used_while_it_offers_the_selected_variant() {
    let is_gone = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_gone);
    let others = json!({"availableVariants": [{"id": "agent"}]});
    let others = discovered(json!({"tools": {}, "extensions": {SERVER_VARIANTS: others}}));
    let script = offering(Era::Modern).may_reply("server/discover", move |seen| {
        let is_gone = flag.load(Ordering::SeqCst);
        is_gone.then(|| seen.answer(&others))
    });
    let peer = script.start().await;
    let mut config = config(Target::http(peer.url.clone()));
    config.servers[0].variant = Some("human".parse().unwrap());
    // A modern server is asked for its capabilities whenever its health is checked.
    let limits = &mut config.servers[0].limits;
    limits.ping = Duration::from_millis(50);
    limits.backoff = Duration::from_millis(10);
    limits.max_backoff = Duration::from_millis(20);
    limits.ready_timeout = Duration::from_millis(100);
    let harness = Harness::behind(peer, config).await;
    for (gone, state, member) in [
        (false, "up", "result"),
        (true, "down", "error"),
        (false, "up", "result"),
    ] {
        is_gone.store(gone, Ordering::SeqCst);
        // A server that is called is not silent, so it is not asked.
        until(async || harness.status()["servers"][0]["state"] == state).await;
        let called = harness
            .ask(ClientKind::HttpModern, "tools/call", tool("list"))
            .await;
        assert!(called[member].is_object(), "{state}: {called}");
    }
}

/// EXT-9: each request to a server of either era has the selector, also those that the gateway sends by itself; none has it
/// where the operator selects nothing, whatever the client sends.
#[tokio::test]
async fn each_request_has_the_selector_of_the_operator_and_none_of_a_client() {
    for (era, variant) in [
        (Era::Legacy, Some("human")),
        (Era::Modern, Some("human")),
        (Era::Legacy, None),
        (Era::Modern, None),
    ] {
        let peer = offering(era).start().await;
        let mut config = config(Target::http(peer.url.clone()));
        config.servers[0].variant = variant.map(|id| id.parse().unwrap());
        let harness = Harness::behind(peer, config).await;
        let completion = json!({
            "ref": {"type": "ref/prompt", "name": "plan"}, "argument": {"name": "a", "value": ""},
        });
        for way in ClientKind::ALL {
            for (method, mut params) in [
                ("tools/call", tool("list")),
                ("resources/read", json!({"uri": "map://all"})),
                ("prompts/get", json!({"name": "plan"})),
                ("completion/complete", completion.clone()),
            ] {
                params["_meta"] = json!({SERVER_VARIANT_META: "standard"});
                let answer = harness.ask(way, method, params).await;
                assert!(answer["result"].is_object(), "{way:?} {method}: {answer}");
            }
        }
        let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
        let all = json!({"uri": "map://all"});
        client.ask("resources/subscribe", all).await;
        if era == Era::Legacy {
            soon(harness.peer.wait_for("resources/subscribe", 1)).await;
        }
        let received = harness.peer.received();
        let requests: Vec<_> = received
            .iter()
            .filter(|seen| !seen.id().is_null())
            .filter(|seen| !["initialize", "server/discover", "ping"].contains(&seen.method()))
            .collect();
        assert!(requests.len() > 16, "{requests:?}");
        for seen in requests {
            let selector = seen.body["params"]["_meta"].get(SERVER_VARIANT_META);
            let expected = variant.map(Value::from);
            assert_eq!(selector, expected.as_ref(), "{}", seen.method());
        }
    }
}
