//! Large answers that somebody does not read, and their neighbour.

use super::clients::{ask_modern, for_ann_and_eve, key};
use crate::support::*;

/// More than the sockets of a connection take.
const LARGE: usize = 14_000_000;

/// A server with an answer of 14 MB, in JSON or as an event, and a gateway with room for one such answer to each client.
async fn harness(is_event: bool) -> Harness {
    let script = places_server::script(Era::Modern).reply("tools/call", move |seen| {
        let text = "x".repeat(LARGE);
        let result = json!({"resultType": "complete", "content": [{"type": "text", "text": text}]});
        let message = seen.message(&result);
        if is_event {
            Reply::events(event(&message))
        } else {
            let length = message.to_string().len().to_string();
            Reply::json(200, &message).with_header("content-length", length)
        }
    });
    let adapt = |config: Config| {
        let mut limits = limits();
        limits.memory = 64 << 20;
        for_ann_and_eve(config.with_limits(limits))
    };
    Harness::with_server(script, adapt).await
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
    for is_event in [false, true] {
        let harness = harness(is_event).await;
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
            "{is_event}"
        );
        let status = harness.gateway.status();
        assert_eq!(status.counters["refused-for-memory"], 1);
        let answered = ask_modern(&harness, &key("eve"), "tools/call", tool("odd")).await;
        assert!(answered.text().len() > LARGE, "{is_event}");
        let small = ask_modern(&harness, &key("ann"), "tools/list", json!({})).await;
        assert!(small.json()["result"].is_object(), "{is_event}");
        // What was read makes room.
        assert!(first.response().await.text().len() > LARGE, "{is_event}");
        until(async || used(&harness) == 0).await;
        let answered = ask_modern(&harness, &key("ann"), "tools/call", tool("odd")).await;
        assert!(answered.text().len() > LARGE, "{is_event}");
    }
}

/// One that says its length.
#[tokio::test]
async fn an_answer_waits_for_the_room_of_another_whose_client_goes() {
    let harness = harness(false).await;
    let first = unread(&harness, "ann").await;
    until(async || used(&harness) >= LARGE).await;
    let mut second = unread(&harness, "ann").await;
    harness.peer.wait_for("tools/call", 2).await;
    drop(first);
    assert!(second.response().await.text().len() > LARGE);
}
