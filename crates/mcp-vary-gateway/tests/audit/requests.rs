//! One record for each request, whatever its era and transport.

use super::recorded::{Recorded, stable};
use crate::support::*;

/// What every record of these tests has.
fn common() -> Value {
    json!({
        "v": 1, "run": "5d0f", "time": "2026-11-21T06:12:00.123456Z", "event": "request", "outcome": "allowed",
        "config": "sha256:0123456789abcdef",
    })
}

fn with(mut record: Value, more: Value) -> Value {
    let members = more.as_object().unwrap().clone();
    record.as_object_mut().unwrap().extend(members);
    record
}

#[tokio::test]
async fn a_call_of_any_client_is_one_record_with_all_that_is_known() {
    let arguments = json!({"n": 7});
    for kind in ClientKind::ALL {
        let recorded = Recorded::start().await;
        let params = json!({"name": "odd", "arguments": arguments});
        let answer = kind
            .text(&recorded.harness, &json!({}), "tools/call", params)
            .await;
        let mut record = stable(recorded.sink.request("tools/call").await);
        let members = record.as_object_mut().unwrap();
        assert!(members.remove("bytes_in").unwrap().as_u64().unwrap() > 40);
        let expected = answer.trim_end().len();
        assert_eq!(members.remove("bytes_out").unwrap(), expected);
        let is_http = matches!(kind, ClientKind::HttpLegacy | ClientKind::HttpModern);
        let session = members.remove("session");
        let expected = kind == ClientKind::HttpLegacy;
        assert_eq!(session.is_some(), expected, "{kind:?}");
        let client = members.remove("client").unwrap_or(json!({}));
        let address = is_http.then(|| json!("127.0.0.1"));
        assert_eq!(client.get("address"), address.as_ref(), "{kind:?}");
        assert_eq!(client["name"].is_string(), !kind.is_modern(), "{client}");
        let era = if kind.is_modern() { "modern" } else { "legacy" };
        let digest = record["arguments"]["digest"].clone();
        let params = json!({
            "era": era, "transport": if is_http { "http" } else { "stdio" },
            "method": "tools/call", "request_id": "1",
            "target": {"kind": "tool", "name": "odd", "server": "peer", "upstream_name": "odd"},
            "variant": {"id": "standard", "reason": "ranking"},
            "arguments": {"bytes": arguments.to_string().len(), "digest": digest},
        });
        let expected = with(common(), params);
        assert_eq!(record, expected, "{kind:?}");
    }
}

#[tokio::test]
async fn the_target_is_what_the_method_names() {
    let recorded = Recorded::start().await;
    for [method, params, target] in rows(
        r#"
        prompts/get         | {"name": "greet"} | {"kind": "prompt", "name": "greet", "server": "peer", "upstream_name": "greet"}
        resources/read      | {"uri": "place:bern"} | {"kind": "resource", "name": "place:bern", "server": "peer", "upstream_name": "place:bern"}
        completion/complete | {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "a", "value": "b"}} | {"kind": "prompt", "name": "greet", "server": "peer"}
        skills/get          | {"uri": "skill://pdf/SKILL.md"} | {"kind": "skill", "name": "skill://pdf/SKILL.md"}
        tools/list          | {} | null
        tasks/get           | {"taskId": "nobody's"} | {"kind": "task", "name": "nobody's"}
    "#,
    ) {
        recorded.harness.ask_modern(method, cell(params)).await;
        let record = recorded.sink.request(method).await;
        assert_eq!(record["target"], cell(target), "{method}");
    }
}

/// The name that a client gives itself, the trace and the id of the request are those of the request.
#[tokio::test]
async fn a_request_brings_its_client_trace_and_id() {
    let recorded = Recorded::start().await;
    let mut message = modern(json!("a\"b"), "tools/list", json!({}), &json!({}));
    message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] =
        json!({"name": "ide", "version": "3.1"});
    message["params"]["_meta"]["traceparent"] =
        json!("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01");
    let mut http = recorded.harness.connect().await;
    http.ask(&HttpRequest::modern(&message)).await;
    let record = recorded.sink.request("tools/list").await;
    let client = json!({"name": "ide", "version": "3.1", "address": "127.0.0.1"});
    record.has("/client", client);
    record.has("/trace_id", "0af7651916cd43dd8448eb211c80319c");
    record.has("/request_id", "a\"b");
    let header = "00-1bf7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
    let post = HttpRequest::modern_request("prompts/list", json!({})).with("traceparent", header);
    http.ask(&post).await;
    let record = recorded.sink.request("prompts/list").await;
    record.has("/trace_id", "1bf7651916cd43dd8448eb211c80319c");
}

/// Requests of a session have one digest, another session another, and `initialize` has that of the session it opened.
#[tokio::test]
async fn the_requests_of_a_session_belong_together() {
    let recorded = Recorded::start().await;
    let mut digests = Vec::new();
    for method in ["ping", "tools/list"] {
        let mut client = LegacyClient::open(&recorded.harness, "2025-11-25", &json!({})).await;
        client.ask(method, json!({})).await;
        digests.push(recorded.sink.request(method).await["session"].clone());
    }
    assert!(digests[0].is_string() && digests[0] != digests[1]);
    let mut opened = recorded.sink.of("request");
    opened.retain(|line| line["method"] == "initialize");
    let opened: Vec<_> = opened.iter().map(|line| line["session"].clone()).collect();
    assert_eq!(opened, digests);
}

/// Every message of a batch is a request of its own.
#[tokio::test]
async fn a_batch_is_a_record_for_each_request() {
    let batch = json!([
        request(json!(1), "ping", json!({})),
        request(json!(2), "tools/call", tool("odd")),
        request(json!(3), "initialize", json!({})),
    ]);
    let recorded = Recorded::start().await;
    let mut client = LegacyClient::open(&recorded.harness, "2025-03-26", &json!({})).await;
    let post = client.post(&batch);
    client.http.ask(&post).await;
    let records = recorded.sink.wait_for("request", 4).await;
    let mut of_batch: Vec<_> = records.iter().skip(1).collect();
    of_batch.sort_by_key(|record| record["request_id"].to_string());
    let of_batch = of_batch.iter();
    let seen = of_batch.map(|it| json!([it["method"], it["outcome"], it["status"]]));
    let expected = json!([
        ["ping", "allowed", null],
        ["tools/call", "allowed", null],
        ["initialize", "error", null],
    ]);
    assert_eq!(seen.collect::<Value>(), expected);
    let pipe = recorded.harness.open_pipe();
    let mut pipe = pipe.initialize("2025-03-26", &json!({})).await;
    pipe.send(json!([request(json!(4), "ping", json!({}))]).to_string())
        .await;
    pipe.receive().await;
    let last = recorded.sink.wait_for("request", 6).await.pop().unwrap();
    last.has("/transport", "stdio");
    last.has("/request_id", "4");
}

/// What is no request has no record: notifications, responses, messages that cannot be read.
#[tokio::test]
async fn what_is_no_request_is_not_recorded() {
    let recorded = Recorded::start().await;
    let mut client = LegacyClient::open(&recorded.harness, "2025-11-25", &json!({})).await;
    for message in [
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 7, "result": {}}),
        json!({"no": "message"}),
    ] {
        let post = client.post(&message);
        client.http.ask(&post).await;
    }
    client.ask("ping", json!({})).await;
    let records = recorded.sink.wait_for("request", 2).await;
    records[1].has("/method", "ping");
}

/// A request whose session is unknown is recorded: somebody may be guessing ids.
#[tokio::test]
async fn an_unknown_session_is_an_error_with_its_status() {
    let recorded = Recorded::start().await;
    let mut http = RawHttp::connect(recorded.harness.address()).await;
    let ping = request(json!(1), "ping", json!({})).to_string();
    http.ask(&HttpRequest::of("guessed", ping)).await;
    let record = recorded.sink.request("ping").await;
    record.has("/outcome", "error");
    record.has("/status", 404);
    assert!(!recorded.sink.text().contains("guessed"));
}

/// The name of a hostile client is shown, and breaks no line.
#[tokio::test]
async fn a_name_that_means_to_deceive_stays_in_its_line() {
    let recorded = Recorded::start().await;
    let mut http = recorded.harness.connect().await;
    let mut open = initialize("2025-11-25", &json!({}));
    open["params"]["clientInfo"]["name"] = json!("a\n{\"v\":1}\u{202e}");
    http.ask(&HttpRequest::new(open.to_string())).await;
    let record = recorded.sink.request("initialize").await;
    // Controls are replaced where names are read; the rest is escaped.
    record.has("/client/name", "a\u{fffd}{\"v\":1}\u{202e}");
    assert!(!recorded.sink.text().contains('\u{202e}'));
}
