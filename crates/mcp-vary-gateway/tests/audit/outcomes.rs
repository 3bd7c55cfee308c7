//! The outcome of a request is the one that its client sees.

use super::recorded::{Recorded, settings};
use crate::support::*;

#[tokio::test]
async fn results_errors_and_failures_of_tools_are_told_apart() {
    for era in [Era::Legacy, Era::Modern] {
        for (name, outcome, code) in [
            ("odd", "allowed", Value::Null),
            ("fail", "tool_error", Value::Null),
            ("refuse", "error", json!(-32602)),
            ("no-such-tool", "error", json!(-32602)),
        ] {
            for kind in ClientKind::ALL {
                let recorded = Recorded::before(era, settings(), |config| config).await;
                recorded.harness.ask(kind, "tools/call", tool(name)).await;
                let record = recorded.sink.request("tools/call").await;
                let found = (&record["outcome"], &record["code"], &record["status"]);
                let expected = (&json!(outcome), &code, &Value::Null);
                assert_eq!(found, expected, "{name} {kind:?}");
                let server = (name != "no-such-tool").then_some("peer");
                assert_eq!(
                    record["target"]["server"].as_str(),
                    server,
                    "{name} {kind:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_status_is_recorded_where_the_client_gets_one() {
    for (kind, status) in [
        (ClientKind::HttpModern, json!(404)),
        (ClientKind::HttpLegacy, Value::Null),
        (ClientKind::StdioModern, Value::Null),
    ] {
        let recorded = Recorded::start().await;
        recorded.harness.ask(kind, "tools/none", json!({})).await;
        let record = recorded.sink.request("tools/none").await;
        assert_eq!(record["code"], -32601, "{kind:?}");
        assert_eq!(record["status"], status, "{kind:?}");
    }
}

/// The outcome of a streamed answer is that of its last message.
#[tokio::test]
async fn a_streamed_answer_is_one_record_at_its_end() {
    let recorded = Recorded::start().await;
    let mut legacy = LegacyClient::open(&recorded.harness, "2025-11-25", &json!({})).await;
    let mut params = tool("steps");
    params["_meta"] = json!({"progressToken": 1});
    let post = legacy.post(&request(json!(1), "tools/call", params.clone()));
    legacy.http.send(&post.bytes()).await;
    assert_eq!(legacy.http.head().await.status, 200);
    let events = legacy.http.events().await;
    assert!(events.len() > 1, "{events:?}");
    let record = recorded.sink.request("tools/call").await;
    record.has("/outcome", "allowed");

    let recorded = Recorded::start().await;
    let mut http = recorded.harness.connect().await;
    http.open_stream(&HttpRequest::modern_request("tools/call", params))
        .await;
    let events = http.events().await;
    assert!(events.len() > 1, "{events:?}");
    let record = recorded.sink.request("tools/call").await;
    record.has("/outcome", "allowed");
    let last = events.last().unwrap().to_string().len();
    assert!(record["bytes_out"].as_u64().unwrap().abs_diff(last as u64) < 20);
}

/// The stream of a subscription has no response: it is recorded when it opens.
#[tokio::test]
async fn a_stream_of_notifications_is_recorded_when_it_opens() {
    let recorded = Recorded::start().await;
    let params = json!({"notifications": {"toolsListChanged": true}});
    let listen = modern(json!(1), "subscriptions/listen", params, &json!({}));
    let mut http = recorded.harness.connect().await;
    http.send(&HttpRequest::modern(&listen).bytes()).await;
    let record = recorded.sink.request("subscriptions/listen").await;
    record.has("/outcome", "allowed");
}

#[tokio::test]
async fn a_modern_client_that_hangs_up_has_cancelled() {
    let recorded = Recorded::start().await;
    drop(recorded.harness.unanswered(1).await);
    let record = recorded.sink.request("tools/call").await;
    record.has("/outcome", "cancelled");
    record.has("/target/server", "peer");
    assert_eq!(record.get("bytes_out"), None);
}

#[tokio::test]
async fn a_cancelled_request_is_recorded_as_such() {
    let cancel = notification("notifications/cancelled", json!({"requestId": 1}));
    let recorded = Recorded::start().await;
    let mut legacy = LegacyClient::open(&recorded.harness, "2025-11-25", &json!({})).await;
    let call = legacy.post(&request(json!(1), "tools/call", tool("wait")));
    legacy.http.send(&call.bytes()).await;
    recorded.harness.peer.wait_for("tools/call", 1).await;
    let mut other = recorded.harness.connect().await;
    other.ask(&legacy.post(&cancel)).await;
    let record = recorded.sink.request("tools/call").await;
    record.has("/outcome", "cancelled");

    for is_modern in [false, true] {
        let recorded = Recorded::start().await;
        let mut pipe = recorded.harness.open_pipe();
        let call = if is_modern {
            modern(json!(1), "tools/call", tool("wait"), &json!({}))
        } else {
            request(json!(1), "tools/call", tool("wait"))
        };
        if !is_modern {
            pipe = pipe.initialize("2025-11-25", &json!({})).await;
        }
        pipe.send(call.to_string()).await;
        recorded.harness.peer.wait_for("tools/call", 1).await;
        pipe.send(cancel.to_string()).await;
        let record = recorded.sink.request("tools/call").await;
        assert_eq!(record["outcome"], "cancelled", "{is_modern}");
    }
}

/// The gateway ends before the server answers: the client gets an error, and so does the record.
#[tokio::test]
async fn a_request_that_the_end_of_the_gateway_interrupts_is_recorded() {
    let recorded = Recorded::start().await;
    let mut pipe = recorded.harness.open_pipe();
    let call = modern(json!(1), "tools/call", tool("wait"), &json!({}));
    pipe.send(call.to_string()).await;
    recorded.harness.peer.wait_for("tools/call", 1).await;
    recorded.harness.gateway.close().await;
    let lines = recorded.sink.lines();
    lines.last().unwrap().has("/event", "audit.stopped");
    lines[0].has("/event", "audit.started");
}
