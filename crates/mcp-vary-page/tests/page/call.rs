//! The same call by several clients.

use crate::support::*;

const CALLS: &str = "
admin-calls: on
variants:
  standard: {}
  reader:
    from: read-only
    overrides:
      tools:
        odd: {name: strange, arguments: {n: {fixed: 3}}}
  sayer:
    tools: [say]
    overrides:
      tools:
        say: {name: tell, arguments: {text: {name: words}, tone: {fixed: calm}}}
clients:
  - {name: robot, variant: reader}
  - {name: parrot, variant: sayer}
";

/// `say` lists its arguments, which others of these tests need.
async fn parrot_server() -> ScriptedServer {
    let tools = json!([
        {"name": "say", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}, "tone": {"type": "string"}}}},
        {"name": "odd", "inputSchema": {"type": "object", "properties": {"n": {"type": "number"}}}, "annotations": {"readOnlyHint": true}},
    ]);
    let script = places_server::script(Era::Modern).lists(json!({ "tools": tools }));
    script.start().await
}

fn client(name: &str) -> Value {
    let info = json!({"name": name, "version": "7"});
    json!({"name": name, "meta": {"io.modelcontextprotocol/clientInfo": info}})
}

fn legacy(name: &str) -> Value {
    let info = json!({"name": name, "version": "7"});
    json!({"name": name, "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}, "sampling": {}}, "clientInfo": info}})
}

/// What clients get, and the arguments that the server got.
async fn called(shown: &Shown, tool: &str, arguments: Value, clients: &[Value]) -> Vec<Value> {
    let body = json!({
        "server": "places", "tool": tool, "arguments": arguments, "clients": clients, "confirmed": true,
    });
    let answer = shown.post("/api/call", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["clients"].as_array().unwrap().clone()
}

#[tokio::test]
async fn each_client_gets_the_call_of_its_variant() {
    let shown = Shown::before(parrot_server().await, CALLS).await;
    let clients = [client("parrot"), client("other"), client("robot")];
    let arguments = json!({"text": "hello", "tone": "loud"});
    let called = called(&shown, "say", arguments, &clients).await;
    let [parrot, other, robot] = &called[..] else {
        panic!("{called:?}");
    };
    let expected = json!({"name": "parrot", "variant": "sayer", "tool": "tell"});
    assert_members(parrot, &expected);
    // The variant renames `text` and fixes `tone`; both have the server's names there.
    let said = &parrot["result"]["said"]["arguments"];
    assert_eq!(said, &json!({"text": "hello", "tone": "calm"}));
    assert_members(other, &json!({"variant": "standard", "tool": "say"}));
    let said = &other["result"]["said"]["arguments"];
    assert_eq!(said, &json!({"text": "hello", "tone": "loud"}));
    assert!(other["bytes"].as_u64() > Some(20), "{other}");
    assert!(other["ms"].as_f64() > Some(0.0), "{other}");
    let why = robot["error"].as_str().unwrap();
    assert!(why.contains("`readOnlyHint: true`"), "{why}");
    let nothing = json!({"tool": null, "result": null, "bytes": 0});
    assert_members(robot, &nothing);
    assert_eq!(shown.peer.of("tools/call").len(), 2);
}

#[tokio::test]
async fn a_client_gets_what_it_would_get_without_the_page() {
    let shown = Shown::before(parrot_server().await, CALLS).await;
    let clients = [client("robot"), legacy("robot")];
    let called = called(&shown, "odd", json!({"n": 5}), &clients).await;
    let itself = shown.client_asks("tools/call", json!({"name": "strange", "arguments": {}}));
    let itself = itself.await;
    assert_eq!(called[0]["result"], itself["result"], "{called:?}");
    assert_eq!(called[0]["tool"], "strange");
    // Clients with sessions get no member of a later revision.
    let result = &called[1]["result"];
    assert_eq!(result["resultType"], Value::Null);
    let content = &itself["result"]["structuredContent"];
    assert_eq!(&result["structuredContent"], content);
    let tokens = called[1]["tokens"].as_u64().unwrap();
    assert!((5..60).contains(&tokens), "{tokens}");
    let calls = shown.peer.of("tools/call");
    let given = calls.iter().map(|call| &call.body["params"]["arguments"]);
    assert!(given.into_iter().all(|given| *given == json!({"n": 3})));
    // Neither the page nor servers see clients that only the page made up.
    let status = shown.get("/api/status").await.json();
    let clients = status["clients"].as_array().unwrap();
    assert_eq!(clients.len(), 1, "{status}");
}

#[tokio::test]
async fn an_error_of_a_server_is_an_error() {
    let shown = Shown::with("admin-calls: on").await;
    let called = called(&shown, "refuse", json!({}), &[json!({})]).await;
    assert_eq!(called[0]["error"], "no such city");
    assert_eq!(called[0]["name"], "client 1");
}

#[tokio::test]
async fn access_rules_hold_for_the_client_of_a_call() {
    let rules = "
admin-calls: on
access:
  - {when: {groups: dev}, allow: ['*']}
  - {when: {anyone: on}, allow: [odd]}
auth:
  keys: [{name: ci, sha256: '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef', claims: {groups: [dev]}}]
";
    let shown = Shown::with(rules).await;
    let clients = [
        json!({"name": "claims", "claims": {"groups": ["dev"]}}),
        json!({"name": "key", "key": "ci"}),
        json!({"name": "guest", "claims": {}}),
    ];
    let called = called(&shown, "say", json!({}), &clients).await;
    assert_eq!(called[0]["tool"], "say", "{called:?}");
    assert_eq!(called[1]["result"]["said"]["name"], "say", "{called:?}");
    let why = "no access rule that applies to the client allows it";
    assert_eq!(called[2]["error"], why);
    assert_eq!(shown.peer.of("tools/call").len(), 2);
}

/// OP-9
#[tokio::test]
async fn calls_need_the_configuration_and_a_confirmation() {
    let call = |tool: &str| json!({"server": "places", "tool": tool, "clients": [{}]});
    let off = Shown::with("").await;
    let advice = "write `admin-calls: on`";
    off.refuses("/api/call", &call("odd"), 403, advice).await;
    assert_eq!(off.get("/api/status").await.json()["calls"], false);

    let on = Shown::with("admin-calls: on").await;
    assert_eq!(on.get("/api/status").await.json()["calls"], true);
    assert_eq!(on.post("/api/call", &call("odd")).await.status, 200);
    let hint = "`readOnlyHint: true`";
    on.refuses("/api/call", &call("say"), 409, hint).await;
    assert_eq!(on.peer.of("tools/call").len(), 1);
}

#[tokio::test]
async fn what_cannot_be_called_is_named() {
    let shown = Shown::with("admin-calls: on").await;
    let many: serde_json::Map<String, Value> = (0..40_000)
        .map(|at| (format!("x-{at}"), json!("1")))
        .collect();
    let with = |key: &str, value: Value| {
        let mut call = json!({"server": "places", "tool": "odd", "clients": [{}]});
        call[key] = value;
        call
    };
    for (call, status, part) in [
        (with("tool", json!("none")), 404, "a tool `none`"),
        (with("server", json!("none")), 404, "no server `none`"),
        (with("clients", json!([])), 400, "1 to 8 clients"),
        (
            with("clients", json!(vec![json!({}); 9])),
            400,
            "1 to 8 clients",
        ),
        (with("clients", json!([{"path": "/x"}])), 400, "`path`"),
        (with("clients", json!([{}, {"path": "/x"}])), 400, "`path`"),
        (
            with("clients", json!([{"headers": {"a": 1}}])),
            400,
            "`clients[0]`: `headers`",
        ),
        (
            with("clients", json!([{"headers": many}])),
            400,
            "`clients[0]`: `headers` has 40000 names; write at most 100",
        ),
        (with("arguments", json!([1])), 400, "`arguments`"),
        (with("other", json!(1)), 400, "`other`"),
    ] {
        shown.refuses("/api/call", &call, status, part).await;
    }
    assert!(shown.peer.of("tools/call").is_empty());
    let refused = called(&shown, "odd", json!({}), &[json!({"path": "/mcp/v/none"})]).await;
    let why = refused[0]["error"].as_str().unwrap();
    assert!(why.contains("ariant"), "{why}");
}

#[tokio::test]
async fn few_requests_call_at_once() {
    let shown = Shown::with("admin-calls: on").await;
    let call = json!({"server": "places", "tool": "wait", "clients": [{}], "confirmed": true});
    let waiting = async {
        tokio::join!(
            shown.post("/api/call", &call),
            shown.post("/api/call", &call)
        )
    };
    let third = async {
        shown.peer.wait_for("tools/call", 2).await;
        shown.post("/api/call", &call).await
    };
    let third = tokio::select! {
        answered = waiting => panic!("{answered:?}"),
        third = third => third,
    };
    assert_eq!(third.status, 429, "{}", third.text());
    // A browser that leaves ends its calls.
    shown.peer.wait_for_abandoned(2).await;
}

/// OP-9
#[tokio::test]
async fn a_call_is_recorded_as_that_of_the_operator() {
    let path = std::env::temp_dir().join(format!("vary-page-{}.jsonl", std::process::id()));
    let audit = format!("admin-calls: on\naudit: {{to: 'file {}'}}", path.display());
    let shown = Shown::with(&audit).await;
    called(&shown, "odd", json!({"n": 1}), &[client("robot")]).await;
    shown.gateway.close().await;
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let records: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut calls = records.iter().filter(|it| it["method"] == "tools/call");
    let record = calls.next().unwrap();
    let expected = json!({
        "principal": {"id": "operator's page"}, "client": {"name": "robot"}, "target": {"name": "odd"}, "outcome": "allowed",
    });
    assert_members(record, &expected);
    assert!(calls.next().is_none(), "{text}");
    let selected = |it: &&Value| it["event"] == "variant.selected";
    assert!(!records.iter().any(|it| selected(&it)), "{text}");
    let mut admin = records.iter().filter(|it| it["event"] == "admin.request");
    assert_eq!(admin.next().unwrap()["method"], "POST /api/call");
}
