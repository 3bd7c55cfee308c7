//! The transport of 2024-11-05 (HTTP with SSE).

use bytes::Bytes;
use http::header::AUTHORIZATION;
use mcp_vary_base::memory_budget::{Lease, MemoryBudget};
use mcp_vary_testkit::message::notification;
use mcp_vary_upstream::header_command::{HeaderCommand, HeaderCommandSettings};
use mcp_vary_upstream::{AnswerMemory, SupervisedConnection};

use super::*;

type Sender = mpsc::UnboundedSender<Bytes>;

/// A server with this transport alone.
struct OldServer {
    peer: ScriptedServer,
    /// The open streams, the latest last.
    streams: Arc<Mutex<Vec<Sender>>>,
}

impl OldServer {
    /// The server answers a `POST` to its stream with `refusal`, and posted messages as `script` decides.
    async fn start(
        refusal: u16,
        script: impl Fn(&ReceivedRequest, &Sender) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        let streams = Arc::<Mutex<Vec<Sender>>>::default();
        let opened = Arc::clone(&streams);
        let peer = ScriptedServer::start(move |seen| {
            let mut opened = opened.lock().unwrap();
            if seen.verb == "GET" {
                let (sender, reply) = Reply::stream();
                let endpoint = format!("/messages/?session_id=SESSION-{}", opened.len());
                let first =
                    format!(": greeting\n\nevent: endpoint\ndata: {endpoint}\n\n: alive\n\n");
                sender.send(first.into()).unwrap();
                opened.push(sender);
                return Some(reply);
            }
            let number = seen.path.strip_prefix("/messages/?session_id=SESSION-");
            let Some(stream) = number.and_then(|number| opened.get(number.parse::<usize>().ok()?))
            else {
                return Some(Reply::new(refusal, "text/html", "Cannot POST"));
            };
            Some(script(seen, stream).unwrap_or_else(|| ordinary_reply(seen, stream)))
        })
        .await;
        Self { peer, streams }
    }

    async fn plain() -> Self {
        Self::start(405, |_, _| None).await
    }

    /// A server that does not answer calls of `hang`.
    async fn hanging() -> Self {
        Self::start(405, |seen, _| {
            (seen.method() == "tools/call" && seen.body["params"]["name"] == "hang")
                .then(|| Reply::new(202, "text/plain", ""))
        })
        .await
    }

    fn send(&self, message: &Value) {
        let streams = self.streams.lock().unwrap();
        streams.last().unwrap().send(event(message).into()).unwrap();
    }

    async fn connect(&self) -> Arc<UpstreamConnection> {
        connect(&self.peer).await
    }
}

/// Answers on the stream as an ordinary server does.
fn ordinary_reply(seen: &ReceivedRequest, stream: &Sender) -> Reply {
    let result = match seen.method() {
        "initialize" => json!({
            "protocolVersion": "2024-11-05",
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "old", "version": "1"},
        }),
        "tools/call" => json!({"echo": seen.body["params"]["name"]}),
        _ => json!({}),
    };
    if !seen.id().is_null() && seen.body.get("method").is_some() {
        let answer = format!("event: message\ndata: {}\n\n", seen.message(&result));
        // The stream may have been closed by the test.
        let _ = stream.send(answer.into());
    }
    Reply::new(202, "text/plain", "Accepted")
}

#[tokio::test]
async fn a_server_that_opens_its_stream_and_says_nothing_there_is_told_from_one_that_says_nothing()
{
    let silent = |_: &ReceivedRequest, _: &Sender| Some(Reply::new(202, "text/plain", "Accepted"));
    let server = OldServer::start(405, silent).await;
    let mut config = config(&server.peer);
    config.limits.handshake = Duration::from_millis(500);
    let error = UpstreamConnection::connect(config).await.unwrap_err();
    says(
        &error,
        &[
            "`remote`",
            "not ready within 500ms: `http://",
            "opened its event stream (the transport of 2024-11-05, SSE), and did not answer `initialize` there",
        ],
    );
}

#[tokio::test]
async fn a_server_that_refuses_to_be_posted_to_is_reached_on_its_stream() {
    for refusal in [400, 404, 405] {
        let server = OldServer::start(refusal, |_, _| None).await;
        let upstream = server.connect().await;
        assert_eq!(upstream.handshake().revision, Revision::V2024_11_05);
        let calls = futures_util::future::join_all((0..50).map(async |number| {
            let name = format!("tool-{number}");
            assert_eq!(result(&upstream, &name).await, Ok(json!({"echo": name})));
        }));
        soon(calls).await;
        upstream
            .notify("notifications/roots/list_changed", None)
            .await
            .unwrap();
        // There is one stream, and no session to delete.
        upstream.close().await;
        assert_eq!(server.peer.of("GET").len(), 1);
        assert!(server.peer.of("DELETE").is_empty());
        let last = server.streams.lock().unwrap().last().cloned().unwrap();
        soon(last.closed()).await;
    }
}

#[tokio::test]
async fn a_server_of_the_type_sse_is_not_posted_to_first() {
    let server = OldServer::plain().await;
    let mut config = config(&server.peer);
    config.is_sse = true;
    let upstream = UpstreamConnection::connect(config).await.unwrap();
    result(&upstream, "x").await.unwrap();
    let first = server.peer.received().remove(0);
    assert_eq!(first.verb, "GET");
    assert_eq!(first.header("accept"), Some("text/event-stream"));
    let posted = server.peer.received().into_iter().skip(1);
    let mut paths = posted.map(|seen| seen.path);
    assert!(paths.all(|path| path.starts_with("/messages/")));
}

/// A server whose `GET` is answered like this is not usable.
async fn fails(get: fn() -> Reply, opens: bool, limit: Duration, parts: &[&str]) {
    let peer = ScriptedServer::start(move |seen| {
        Some(match seen.verb.as_str() {
            "GET" => get(),
            _ => Reply::new(404, "text/plain", "not here"),
        })
    })
    .await;
    let mut config = config(&peer);
    config.limits.probe = limit;
    let error = UpstreamConnection::connect(config.clone())
        .await
        .unwrap_err();
    let refused = "answered `initialize` with HTTP 404 Not Found (not here), and ";
    if opens {
        let broken = "was not ready on its event stream (the transport of 2024-11-05, SSE): ";
        says(&error, &[refused, broken]);
        says(&error, parts);
    } else {
        let none = "has no stream of the transport of 2024-11-05 (SSE) either";
        says(&error, &[refused, none]);
    }
    let requests = peer.received().len();
    config.is_sse = true;
    config.limits.handshake = limit;
    let error = UpstreamConnection::connect(config).await.unwrap_err();
    says(&error, &["`remote`"]);
    says(&error, parts);
    // Nothing was posted anywhere.
    assert_eq!(peer.received().len(), requests + 1);
}

#[tokio::test]
async fn a_stream_that_cannot_be_used_is_an_error_that_says_why() {
    let long = Duration::from_secs(20);
    let none = || Reply::new(404, "text/plain", "nothing");
    fails(none, false, long, &["404 Not Found", "nothing"]).await;
    let json = || Reply::json(200, &json!({}));
    let no_stream = "answered GET with something else than a stream";
    fails(json, false, long, &[no_stream]).await;
    let hello = || Reply::events(": hello\n\n");
    let no_address = "the stream ended before it named an address for messages";
    fails(hello, true, long, &[no_address]).await;
    let other = || Reply::events("event: endpoint\ndata: https://elsewhere.example/messages\n\n");
    let elsewhere = "the address for messages that its stream names is not one of its own origin";
    fails(other, true, long, &[elsewhere]).await;
    let huge = || Reply::events(format!("data: {}", "y".repeat(2_000_000)));
    fails(huge, true, long, &["an event of more than 1 MiB"]).await;
    let short = Duration::from_millis(100);
    fails(Reply::silence, false, short, &["within 100ms"]).await;
}

#[tokio::test]
async fn notifications_arrive_before_the_answer_to_their_call() {
    let server = OldServer::start(405, |seen, stream| {
        if seen.method() == "tools/call" {
            for step in 1..=20 {
                let progress = json!({"progressToken": "t", "progress": step});
                let progress = notification("notifications/progress", progress);
                stream.send(event(&progress).into()).unwrap();
            }
        }
        None
    })
    .await;
    let upstream = server.connect().await;
    let mut events = upstream.events();
    let mut request = call("x");
    request.progress_token = Some("\"t\"".to_owned());
    let (notifications, answer) = all(upstream.request(request).await.unwrap()).await;
    let steps: Vec<_> = notifications
        .iter()
        .map(|it| it["params"]["progress"].clone())
        .collect();
    assert_eq!(steps, (1..=20).map(Value::from).collect::<Vec<_>>());
    assert!(answer.is_ok());
    server.send(&notification("notifications/tools/list_changed", json!({})));
    while !matches!(
        soon(events.recv()).await,
        Ok(Event::ListChanged(Kind::Tools))
    ) {}
}

#[tokio::test]
async fn a_client_is_asked_back_on_the_stream_and_its_answer_is_posted() {
    let asking = Mutex::new(Value::Null);
    let server = OldServer::start(405, move |seen, stream| match seen.method() {
        "tools/call" => {
            asking.lock().unwrap().clone_from(seen.id());
            let question = json!({"jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage", "params": {}});
            stream.send(event(&question).into()).unwrap();
            Some(Reply::new(202, "text/plain", ""))
        }
        _ if *seen.id() == "q" => {
            let done = json!({"jsonrpc": "2.0", "id": *asking.lock().unwrap(), "result": {"sampled": seen.body["result"]}});
            stream.send(event(&done).into()).unwrap();
            None
        }
        _ => None,
    })
    .await;
    let upstream = UpstreamConnection::connect(config(&server.peer).dedicated())
        .await
        .unwrap();
    let mut events = upstream.events();
    let exchange = upstream.request(call("x")).await.unwrap();
    let running = tokio::spawn(all(exchange));
    let question = loop {
        if let Event::ServerRequest(question) = soon(events.recv()).await.unwrap() {
            break question;
        }
    };
    question.reply(Ok(r#"{"role":"assistant"}"#));
    let (_, answer) = soon(running).await.unwrap();
    assert_eq!(answer, Ok(json!({"sampled": {"role": "assistant"}})));
}

/// Without a `GET` stream, a client can be asked in its call alone. The stream of the server shows no call.
#[tokio::test]
async fn a_client_with_a_connection_alone_is_asked_in_its_latest_call() {
    let server = OldServer::hanging().await;
    let config = config(&server.peer).dedicated();
    let upstream = UpstreamConnection::connect(config).await.unwrap();
    let mut events = upstream.events();
    let of_client = |caller| Request {
        caller,
        ..call("hang")
    };
    let mut first = upstream
        .request(of_client(Some(CallerId(7))))
        .await
        .unwrap();
    let mut latest = upstream
        .request(of_client(Some(CallerId(7))))
        .await
        .unwrap();
    let of_gateway = upstream.request(of_client(None)).await.unwrap();
    let question = |id| event(&json!({"jsonrpc": "2.0", "id": id, "method": "roots/list"}));
    let ask = |id| {
        let streams = server.streams.lock().unwrap();
        streams.last().unwrap().send(question(id).into()).unwrap();
    };
    ask(1);
    let Ok(Message::Request(asked)) = soon(latest.next()).await else {
        panic!("the server asks");
    };
    asked.reply(Ok(r#"{"roots":[]}"#));
    drop(latest);
    ask(2);
    let Ok(Message::Request(asked)) = soon(first.next()).await else {
        panic!("the server asks");
    };
    asked.reply(Ok(r#"{"roots":[]}"#));
    // Between its calls, it is asked as before.
    drop((first, of_gateway));
    ask(3);
    loop {
        if let Event::ServerRequest(question) = soon(events.recv()).await.unwrap() {
            break question.reply(Ok(r#"{"roots":[]}"#));
        }
    }
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_and_a_late_answer_is_ignored() {
    let server = OldServer::hanging().await;
    let upstream = server.connect().await;
    let mut exchange = upstream.request(call("hang")).await.unwrap();
    let waiting = tokio::time::timeout(Duration::from_millis(50), exchange.next());
    assert!(waiting.await.is_err());
    drop(exchange);
    let cancelled = server.peer.wait_for("notifications/cancelled", 1).await;
    let call = server.peer.of("tools/call").remove(0);
    assert_eq!(cancelled[0].body["params"]["requestId"], *call.id());
    server.send(&call.message(&json!({"late": true})));
    assert_eq!(result(&upstream, "x").await, Ok(json!({"echo": "x"})));
}

#[tokio::test]
async fn a_new_session_begins_when_the_stream_breaks() {
    let server = OldServer::hanging().await;
    let mut config = config(&server.peer);
    config.limits.backoff = Duration::from_millis(20);
    let supervised = SupervisedConnection::open(config);
    let upstream = soon(supervised.first_attempt()).await.unwrap();
    let hanging = upstream.request(call("hang")).await.unwrap();
    let hanging = tokio::spawn(hanging.answer());
    server.peer.wait_for("tools/call", 1).await;
    server.streams.lock().unwrap()[0] = mpsc::unbounded_channel().0;
    let error = soon(hanging).await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "server `remote` closed its event stream");
    assert!(error.is_loss(), "a call may be repeated as after any loss");
    let again = loop {
        if let Ok(upstream) = soon(supervised.ready()).await {
            break upstream;
        }
    };
    assert_eq!(result(&again, "x").await, Ok(json!({"echo": "x"})));
    let last = server.peer.of("tools/call").pop().unwrap();
    assert_eq!(last.path, "/messages/?session_id=SESSION-1");
    assert_eq!(
        server.peer.of("tools/call").len(),
        2,
        "the lost call is not repeated"
    );
    supervised.close().await;
}

#[tokio::test]
async fn an_event_over_the_limit_ends_the_connection() {
    let server = OldServer::start(405, |seen, stream| {
        if seen.method() == "tools/call" {
            let huge = format!("data: {}", "y".repeat(2_000_000));
            stream.send(huge.into()).unwrap();
        }
        None
    })
    .await;
    let error = result(&server.connect().await, "x").await.unwrap_err();
    let huge = "server `remote` sent an event of more than 1 MiB";
    says(&error, &[huge]);
}

#[tokio::test]
async fn a_refused_message_is_an_error_without_the_id_of_the_session() {
    let server = OldServer::start(405, |seen, _| {
        (seen.method() == "tools/call")
            .then(|| Reply::new(503, "text/plain", "session SESSION-0 is busy"))
    })
    .await;
    let upstream = server.connect().await;
    let error = result(&upstream, "x").await.unwrap_err();
    says(&error, &["503 Service Unavailable", "session *** is busy"]);
    assert!(!format!("{error:?} {upstream:?}").contains("SESSION"));
}

#[tokio::test]
async fn credentials_are_on_the_stream_and_on_each_message() {
    let server = OldServer::start(405, |seen, _| {
        (seen.header("authorization") != Some("Bearer TOKEN"))
            .then(|| Reply::new(401, "text/plain", ""))
    })
    .await;
    let settings = HeaderCommandSettings {
        program: "echo".to_owned(),
        args: vec!["TOKEN".to_owned()],
        scheme: Some("Bearer".to_owned()),
        cache: Duration::from_secs(60),
        timeout: Duration::from_secs(20),
    };
    let source = HeaderCommand::new("remote", settings);
    let config = config(&server.peer).with_credential(AUTHORIZATION, Arc::new(source));
    let upstream = UpstreamConnection::connect(config).await.unwrap();
    result(&upstream, "x").await.unwrap();
    for seen in server.peer.received() {
        let sent = seen.header("authorization");
        assert_eq!(sent, Some("Bearer TOKEN"), "{}", seen.method());
        let name = concat!("vary/", env!("CARGO_PKG_VERSION"));
        assert_eq!(seen.header("user-agent"), Some(name));
    }
}

/// Has room for no answer.
struct NoMemory;

impl AnswerMemory for NoMemory {
    fn lease(&self) -> Lease {
        MemoryBudget::new(0).empty_lease()
    }
}

#[tokio::test]
async fn a_large_answer_without_room_fails_its_call_alone() {
    let server = OldServer::start(405, |seen, stream| {
        if seen.body["params"]["name"] != "large" {
            return None;
        }
        let answer = seen.message(&json!({"text": "x".repeat(70_000)}));
        stream.send(event(&answer).into()).unwrap();
        Some(Reply::new(202, "text/plain", "Accepted"))
    })
    .await;
    let upstream = server.connect().await;
    let mut large = call("large");
    large.memory = Some(Arc::new(NoMemory));
    let (_, outcome) = all(upstream.request(large).await.unwrap()).await;
    says(
        &outcome.unwrap_err(),
        &["the answer of server `remote` finds no room: "],
    );
    assert!(result(&upstream, "small").await.is_ok());
}
