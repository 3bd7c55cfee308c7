//! The test cases, scenarios and examples of the content negotiation extension, as it writes them, over HTTP
//! and stdio, in both eras.
//!
//! Where the extension contradicts itself or MCP, `spec/requirements.yaml` says what holds (`MUST*`): a value
//! stands bare, without `{type, properties}` around it; `structuredContent` is left out, never `null`; a value
//! stands alone for clients that declared both `agent` and `format=json`; `instructions` and lists are the
//! same for all; a prompt's message has one block.

use mcp_vary_config::{Source, read_prompts, read_resources, read_results};

use crate::support::*;

pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/content-negotiation";
const VALLEY: &str = "map://features/alpine-valley-1";
const INSTRUCTIONS: &str = "Ask for one city at a time.";

fn weather() -> Value {
    json!({
        "location": "Bern", "temperature_c": 8, "humidity_percent": 72, "precipitation_probability": 0.3,
        "wind_speed_kmh": 15, "uv_index": 2,
    })
}

/// What the server says to a call, as it writes it.
fn served() -> String {
    let value = weather();
    let text = Value::from(value.to_string());
    format!(
        r#"{{"content": [ {{"type":"text","text":{text}}} ], "structuredContent":{value}, "x-served":1.0}}"#
    )
}

fn feature() -> Value {
    json!({
        "type": "Feature", "geometry": {"type": "Point", "coordinates": [7.6586, 45.9763]},
        "properties": {"name": "Alpine Valley", "elevation_m": 3200},
    })
}

/// The weather service of the extension, which knows nothing of it.
fn server() -> Script {
    Script::legacy("Weather Service")
        .results(json!({"initialize": {
            "protocolVersion": "2025-11-25", "serverInfo": {"name": "Weather Service", "version": "2.0.0"},
            "capabilities": {"logging": {}, "prompts": {}, "resources": {}, "tools": {}},
            "instructions": INSTRUCTIONS,
        }}))
        .tools(&["get_weather"])
        .reply(CALL, |seen| seen.answer_text(&served()))
        .lists(json!({"resources": [{"uri": VALLEY, "name": "valley"}]}))
        .result(READ, json!({"contents": [
            {"uri": VALLEY, "mimeType": "application/json", "text": feature().to_string()},
        ]}))
        .lists(json!({"prompts": [{"name": "check_weather"}]}))
        .result(GET, json!({"messages": [
            {"role": "user", "content": {"type": "text", "text": "Check the weather."}},
        ]}))
}

const RESULTS: &str = r#"
- {tools: [get_weather], hints: ["Low UV index ({{ value.uv_index }}) means sunscreen not critical"]}
"#;

const RESOURCES: &str = r#"
- {uris: ["map://*"], as: geo-markdown}
- {uris: ["map://*"], when: agent & mcp-capable, as: served}
"#;

const PROMPTS: &str = r#"
- {prompts: [check_weather], when: agent & mcp-capable & sampling, text: "Analyze step-by-step, then call the weather tool."}
- {prompts: [check_weather], when: human & interactive, text: "What location interests you?"}
"#;

/// With what the operator of the weather service says of hints, maps and prompts.
pub(crate) async fn operated() -> Harness {
    Harness::edited(server().start().await, |config| {
        config.results = read_results(RESULTS).unwrap();
        config.resource_results = read_resources(RESOURCES).unwrap();
        config.prompt_results = read_prompts(PROMPTS).unwrap();
    })
    .await
}

/// Without a word of an operator.
async fn unattended() -> Harness {
    Harness::of_server(server()).await
}

const CALL: &str = "tools/call";
const READ: &str = "resources/read";
const GET: &str = "prompts/get";

pub(crate) fn params(method: &str) -> Value {
    match method {
        CALL => tool("get_weather"),
        READ => json!({"uri": VALLEY}),
        _ => json!({"name": "check_weather"}),
    }
}

/// One example of the extension: who asks for what, and what stands where in the result; `null` is nothing.
struct Case {
    name: &'static str,
    tags: &'static [&'static str],
    method: &'static str,
    finds: Value,
}

/// Those that hold without a word of an operator.
fn by_themselves() -> Vec<Case> {
    let markdown = "- **location**: Bern\n- **temperature_c**: 8\n- **humidity_percent**: 72\n\
                    - **precipitation_probability**: 0.3\n- **wind_speed_kmh**: 15\n- **uv_index**: 2";
    vec![
        Case {
            name: "Test Case 1: Agent requesting JSON",
            tags: &["agent", "format=json"],
            method: CALL,
            finds: json!({
                "/content": [], "/structuredContent": weather(), "/_meta/vary~1applied/format": "json",
            }),
        },
        Case {
            name: "Test Case 2: Human requesting markdown",
            tags: &["human", "format=markdown"],
            method: CALL,
            finds: json!({"/content": [{"type": "text", "text": markdown}], "/structuredContent": null}),
        },
        Case {
            name: "Tool Results: Agent with `!interactive`",
            tags: &["agent", "!interactive"],
            method: CALL,
            finds: json!({
                "/content": [{"type": "text", "text": weather().to_string()}],
                "/structuredContent": weather(),
            }),
        },
        Case {
            name: "Requirement 5: SHOULD Prefer Client-Declared Preferences",
            tags: &["human", "sampling", "format=json"],
            method: CALL,
            finds: json!({"/structuredContent": weather()}),
        },
    ]
}

/// Those for which the operator has words of their own.
fn in_the_operators_words() -> Vec<Case> {
    let mut hinted = weather();
    hinted["hints"] = json!(["Low UV index (2) means sunscreen not critical"]);
    vec![
        Case {
            name: "Tool Results: Agent with `sampling` capability",
            tags: &["agent", "sampling", "format=json"],
            method: CALL,
            finds: json!({"/content": [], "/structuredContent": hinted}),
        },
        Case {
            name: "Resource Content: Agent with `mcp-capable`",
            tags: &["agent", "mcp-capable"],
            method: READ,
            finds: json!({"/contents": [
                {"uri": VALLEY, "mimeType": "application/json", "text": feature().to_string()},
            ]}),
        },
        Case {
            name: "Resource Content: Human with `format=markdown`",
            tags: &["human", "format=markdown"],
            method: READ,
            finds: json!({"/contents": [{
                "uri": VALLEY, "mimeType": "text/markdown",
                "text": "## Alpine Valley\n\n- **coordinates**: 45.9763°N, 7.6586°E\n- **elevation_m**: 3200",
            }]}),
        },
        Case {
            name: "Prompt Templates: Agent with `mcp-capable` and `sampling`",
            tags: &["agent", "mcp-capable", "sampling"],
            method: GET,
            finds: json!({"/messages": [{"role": "user", "content":
                {"type": "text", "text": "Analyze step-by-step, then call the weather tool."},
            }]}),
        },
        Case {
            name: "Prompt Templates: Human with `interactive` and `!sampling`",
            tags: &["human", "interactive", "!sampling"],
            method: GET,
            finds: json!({"/messages": [{"role": "user", "content":
                {"type": "text", "text": "What location interests you?"},
            }]}),
        },
    ]
}

async fn holds(harness: &Harness, case: &Case) {
    for kind in ClientKind::ALL {
        let declared = features(case.tags);
        let answer = ask_as(harness, kind, &declared, case.method, params(case.method)).await;
        for (pointer, expected) in case.finds.as_object().unwrap() {
            let found = answer["result"].pointer(pointer);
            let expected = Some(expected).filter(|expected| !expected.is_null());
            let name = case.name;
            assert_eq!(found, expected, "{name}: {pointer} {kind:?}: {answer}");
        }
    }
}

/// CN-6, CN-9, CN-10: test cases 1 and 2.
#[tokio::test]
async fn each_case_holds_by_itself() {
    let (alone, operated) = (unattended().await, operated().await);
    for case in by_themselves() {
        holds(&alone, &case).await;
        if !case.tags.contains(&"sampling") {
            holds(&operated, &case).await;
        }
    }
}

/// CN-14, CN-15, CN-20: what the extension's examples vary by capability is the operator's to say.
#[tokio::test]
async fn each_example_holds_in_the_operators_words() {
    let harness = operated().await;
    for case in in_the_operators_words() {
        holds(&harness, &case).await;
    }
}

/// What a client of `kind` gets when it gets what the server said.
fn unshaped(kind: ClientKind) -> String {
    let served = served();
    if kind.is_modern() {
        format!(r#"{{"resultType":"complete",{}"#, &served[1..])
    } else {
        served
    }
}

/// CN-7, CN-11: "Test Case 3: Legacy client (no negotiation)", and "Test Case 4: Invalid feature syntax".
#[tokio::test]
async fn who_says_nothing_usable_gets_the_servers_default() {
    let invalid = features(&["@#$%", "format==json"]);
    for (declared, is_warned) in [
        (json!({}), false),
        (json!({"sampling": {}}), false),
        (features(&[]), false),
        (invalid, true),
    ] {
        for way in ClientKind::ALL {
            // Its own, since what was read once is not read again.
            let harness = operated().await;
            let (log, _listening) =
                CapturedLog::listen("mcp_vary_results::negotiation_log", Level::WARN);
            let answer = way.text(&harness, &declared, CALL, params(CALL)).await;
            let expected = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}}}"#, unshaped(way));
            assert_eq!(answer, expected, "{way:?} {declared}");
            let said = log.take().join("\n");
            for tag in ["`format==json`", "`@#$%`"] {
                assert_eq!(said.contains(tag), is_warned, "{way:?}: {said}");
            }
        }
    }
}

/// One of the "Three Initialize Scenarios".
struct Scenario {
    name: &'static str,
    client: &'static str,
    capabilities: Value,
    /// What stands where in the results of a call, a read and a prompt.
    finds: [Value; 3],
}

/// The capabilities of a client that negotiates with these tags.
fn negotiating(tags: &str) -> Value {
    let tags: Vec<_> = tags.split(' ').collect();
    json!({"extensions": {EXTENSION: {"version": "1.0", "features": tags}}})
}

/// What the agent declares.
fn full_capabilities() -> Value {
    let mut capabilities = negotiating(
        "agent mcp-capable sampling elicitation roots tasks verbosity=compact format=json",
    );
    capabilities["sampling"] = json!({});
    capabilities["elicitation"] = json!({"form": {}, "url": {}});
    capabilities["roots"] = json!({"listChanged": true});
    capabilities["tasks"] = json!({});
    capabilities
}

fn scenarios() -> [Scenario; 3] {
    let chat = "human !mcp-capable interactive verbosity=standard format=markdown";
    let plan = |text: &str| json!({"/messages/0/content/text": text});
    [
        Scenario {
            name: "Scenario 1: AI Agent with Full Capabilities",
            client: "Claude Agent",
            capabilities: full_capabilities(),
            finds: [
                json!({
                    "/content": [],
                    "/structuredContent/temperature_c": 8,
                    "/structuredContent/hints": ["Low UV index (2) means sunscreen not critical"],
                    "/_meta/vary~1applied/format": "json",
                }),
                json!({"/contents/0/mimeType": "application/json"}),
                plan("Analyze step-by-step, then call the weather tool."),
            ],
        },
        Scenario {
            name: "Scenario 2: Human User in Chat Interface",
            client: "ChatGPT Web Client",
            capabilities: negotiating(chat),
            finds: [
                json!({
                    "/content/0/type": "text",
                    "/structuredContent": null,
                    "/_meta/vary~1applied/format": "markdown",
                    "/_meta/vary~1applied/verbosity": "standard",
                }),
                json!({"/contents/0/mimeType": "text/markdown"}),
                plan("What location interests you?"),
            ],
        },
        Scenario {
            name: "Scenario 3: Legacy Client (No Content Negotiation)",
            client: "OldAgent v0.9",
            capabilities: json!({"sampling": {}}),
            finds: [
                json!({
                    "/content/0/text": weather().to_string(),
                    "/structuredContent": weather(),
                    "/x-served": 1.0,
                    "/_meta": null,
                }),
                json!({"/contents/0/mimeType": "application/json", "/_meta": null}),
                plan("Check the weather."),
            ],
        },
    ]
}

/// What a client is answered first: to `initialize`, or to `server/discover`.
async fn begun(kind: ClientKind, harness: &Harness, scenario: &Scenario) -> Value {
    let info = json!({"name": scenario.client, "version": "1.0.0"});
    let begin = if kind.is_modern() {
        let params = json!({"_meta": {"io.modelcontextprotocol/clientInfo": info}});
        modern(json!(1), "server/discover", params, &scenario.capabilities)
    } else {
        let mut begin = initialize("2025-11-25", &scenario.capabilities);
        begin["id"] = json!(1);
        begin["params"]["clientInfo"] = info;
        begin
    };
    let post = match kind {
        ClientKind::HttpLegacy => HttpRequest::new(begin.to_string()),
        ClientKind::HttpModern => HttpRequest::modern(&begin),
        ClientKind::StdioLegacy | ClientKind::StdioModern => {
            return open_pipe(&harness.gateway).ask(&begin).await;
        }
    };
    harness.connect().await.ask(&post).await.json()
}

/// CN-8, CN-11, CN-17: the "Three Initialize Scenarios".
#[tokio::test]
async fn each_scenario_begins_and_goes_on_as_written() {
    let harness = operated().await;
    for scenario in scenarios() {
        for way in ClientKind::ALL {
            let at = format!("{} {way:?}", scenario.name);
            let begun = begun(way, &harness, &scenario).await;
            let told = &begun["result"];
            let capabilities = &told["capabilities"];
            // "An empty settings object indicates support", for whoever asks.
            assert_eq!(capabilities["extensions"][EXTENSION], json!({}), "{at}");
            for offered in ["logging", "prompts", "resources", "tools"] {
                assert!(capabilities[offered].is_object(), "{at}: {offered}");
            }
            // MUST*: they are the server's for all.
            assert_eq!(told["instructions"], INSTRUCTIONS, "{at}");
            if !way.is_modern() {
                let server = json!({"name": "Weather Service", "version": "2.0.0"});
                assert_eq!(told["serverInfo"], server, "{at}");
                assert_eq!(told["protocolVersion"], "2025-11-25", "{at}");
            }
            for (method, finds) in [CALL, READ, GET].into_iter().zip(&scenario.finds) {
                let answer = way
                    .ask(&harness, &scenario.capabilities, method, params(method))
                    .await;
                for (pointer, expected) in finds.as_object().unwrap() {
                    let found = answer["result"].pointer(pointer);
                    let expected = Some(expected).filter(|expected| !expected.is_null());
                    assert_eq!(found, expected, "{at}: {pointer}: {answer}");
                }
            }
        }
    }
}

/// What the extension's reference client in Swift prints: `result.content.first?.text ?? ""`.
fn printed(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// The configuration that `text` is, with `peer` as its server.
fn configured(peer: &ScriptedServer, text: &str) -> Config {
    let text = format!("servers: {{weather: {{url: '{}'}}}}\n{text}", peer.url);
    let file = Source::new("vary.yaml", &text).read(&|_| None).unwrap();
    file.into_config(Environment::new(
        || 0,
        |bytes| getrandom::fill(bytes).unwrap(),
    ))
}

/// CN-9: the reference client in Swift declares these tags in `experimental`, prints the first text and calls it
/// "compact JSON string". With `json-content: both`, for all or for clients of its name, it reads that, from the
/// moment on when the operator says so.
#[tokio::test]
async fn the_reference_client_in_swift_reads_compact_json() {
    let tags = ["agent", "sampling", "format=json", "verbosity=compact"];
    let declared = json!({"experimental": {EXTENSION: {"version": "1.0", "features": tags}}});
    let peer = server().start().await;
    let strict = configured(&peer, "");
    let others = [
        "json-content: both",
        "clients: [{name: test, json-content: both}]",
        "json-content: both\nclients: [{name: another, json-content: strict}]",
    ];
    let others = others.map(|text| configured(&peer, text));
    let harness = Harness::behind(peer, strict).await;
    let reads = async |expected: &str| {
        // Modern clients of the tests have no name.
        for way in [ClientKind::HttpLegacy, ClientKind::StdioLegacy] {
            let answer = way.ask(&harness, &declared, CALL, params(CALL)).await;
            assert_eq!(printed(&answer["result"]), expected, "{way:?}");
            assert_eq!(answer["result"]["structuredContent"], weather(), "{way:?}");
        }
    };
    reads("").await;
    for config in others {
        harness.reload(config).await;
        reads(&weather().to_string()).await;
    }
}

/// CN-12: a text that is JSON becomes a value unless the operator says otherwise.
#[tokio::test]
async fn what_becomes_of_json_in_a_text_is_the_operators() {
    let text = json!({"content": [{"type": "text", "text": "{ \"n\": 1 }"}]});
    let peer = server().result(CALL, text).start().await;
    let off = configured(&peer, "lift-json-text: off");
    let one = "lift-json-text: off\nclients: [{name: test, lift-json-text: on}]";
    let on_for_one = configured(&peer, one);
    let on = configured(&peer, "");
    let harness = Harness::behind(peer, on).await;
    let gets = async |expected: Value| {
        for way in [ClientKind::HttpLegacy, ClientKind::StdioLegacy] {
            let tags = features(&["format=json"]);
            let answer = way.ask(&harness, &tags, CALL, params(CALL)).await;
            assert_eq!(printed(&answer["result"]), r#"{"n":1}"#, "{way:?}");
            let value = answer["result"].get("structuredContent");
            assert_eq!(value.unwrap_or(&Value::Null), &expected, "{way:?}");
        }
    };
    gets(json!({"n": 1})).await;
    harness.reload(off).await;
    gets(Value::Null).await;
    harness.reload(on_for_one).await;
    gets(json!({"n": 1})).await;
}
