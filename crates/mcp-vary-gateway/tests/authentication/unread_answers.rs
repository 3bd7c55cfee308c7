//! Large answers that somebody does not read, and their neighbour.

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

use super::clients::{ask_modern, for_ann_and_eve, key};
use crate::support::*;

/// More than the sockets of a connection take.
const LARGE: usize = 14_000_000;

/// How the large answer arrives.
#[derive(Debug, Clone, Copy)]
enum Arrival {
    Json,
    Event,
    /// On a pipe that all clients share, whose messages say no length.
    Pipe,
}

fn large_result() -> Value {
    let text = "x".repeat(LARGE);
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}]})
}

/// A gateway with room for one answer of 14 MB to each client, in front of a server that has one.
async fn harness(arrival: Arrival) -> Harness {
    let adapt = |config: Config| {
        let mut limits = limits();
        limits.memory = 64 << 20;
        for_ann_and_eve(config.with_limits(limits))
    };
    if let Arrival::Pipe = arrival {
        let target = Target::in_process(|| {
            let (gateway, server) = tokio::io::duplex(64 * 1024);
            tokio::spawn(serve_lines(server));
            gateway
        });
        return Harness::alone(adapt(config(target))).await;
    }
    let script = places_server::script(Era::Modern).reply("tools/call", move |seen| {
        let message = seen.message(&large_result());
        if let Arrival::Event = arrival {
            Reply::events(event(&message))
        } else {
            let length = message.to_string().len().to_string();
            Reply::json(200, &message).with_header("content-length", length)
        }
    });
    Harness::with_server(script, adapt).await
}

/// A server of 2025-11-25 on a pipe.
async fn serve_lines(pipe: DuplexStream) {
    let (reading, mut writing) = tokio::io::split(pipe);
    let mut lines = BufReader::new(reading).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let request: Value = serde_json::from_str(&line).unwrap();
        let Some(id) = request.get("id") else {
            continue;
        };
        let result = match request["method"].as_str().unwrap() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "pipe", "version": "1"}
            }),
            "tools/list" => json!({"tools": [{"name": "odd", "inputSchema": {"type": "object"}}]}),
            "tools/call" => large_result(),
            _ => Value::Null,
        };
        let answer = if result.is_null() {
            let error = json!({"code": -32601, "message": "Method not found"});
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        } else {
            json!({"jsonrpc": "2.0", "id": id, "result": result})
        };
        if writing
            .write_all(format!("{answer}\n").as_bytes())
            .await
            .is_err()
        {
            return;
        }
    }
}

/// Sends a call, and reads nothing.
async fn unread(harness: &Harness, who: &str) -> RawHttp {
    let message = modern(json!(1), "tools/call", tool("odd"), &json!({}));
    let mut http = harness.connect().await;
    let call = HttpRequest::modern(&message).with("Authorization", format!("Bearer {}", key(who)));
    http.send(&call.bytes()).await;
    http
}

fn used(harness: &Harness) -> usize {
    harness.gateway.status().memory
}

#[tokio::test]
async fn answers_that_ann_does_not_read_take_her_share_and_nothing_of_eve() {
    for arrival in [Arrival::Json, Arrival::Event, Arrival::Pipe] {
        let harness = harness(arrival).await;
        let mut first = unread(&harness, "ann").await;
        until(async || used(&harness) >= LARGE).await;
        let refused = ask_modern(&harness, &key("ann"), "tools/call", tool("odd")).await;
        let error = &refused.json()["error"];
        assert_eq!(
            (&error["code"], &error["message"]),
            (
                &json!(-32603),
                &json!(
                    "the answer of server `peer` finds no room: answers that were not read yet take all of `limits.memory` \
                     that is for them; read those, or ask for less at once"
                )
            ),
            "{arrival:?}"
        );
        let status = harness.gateway.status();
        assert_eq!(status.counters["refused-for-memory"], 1);
        let answered = ask_modern(&harness, &key("eve"), "tools/call", tool("odd")).await;
        assert!(answered.text().len() > LARGE, "{arrival:?}");
        let small = ask_modern(&harness, &key("ann"), "tools/list", json!({})).await;
        assert!(small.json()["result"].is_object(), "{arrival:?}");
        // What was read makes room.
        assert!(first.response().await.text().len() > LARGE, "{arrival:?}");
        until(async || used(&harness) == 0).await;
        let answered = ask_modern(&harness, &key("ann"), "tools/call", tool("odd")).await;
        assert!(answered.text().len() > LARGE, "{arrival:?}");
    }
}

/// One that says its length.
#[tokio::test]
async fn an_answer_waits_for_the_room_of_another_whose_client_goes() {
    let harness = harness(Arrival::Json).await;
    let first = unread(&harness, "ann").await;
    until(async || used(&harness) >= LARGE).await;
    let mut second = unread(&harness, "ann").await;
    harness.peer.wait_for("tools/call", 2).await;
    drop(first);
    assert!(second.response().await.text().len() > LARGE);
}
