//! Calls as they come.

use crate::support::*;

/// The stream of the page, after its first comment.
async fn stream(shown: &Shown) -> RawHttp {
    let mut http = RawHttp::connect(shown.address).await;
    http.send(&get("/api/events").bytes()).await;
    let head = http.head().await;
    assert_eq!(head.status, 200, "{head:?}");
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    http
}

async fn next_call(http: &mut RawHttp) -> Value {
    loop {
        let written = http.written_event().await.unwrap();
        if let Some(data) = written.strip_prefix("event: call\ndata: ") {
            return serde_json::from_str(data.trim()).unwrap();
        }
    }
}

/// OP-9
#[tokio::test]
async fn a_call_is_shown_when_it_ends() {
    let rules = "clients: [{name: robot, variant: compact}]";
    let shown = Shown::with(rules).await;
    shown.client_asks("tools/list", json!({})).await;
    let mut stream = stream(&shown).await;
    shown
        .client_asks(
            "tools/call",
            json!({"name": "odd", "arguments": {"secret": "s3"}}),
        )
        .await;
    let mut call = next_call(&mut stream).await;
    let members = call.as_object_mut().unwrap();
    for time in ["durationMs", "waitedMs", "serverMs"] {
        let time = members.remove(time).unwrap();
        assert!(time.as_f64().unwrap() > 0.0, "{time}");
    }
    assert!(members.remove("bytesIn").unwrap().as_u64().unwrap() > 100);
    assert!(members.remove("bytesOut").unwrap().as_u64().unwrap() > 10);
    assert!(members.remove("at").unwrap().as_f64().unwrap() <= 1_000_000.25);
    let expected = json!({
        "id": 1, "method": "tools/call", "target": "odd", "server": "places", "upstreamName": "odd", "arguments": null,
        "client": {"name": "robot", "version": "7"}, "era": "2026-07-28", "transport": "http", "principal": null, "variant": "compact", "reason": "rule",
        "variantRule": "clients[0]", "outcome": "allowed", "code": null, "error": null, "rule": null,
    });
    assert_eq!(call, expected);
    shown
        .client_asks("tools/call", json!({"name": "none"}))
        .await;
    let refused = next_call(&mut stream).await;
    let expected = json!({"id": 2, "outcome": "error", "code": -32602, "server": null, "serverMs": null, "isUnknownTool": true});
    assert_members(&refused, &expected);
}

/// OP-9: A page that opens later has the same, and reading changes nothing.
#[tokio::test]
async fn the_last_calls_are_shown_with_what_the_client_read_of_errors() {
    let shown = Shown::with("").await;
    let last = async || shown.get("/api/last-calls").await.json();
    assert_eq!(last().await, json!({"calls": []}));
    shown.client_asks("tools/list", json!({})).await;
    let call = json!({"name": "odd", "arguments": {"secret": "s3"}});
    shown.client_asks("tools/call", call).await;
    let call = json!({"name": "<b>"});
    let refused = shown.client_asks("tools/call", call).await;
    until(async || last().await["calls"].as_array().unwrap().len() == 2).await;
    let calls = last().await;
    let expected = json!({"id": 2, "target": "<b>", "outcome": "error", "code": -32602, "error": refused["error"]["message"]});
    assert_members(&calls["calls"][0], &expected);
    let expected =
        json!({"id": 1, "target": "odd", "outcome": "allowed", "error": null, "arguments": null});
    assert_members(&calls["calls"][1], &expected);
    assert_eq!(last().await["calls"].as_array().unwrap().len(), 2);
    let post = get("/api/last-calls").line("POST /api/last-calls HTTP/1.1");
    assert_eq!(post.send_to(shown.address).await.status, 405);
}

/// No name has a prefix: one that begins with the name of the server that is down is its, and any other may be.
#[tokio::test]
async fn the_status_counts_failures_that_are_alike_and_names_the_server_that_is_down() {
    let lines = "  gone: {command: no-such-program}\nnaming: on-collision\nvariants:\n  few: {tools: [say]}\n";
    let shown = Shown::with(lines).await;
    for name in ["odd", "gone_later", "gone_later", "later"] {
        shown.client_asks("tools/call", json!({"name": name})).await;
    }
    let failures = async || shown.get("/api/status").await.json()["failures"].clone();
    until(async || failures().await[1]["count"] == 2).await;
    let status = shown.get("/api/status").await.json();
    let recent = json!({"gone": {"count": 2, "errors": 2}});
    assert_eq!(status["recent"], recent);
    let failures = failures().await;
    assert_eq!(failures.as_array().unwrap().len(), 3, "{failures}");
    let client = json!({"name": "robot", "version": "7"});
    let expected = json!({"target": "odd", "server": null, "isUnknownTool": true, "isAnswered": false, "count": 1, "client": client});
    assert_members(&failures[0], &expected);
    let expected = json!({"target": "gone_later", "server": "gone", "isUnknownTool": false, "outcome": "error"});
    assert_members(&failures[1], &expected);
    let expected = json!({"target": "later", "server": null, "isUnknownTool": true, "count": 1});
    assert_members(&failures[2], &expected);
    for failure in [&failures[1], &failures[2]] {
        let error = failure["error"].as_str().unwrap();
        assert!(error.starts_with("server `gone` is down"), "{error}");
        assert!(!error.contains("tried again in"), "{error}");
    }
}

#[tokio::test]
async fn the_operator_reads_the_calls_of_the_audit_log() {
    let without = Shown::with("").await.get("/api/recorded").await;
    assert_eq!(without.status, 404);
    assert!(without.text().contains("write `audit: {to: file PATH}`"));
    let path = std::env::temp_dir().join(format!("vary-recorded-{}.jsonl", std::process::id()));
    let shown = Shown::with(&format!("audit: {{to: 'file {}'}}", path.display())).await;
    let call = json!({"name": "odd", "arguments": {"n": 1}});
    shown.client_asks("tools/call", call).await;
    let recorded = async || shown.get("/api/recorded?q=odd").await.json();
    until(async || recorded().await["calls"].as_array().unwrap().len() == 1).await;
    let expected =
        json!({"target": "odd", "server": "places", "outcome": "allowed", "era": "2026-07-28"});
    assert_members(&recorded().await["calls"][0], &expected);
    std::fs::remove_file(&path).unwrap();
}

#[tokio::test]
async fn only_eight_windows_watch_at_once() {
    let shown = Shown::with("").await;
    let mut streams = Vec::new();
    for _ in 0..8 {
        streams.push(stream(&shown).await);
    }
    assert_eq!(shown.get("/api/events").await.status, 429);
    // A window that is closed makes room.
    drop(streams.pop());
    until(async || shown.gateway.watch_requests(None).is_some()).await;
    stream(&shown).await;
}

/// Lists are compared with the same tools as the servers list them, results with what the server sent.
#[tokio::test]
async fn the_tokens_that_lists_and_results_save_count_for_the_client() {
    let few = "{from: compact, tools: [odd, bound], result: structured}";
    let variants = format!("variants: {{standard: {{}}, compact: {{}}, few: {few}}}\n");
    let rules = "clients: [{name: robot, variant: few}]\n";
    let shown = Shown::with(&format!("{variants}{rules}")).await;
    let savings = async || shown.get("/api/status").await.json()["savings"].clone();
    let saved = |cost: &Value| {
        let [without, with] = ["without", "with"].map(|key| cost[key].as_u64().unwrap());
        assert!(with > 0 && with < without, "{cost}");
        without - with
    };
    assert_eq!(savings().await["clients"], json!([]));
    shown.client_asks("tools/list", json!({})).await;
    let listed = savings().await;
    let call = json!({"name": "odd"});
    shown.client_asks("tools/call", call).await;
    until(async || saved(&savings().await["total"]) > saved(&listed["total"])).await;
    let called = savings().await;
    assert_eq!(called["clients"].as_array().unwrap().len(), 1);
    let mut robot = called["clients"][0].clone();
    assert_eq!(robot["client"].take(), "robot");
    assert_eq!(saved(&robot), saved(&called["total"]));
    assert_eq!(called["days"], json!({"1970-01-12": called["total"]}));
    shown.client_asks("resources/list", json!({})).await;
    assert_eq!(savings().await, called);
}
