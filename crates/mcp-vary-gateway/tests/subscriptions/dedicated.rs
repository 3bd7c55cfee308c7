//! Notifications for clients without a session whose calls are made on dedicated connections.

use std::net::SocketAddr;
use std::path::Path;

use crate::support::*;

/// A gateway before the process that tells of its changes in one session alone, and where it serves.
async fn before() -> (Arc<Gateway>, SocketAddr) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/changes.py");
    let script = script.to_str().unwrap().to_owned();
    let target = Target::command("python3", [script]);
    let gateway = Gateway::start(config(target)).await.unwrap();
    let (address, _) = serve(&gateway).await;
    (gateway, address)
}

fn listen(uris: &[&str]) -> Value {
    let params = json!({"notifications": {"resourceSubscriptions": uris}});
    by_one_that_can_be_asked("subscriptions/listen", params)
}

fn call(tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    by_one_that_can_be_asked("tools/call", params)
}

fn by_one_that_can_be_asked(method: &str, params: Value) -> Value {
    modern(json!(method), method, params, &json!({"elicitation": {}}))
}

/// A stream that tells of these resources.
async fn listening(address: SocketAddr, uris: &[&str]) -> RawHttp {
    let mut stream = RawHttp::connect(address).await;
    let post = HttpRequest::modern(&listen(uris)).bytes();
    stream.send(&post).await;
    assert_eq!(stream.head().await.status, 200);
    let acknowledged = soon(stream.event()).await.unwrap();
    let promised = &acknowledged["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(promised, &json!(uris));
    stream
}

async fn called(address: SocketAddr, tool: &str, arguments: Value) -> Value {
    let mut http = RawHttp::connect(address).await;
    let post = HttpRequest::modern(&call(tool, arguments));
    let answer = http.ask(&post).await.json();
    assert!(answer["result"].is_object(), "{answer}");
    answer["result"].clone()
}

async fn receives(stream: &mut RawHttp, uri: &str) {
    let told = soon(stream.event()).await.unwrap();
    told.has("/method", "notifications/resources/updated");
    told.has("/params/uri", uri);
}

/// The session of the first call begins after the stream, that of the second one is there already.
#[tokio::test]
async fn who_can_be_asked_hears_of_what_its_own_calls_change() {
    let (_gateway, address) = before().await;
    let mut stream = listening(address, &["note:a"]).await;
    for _ in 0..2 {
        called(address, "touch", json!({"uri": "note:a"})).await;
        receives(&mut stream, "note:a").await;
    }
    let mut other = listening(address, &["note:b"]).await;
    called(address, "touch", json!({"uri": "note:b"})).await;
    receives(&mut other, "note:b").await;
}

#[tokio::test]
async fn over_standard_streams_it_hears_so_too() {
    let (gateway, _) = before().await;
    let mut pipe = open_pipe(&gateway);
    pipe.send(listen(&["note:a"]).to_string()).await;
    let acknowledged = pipe.receive().await;
    acknowledged.has("/method", "notifications/subscriptions/acknowledged");
    pipe.send(call("touch", json!({"uri": "note:a"})).to_string())
        .await;
    let mut told = [pipe.receive().await, pipe.receive().await];
    told.sort_by_key(|message| message.get("id").is_some());
    told[0].has("/params/uri", "note:a");
    told[1].has("/id", "tools/call");
}

/// SV-15: whatever the server says there, nobody hears of what it did not ask for.
#[tokio::test]
async fn of_what_nobody_listens_to_nothing_is_told() {
    let (_gateway, address) = before().await;
    let mut stream = listening(address, &["note:a"]).await;
    let uris = json!({"uris": ["note:b", "note:none", "note:a"]});
    called(address, "change", uris).await;
    receives(&mut stream, "note:a").await;
    let mut other = listening(address, &["note:b"]).await;
    called(address, "change", json!({"uris": ["note:a", "note:b"]})).await;
    receives(&mut stream, "note:a").await;
    receives(&mut other, "note:b").await;
}

/// Nothing is left of a subscription that has ended.
#[tokio::test]
async fn when_nobody_listens_any_more_the_session_is_not_subscribed() {
    let (_gateway, address) = before().await;
    assert_eq!(
        called(address, "state", json!({})).await["subscribed"],
        json!([])
    );
    let stream = listening(address, &["note:a"]).await;
    let subscribed = called(address, "state", json!({})).await["subscribed"].clone();
    assert_eq!(subscribed, json!(["note:a"]));
    drop(stream);
    until(async || called(address, "state", json!({})).await["subscribed"] == json!([])).await;
}
