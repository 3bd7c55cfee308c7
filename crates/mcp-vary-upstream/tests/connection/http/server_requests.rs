//! What servers request and send beside the responses to calls.

use super::*;

#[tokio::test]
async fn what_the_server_asks_is_answered_or_refused() {
    let (senders, mut streams) = mpsc::unbounded_channel();
    let peer = legacy(move |seen| {
        let (sender, reply) = Reply::stream();
        let ping = event(&json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}));
        let ask = event(
            &json!({"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": {}}),
        );
        sender.send((ping + &ask).into()).unwrap();
        senders.send((sender, seen.message(&json!({})))).unwrap();
        reply
    })
    .await;
    let upstream = connect(&peer).await;
    let running = tokio::spawn(all(upstream.request(call("x")).await.unwrap()));
    let (sender, answer) = soon(streams.recv()).await.unwrap();
    // Replies have no method, so that they are counted by their verb.
    let replies = peer.wait_for("POST", 2).await;
    let find = |id: Value| replies.iter().find(|seen| *seen.id() == id).unwrap();
    assert_eq!(find(json!("p")).body["result"], json!({}));
    assert_eq!(find(json!(7)).body["error"]["code"], -32601);
    assert_eq!(find(json!(7)).header("mcp-session-id"), Some("s-1"));
    sender.send(event(&answer).into()).unwrap();
    assert_eq!(running.await.unwrap().1, Ok(json!({})));
}

/// What a client that has a connection alone is asked, on the stream of its call and beside it.
#[tokio::test]
async fn who_has_a_connection_alone_is_asked_and_answers() {
    let (senders, mut streams) = mpsc::unbounded_channel();
    let peer = ScriptedServer::start(move |seen| match seen.method() {
        "tools/call" | "GET" => {
            let (sender, reply) = Reply::stream();
            let id = json!(seen.method());
            let ask = json!({"jsonrpc": "2.0", "id": id, "method": "roots/list"});
            sender.send(event(&ask).into()).unwrap();
            senders.send((sender, seen.message(&json!({})))).unwrap();
            Some(reply)
        }
        _ => None,
    })
    .await;
    let mut config = config(&peer).dedicated();
    config.limits.idle = Duration::from_secs(1);
    let upstream = UpstreamConnection::connect(config).await.unwrap();
    let mut events = upstream.events();
    let outside = loop {
        if let Event::ServerRequest(request) = soon(events.recv()).await.unwrap() {
            break request;
        }
    };
    let (_get, _) = soon(streams.recv()).await.unwrap();
    let mut exchange = upstream.request(call("x")).await.unwrap();
    let Ok(Message::Request(inside)) = exchange.next().await else {
        panic!("the server asks");
    };
    let waiting = tokio::time::timeout(Duration::from_millis(1_500), exchange.next());
    assert!(waiting.await.is_err());
    outside.reply(Ok(r#"{"roots":[]}"#));
    inside.reply(Err(r#"{"code":-1,"message":"no"}"#));
    let replies = peer.wait_for("POST", 2).await;
    let find = |id: &str| replies.iter().find(|seen| *seen.id() == id).unwrap();
    assert_eq!(find("GET").body["result"], json!({"roots": []}));
    assert_eq!(find("tools/call").body["error"]["code"], -1);
    assert_eq!(find("GET").header("mcp-session-id"), Some("s-1"));
    let (sender, answer) = soon(streams.recv()).await.unwrap();
    sender.send(event(&answer).into()).unwrap();
    assert_eq!(all(exchange).await.1, Ok(json!({})));
}

/// Some servers ask and log beside the stream of the call for which they do.
#[tokio::test]
async fn a_call_that_has_a_connection_alone_hears_what_comes_beside_it() {
    let (senders, mut streams) = mpsc::unbounded_channel();
    let (callers, mut calls) = mpsc::unbounded_channel();
    let peer = ScriptedServer::start(move |seen| {
        let to = match seen.method() {
            "GET" => &senders,
            "tools/call" => &callers,
            _ => return None,
        };
        let (sender, reply) = Reply::stream();
        to.send((sender, seen.message(&json!({})))).unwrap();
        Some(reply)
    })
    .await;
    let mut config = config(&peer).dedicated();
    config.is_pooled = true;
    let upstream = UpstreamConnection::connect(config).await.unwrap();
    let (mut beside, _) = soon(streams.recv()).await.unwrap();
    for id in [1, 2] {
        let request = Request {
            caller: Some(CallerId(7)),
            ..call("x")
        };
        let mut exchange = upstream.request(request).await.unwrap();
        // A request is sent only while somebody waits for its messages.
        let (sender, answer) = tokio::select! {
            received = soon(calls.recv()) => received.unwrap(),
            message = exchange.next() => panic!("{message:?} before the server has the call"),
        };
        // On a slow machine the stream may have been opened once more.
        while let Ok((newer, _)) = streams.try_recv() {
            beside = newer;
        }
        let log =
            json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": id}});
        let ask = json!({"jsonrpc": "2.0", "id": id, "method": "roots/list"});
        beside
            .send([event(&log), event(&ask)].concat().into())
            .unwrap();
        let Ok(Message::Notification(told)) = exchange.next().await else {
            panic!("the server tells");
        };
        assert_eq!(parse(&told), log);
        let Ok(Message::Request(asked)) = exchange.next().await else {
            panic!("the server asks");
        };
        asked.reply(Ok(r#"{"roots":[]}"#));
        let replies = peer.wait_for("POST", id).await;
        assert_eq!(replies[id - 1].body["result"], json!({"roots": []}));
        sender.send(event(&answer).into()).unwrap();
        assert_eq!(all(exchange).await.1, Ok(json!({})));
    }
}

/// What a server asks while nobody listens is lost, and with it the call for which it asks.
#[tokio::test]
async fn who_has_a_connection_alone_listens_before_it_calls() {
    let (senders, _streams) = mpsc::unbounded_channel();
    let refused = AtomicUsize::new(0);
    let peer = ScriptedServer::start(move |seen| match seen.method() {
        "GET" => {
            let (sender, reply) = Reply::stream();
            senders.send(sender).unwrap();
            Some(reply)
        }
        "tools/call" if refused.fetch_add(1, Ordering::SeqCst) == 0 => {
            Some(seen.refuse(404, -32001, "Session not found"))
        }
        _ => None,
    })
    .await;
    let upstream = UpstreamConnection::connect(config(&peer).dedicated())
        .await
        .unwrap();
    assert_eq!(peer.of("GET").len(), 1);
    result(&upstream, "x").await.unwrap();
    let seen = peer
        .received()
        .into_iter()
        .map(|seen| seen.method().to_owned());
    let seen: Vec<_> = seen
        .filter(|method| method == "GET" || method == "tools/call")
        .collect();
    assert_eq!(seen, ["GET", "tools/call", "GET", "tools/call"]);
}

#[tokio::test]
async fn a_server_that_opens_no_stream_before_it_has_something_to_say_is_called_all_the_same() {
    let peer = ScriptedServer::start(|seen| (seen.method() == "GET").then(Reply::silence)).await;
    let mut config = config(&peer).dedicated();
    config.limits.probe = Duration::from_millis(50);
    let upstream = UpstreamConnection::connect(config).await.unwrap();
    assert!(result(&upstream, "x").await.is_ok());
}
