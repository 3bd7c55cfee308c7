//! Content negotiation: clients that declare it get it, and no other client sees a trace of it.

use mcp_vary_gateway::JsonContent;
use mcp_vary_testkit::places_server::ODD;

use crate::support::*;

const EXTENSION: &str = "io.modelcontextprotocol/content-negotiation";

/// `ODD` as a client of this way gets it, byte for byte.
fn odd(kind: ClientKind) -> String {
    let remaining = &ODD[1..];
    if kind.is_modern() {
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"resultType":"complete",{remaining}}}"#)
    } else {
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{ODD}}}"#)
    }
}

/// CN-7, CN-11: who declares nothing usable gets what the server said, byte for byte, but for what the
/// revision requires.
#[tokio::test]
async fn who_declares_nothing_gets_what_the_server_said() {
    let harness = Harness::start().await;
    for capabilities in [
        json!({}),
        json!({"sampling": {}, "roots": {}}),
        features(&[]),
        features(&["@#$%", "format==json"]),
        features(&["format!=json"]),
        features(&["format=xml", "x-acme=1"]),
        json!({"extensions": {EXTENSION: {"version": "2.0", "features": ["agent", "format=json"]}}}),
        json!({"extensions": {EXTENSION: "agent"}}),
        json!({"features": ["agent", "format=json"]}),
    ] {
        for way in ClientKind::ALL {
            let answer = way
                .text(&harness, &capabilities, "tools/call", tool("odd"))
                .await;
            assert_eq!(answer, odd(way), "{way:?} {capabilities}");
        }
    }
}

/// CN-7: the same from a modern server.
#[tokio::test]
async fn a_modern_server_is_repeated_as_well() {
    let harness = Harness::before(Era::Modern, |config| config).await;
    for way in ClientKind::ALL {
        let params = tool("odd");
        let answer = way.text(&harness, &json!({}), "tools/call", params).await;
        assert_eq!(answer, odd(way), "{way:?}");
    }
}

/// CN-9, CN-19: an agent that asks for JSON gets the bare value, and is told what was applied.
#[tokio::test]
async fn an_agent_that_asks_for_json_gets_the_bare_value() {
    let harness = Harness::start().await;
    for way in ClientKind::ALL {
        let declared = features(&["agent", "format=json"]);
        let answer = ask_as(&harness, way, &declared, "tools/call", tool("odd")).await;
        let result = &answer["result"];
        assert_eq!(result["content"], json!([]), "{way:?}");
        let expected = r#"{"city":"Bern","degrees":8.0}"#;
        assert_eq!(result["structuredContent"].to_string(), expected);
        let applied = json!({"format": "json", "variant": "standard"});
        assert_eq!(result["_meta"]["vary/applied"], applied, "{way:?}");
        let expected = json!({"b": 1e2, "a": -0.0});
        assert_eq!(result["x-unknown"], expected, "what is not shaped stays");
    }
}

/// CN-9: in every other JSON case the text is there, too.
#[tokio::test]
async fn json_goes_out_as_text_too_unless_an_agent_asked_for_the_value_alone() {
    let harness = Harness::start().await;
    let always = Harness::of(|config| config.json_content = JsonContent::Both).await;
    for (harness, tags) in [
        (&harness, &["format=json"][..]),
        (&harness, &["human", "format=json"]),
        (&always, &["agent", "format=json"]),
    ] {
        let answer = ask_modern_as(harness, &features(tags), "tools/call", tool("odd")).await;
        let result = &answer["result"];
        let expected = r#"{"city":"Bern","degrees":8.0}"#;
        assert_eq!(result["content"][0]["text"], expected, "{tags:?}");
        assert_eq!(result["structuredContent"]["city"], "Bern", "{tags:?}");
    }
}

/// CN-10: a person who asks for markdown gets that, and no structure but where a schema promises one.
#[tokio::test]
async fn a_person_gets_markdown() {
    let harness = Harness::start().await;
    for way in ClientKind::ALL {
        let declared = features(&["human", "format=markdown"]);
        let answer = ask_as(&harness, way, &declared, "tools/call", tool("odd")).await;
        let result = &answer["result"];
        let expected = "- **city**: Bern\n- **degrees**: 8.0";
        assert_eq!(result["content"][0]["text"], expected, "{way:?}");
        assert_eq!(result.get("structuredContent"), None, "{way:?}");
        let bound = ask_as(&harness, way, &declared, "tools/call", tool("bound")).await;
        let found = &bound["result"]["structuredContent"]["city"];
        assert_eq!(*found, "Bern", "{way:?}");
    }
}

/// CN-10: SDK clients validate against the schema that they saw first, so that the structure stays in
/// variants that do not list it, too.
#[tokio::test]
async fn what_the_server_promises_stays_in_every_variant() {
    let harness = Harness::start().await;
    for way in ClientKind::ALL {
        let declared = features(&["human", "format=markdown"]);
        let mut params = tool("bound");
        params["_meta"] = json!({"io.modelcontextprotocol/server-variant": "compact"});
        let answer = way.ask(&harness, &declared, "tools/call", params).await;
        let result = &answer["result"];
        assert_eq!(result["structuredContent"]["city"], "Bern", "{way:?}");
        assert_eq!(result["_meta"]["vary/applied"]["variant"], "compact");
    }
}

/// CN-8: errors, lists and other results are nobody's to shape.
#[tokio::test]
async fn only_results_of_tools_are_shaped() {
    let harness = Harness::start().await;
    let declared = features(&["human", "format=markdown"]);
    for way in ClientKind::ALL {
        for (method, params) in [
            ("tools/call", tool("fail")),
            ("tools/call", tool("refuse")),
            ("tools/list", json!({})),
            ("resources/list", json!({})),
            ("prompts/list", json!({})),
            ("no/such", json!({})),
        ] {
            let shaped = way.text(&harness, &declared, method, params.clone()).await;
            let plain = way.text(&harness, &json!({}), method, params).await;
            assert_eq!(shaped, plain, "{way:?} {method}");
        }
    }
}

/// CN-17: any object counts as support; the gateway declares its own with `{}`.
#[tokio::test]
async fn negotiation_is_declared() {
    let harness = Harness::start().await;
    let client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let found = &client.initialized["capabilities"]["extensions"][EXTENSION];
    assert_eq!(*found, json!({}));
    let discover = harness.ask_modern("server/discover", json!({})).await;
    let found = &discover["result"]["capabilities"]["extensions"][EXTENSION];
    assert_eq!(*found, json!({}));
    let settings = json!({EXTENSION: {"features": ["agent"]}});
    let mirrored =
        LegacyClient::open(&harness, "2025-11-25", &json!({"experimental": settings})).await;
    let told = &mirrored.initialized["capabilities"];
    let expected = &told["extensions"][EXTENSION];
    assert_eq!(told["experimental"][EXTENSION], *expected);
}

/// EXT-3: what is off is neither offered nor done.
#[tokio::test]
async fn negotiation_can_be_off() {
    let harness = Harness::with(|config| config.with_negotiation(false)).await;
    let declared = features(&["agent", "format=json"]);
    let client = LegacyClient::open(&harness, "2025-11-25", &declared).await;
    let told = &client.initialized["capabilities"]["extensions"];
    assert_eq!(told.get(EXTENSION), None);
    for way in ClientKind::ALL {
        let params = tool("odd");
        let answer = way.text(&harness, &declared, "tools/call", params).await;
        assert_eq!(answer, odd(way), "{way:?}");
    }
}

/// CN-16: whatever a client declares of itself, it reaches the same things.
#[tokio::test]
async fn features_open_and_close_nothing() {
    let harness = Harness::start().await;
    for way in ClientKind::ALL {
        let mut seen = Vec::new();
        for tags in [
            "",
            "agent format=json",
            "human interactive format=markdown !mcp-capable",
            "!agent !human !sampling verbosity=compact x-admin=true",
        ] {
            let capabilities = features(&tags.split_whitespace().collect::<Vec<_>>());
            let ask = async |method: &str, params: Value| {
                way.text(&harness, &capabilities, method, params).await
            };
            let mut reached = vec![
                ask("tools/list", json!({})).await,
                ask("resources/list", json!({})).await,
                ask("resources/templates/list", json!({})).await,
                ask("prompts/list", json!({})).await,
                ask("prompts/get", json!({"name": "greet"})).await,
                ask("resources/read", json!({"uri": "place:bern"})).await,
                ask("tools/call", tool("no such")).await,
            ];
            for name in ["odd", "bound", "fail", "refuse", "say"] {
                let answer = cell(&ask("tools/call", tool(name)).await);
                reached.push(answer["error"]["code"].to_string());
            }
            seen.push(reached);
        }
        assert!(seen.windows(2).all(|two| two[0] == two[1]), "{way:?}");
    }
}

/// CN-18: a modern request stands for itself; nothing is inferred from an earlier one.
#[tokio::test]
async fn a_modern_request_is_shaped_by_what_it_says_itself() {
    let harness = Harness::start().await;
    let mut http = harness.connect().await;
    let mut pipe = open_pipe(&harness.gateway);
    for (tags, empty) in [
        (&["agent", "format=json"][..], true),
        (&[], false),
        (&["human", "format=markdown"], false),
        (&["agent", "format=json"], true),
    ] {
        let call = modern(json!(1), "tools/call", tool("odd"), &features(tags));
        let answer = http.ask(&HttpRequest::modern(&call)).await.json();
        assert_eq!(answer["result"]["content"] == json!([]), empty, "{tags:?}");
        let answer = pipe.ask(&call).await;
        assert_eq!(answer["result"]["content"] == json!([]), empty, "{tags:?}");
    }
}

/// CN-18: a session keeps its features; what a request of it claims changes nothing.
#[tokio::test]
async fn a_session_is_shaped_by_what_it_began_with() {
    let harness = Harness::start().await;
    let mut client =
        LegacyClient::open(&harness, "2025-11-25", &features(&["agent", "format=json"])).await;
    let mut call = tool("odd");
    call["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        features(&["human", "format=markdown"]);
    let answer = client.answer("tools/call", call).await;
    answer.has("/result/content", json!([]));
}

/// CN-18: fifty clients at once, of three kinds and four ways, never get one another's shape.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_at_once_never_mix() {
    let harness = Arc::new(Harness::start().await);
    let clients = (0..50).map(|n| {
        let harness = Arc::clone(&harness);
        tokio::spawn(async move {
            let way = ClientKind::ALL[n % 4];
            for round in 0..4 {
                match (n / 4 + round) % 3 {
                    0 => {
                        let params = tool("odd");
                        let text = way.text(&harness, &json!({}), "tools/call", params).await;
                        assert_eq!(text, odd(way), "{way:?}");
                    }
                    1 => {
                        let declared = features(&["agent", "format=json"]);
                        let answer =
                            ask_as(&harness, way, &declared, "tools/call", tool("odd")).await;
                        assert_eq!(answer["result"]["content"], json!([]), "{way:?}");
                    }
                    _ => {
                        let declared = features(&["human", "format=markdown"]);
                        let answer =
                            ask_as(&harness, way, &declared, "tools/call", tool("odd")).await;
                        let text = &answer["result"]["content"][0]["text"];
                        assert_eq!(text, "- **city**: Bern\n- **degrees**: 8.0", "{way:?}");
                    }
                }
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
}

/// EXT-9: the server hears nothing of the extensions.
#[tokio::test]
async fn declarations_stay_with_the_gateway() {
    for era in [Era::Legacy, Era::Modern] {
        let harness = Harness::before(era, |config| config).await;
        for way in ClientKind::ALL {
            let declared = features(&["agent", "format=json"]);
            let answer = ask_as(&harness, way, &declared, "tools/call", tool("say")).await;
            assert!(answer["result"].is_object(), "{way:?}");
        }
        for seen in harness.peer.received() {
            assert!(!seen.text.contains("negotiation"), "{era:?}: {}", seen.text);
        }
    }
}

/// What the client did not say to the gateway travels on as it was written.
#[tokio::test]
async fn what_is_not_ours_travels_on() {
    let harness = Harness::start().await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let params = r#"{ "x" : 1.0,"name":"say" , "arguments":{"b":1e2,"a":"\u0041"},"_meta":{"acme/trace":"7","z":[ ]}}"#;
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    let answer = client.send_text(body).await.json();
    let said = &answer["result"]["said"];
    assert_eq!(*said, serde_json::from_str::<Value>(params).unwrap());
}
