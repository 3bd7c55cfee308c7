//! Cancellation, progress and logs: each reaches the request that it belongs to.

use crate::support::*;

fn cancelled(id: Value) -> Value {
    notification(
        "notifications/cancelled",
        json!({"requestId": id, "reason": "changed my mind"}),
    )
}

/// A gateway that takes one connection at a time: whoever is answered knows that the one before has ended.
async fn narrow(era: Era) -> Harness {
    let mut one = limits();
    one.connections = 1;
    Harness::before(era, |config| config.with_limits(one)).await
}

/// > Disconnection SHOULD NOT be interpreted as the client cancelling its request.
/// > (MCP 2025-11-25, basic/transports, "Sending Messages to the Server")
#[tokio::test]
async fn a_legacy_client_that_hangs_up_has_not_cancelled_but_still_can() {
    for era in [Era::Legacy, Era::Modern] {
        let harness = narrow(era).await;
        let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
        harness.wait_in(&mut client, 7).await;
        client.http = harness.connect().await;
        assert_eq!(client.ask("ping", json!({})).await.status, 200);
        assert!(harness.peer.of("notifications/cancelled").is_empty());
        let again = client.post(&request(json!(7), "ping", json!({})));
        let answer = client.http.ask(&again).await;
        let expected = (400, -32600, json!(7));
        assert_eq!(answer.refusal(), expected, "it is still in flight");

        let cancel = client.post(&cancelled(json!(7)));
        assert_eq!(client.http.ask(&cancel).await.status, 202);
        soon(harness.peer.wait_for_abandoned(1)).await;
        cancellations_are(&harness, usize::from(era == Era::Legacy)).await;
    }
}

/// Checks that the server gets `count` cancellations and no more. A further call arrives after everything before it.
async fn cancellations_are(harness: &Harness, count: usize) {
    if count > 0 {
        let cancelled = harness.peer.wait_for("notifications/cancelled", count);
        cancelled.await;
    }
    let calls = harness.peer.of("tools/call").len();
    let mut http = harness.connect().await;
    let answer = http.ask_modern("tools/call", tool("odd")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    soon(harness.peer.wait_for("tools/call", calls + 1)).await;
    assert_eq!(harness.peer.of("notifications/cancelled").len(), count);
}

/// Requests whose clients have left still count as in flight.
#[tokio::test]
async fn hanging_up_makes_no_room_for_more() {
    let mut one = limits().with_in_flight(1);
    one.connections = 1;
    let harness = Harness::with(|config| config.with_limits(one)).await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    harness.wait_in(&mut client, 7).await;
    client.http = harness.connect().await;
    let expected = (400, -32600, json!(1));
    assert_eq!(client.ask("ping", json!({})).await.refusal(), expected);
}

/// > the client closing its connection to the response is cancellation (MCP 2026-07-28)
#[tokio::test]
async fn a_modern_client_that_hangs_up_has_cancelled() {
    for era in [Era::Legacy, Era::Modern] {
        let harness = Harness::before(era, |config| config).await;
        drop(harness.unanswered(1).await);
        soon(harness.peer.wait_for_abandoned(1)).await;
        cancellations_are(&harness, usize::from(era == Era::Legacy)).await;
        harness.still_serves("a client that hung up").await;
    }
}

#[tokio::test]
async fn a_cancelled_request_of_a_session_ends() {
    for era in [Era::Legacy, Era::Modern] {
        let harness = Harness::before(era, |config| config).await;
        let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
        let mut stranger = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
        harness.wait_in(&mut client, 7).await;
        for other in [json!("7"), json!(8), json!(7.0)] {
            let cancel = client.post(&cancelled(other));
            assert_eq!(harness.connect().await.ask(&cancel).await.status, 202);
        }
        let cancel = stranger.post(&cancelled(json!(7)));
        assert_eq!(stranger.http.ask(&cancel).await.status, 202);
        let again = client.post(&request(json!(7), "ping", json!({})));
        let found = stranger.http.ask(&again).await.status;
        assert_eq!(found, 400, "none of that was it");

        let cancel = client.post(&cancelled(json!(7)));
        assert_eq!(stranger.http.ask(&cancel).await.status, 202);
        let answer = client.http.response().await;
        assert_eq!((answer.status, answer.text().as_str()), (202, ""));
        soon(harness.peer.wait_for_abandoned(1)).await;
        harness
            .is_unharmed(&mut client.http, "a cancelled request")
            .await;
    }
}

/// The params of a call that begins a stream and does not end it.
fn begin() -> Value {
    let mut params = tool("begin");
    params["_meta"]["progressToken"] = json!("t");
    params
}

async fn has_begun(http: &mut RawHttp) {
    let expected = Some("text/event-stream");
    assert_eq!(http.head().await.header("content-type"), expected);
    let first = http.event().await.unwrap();
    first.has("/params", json!({"progressToken": "t", "progress": 1}));
}

/// Sends the call 7 in a session, and reads the first event of its stream.
async fn begin_in(client: &mut LegacyClient) {
    let call = client.post(&request(json!(7), "tools/call", begin()));
    client.http.send(&call.bytes()).await;
    has_begun(&mut client.http).await;
}

#[tokio::test]
async fn a_stream_can_be_cancelled_and_ends_without_an_answer() {
    let harness = Harness::start().await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    begin_in(&mut client).await;
    let cancel = client.post(&cancelled(json!(7)));
    assert_eq!(harness.connect().await.ask(&cancel).await.status, 202);
    assert!(client.http.events().await.is_empty());
    soon(harness.peer.wait_for("notifications/cancelled", 1)).await;
    harness
        .is_unharmed(&mut client.http, "a cancelled stream")
        .await;
}

#[tokio::test]
async fn a_stream_ends_with_its_session_and_says_so() {
    let harness = Harness::start().await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    begin_in(&mut client).await;
    let delete = HttpRequest::delete(&client.session);
    assert_eq!(harness.connect().await.ask(&delete).await.status, 200);
    let rest = client.http.events().await;
    rest[0].has("/id", 7);
    rest[0].has("/error/code", -32001);
    assert_eq!(rest.len(), 1);
    soon(harness.peer.wait_for("notifications/cancelled", 1)).await;
}

/// A stream that is left is a request that is left: cancelled in one era, running on in the other.
#[tokio::test]
async fn leaving_a_stream_cancels_in_the_modern_era_only() {
    let harness = narrow(Era::Legacy).await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    begin_in(&mut client).await;
    client.http = harness.connect().await;
    let again = client.post(&request(json!(7), "ping", json!({})));
    let expected = (400, -32600, json!(7));
    assert_eq!(client.http.ask(&again).await.refusal(), expected);

    client.http = harness.connect().await;
    let call = modern(json!(7), "tools/call", begin(), &json!({}));
    client.http.send(&HttpRequest::modern(&call).bytes()).await;
    has_begun(&mut client.http).await;
    assert!(harness.peer.of("notifications/cancelled").is_empty());
    drop(client);
    soon(harness.peer.wait_for("notifications/cancelled", 1)).await;
}

/// > The receiver of the cancellation SHOULD NOT send a response for the cancelled request.
#[tokio::test]
async fn a_client_on_stdio_cancels_in_both_eras() {
    let harness = Harness::start().await;
    let mut pipe = legacy_pipe(&harness.gateway, "2025-11-25", &json!({})).await;
    let legacy = request(json!(7), "tools/call", tool("wait"));
    let modern = modern(json!(8), "tools/call", tool("wait"), &json!({}));
    pipe.send(format!("{legacy}\n{modern}")).await;
    soon(harness.peer.wait_for("tools/call", 2)).await;
    for (told, id) in [json!(7), json!(8)].into_iter().enumerate() {
        pipe.send(cancelled(id.clone()).to_string()).await;
        soon(harness.peer.wait_for("notifications/cancelled", told + 1)).await;
        let ping = pipe.ask(&request(id, "ping", json!({}))).await;
        // The next line is not about the cancelled one.
        ping.has("/result", json!({}));
    }
}

/// CN-7: tokens of progress are the client's own, string or number, and the order is the server's.
#[tokio::test]
async fn progress_carries_the_clients_token_in_the_servers_order() {
    for era in [Era::Legacy, Era::Modern] {
        let harness = Harness::before(era, |config| config).await;
        let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
        let large = json!(9_007_199_254_740_993_u64);
        for token in [json!(7), json!("a"), json!("7"), json!("é\"\\"), large] {
            let mut params = tool("steps");
            params["_meta"]["progressToken"] = token.clone();
            let call = request(json!("c"), "tools/call", params.clone());
            let post = client.post(&call);
            client.http.send(&post.bytes()).await;
            let head = client.http.head().await;
            assert_eq!(head.header("content-type"), Some("text/event-stream"));
            let events = client.http.events().await;
            check_steps(&events, &token, &["debug", "info", "error"]);

            let mut http = harness.connect().await;
            let call = modern(json!("c"), "tools/call", params, &json!({}));
            http.send(&HttpRequest::modern(&call).bytes()).await;
            http.head().await;
            check_steps(&http.events().await, &token, &[]);
        }
    }
}

/// Step one, the messages of these levels, step two, the answer.
#[track_caller]
fn check_steps(events: &[Value], token: &Value, levels: &[&str]) {
    let shown = events.iter().map(|event| match event["method"].as_str() {
        Some("notifications/progress") => {
            assert_eq!(event["params"]["progressToken"], *token);
            event["params"]["progress"].clone()
        }
        Some("notifications/message") => event["params"]["level"].clone(),
        _ => event["id"].clone(),
    });
    let shown: Vec<Value> = shown.collect();
    let mut expected = vec![json!(1)];
    expected.extend(levels.iter().map(|level| json!(level)));
    expected.extend([json!(2), json!("c")]);
    assert_eq!(shown, expected);
}

/// Each client hears from the level that it asked for, whatever another one asked.
#[tokio::test]
async fn each_client_has_its_own_level() {
    let harness = Harness::start().await;
    let mut loud = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let mut quiet = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    for (client, level) in [(&mut quiet, "error"), (&mut loud, "debug")] {
        let level = json!({"level": level});
        let found = client.ask("logging/setLevel", level).await.status;
        assert_eq!(found, 200);
    }
    let mut params = tool("steps");
    params["_meta"]["progressToken"] = json!(1);
    for (client, levels) in [
        (&mut loud, &["debug", "info", "error"][..]),
        (&mut quiet, &["error"]),
    ] {
        let post = client.post(&request(json!("c"), "tools/call", params.clone()));
        client.http.send(&post.bytes()).await;
        client.http.head().await;
        check_steps(&client.http.events().await, &json!(1), levels);
    }
    params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("info");
    let mut http = harness.connect().await;
    let call = modern(json!("c"), "tools/call", params.clone(), &json!({}));
    http.send(&HttpRequest::modern(&call).bytes()).await;
    http.head().await;
    check_steps(&http.events().await, &json!(1), &["info", "error"]);
    params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("loud");
    let refused = http.ask_modern("tools/call", params).await;
    assert_eq!(refused.refusal().1, -32602);
}

/// A legacy endpoint that forgets the first session when the second call comes.
fn forgetful() -> impl Fn(&ReceivedRequest) -> Option<Reply> + Send + Sync + 'static {
    let (sessions, calls) = (AtomicUsize::new(0), AtomicUsize::new(0));
    move |seen| match seen.method() {
        "initialize" => {
            let number = sessions.fetch_add(1, Ordering::SeqCst) + 1;
            let result = introduced("x", json!({"logging": {}, "tools": {}}));
            Some(seen.open(format!("s-{number}"), &result))
        }
        "tools/list" => Some(seen.answer(&json!({"tools": [{"name": "x", "inputSchema": {}}]}))),
        "logging/setLevel" => Some(seen.answer(&json!({}))),
        "tools/call" if calls.fetch_add(1, Ordering::SeqCst) == 1 => {
            Some(Reply::new(404, "text/plain", "Session not found"))
        }
        _ => None,
    }
}

/// A new session of the server begins with the level that the one before had.
#[tokio::test]
async fn a_level_outlives_the_servers_session() {
    let peer = ScriptedServer::start(forgetful()).await;
    let target = Target::http(peer.url.clone());
    let gateway = Gateway::start(config(target)).await.unwrap();
    let mut pipe = legacy_pipe(&gateway, "2025-11-25", &json!({})).await;
    let level = request(json!(1), "logging/setLevel", json!({"level": "notice"}));
    pipe.ask(&level).await;
    for id in [2, 3, 4] {
        let answer = pipe.ask(&request(json!(id), "tools/call", tool("x"))).await;
        assert!(answer["result"].is_object(), "{answer}");
    }
    let set = peer.of("logging/setLevel").into_iter().map(|seen| {
        let level = seen.body["params"]["level"].as_str().unwrap();
        format!("{} in {}", level, seen.header("mcp-session-id").unwrap())
    });
    let set: Vec<_> = set.collect();
    assert_eq!(set, ["notice in s-1", "notice in s-2"]);
    gateway.close().await;
}

/// Two clients that chose the same token and id share one process, and neither hears the other's steps.
#[tokio::test]
async fn the_same_token_twice_at_one_process_is_kept_apart() {
    let gateway = Gateway::start(config(of_script("pace.py"))).await.unwrap();
    let mut pipes = Vec::new();
    for who in ["a", "b"] {
        let mut pipe = legacy_pipe(&gateway, "2025-11-25", &json!({})).await;
        let params =
            json!({"name": "pace", "arguments": {"who": who}, "_meta": {"progressToken": "t"}});
        let call = request(json!(1), "tools/call", params);
        pipe.send(call.to_string()).await;
        pipes.push((who, pipe));
    }
    for (who, pipe) in &mut pipes {
        for step in 1..=3 {
            let event = pipe.receive().await;
            let expected = json!({"progressToken": "t", "progress": step, "message": who});
            event.has("/params", expected);
        }
        let answer = pipe.receive().await;
        answer.has("/id", 1);
        answer.has("/result/who", json!(who));
    }
    close(&gateway).await;
}

async fn close(gateway: &Arc<Gateway>) {
    soon(gateway.close()).await;
}
