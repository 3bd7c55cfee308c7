//! Modern clients of modern servers: input requests are in results, and their state is sealed.

use std::sync::atomic::AtomicU64;

use super::with;
use crate::support::*;

pub(super) fn server() -> Script {
    Script::new(Era::Modern, "sealed")
        .declares(json!({"completions": {}}))
        .tools(&["greet", "later", "wrong", "nothing", "again", "visit"])
        .lists(json!({
            "prompts": [{"name": "greet"}],
            "resources": [{"uri": "name:", "name": "greet"}],
        }))
        .on_call(|params| match params["name"].as_str().unwrap() {
            "later" => later(params),
            "wrong" => asks("sampling/createMessage"),
            "again" => asks("elicitation/create"),
            "visit" => visit(params),
            "nothing" => json!({"resultType": "input_required"}),
            _ => greet(params),
        })
        .on("prompts/get", greet)
        .on("resources/read", greet)
        .result("completion/complete", asks("elicitation/create"))
}

fn asks(method: &str) -> Value {
    json!({
        "resultType": "input_required",
        "inputRequests": {"who": {"method": method, "params": {"message": "Who?", "x": 1.0}}},
        "requestState": "asked \"who\"",
        "y": [2.0],
    })
}

fn greet(params: &Value) -> Value {
    match &params["inputResponses"] {
        Value::Null => asks("elicitation/create"),
        responses => json!({
            "resultType": "complete", "content": [], "messages": [], "contents": [],
            "said": responses, "state": params["requestState"],
        }),
    }
}

fn visit(params: &Value) -> Value {
    match &params["inputResponses"] {
        Value::Null => json!({
            "resultType": "input_required",
            "inputRequests": {"page": {"method": "elicitation/create",
                "params": {"mode": "url", "url": "https://example.org", "message": "Sign in"}}},
        }),
        responses => json!({"resultType": "complete", "content": [], "said": responses}),
    }
}

/// Wants to be asked again, and nothing else.
fn later(params: &Value) -> Value {
    match &params["requestState"] {
        Value::Null => json!({"resultType": "input_required", "requestState": "later"}),
        _ => json!({"resultType": "complete", "content": []}),
    }
}

pub(super) const MODERN: [ClientKind; 2] = [ClientKind::HttpModern, ClientKind::StdioModern];

/// What can be asked twice, and the params that say so.
pub(super) fn subjects() -> [(&'static str, Value); 3] {
    let greet = |arguments: Value| json!({"name": "greet", "arguments": arguments});
    [
        ("tools/call", greet(json!({"to": "Ada", "n": 1}))),
        ("prompts/get", greet(json!({"to": "Ada"}))),
        ("resources/read", json!({"uri": "name:"})),
    ]
}

fn forms() -> Value {
    json!({"elicitation": {}})
}

/// What the client sends back for a result that asks for input.
fn back(required: &Value) -> Value {
    json!({
        "requestState": required["result"]["requestState"],
        "inputResponses": {"who": {"action": "accept", "content": {"name": "Ada"}}},
    })
}

/// SV-26: what a server asks reaches the client as it was asked, and what the client says comes back with the
/// server's own state, which the client gets sealed.
#[tokio::test]
async fn a_request_takes_as_many_rounds_as_the_server_wants() {
    let harness = Harness::of_server(server()).await;
    for way in MODERN {
        for (method, params) in subjects() {
            let asked = way.ask(&harness, &forms(), method, params.clone()).await;
            let result = &asked["result"];
            assert_eq!(result["resultType"], "input_required", "{asked}");
            result.has("/inputRequests", json!({"who": {"method": "elicitation/create", "params": {"message": "Who?", "x": 1.0}}}));
            result.has("/y", json!([2.0]));
            assert!(result.get("ttlMs").is_none(), "{asked}");
            let state = result["requestState"].as_str().unwrap();
            assert!(!state.contains("asked"), "{state}");
            let again = with(&params, &back(&asked));
            let answer = way.ask(&harness, &forms(), method, again).await;
            let result = &answer["result"];
            assert_eq!(result["said"]["who"]["content"]["name"], "Ada", "{answer}");
            result.has("/state", "asked \"who\"");
        }
    }
}

/// A server may want to be asked again without any input.
#[tokio::test]
async fn a_state_alone_comes_back_too() {
    let harness = Harness::of_server(server()).await;
    for way in MODERN {
        let asked = harness.ask(way, "tools/call", tool("later")).await;
        let state = json!({"requestState": asked["result"]["requestState"]});
        let answer = harness
            .ask(way, "tools/call", with(&tool("later"), &state))
            .await;
        answer.has("/result/resultType", "complete");
    }
}

/// The server is told what this client declared, however many clients of other kinds there are.
#[tokio::test]
async fn a_server_is_told_what_the_client_can_be_asked() {
    let harness = Harness::of_server(server()).await;
    let ui = |n: u32| json!({"extensions": {"io.modelcontextprotocol/ui": {"n": n}}});
    for n in 0..9 {
        ask_modern_as(&harness, &ui(n), "tools/list", json!({})).await;
    }
    for declared in [
        json!({}),
        json!({"elicitation": {}}),
        json!({"elicitation": {"form": {}, "url": {}}, "roots": {}, "sampling": {"tools": {}}}),
    ] {
        ask_modern_as(&harness, &declared, "tools/call", tool("later")).await;
        let calls = harness.peer.of("tools/call");
        let meta = &calls.last().unwrap().body["params"]["_meta"];
        let mut told = meta["io.modelcontextprotocol/clientCapabilities"].clone();
        if let Some(elicitation) = told.get_mut("elicitation") {
            *elicitation = declared["elicitation"].clone();
        }
        assert_eq!(told, declared);
    }
}

/// Nobody is asked what they did not say they can be asked, and what is no question is the server's mistake.
#[tokio::test]
async fn what_a_server_must_not_ask_is_its_mistake() {
    let harness = Harness::of_server(server()).await;
    for way in MODERN {
        for [capabilities, method, params, says] in rows(
            r#"
            {"elicitation": {}} | tools/call | {"name": "wrong"} | declared no `sampling`
            {} | tools/call | {"name": "greet"} | declared no `elicitation`
            {"elicitation": {"url": {}}} | tools/call | {"name": "greet"} | did not declare `elicitation.form`
            {"elicitation": {}} | tools/call | {"name": "nothing"} | without saying which
            {"elicitation": {}} | completion/complete | {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "to", "value": ""}} | cannot have a second round
        "#,
        ) {
            let (capabilities, params) = (cell(capabilities), cell(params));
            let refused = way.ask(&harness, &capabilities, method, params).await;
            refused.fails(-32603, says);
        }
    }
}

/// SV-26: a state is good for the request that it was made for and for no other, and the server never sees one
/// that is not.
#[tokio::test]
async fn a_state_is_good_for_its_own_request() {
    let harness = Harness::of_server(server()).await;
    let call = json!({"name": "greet", "arguments": {"to": "Ada", "n": 1}});
    for way in MODERN {
        let asked = ask_as(&harness, way, &forms(), "tools/call", call.clone()).await;
        let back = back(&asked);
        let state = back["requestState"].as_str().unwrap();
        let mut tampered = state.to_owned();
        let last = if tampered.ends_with('A') { 'B' } else { 'A' };
        tampered.pop();
        tampered.push(last);
        let before = harness.peer.of("tools/call").len();
        let greet = |arguments: Value| json!({"name": "greet", "arguments": arguments});
        let later = json!({"name": "later", "arguments": {"to": "Ada", "n": 1}});
        for (method, params, state) in [
            ("tools/call", call.clone(), json!(tampered)),
            ("tools/call", call.clone(), json!("asked \"who\"")),
            ("tools/call", call.clone(), json!("")),
            ("tools/call", call.clone(), json!(7)),
            (
                "tools/call",
                greet(json!({"to": "Eve", "n": 1})),
                json!(state),
            ),
            (
                "tools/call",
                greet(json!({"to": "Ada", "n": 1.0})),
                json!(state),
            ),
            ("tools/call", json!({"name": "greet"}), json!(state)),
            ("tools/call", later, json!(state)),
            ("prompts/get", call.clone(), json!(state)),
            ("tools/call", under("compact", call.clone()), json!(state)),
        ] {
            let again = with(&params, &back);
            let again = with(&again, &json!({"requestState": state}));
            let refused = way.ask(&harness, &forms(), method, again.clone()).await;
            assert_eq!(refused["error"]["code"], -32602, "{again} {refused}");
            if state.is_string() {
                refused.contains("/error/message", "Invalid request state");
                assert!(refused["error"]["data"]["activeVariant"].is_string());
            }
        }
        assert_eq!(harness.peer.of("tools/call").len(), before);
        // The members in another order, and another spelling, are the same request.
        let same = json!({"arguments": {"n": 1, "to": "\u{41}da"}, "name": "greet"});
        let answer = ask_as(&harness, way, &forms(), "tools/call", with(&same, &back)).await;
        answer.has("/result/resultType", "complete");
    }
}

static NOW: AtomicU64 = AtomicU64::new(1_000);

/// SV-26: a client has as long as is configured.
#[tokio::test]
async fn a_state_expires() {
    let harness = Harness::with_server(
        server(),
        edited(|config| {
            let now = || NOW.load(Ordering::SeqCst);
            config.environment = Environment::new(now, config.environment.random);
            config.limits.state_lifetime = Duration::from_secs(60);
        }),
    )
    .await;
    for way in MODERN {
        let asked = ask_as(&harness, way, &forms(), "tools/call", tool("greet")).await;
        let again = with(&tool("greet"), &back(&asked));
        NOW.fetch_add(59, Ordering::SeqCst);
        let answer = ask_as(&harness, way, &forms(), "tools/call", again.clone()).await;
        answer.has("/result/resultType", "complete");
        NOW.fetch_add(1, Ordering::SeqCst);
        let late = way.ask(&harness, &forms(), "tools/call", again).await;
        late.fails(-32602, "expired");
    }
}

/// With the same keys another replica goes on; with others nothing opens.
#[tokio::test]
async fn a_state_travels_between_replicas_that_share_keys() {
    let first = Harness::with_server(server(), |config| config.with_key([1; 32])).await;
    let second = Harness::with_server(server(), |config| config.with_key([1; 32])).await;
    let stranger = Harness::with_server(server(), |config| config.with_key([2; 32])).await;
    let asked = ask_modern_as(&first, &forms(), "tools/call", tool("greet")).await;
    let again = with(&tool("greet"), &back(&asked));
    let answer = ask_modern_as(&second, &forms(), "tools/call", again.clone()).await;
    answer.has("/result/state", "asked \"who\"");
    let refused = ask_modern_as(&stranger, &forms(), "tools/call", again).await;
    refused.has("/error/code", -32602);
}

/// EXT-3: where variants are off states are sealed all the same, and nothing is said of variants.
#[tokio::test]
async fn states_are_sealed_without_variants_too() {
    let harness = Harness::with_server(server(), |config| config.with_variants(false)).await;
    let asked = ask_modern_as(&harness, &forms(), "tools/call", tool("greet")).await;
    let again = with(&tool("greet"), &back(&asked));
    let answer = ask_modern_as(&harness, &forms(), "tools/call", again.clone()).await;
    answer.has("/result/state", "asked \"who\"");
    let forged = with(&again, &json!({"requestState": "AAAA"}));
    let refused = ask_modern_as(&harness, &forms(), "tools/call", forged).await;
    refused.has("/error/code", -32602);
    assert_eq!(refused["error"].get("data"), None, "{refused}");
}

/// What only a modern client can mean does not reach a server in the name of a legacy one.
#[tokio::test]
async fn a_legacy_client_brings_no_state() {
    let harness = Harness::of_server(server()).await;
    let arguments = json!({"requestState": "later", "inputResponses": {}});
    let forged = with(&tool("nothing"), &arguments);
    for way in [ClientKind::HttpLegacy, ClientKind::StdioLegacy] {
        harness.ask(way, "tools/call", forged.clone()).await;
        let calls = harness.peer.of("tools/call");
        let params = &calls.last().unwrap().body["params"];
        assert_eq!(params.get("requestState"), None, "{params}");
        assert_eq!(params.get("inputResponses"), None, "{params}");
    }
}

/// Two requests of one client in their second round do not get in each other's way.
#[tokio::test]
async fn rounds_of_several_requests_go_on_side_by_side() {
    let harness = Harness::of_server(server()).await;
    let mut pipe = open_pipe(&harness.gateway);
    let call = |to: &str| json!({"name": "greet", "arguments": {"to": to}});
    let mut asked = Vec::new();
    for to in ["Ada", "Eve"] {
        let message = modern(json!(to), "tools/call", call(to), &forms());
        asked.push(pipe.ask(&message).await);
    }
    for (to, asked) in ["Ada", "Eve"].into_iter().zip(&asked).rev() {
        let again = with(&call(to), &back(asked));
        let answer = pipe
            .ask(&modern(json!(to), "tools/call", again, &forms()))
            .await;
        answer.has("/id", to);
        answer.has("/result/resultType", "complete");
    }
    let post = HttpRequest::modern_request_as("tools/call", call("Ada"), &forms());
    assert_eq!(harness.connect().await.ask(&post).await.status, 200);
}
