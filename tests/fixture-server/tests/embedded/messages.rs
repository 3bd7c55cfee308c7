//! What servers and clients send each other besides requests and results, through a pipe in each era.

use mcp_vary_testkit::client::{Client, ClientKind};
use mcp_vary_testkit::message::notification;
use mcp_vary_testkit::notification_client::{NotificationClient, changed, everything};
use serde_json::json;

use crate::support::{Embedded, KEYS, PIPED, call, piped};

/// CN-7: the server speaks the era of its client, on pipes of each era.
#[tokio::test]
async fn clients_of_both_eras_reach_the_server_in_their_own() {
    let embedded = Embedded::with("").await;
    for kind in ClientKind::ALL {
        let call = json!({"name": "seen", "arguments": {"a": 1}});
        let seen = kind.ask(&embedded, &json!({}), "tools/call", call).await;
        let seen = &seen["result"]["structuredContent"];
        let revision = if kind.is_modern() {
            "2026-07-28"
        } else {
            "2025-11-25"
        };
        assert_eq!(seen["protocolVersion"], revision, "{kind:?}");
        assert_eq!(seen["arguments"], json!({"a": 1}));
    }
}

/// Progress reaches the caller alone, before its answer.
#[tokio::test]
async fn progress_reaches_its_caller() {
    let embedded = Embedded::with("").await;
    for kind in PIPED {
        let mut client = piped(&embedded, kind).await;
        client
            .send(call(kind, 1, "progress", &json!({"steps": 3})))
            .await;
        for step in 1..=3 {
            let report = client.receive().await;
            assert_eq!(report["method"], "notifications/progress", "{report}");
            assert_eq!(report["params"]["progressToken"], "token");
            assert_eq!(report["params"]["progress"].as_f64(), Some(f64::from(step)));
        }
        let answer = client.receive().await;
        assert_eq!(
            answer["result"]["content"][0]["text"], "took 3 steps",
            "{answer}"
        );
    }
}

/// A call that its client cancels is cancelled at the server.
#[tokio::test]
async fn a_cancelled_call_is_cancelled_at_the_server() {
    let embedded = Embedded::with("").await;
    for kind in PIPED {
        let mut client = piped(&embedded, kind).await;
        client
            .send(call(kind, 1, "slow", &json!({"ms": 600_000})))
            .await;
        let begun = client.receive().await;
        assert_eq!(begun["method"], "notifications/progress", "{begun}");
        let cancelled = notification("notifications/cancelled", json!({"requestId": 1}));
        client.send(cancelled.to_string()).await;
        // It waits until the server has seen it.
        client
            .send(call(kind, 2, "cancelled_count", &json!({"at_least": 1})))
            .await;
        let answer = client.receive_until(|message| message["id"] == 2).await;
        assert_eq!(
            answer["result"]["structuredContent"]["cancelled"], 1,
            "{answer}"
        );
    }
}

/// SV-16: a change of the list reaches each client in its variant, and the list has it.
#[tokio::test]
async fn a_change_of_the_list_reaches_clients() {
    for kind in [ClientKind::HttpLegacy, ClientKind::StdioModern] {
        let embedded = Embedded::with("variants: {standard: {}}").await;
        let filter = everything(&[]);
        let mut client = NotificationClient::listening(&embedded, kind, filter, None).await;
        let add = json!({"name": "add_tool", "arguments": {"name": "newcomer"}});
        client.ask("tools/call", add).await;
        assert_eq!(client.change().await, changed("tools", "standard"));
        let list = client.ask("tools/list", json!({})).await;
        assert!(mcp_vary_testkit::message::names(&list).contains(&"newcomer"));
    }
}

/// Principals share no pipe, so that what the server keeps for one is not for another.
#[tokio::test]
async fn each_principal_has_a_pipe_of_its_own() {
    let embedded = Embedded::with(KEYS).await;
    for (name, expected) in [("ci", 2), ("bob", 3), ("ci", 3)] {
        let mut client = embedded.client_of(ClientKind::HttpModern, name).await;
        let counted = client.call("cancelled_count", json!({})).await;
        assert_eq!(counted["result"]["structuredContent"]["cancelled"], 0);
        // The first one has the lists.
        assert_eq!(embedded.pipes.count(), expected, "{name}");
    }
}

/// A message of a megabyte passes a pipe that holds a part of it.
#[tokio::test]
async fn a_large_result_passes_a_small_pipe() {
    let embedded = Embedded::with("").await;
    for kind in ClientKind::ALL {
        let mut client = Client::open(&embedded, kind, &json!({})).await;
        let call = json!({"name": "big", "arguments": {"bytes": 1 << 20}});
        let text = client.text("tools/call", call).await;
        assert!(text.len() > 1 << 20, "{kind:?}");
    }
}
