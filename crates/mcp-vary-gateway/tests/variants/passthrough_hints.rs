//! `passthrough`: the variant hints of clients reach the servers whose own variants they select.

use std::collections::BTreeMap;

use mcp_vary::extension::{
    CLIENT_CAPABILITIES_META, CONTENT_NEGOTIATION, SERVER_VARIANT_META, SERVER_VARIANTS,
};
use mcp_vary_upstream::Passthrough;

use super::passthrough::{in_front_of_process, passed_through};
use crate::support::*;

/// The declarations of the sessions of a server, by their ids.
type Sessions = Mutex<BTreeMap<String, Value>>;

/// A server of either era with the variant `agent`, whose tool says which hints the client declared. It has sessions if
/// it is not modern.
fn answer(seen: &ReceivedRequest, is_modern: bool, sessions: &Sessions) -> Option<Reply> {
    let offered = json!({"availableVariants": [{"id": "agent", "description": "For agents."}]});
    let extensions = json!({SERVER_VARIANTS: offered, CONTENT_NEGOTIATION: {}});
    let capabilities = json!({"tools": {}, "extensions": extensions});
    let params = &seen.body["params"];
    let result = match seen.method() {
        "server/discover" if is_modern => discovered(capabilities),
        "initialize" if !is_modern => {
            let mut sessions = sessions.lock().unwrap();
            let id = format!("s-{}", sessions.len());
            sessions.insert(id.clone(), params["capabilities"].clone());
            let reply = seen.answer(&introduced("crm", capabilities));
            return Some(reply.with_header("mcp-session-id", id));
        }
        "tools/list" => json!({"tools": [{"name": "hints", "inputSchema": {"type": "object"}}]}),
        "tools/call" => {
            let meta = &params["_meta"];
            let of_session = || {
                sessions.lock().unwrap()[seen.header("mcp-session-id")?]
                    .clone()
                    .into()
            };
            let declared = meta.get(CLIENT_CAPABILITIES_META).cloned();
            let declared: Value = declared.or_else(of_session).unwrap_or_default();
            let text = json!({
                "variant": meta[SERVER_VARIANT_META], "settings": declared["extensions"][SERVER_VARIANTS],
            });
            json!({"content": [{"type": "text", "text": text.to_string()}]})
        }
        _ => return None,
    };
    Some(seen.answer(&result))
}

async fn server(is_modern: bool) -> ScriptedServer {
    let sessions = Sessions::default();
    ScriptedServer::start(move |seen| answer(seen, is_modern, &sessions)).await
}

/// A gateway in front of such a server, over HTTP.
async fn in_front_of_http(is_modern: bool, adapt: impl FnOnce(&mut Config)) -> Harness {
    let server = server(is_modern).await;
    let mut config = before(&[("crm", &server)]);
    adapt(&mut config);
    Harness::behind(server, passed_through(config, Passthrough::default())).await
}

/// The hints that the server saw in a call of a client with these capabilities under `variant`.
async fn seen(harness: &Harness, kind: ClientKind, capabilities: &Value, variant: &str) -> Value {
    let call = under(variant, tool("hints"));
    let called = kind.ask(harness, capabilities, "tools/call", call).await;
    let texts = texts(&called["result"]);
    let text = texts
        .first()
        .unwrap_or_else(|| panic!("{kind:?}: {called}"));
    let seen: Value = serde_json::from_str(text).unwrap();
    let selected = variant.strip_prefix("crm/");
    assert_eq!(seen["variant"].as_str(), selected, "{kind:?}: {seen}");
    seen["settings"].clone()
}

fn described(description: &str, declared: &Value) -> Value {
    let mut capabilities = hints(declared.clone());
    let settings = &mut capabilities["extensions"][SERVER_VARIANTS];
    settings["variantHints"]["description"] = description.into();
    capabilities
}

/// EXT-9: under its own variant a server of either era, over HTTP or as a process, gets the hints and the description of
/// each client as values that were checked; under the operator's variants it gets none. Clients with other hints, or
/// none, do not see each other's.
#[tokio::test]
async fn hints_reach_a_server_under_its_own_variants() {
    let settings = json!({"useCase": ["planning", 5], "region": "eu"});
    let planning = described("Plans trips.", &settings);
    let chat = hints(json!({"useCase": "chat", "bad\n": "x"}));
    for is_modern in [false, true] {
        let adapt = |config: &mut Config| config.servers[0].limits.connections = 16;
        let over_http = in_front_of_http(is_modern, adapt).await;
        for harness in [
            over_http,
            in_front_of_process(is_modern, Passthrough::default()).await,
        ] {
            for way in ClientKind::ALL {
                let of = async |capabilities: &Value, variant: &str| {
                    seen(&harness, way, capabilities, variant).await
                };
                let expected = json!({"variantHints": {
                    "description": "Plans trips.",
                    "hints": {"region": ["eu"], "useCase": ["planning"]},
                }});
                assert_eq!(of(&planning, "crm/agent").await, expected, "{way:?}");
                let expected = json!({"variantHints": {"hints": {"useCase": ["chat"]}}});
                assert_eq!(of(&chat, "crm/agent").await, expected, "{way:?}");
                assert_eq!(of(&json!({}), "crm/agent").await, Value::Null, "{way:?}");
                assert_eq!(
                    of(&planning, "crm/agent").await["variantHints"]["hints"]["region"],
                    json!(["eu"])
                );
                assert_eq!(of(&planning, "standard").await, Value::Null, "{way:?}");
            }
        }
    }
}

/// EXT-9: a server without `passthrough` gets no hints, whatever it declares, and one whose variant the operator selected.
#[tokio::test]
async fn without_passthrough_hints_stay_with_the_gateway() {
    let chat = hints(json!({"useCase": "chat"}));
    for is_modern in [false, true] {
        for variant in [None, Some("agent")] {
            let harness = Harness::edited(server(is_modern).await, |config| {
                config.servers[0].variant = variant.map(|id| id.parse().unwrap())
            })
            .await;
            for way in ClientKind::ALL {
                let called = way.ask(&harness, &chat, "tools/call", tool("hints")).await;
                let expected = json!({"variant": variant, "settings": null}).to_string();
                assert_eq!(texts(&called["result"]), [expected], "{way:?}");
            }
            let received = harness.peer.received().into_iter();
            let received: String = received.map(|it| it.body.to_string()).collect();
            assert!(!received.contains("variantHints"), "{received}");
        }
    }
}

/// EXT-9: clients with the same hints share a session of the server, whatever the order of the keys. Ever new hints take
/// at most half of its connections; beyond them, clients share a session without hints, and their tags still arrive.
#[tokio::test]
async fn ever_new_hints_leave_half_of_the_connections_to_others() {
    let harness = in_front_of_http(false, |config| {
        config.servers[0].limits.connections = 8;
        config.limits.classes = 64;
    })
    .await;
    let way = ClientKind::HttpLegacy;
    let of = async |n: usize| {
        let declared = hints(json!({"useCase": format!("case-{n}"), "region": "eu"}));
        !seen(&harness, way, &declared, "crm/agent").await.is_null()
    };
    let mut arrived = Vec::new();
    for n in 0..12 {
        arrived.push(of(n).await);
    }
    let number = arrived.iter().filter(|arrived| **arrived).count();
    assert!((2..=4).contains(&number) && arrived[0], "{arrived:?}");
    assert!(of(0).await);
    let same = hints(json!({"region": "eu", "useCase": "case-0"}));
    assert!(!seen(&harness, way, &same, "crm/agent").await.is_null());
    let opened = harness.peer.of("initialize");
    let with = |needle: &str| {
        let opened = opened
            .iter()
            .filter(|it| it.body.to_string().contains(needle));
        opened.count()
    };
    assert_eq!(with("case-0"), 1);
    assert_eq!(with("variantHints"), number);
    // Another client's tags have a session.
    let mut tagged = hints(json!({"useCase": "case-99"}));
    tagged["extensions"][CONTENT_NEGOTIATION] = json!({"features": ["agent"]});
    assert!(seen(&harness, way, &tagged, "crm/agent").await.is_null());
    let opened = harness.peer.of("initialize");
    let last = opened.last().unwrap();
    let declared = &last.body["params"]["capabilities"]["extensions"];
    declared[CONTENT_NEGOTIATION].has("/features", json!(["agent"]));
}

/// EXT-5, EXT-9: hints that are too long to be forwarded are left out, their description first; the client is served.
#[tokio::test]
async fn hints_that_are_too_long_are_left_out() {
    let long = "x".repeat(600);
    let short = json!({"useCase": "chat"});
    let many: serde_json::Map<_, _> = (0..16)
        .map(|n| (format!("k{n}"), json!("v".repeat(60))))
        .collect();
    for is_modern in [false, true] {
        let harness = in_front_of_http(is_modern, |_| {}).await;
        for way in ClientKind::ALL {
            let got = seen(&harness, way, &described(&long, &short), "crm/agent").await;
            let expected = json!({"variantHints": {"hints": {"useCase": ["chat"]}}});
            assert_eq!(got, expected, "{way:?}");
            let got = seen(&harness, way, &hints(json!(many)), "crm/agent").await;
            assert_eq!(got, Value::Null, "{way:?}");
        }
    }
}
