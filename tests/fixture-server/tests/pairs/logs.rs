//! Messages for the log: whose they are, and from which level on.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::client::Client;
use crate::pair::{Era, Pair, Side, Wire};

/// Those of a client that named no level.
pub(crate) async fn without_level(pair: Arc<Pair>) -> String {
    let pair = pair.anew().await;
    let mut client = pair.client().await;
    let received = levels(&pair, &mut client, json!({})).await;
    pair.end().await;
    received
}

/// Those of the only client, which named one.
pub(crate) async fn from_warning(pair: Arc<Pair>) -> String {
    let pair = pair.anew().await;
    let mut client = pair.client().await;
    let meta = named(&mut client, "warning").await;
    let received = levels_at_work(&pair, &mut client, meta).await;
    pair.end().await;
    received
}

/// Those of its second call.
pub(crate) async fn of_the_second_call(pair: Arc<Pair>) -> String {
    let pair = pair.anew().await;
    let mut client = pair.client().await;
    let meta = named(&mut client, "alert").await;
    levels(&pair, &mut client, meta.clone()).await;
    // A server cannot tell two requests without a session from two clients.
    let received = match (pair.client.era, pair.client.wire) {
        (Era::Modern, Wire::Http) => levels(&pair, &mut client, meta).await,
        _ => levels_at_work(&pair, &mut client, meta).await,
    };
    pair.end().await;
    received
}

/// The logs of a client that set a higher level than a client that called before it.
pub(crate) async fn of_several(pair: Arc<Pair>) -> String {
    let pair = pair.anew().await;
    let mut loud = pair.client().await;
    let meta = named(&mut loud, "debug").await;
    levels(&pair, &mut loud, meta).await;
    let mut client = pair.client().await;
    let meta = named(&mut client, "alert").await;
    let received = levels(&pair, &mut client, meta).await;
    pair.end().await;
    received
}

/// Those of a client that has a connection to a legacy server alone, since it can be asked.
pub(crate) async fn of_one_who_can_be_asked(pair: Arc<Pair>) -> String {
    let pair = pair.anew().await;
    let mut client = pair.client_that_can(json!({"elicitation": {}})).await;
    let meta = named(&mut client, "warning").await;
    let received = levels_at_work(&pair, &mut client, meta).await;
    pair.end().await;
    received
}

/// Those of a call while another client's is under way.
pub(crate) async fn beside_another(pair: Arc<Pair>) -> String {
    let mut other = pair.client().await;
    let slow = json!({
        "name": "slow", "arguments": {"ms": 3_600_000}, "_meta": {"progressToken": 1},
    });
    let mut slow = other.send("tools/call", slow).await;
    other.hear(&mut slow).await.expect("it begins");
    let mut client = pair.client().await;
    let meta = named(&mut client, "alert").await;
    let received = levels(&pair, &mut client, meta).await;
    other.cancel(slow).await;
    pair.sees_one_more_cancelled().await;
    received
}

/// Names the least level as the client's era does: once, or with the request.
async fn named(client: &mut Client, level: &str) -> Value {
    match client.era {
        Era::Legacy => {
            let params = json!({"level": level});
            let answer = client.ask("logging/setLevel", params).await.answer;
            assert!(answer["result"].is_object(), "{answer}");
            json!({})
        }
        Era::Modern => json!({"io.modelcontextprotocol/logLevel": level}),
    }
}

/// The levels of the messages of a call that logs one of each.
async fn levels(pair: &Pair, client: &mut Client, meta: Value) -> String {
    let is_beside = pair.server == ASIDE && client.era == Era::Legacy;
    if is_beside {
        client.listen(json!({})).await;
    }
    let params = json!({"name": "log", "arguments": {"count": 8}, "_meta": meta});
    let mut received = client.ask("tools/call", params).await;
    assert_eq!(
        received.answer["result"]["content"][0]["text"],
        "had 8 messages"
    );
    if is_beside {
        received.before.extend(sent(client).await);
    }
    let messages = received.of("notifications/message").into_iter();
    let levels: Vec<_> = messages
        .filter_map(|message| message["level"].as_str())
        .collect();
    match levels.as_slice() {
        [] => "nothing".to_owned(),
        levels => levels.join(" "),
    }
}

/// The same, of a call that does not end before its messages arrive.
///
/// What such a server logs during a call may arrive after the answer: two streams have no common order. The client's next
/// call receives it then. So the messages of this call have numbers of their own, and others are not counted.
async fn levels_at_work(pair: &Pair, client: &mut Client, meta: Value) -> String {
    if pair.server != ASIDE || client.era == Era::Legacy {
        return levels(pair, client, meta).await;
    }
    let arguments = json!({"count": 8, "first": FIRST_AT_WORK, "hold": true});
    let params = json!({"name": "log", "arguments": arguments, "_meta": meta});
    let mut call = client.send("tools/call", params).await;
    let mut levels = Vec::new();
    while levels.last().is_none_or(|level| level != "emergency") {
        let message = client.hear(&mut call).await.expect("it goes on");
        let params = &message["params"];
        let number = params["data"]["number"]
            .as_u64()
            .expect("only messages come");
        if number >= FIRST_AT_WORK {
            let level = params["level"].as_str().expect("it has a level");
            levels.push(level.to_owned());
        }
    }
    pair.client().await.call("release", json!({})).await;
    client.finish(&mut call).await;
    levels.join(" ")
}

/// What comes beside the requests until something comes that the server says later.
async fn sent(client: &mut Client) -> Vec<Value> {
    let params = json!({"name": "test_trigger_tool_change", "arguments": {}});
    let mut all = client.ask("tools/call", params).await.before;
    loop {
        let sent = client.received().await;
        if sent["method"] == "notifications/tools/list_changed" {
            return all;
        }
        all.push(sent);
    }
}

/// The server that logs on a stream that belongs to no call.
const ASIDE: Side = Side {
    era: Era::Legacy,
    wire: Wire::Http,
};

/// The number of the first message of a call that [`levels_at_work`] makes. Those of the other calls are less.
const FIRST_AT_WORK: u64 = 8;
