//! Subscriptions at a modern server: a stream for all resources, which is replaced when they change.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp_vary_testkit::message::{SUBSCRIPTION, notification};
use mcp_vary_testkit::scripted_server::{ReceivedRequest, Reply, ScriptedServer, event};
use mcp_vary_testkit::wait::soon;
use mcp_vary_upstream::{Event, Subscription, SupervisedConnection, Target, UpstreamConfig};
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::support::limits;

/// A stream as the server opened it: the id of its subscription, and where its events go.
type Stream = (Value, UnboundedSender<Bytes>);

/// A server that accepts all subscriptions, and the streams of the gateway.
async fn server() -> (ScriptedServer, UnboundedReceiver<Stream>) {
    let (senders, streams) = unbounded_channel();
    let script = move |seen: &ReceivedRequest| match seen.method() {
        "server/discover" => Some(seen.answer(&json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": {"resources": {"subscribe": true}},
        }))),
        "subscriptions/listen" => {
            let (sender, reply) = Reply::stream();
            let filter = &seen.body["params"]["notifications"];
            let params = json!({"notifications": filter, "_meta": {SUBSCRIPTION: seen.id()}});
            let method = "notifications/subscriptions/acknowledged";
            sender
                .send(event(&notification(method, params)).into())
                .unwrap();
            senders.send((seen.id().clone(), sender)).unwrap();
            Some(reply)
        }
        _ => None,
    };
    (ScriptedServer::start(script).await, streams)
}

/// The next resource that was updated.
async fn updated(events: &mut broadcast::Receiver<Event>) -> String {
    loop {
        if let Event::ResourceUpdated { uri, .. } = events.recv().await.unwrap() {
            return uri.to_string();
        }
    }
}

/// A connection whose first stream was replaced by a second one.
struct Replaced {
    line: Arc<SupervisedConnection>,
    events: broadcast::Receiver<Event>,
    /// The server's end of the first stream, which has `note:a`.
    first: Stream,
    _later: UnboundedReceiver<Stream>,
    _subscriptions: [Subscription; 2],
    _peer: ScriptedServer,
}

impl Replaced {
    async fn new() -> Self {
        let (peer, mut streams) = server().await;
        let config = UpstreamConfig::new("notes", Target::http(peer.url.clone()));
        let line = SupervisedConnection::open(config.with_limits(limits()));
        line.first_attempt().await.unwrap();
        let events = line.events();
        let one = line.subscribe("note:a");
        soon(one.settled()).await.unwrap();
        let first = soon(streams.recv()).await.unwrap();
        let other = line.subscribe("note:b");
        soon(other.settled()).await.unwrap();
        Self {
            line,
            events,
            first,
            _later: streams,
            _subscriptions: [one, other],
            _peer: peer,
        }
    }

    /// Sends an update of `note:a` on the first stream, as if the server had sent it before it received the request for
    /// the second one. `None` if the gateway no longer reads that stream.
    fn update(&self) -> Option<()> {
        let (id, stream) = &self.first;
        let params = json!({"uri": "note:a", "_meta": {SUBSCRIPTION: id}});
        let update = notification("notifications/resources/updated", params);
        stream.send(event(&update).into()).ok()
    }
}

/// The acknowledgement and the update come on two connections, of which one can be slow.
#[tokio::test]
async fn an_update_that_comes_half_a_second_after_its_stream_was_replaced_arrives() {
    let mut replaced = Replaced::new().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    replaced.update().expect("the stream is still read");
    assert_eq!(soon(updated(&mut replaced.events)).await, "note:a");
    replaced.line.close().await;
}

/// There are more than the replaced streams that are read at once: the oldest ones make room.
#[tokio::test]
async fn fifty_subscriptions_one_after_the_other_are_settled() {
    let replaced = Replaced::new().await;
    let mut held = Vec::new();
    for number in 0..50 {
        let subscription = replaced.line.subscribe(&format!("note:{number}"));
        soon(subscription.settled()).await.unwrap();
        held.push(subscription);
    }
    replaced.line.close().await;
}

/// Whether the gateway publishes an update that arrives on a stream which was replaced twice in the time in which replaced
/// streams are still read; `None` if the machine was too slow for that.
async fn arrives_on_a_replaced_stream() -> Option<bool> {
    let mut replaced = Replaced::new().await;
    replaced.update()?;
    let third = replaced.line.subscribe("note:c");
    soon(third.settled()).await.unwrap();
    let update = tokio::time::timeout(Duration::from_secs(2), updated(&mut replaced.events)).await;
    let has_arrived = update.is_ok_and(|uri| uri == "note:a");
    replaced.line.close().await;
    Some(has_arrived)
}

#[tokio::test]
async fn an_update_on_a_stream_that_was_replaced_twice_at_once_arrives() {
    for _ in 0..10 {
        if arrives_on_a_replaced_stream().await == Some(true) {
            return;
        }
    }
    panic!("no update arrived");
}
