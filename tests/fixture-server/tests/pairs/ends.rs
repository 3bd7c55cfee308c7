//! Calls that are given up: on purpose, or by a client that is gone.

use std::sync::Arc;

use serde_json::json;

use crate::client::{Client, Sent};
use crate::pair::{Era, Pair, Wire};

/// The client cancels, as its revision says: by a notification, or over HTTP since 2026-07-28 by hanging up.
pub(crate) async fn cancellation(pair: Arc<Pair>) -> String {
    let mut client = pair.client().await;
    let call = begun(&mut client, 3_600_000).await;
    let received = client.cancel(call).await;
    pair.sees_one_more_cancelled().await;
    let goes_on = client.call("echo", json!({"a": 1})).await;
    assert_eq!(goes_on["structuredContent"], json!({"a": 1}));
    match received {
        None => "no answer; the server stops".to_owned(),
        Some(message) => message.to_string(),
    }
}

/// The client is gone without a word.
pub(crate) async fn hang_up(pair: Arc<Pair>) -> String {
    let mut client = pair.client().await;
    if (pair.client.era, pair.client.wire) == (Era::Legacy, Wire::Http) {
        return resumption(&pair, client).await;
    }
    let call = begun(&mut client, 3_600_000).await;
    client.hang_up(call).await;
    pair.sees_one_more_cancelled().await;
    "the server stops".to_owned()
}

/// Over HTTP a session outlives its connections.
async fn resumption(pair: &Pair, mut client: Client) -> String {
    // Long enough for the gateway to notice, though nothing here rests on that.
    let mut call = begun(&mut client, 500).await;
    client.come_back(&mut call).await;
    let answer = client.finish(&mut call).await.answer;
    if !pair.sees_no_more_cancelled().await {
        return "the server stops".to_owned();
    }
    let reported = &answer["result"]["content"][0]["text"];
    format!("the server goes on; who comes back hears {reported}")
}

/// A call that the server works at, and has said so.
async fn begun(client: &mut Client, milliseconds: u64) -> Sent {
    let params = json!({
        "name": "slow", "arguments": {"ms": milliseconds}, "_meta": {"progressToken": "begun"},
    });
    let mut sent = client.send("tools/call", params).await;
    let received = client.hear(&mut sent).await.expect("it begins");
    assert_eq!(received["params"]["message"], "begun", "{received}");
    sent
}
