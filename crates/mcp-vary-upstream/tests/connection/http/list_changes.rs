//! Streams of list changes.

use super::*;

fn changed(kind: &str) -> String {
    let method = format!("notifications/{kind}/list_changed");
    event(&json!({"jsonrpc": "2.0", "method": method}))
}

fn acknowledged() -> String {
    let method = "notifications/subscriptions/acknowledged";
    event(&json!({"jsonrpc": "2.0", "method": method, "params": {"notifications": {}}}))
}

/// The next lists of which it is told that they changed.
async fn told(events: &mut broadcast::Receiver<Event>, kinds: &[Kind]) {
    for kind in kinds {
        match soon(events.recv()).await {
            Ok(Event::ListChanged(changed) | Event::ListMayHaveChanged(changed)) => {
                assert_eq!(changed, *kind);
            }
            other => panic!("{other:?} instead of {kind:?}"),
        }
    }
}

const ALL: [Kind; 3] = [Kind::Tools, Kind::Resources, Kind::Prompts];

#[tokio::test]
async fn list_changes_are_heard_on_the_stream_of_a_legacy_server() {
    let (peer, mut streams) = streams("GET", []).await;
    let upstream = connect(&peer).await;
    let mut events = upstream.events();
    let sender = soon(streams.recv()).await.unwrap();
    // What changed between the handshake and the stream was told nowhere.
    told(&mut events, &ALL).await;
    let first = format!("retry: 1\nid: 9\n{}", changed("prompts"));
    sender.send(first.into()).unwrap();
    told(&mut events, &[Kind::Prompts]).await;
    drop(sender);
    let sender = soon(streams.recv()).await.unwrap();
    // A stream that is resumed tells what was missed itself.
    sender.send(changed("resources").into()).unwrap();
    told(&mut events, &[Kind::Resources]).await;
    let streams = peer.of("GET");
    assert_eq!(streams[0].header("last-event-id"), None);
    assert_eq!(streams[1].header("last-event-id"), Some("9"));
}

#[tokio::test]
async fn all_lists_may_have_changed_when_a_stream_is_opened_anew() {
    let (peer, mut streams) = streams("GET", []).await;
    let upstream = connect(&peer).await;
    let mut events = upstream.events();
    for _ in 0..2 {
        let sender = soon(streams.recv()).await.unwrap();
        told(&mut events, &ALL).await;
        sender
            .send(format!("retry: 1\n{}", changed("tools")).into())
            .unwrap();
        told(&mut events, &[Kind::Tools]).await;
    }
}

#[tokio::test]
async fn a_stream_that_cannot_be_resumed_is_opened_anew() {
    let (peer, mut streams) = streams("GET", []).await;
    let upstream = connect(&peer).await;
    let mut events = upstream.events();
    let sender = soon(streams.recv()).await.unwrap();
    told(&mut events, &ALL).await;
    let too_long = "y".repeat(2_000_000);
    let piece = format!("retry: 1\nid: 9\n{}data: {too_long}", changed("tools"));
    sender.send(piece.into()).unwrap();
    told(&mut events, &[Kind::Tools]).await;
    // To resume would bring the event that is too long once more.
    let _sender = soon(streams.recv()).await.unwrap();
    told(&mut events, &ALL).await;
    assert_eq!(peer.of("GET")[1].header("last-event-id"), None);
}

#[tokio::test]
async fn a_stream_whose_last_event_is_forgotten_is_opened_anew() {
    let (peer, mut streams) = streams("GET", []).await;
    let upstream = connect(&peer).await;
    let mut events = upstream.events();
    let sender = soon(streams.recv()).await.unwrap();
    told(&mut events, &ALL).await;
    let piece = format!("retry: 1\nid: gone\n{}", changed("tools"));
    sender.send(piece.into()).unwrap();
    told(&mut events, &[Kind::Tools]).await;
    drop(sender);
    let _sender = soon(streams.recv()).await.unwrap();
    told(&mut events, &ALL).await;
    assert_eq!(peer.of("GET")[1].header("last-event-id"), Some("gone"));
    assert_eq!(peer.of("GET")[2].header("last-event-id"), None);
}

#[tokio::test]
async fn listening_goes_on_after_a_refusal_that_passes() {
    let busy = |_: &ReceivedRequest| Reply::new(409, "text/plain", "the old stream is still open");
    let (peer, mut legacy) = streams("GET", [busy as fn(&ReceivedRequest) -> Reply]).await;
    let limited = |_: &ReceivedRequest| Reply::new(429, "text/plain", "slow down");
    let failing = |seen: &ReceivedRequest| seen.refuse(200, -32603, "Internal error");
    let method = "subscriptions/listen";
    let (other, mut limited) = streams(method, [limited as fn(&ReceivedRequest) -> Reply]).await;
    let (third, mut failing) = streams(method, [failing as fn(&ReceivedRequest) -> Reply]).await;
    let upstreams = tokio::join!(connect(&peer), connect(&other), connect(&third));
    let opened = soon(async { tokio::join!(legacy.recv(), limited.recv(), failing.recv()) }).await;
    assert!(opened.0.is_some() && opened.1.is_some() && opened.2.is_some());
    drop(upstreams);
}

#[tokio::test]
async fn a_modern_server_is_asked_for_its_list_changes_again_and_again() {
    let (peer, mut streams) = streams("subscriptions/listen", []).await;
    let upstream = connect(&peer).await;
    let mut events = upstream.events();
    for _ in 0..2 {
        let sender = soon(streams.recv()).await.unwrap();
        sender.send(acknowledged().into()).unwrap();
        // What changed before was told nowhere.
        told(&mut events, &[Kind::Tools]).await;
        sender.send(changed("tools").into()).unwrap();
        told(&mut events, &[Kind::Tools]).await;
    }
    let listen = &peer.of("subscriptions/listen")[0];
    assert_eq!(
        listen.body["params"]["notifications"],
        json!({"toolsListChanged": true})
    );
    assert_eq!(listen.header("mcp-method"), Some("subscriptions/listen"));
    let sender = soon(streams.recv()).await.unwrap();
    drop(upstream);
    sender.closed().await;
}
