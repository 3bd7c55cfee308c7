//! Updates of resources on a stream that the gateway has to open again.

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::support::*;

/// A legacy server with one resource, and the streams that the gateway opens.
async fn server() -> (ScriptedServer, UnboundedReceiver<UnboundedSender<Bytes>>) {
    let (senders, streams) = unbounded_channel();
    let script = move |seen: &ReceivedRequest| {
        let result = match seen.method() {
            "GET" => {
                let (sender, reply) = Reply::stream();
                senders.send(sender).unwrap();
                return Some(reply);
            }
            "initialize" => {
                let capabilities = json!({"resources": {"listChanged": true, "subscribe": true}});
                introduced("notes", capabilities)
            }
            "resources/list" => json!({"resources": [{"uri": "note:a", "name": "a"}]}),
            "resources/templates/list" => json!({"resourceTemplates": []}),
            "resources/subscribe" => json!({}),
            _ => return None,
        };
        Some(seen.answer(&result))
    };
    (ScriptedServer::start(script).await, streams)
}

/// After an interruption, a resource may have changed without a notification. That replaces no notification that did
/// arrive: other members of its params would be lost.
#[tokio::test]
async fn the_params_of_an_update_outlast_an_interruption() {
    let (peer, mut streams) = server().await;
    let config = config(Target::http(peer.url.clone()));
    let gateway = Gateway::start(config).await.unwrap();
    let mut client = legacy_pipe(&gateway, "2025-11-25", &json!({})).await;
    let subscribe = request(json!(1), "resources/subscribe", json!({"uri": "note:a"}));
    assert_eq!(client.ask(&subscribe).await["result"], json!({}));
    let stream = soon(streams.recv()).await.unwrap();
    let changed = notification("notifications/resources/list_changed", json!({}));
    let updated = json!({"uri": "note:a", "x-step": 1});
    let updated = notification("notifications/resources/updated", updated);
    // The list is read again after a pause, together with what follows: the stream ends, and is opened again at once.
    let events = ["retry: 10\n".to_owned(), event(&changed), event(&updated)].concat();
    stream.send(events.into()).unwrap();
    drop(stream);
    let _open = soon(streams.recv()).await.unwrap();
    while client.receive().await["params"]["x-step"] != 1 {}
}
