//! Batches. Only revision 2025-03-26 has them.

use std::collections::BTreeMap;

use crate::support::*;

fn mixed() -> Value {
    json!([
        request(json!(1), "ping", json!({})),
        request(json!("é"), "tools/call", tool("odd")),
        notification("notifications/initialized", json!({})),
        {"jsonrpc": "2.0", "id": 99, "result": {}},
        request(json!(2), "no/such", json!({})),
        request(json!(3), "tools/call", json!({"name": 7})),
        initialize("2025-03-26", &json!({})),
        17,
        {"jsonrpc": "2.0", "id": 4},
        request(json!(5), "ping", json!([])),
    ])
}

/// By id: the code of an error, or 0.
fn outcomes(messages: &[Value]) -> BTreeMap<String, i64> {
    let outcome = |message: &Value| {
        let code = message["error"]["code"].as_i64().unwrap_or_default();
        (message["id"].to_string(), code)
    };
    messages.iter().map(outcome).collect()
}

fn expected() -> BTreeMap<String, i64> {
    [
        ("1", 0),
        ("\"é\"", 0),
        ("2", -32601),
        ("3", -32602),
        ("0", -32600),
        ("null", -32600),
        ("4", -32600),
        ("5", -32602),
    ]
    .map(|(id, code)| (id.to_owned(), code))
    .into()
}

async fn send(client: &mut LegacyClient, batch: &Value) -> HttpResponse {
    let post = client.post(batch);
    client.http.ask(&post).await
}

#[tokio::test]
async fn every_member_of_a_batch_has_its_own_outcome() {
    let harness = Harness::start().await;
    let mut client = LegacyClient::open(&harness, "2025-03-26", &json!({})).await;
    let post = client.post(&mixed());
    client.http.send(&post.bytes()).await;
    let head = client.http.head().await;
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    let answers = client.http.events().await;
    assert_eq!(outcomes(&answers), expected(), "{answers:?}");
    assert_eq!(answers.len(), expected().len());
    harness.is_unharmed(&mut client.http, "a batch").await;
}

#[tokio::test]
async fn every_member_of_a_batch_on_stdio_has_its_own_outcome() {
    let harness = Harness::start().await;
    let mut pipe = legacy_pipe(&harness.gateway, "2025-03-26", &json!({})).await;
    pipe.send(mixed().to_string()).await;
    let mut answers = Vec::new();
    for _ in expected() {
        answers.push(pipe.receive().await);
    }
    assert_eq!(outcomes(&answers), expected(), "{answers:?}");
    let ping = pipe.ask(&request(json!(9), "ping", json!({}))).await;
    assert_eq!(ping["id"], 9, "nothing else came of it");
}

#[tokio::test]
async fn a_batch_without_a_request_is_taken_without_an_answer() {
    let harness = Harness::start().await;
    let mut client = LegacyClient::open(&harness, "2025-03-26", &json!({})).await;
    let batch = json!([
        notification("notifications/initialized", json!({})),
        notification("no/such", json!({})),
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}},
    ]);
    let answer = send(&mut client, &batch).await;
    assert_eq!((answer.status, answer.text().as_str()), (202, ""));
}

#[tokio::test]
async fn a_batch_that_is_none_is_refused_whole() {
    let harness = Harness::with(|config| config.with_limits(limits().with_in_flight(8))).await;
    let mut client = LegacyClient::open(&harness, "2025-03-26", &json!({})).await;
    let mut pipe = legacy_pipe(&harness.gateway, "2025-03-26", &json!({})).await;
    let many = format!("[{}1]", "1,".repeat(8));
    for (what, body, code) in [
        ("empty", "[]", -32600),
        ("empty with space", " [ \n ] ", -32600),
        ("without an end", "[{}", -32700),
        ("with text after it", "[{}] x", -32700),
        ("with a trailing comma", "[1,]", -32700),
        (
            "of more members than there is room for",
            many.as_str(),
            -32600,
        ),
    ] {
        let answer = client.send_text(body).await;
        assert_eq!(answer.refusal(), (400, code, Value::Null), "{what}");
        if !body.contains('\n') {
            pipe.send(body).await;
            assert_eq!(pipe.receive().await["error"]["code"], code, "{what}");
        }
    }
    harness.is_unharmed(&mut client.http, "bad batches").await;
}

#[tokio::test]
async fn other_revisions_have_no_batches() {
    let harness = Harness::start().await;
    let batch = json!([request(json!(1), "ping", json!({}))]);
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let mut client = LegacyClient::open(&harness, revision, &json!({})).await;
        let answer = send(&mut client, &batch).await;
        assert_eq!(answer.refusal(), (400, -32600, Value::Null), "{revision}");
        harness.is_unharmed(&mut client.http, revision).await;
        let mut pipe = legacy_pipe(&harness.gateway, revision, &json!({})).await;
        pipe.send(batch.to_string()).await;
        assert_eq!(pipe.receive().await["error"]["code"], -32600, "{revision}");
        assert_eq!(
            pipe.ask(&request(json!(2), "ping", json!({}))).await["id"],
            2
        );
    }
    let one = modern(json!(1), "tools/list", json!({}), &json!({}));
    let post = HttpRequest::modern(&one);
    let mut http = harness.connect().await;
    let batch =
        HttpRequest::new(json!([one]).to_string()).with("MCP-Protocol-Version", "2026-07-28");
    assert_eq!(http.ask(&batch).await.refusal(), (400, -32600, Value::Null));
    assert_eq!(http.ask(&post).await.status, 200);
    let mut pipe = open_pipe(&harness.gateway);
    pipe.send(json!([one]).to_string()).await;
    pipe.receive().await.has("/error/code", -32600);
}

#[tokio::test]
async fn an_id_may_stand_in_a_batch_once() {
    let harness = Harness::start().await;
    let mut client = LegacyClient::open(&harness, "2025-03-26", &json!({})).await;
    let twice = json!([
        request(json!(7), "tools/call", tool("odd")),
        request(json!(7), "tools/call", tool("odd")),
    ]);
    let post = client.post(&twice);
    client.http.send(&post.bytes()).await;
    client.http.head().await;
    let answers = client.http.events().await;
    assert_eq!(answers.len(), 2);
    let refused = answers
        .iter()
        .filter(|answer| answer["error"]["code"] == -32600);
    assert_eq!(refused.count(), 1, "{answers:?}");
    harness.is_unharmed(&mut client.http, "an id twice").await;
}

/// Whoever waits for several answers is told of each that there will be none.
#[tokio::test]
async fn a_batch_is_answered_when_its_session_ends() {
    let harness = Harness::start().await;
    let mut client = LegacyClient::open(&harness, "2025-03-26", &json!({})).await;
    let mut begin = tool("begin");
    begin["_meta"]["progressToken"] = json!("p");
    let batch = json!([
        request(json!(1), "tools/call", begin),
        request(json!(2), "tools/call", tool("wait")),
    ]);
    let post = client.post(&batch);
    client.http.send(&post.bytes()).await;
    soon(harness.peer.wait_for("tools/call", 2)).await;
    client.http.head().await;
    let begun = client.http.event().await.unwrap();
    begun.has("/method", "notifications/progress");
    let delete = HttpRequest::delete(&client.session);
    assert_eq!(harness.connect().await.ask(&delete).await.status, 200);
    let ends = BTreeMap::from([("1".to_owned(), -32001), ("2".to_owned(), -32001)]);
    assert_eq!(outcomes(&client.http.events().await), ends);
}
