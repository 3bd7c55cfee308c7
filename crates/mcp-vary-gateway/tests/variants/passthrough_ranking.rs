//! `passthrough: {rank: on}`: a server ranks its own variants for the hints of each client.

use std::time::Instant;

use mcp_vary::extension::{CLIENT_CAPABILITIES_META, SERVER_VARIANT_META, SERVER_VARIANTS};
use mcp_vary_upstream::Passthrough;

use super::passthrough::{in_front_of_process, passed_through};
use super::upstream_variants::in_front_of;
use crate::support::*;

/// What a server does with clients that have hints. Questions about its order are those that declare nothing else.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Behavior {
    /// It offers `human` before `agent`.
    Ranks,
    /// It refuses such questions.
    Refuses,
    /// It does not answer them.
    Hangs,
}

/// A server of either era with the variants `agent` and `human`, in this order for clients without hints. Its tool says
/// under which variant it was called.
fn answer(seen: &ReceivedRequest, is_modern: bool, behavior: Behavior) -> Option<Reply> {
    let params = &seen.body["params"];
    let declared = if is_modern {
        &params["_meta"][CLIENT_CAPABILITIES_META]
    } else {
        &params["capabilities"]
    };
    let has_hints = declared["extensions"][SERVER_VARIANTS].is_object();
    let is_question = is_question(seen);
    let ids = match has_hints {
        true if is_question && behavior == Behavior::Refuses => {
            return Some(seen.refuse(400, -32603, "no hints, please"));
        }
        true if is_question && behavior == Behavior::Hangs => return Some(Reply::silence()),
        true => ["human", "agent"],
        false => ["agent", "human"],
    };
    let offered = ids.map(|id| json!({"id": id, "description": "", "hints": {"useCase": "chat"}}));
    let capabilities = json!({
        "tools": {}, "extensions": {SERVER_VARIANTS: {"availableVariants": offered}},
    });
    let selected = params["_meta"][SERVER_VARIANT_META].as_str();
    let result = match seen.method() {
        "server/discover" if is_modern => discovered(capabilities),
        "initialize" if !is_modern => introduced("crm", capabilities),
        "tools/list" => tool_list(&["hints"]),
        "tools/call" => json!({"content": [{"type": "text", "text": selected.unwrap_or("none")}]}),
        _ => return None,
    };
    Some(seen.answer(&result))
}

/// Whether a request asks for the order of the variants for a client: a handshake with its hints, and nothing else of it.
fn is_question(seen: &ReceivedRequest) -> bool {
    let params = &seen.body["params"];
    let declared = match seen.method() {
        "server/discover" => &params["_meta"][CLIENT_CAPABILITIES_META],
        "initialize" => &params["capabilities"],
        _ => return false,
    };
    declared["extensions"][SERVER_VARIANTS].is_object() && declared.get("sampling").is_none()
}

/// The capabilities of a client with the use case `chat` that the server can ask.
fn chatting() -> Value {
    let mut capabilities = hints(json!({"useCase": "chat"}));
    capabilities["sampling"] = json!({});
    capabilities["extensions"]["io.modelcontextprotocol/ui"] = json!({"a": 1});
    capabilities
}

async fn in_front_of_http(is_modern: bool, behavior: Behavior) -> Harness {
    let server = ScriptedServer::start(move |seen| answer(seen, is_modern, behavior)).await;
    let config = passed_through(before(&[("crm", &server)]), Passthrough::ranked(true));
    Harness::behind(server, config).await
}

/// The ids of the variants that a new client over HTTP is offered.
async fn offered(harness: &Harness, is_modern: bool, capabilities: &Value) -> Vec<String> {
    let kinds = [ClientKind::HttpLegacy, ClientKind::HttpModern];
    let kind = kinds[usize::from(is_modern)];
    let result = kind.introduction(harness, capabilities).await;
    let settings = &result["capabilities"]["extensions"][SERVER_VARIANTS];
    let all = settings["availableVariants"].as_array();
    let all = all.unwrap_or_else(|| panic!("{result}")).iter();
    let ids = all.map(|it| it["id"].as_str().unwrap().to_owned());
    ids.collect()
}

/// Waits until a client with sessions is offered `expected` first: the first one waits for the server only a second, which a
/// busy machine may need to start a process.
async fn becomes_first(harness: &Harness, capabilities: &Value, expected: &str) {
    until(async || offered(harness, false, capabilities).await[0] == expected).await;
}

/// EXT-9: a server of either era, over HTTP or as a process, orders its variants for the hints of a client: at their places in
/// the order of the rules. The default of modern clients is that of the rules.
#[tokio::test]
async fn a_server_orders_its_variants_for_the_hints_of_a_client() {
    let (chat, other) = (hints(json!({"useCase": "chat"})), json!({}));
    for is_modern_server in [false, true] {
        let over_http = in_front_of_http(is_modern_server, Behavior::Ranks).await;
        for harness in [
            over_http,
            in_front_of_process(is_modern_server, Passthrough::ranked(true)).await,
        ] {
            becomes_first(&harness, &chat, "crm/human").await;
            for _ in 0..2 {
                let legacy = offered(&harness, false, &chat).await;
                assert_eq!(legacy, ["crm/human", "crm/agent", "standard"]);
                let modern = offered(&harness, true, &chat).await;
                assert_eq!(modern, ["crm/agent", "crm/human", "standard"]);
                for is_modern in [false, true] {
                    let declared = offered(&harness, is_modern, &other).await;
                    assert_eq!(declared, ["standard", "crm/agent", "crm/human"]);
                }
            }
        }
        let harness = in_front_of_http(is_modern_server, Behavior::Ranks).await;
        becomes_first(&harness, &chat, "crm/human").await;
        for way in ClientKind::ALL {
            let called = way.ask(&harness, &chat, "tools/call", tool("hints")).await;
            let default = if way.is_modern() { "agent" } else { "human" };
            assert_eq!(texts(&called["result"]), [default], "{way:?}");
        }
    }
}

/// EXT-9: the operator sees that the server chose the variant of a session. What the rules choose is reported as their choice.
#[tokio::test]
async fn the_reason_of_a_variant_that_the_server_put_first_is_the_server() {
    let chat = hints(json!({"useCase": "chat"}));
    for is_modern_server in [false, true] {
        let harness = in_front_of_http(is_modern_server, Behavior::Ranks).await;
        becomes_first(&harness, &chat, "crm/human").await;
        for way in ClientKind::ALL {
            for declared in [&chat, &json!({})] {
                way.ask(&harness, declared, "tools/list", json!({})).await;
            }
        }
        let uses = harness.gateway.status().clients;
        let found = uses.iter();
        let found = found.map(|it| (it.variant.as_ref().unwrap().as_str(), it.reason.unwrap()));
        let mut found: Vec<_> = found.collect();
        found.sort_unstable();
        // Clients of 2026-07-28 have no name here, those with sessions have one.
        let expected = [
            ("crm/agent", "ranking"),
            ("crm/human", "server"),
            ("standard", "ranking"),
            ("standard", "ranking"),
        ];
        assert_eq!(found, expected, "{uses:?}");
    }
}

/// EXT-9: a server is asked once for clients with the same hints, and with nothing but its hints: no tag, no capability of
/// the client.
#[tokio::test]
async fn a_server_is_asked_once_for_the_same_hints() {
    for is_modern_server in [false, true] {
        let harness = in_front_of_http(is_modern_server, Behavior::Ranks).await;
        for _ in 0..3 {
            for is_modern in [false, true] {
                offered(&harness, is_modern, &chatting()).await;
            }
        }
        let received = harness.peer.received();
        let asked: Vec<_> = received.iter().filter(|seen| is_question(seen)).collect();
        assert_eq!(asked.len(), 1);
        let params = &asked[0].body["params"];
        let declared = if is_modern_server {
            &params["_meta"][CLIENT_CAPABILITIES_META]
        } else {
            &params["capabilities"]
        };
        let settings = json!({"variantHints": {"hints": {"useCase": ["chat"]}}});
        let expected = json!({"extensions": {SERVER_VARIANTS: settings}});
        assert_eq!(*declared, expected);
        assert_eq!(params["_meta"].get(SERVER_VARIANT_META), None);
    }
}

/// EXT-9: clients of a server that refuses such a question, or does not answer, get the order of the rules, after a second
/// at most.
#[tokio::test]
async fn without_an_answer_of_the_server_the_rules_rank() {
    for behavior in [Behavior::Refuses, Behavior::Hangs] {
        let harness = in_front_of_http(true, behavior).await;
        for is_modern in [false, true] {
            let began = Instant::now();
            let offered = offered(&harness, is_modern, &chatting()).await;
            assert_eq!(offered, ["crm/agent", "crm/human", "standard"]);
            let elapsed = began.elapsed();
            assert!(elapsed < Duration::from_secs(5), "{elapsed:?}");
        }
    }
}

/// EXT-9: without `rank` a server is not asked, and its variants come last in the order of its declaration.
#[tokio::test]
async fn without_rank_a_server_is_not_asked() {
    let server = ScriptedServer::start(|seen| answer(seen, true, Behavior::Ranks)).await;
    let config = passed_through(before(&[("crm", &server)]), Passthrough::default());
    let harness = Harness::behind(server, config).await;
    for is_modern in [false, true] {
        let offered = offered(&harness, is_modern, &chatting()).await;
        assert_eq!(offered, ["standard", "crm/agent", "crm/human"]);
    }
    assert!(!harness.peer.received().iter().any(is_question));
}

const INNER: &str = r#"
variants:
  plain: {}
  writer: {hints: {useCase: writing}}
  reader: {hints: {useCase: reading, com.acme/depth: deep}}
ranking:
  weights: {com.acme/depth: 100, useCase: 1}
"#;

/// EXT-9, a Vary behind a Vary: the variants of the inner one are in the order that it has for the same client alone, though
/// the weights of the outer one are others.
#[tokio::test]
async fn a_vary_behind_a_vary_ranks_as_it_does_alone() {
    let server = ScriptedServer::start(|seen| match seen.method() {
        "initialize" => Some(seen.answer(&introduced("files", json!({"tools": {}})))),
        "tools/list" => Some(seen.answer(&json!({"tools": []}))),
        _ => None,
    });
    let server = server.await;
    let text = format!("servers: {{files: {{url: \"{}\"}}}}\n{INNER}", server.url);
    let inner = of_file(&text);
    let inner = Harness::behind(server, inner).await;
    let outer = passed_through(in_front_of(&inner, None), Passthrough::ranked(true));
    let outer = Harness::behind(ScriptedServer::start(|_| None).await, outer).await;
    let name = "peer/";
    let mut differ = 0;
    for declared in [
        json!({}),
        json!({"useCase": "writing"}),
        json!({"useCase": "writing", "com.acme/depth": "deep"}),
        json!({"useCase": ["reading", "writing"]}),
        json!({"com.acme/depth": "deep"}),
    ] {
        let capabilities = hints(declared);
        let alone = offered(&inner, false, &capabilities).await;
        // The outer one waits for the inner one only a second.
        until(async || {
            let passed = offered(&outer, false, &capabilities).await;
            let inner = passed.iter().filter_map(|id| id.strip_prefix(name));
            inner.eq(alone.iter().map(String::as_str))
        })
        .await;
        // By the rules of the outer one alone, as the default of modern clients still is.
        let modern = offered(&outer, true, &capabilities).await;
        let mut modern = modern.iter().filter_map(|id| id.strip_prefix(name));
        differ += usize::from(modern.next() != alone.first().map(String::as_str));
    }
    // So that the comparison is about more than the rules.
    assert!(differ > 0);
}
