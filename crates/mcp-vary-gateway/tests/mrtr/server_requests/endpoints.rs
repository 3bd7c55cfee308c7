//! Requests of servers over HTTP: on the stream of a call, and on the stream of the session.

use super::*;

/// The session that `initialize` opens: `s-2` for clients that can be asked for roots.
fn session_of(seen: &ReceivedRequest) -> &'static str {
    let is_askable = seen.body["params"]["capabilities"]["roots"].is_object();
    if is_askable { "s-2" } else { "s-1" }
}

/// What an endpoint asks: on the stream of a call, and on its own.
#[tokio::test]
async fn an_endpoint_asks_on_either_stream() {
    let (senders, mut streams) = tokio::sync::mpsc::unbounded_channel();
    let harness = Harness::scripted(move |seen| match seen.method() {
        "tools/list" => Some(seen.answer(&tool_list(&["x"]))),
        "tools/call" | "GET" => {
            let (sender, reply) = Reply::stream();
            if seen.header("mcp-session-id") == Some("s-2") || seen.method() == "GET" {
                let id = json!(seen.method());
                let ask = json!({"jsonrpc": "2.0", "id": id, "method": "roots/list"});
                sender.send(event(&ask).into()).unwrap();
            }
            senders.send((sender, seen.message(&json!({})))).unwrap();
            Some(reply)
        }
        "initialize" => Some(mcp_vary_testkit::scripted_server::initialize(
            seen,
            session_of(seen),
        )),
        _ => None,
    })
    .await;
    let mut client = Client::open(harness.address, &json!({"roots": {}})).await;
    let mut call = client.call(tool("x")).await;
    assert_eq!(call.head().await.status, 200);
    for stream in [&mut call, &mut client.stream] {
        let question = next(stream).await;
        question.has("/method", "roots/list");
        let answer = response(&question, json!({"roots": []}));
        let post = client.legacy.post(&answer);
        assert_eq!(client.legacy.http.ask(&post).await.status, 202);
    }
    let is_about = |id: &str| {
        let replies = harness.peer.of("POST");
        let reply = replies.into_iter().find(|seen| {
            *seen.id() == json!(id)
                && seen.header("mcp-session-id") == Some("s-2")
                && seen.body["result"] == json!({"roots": []})
        });
        reply.is_some()
    };
    until(async || is_about("GET") && is_about("tools/call")).await;
    loop {
        let (sender, message) = soon(streams.recv()).await.unwrap();
        if message["id"].is_u64() {
            sender.send(event(&message).into()).unwrap();
            break;
        }
    }
    assert!(next(&mut call).await["result"].is_object());
}

/// The endpoint's own stream, and the call that it asks about there.
#[derive(Default)]
struct Beside {
    own: Option<UnboundedSender<Bytes>>,
    call: Option<(UnboundedSender<Bytes>, ReceivedRequest)>,
}

impl Beside {
    /// Sends the question once both are there, in whichever order they come.
    fn send_question(&self) {
        let question = json!({"jsonrpc": "2.0", "id": 7, "method": "roots/list"});
        if let (Some(native), Some(_)) = (&self.own, &self.call) {
            native.send(event(&question).into()).unwrap();
        }
    }

    fn script() -> Script {
        let state = Arc::<Mutex<Self>>::default();
        let [listening, calling, replying] = [(); 3].map(|()| Arc::clone(&state));
        Script::legacy("beside")
            .declares(json!({"tools": {"listChanged": true}}))
            .tools(&["x"])
            .in_sessions(|seen| session_of(seen).to_owned())
            .may_reply("GET", move |seen| {
                if seen.header("mcp-session-id") != Some("s-2") {
                    return None;
                }
                let (sender, reply) = Reply::stream();
                let mut beside = listening.lock().unwrap();
                beside.own = Some(sender);
                beside.send_question();
                Some(reply)
            })
            .reply("tools/call", move |seen| {
                let (sender, reply) = Reply::stream();
                let mut beside = calling.lock().unwrap();
                beside.call = Some((sender, seen.clone()));
                beside.send_question();
                reply
            })
            .may_reply("POST", move |seen| {
                let (stream, call) = replying.lock().unwrap().call.take()?;
                let answer = call.message(&json!({"content": [], "said": seen.body}));
                stream.send(event(&answer).into()).unwrap();
                Some(Reply::new(202, "text/plain", ""))
            })
    }
}

/// What an endpoint asks on its own stream is for the request without a session that has the connection.
#[tokio::test]
async fn an_endpoint_asks_beside_the_call_of_a_client_without_a_session() {
    let harness = Harness::of_server(Beside::script()).await;
    let mut http = harness.connect().await;
    let mut call = async |params: Value| {
        let roots = json!({"roots": {}});
        let answer = http.ask_modern_as("tools/call", params, &roots).await;
        answer.json()
    };
    let asked = call(tool("x")).await;
    let requests = asked["result"]["inputRequests"].as_object().unwrap();
    let (key, question) = requests.iter().next().unwrap();
    question.has("/method", "roots/list");
    let roots = json!({"roots": [{"uri": "file:///one"}]});
    let mut again = tool("x");
    again["requestState"] = asked["result"]["requestState"].clone();
    again["inputResponses"] = json!({key: roots});
    let answer = call(again).await;
    answer.has("/result/said/result", roots);
}

/// What a session's calls change, a server may tell of on the connection of those calls alone.
#[tokio::test]
async fn a_session_with_a_connection_of_its_own_is_subscribed_there() {
    let harness = Harness::behind_one(subscribed_on_one_session().await, |config| config).await;
    let mut client = Client::open(harness.address, &json!({"roots": {}})).await;
    let subscribed = client
        .legacy
        .ask("resources/subscribe", json!({"uri": "a:1"}));
    subscribed.await.json().has("/result", json!({}));
    let told = until_some(async || {
        client.called(tool("x")).await;
        let told = tokio::time::timeout(Duration::from_millis(200), next(&mut client.stream));
        told.await.ok()
    })
    .await;
    told.has("/method", "notifications/resources/updated");
    told.has("/params/uri", "a:1");
    let asked = harness.peer.of("resources/subscribe");
    let sessions = asked.iter().map(|seen| seen.header("mcp-session-id"));
    let sessions: Vec<_> = sessions.collect();
    assert_eq!(sessions, [Some("s-2")], "nowhere else");
}

/// A server that sends an update to its session `s-2` at each call. That session belongs to a client that answers requests.
async fn subscribed_on_one_session() -> ScriptedServer {
    let native = Mutex::new(None::<UnboundedSender<Bytes>>);
    ScriptedServer::start(move |seen| {
        let is_own = seen.header("mcp-session-id") == Some("s-2");
        match seen.method() {
            "initialize" => {
                let capabilities = json!({"tools": {}, "resources": {"subscribe": true}});
                Some(seen.open(session_of(seen), &introduced("peer", capabilities)))
            }
            "tools/list" => Some(seen.answer(&tool_list(&["x"]))),
            "resources/list" => {
                let resources = json!([{"uri": "a:1", "name": "one"}]);
                Some(seen.answer(&json!({"resources": resources})))
            }
            "GET" if is_own => {
                let (sender, reply) = Reply::stream();
                *native.lock().unwrap() = Some(sender);
                Some(reply)
            }
            "resources/subscribe" | "resources/unsubscribe" => Some(seen.answer(&json!({}))),
            "tools/call" if is_own => {
                let params = json!({"uri": "a:1"});
                let updated = notification("notifications/resources/updated", params);
                // Before there is a stream nobody is told.
                if let Some(native) = &*native.lock().unwrap() {
                    native.send(event(&updated).into()).unwrap();
                }
                Some(seen.answer(&json!({"content": []})))
            }
            _ => None,
        }
    })
    .await
}

/// > If the server cannot accept the input, it MUST return an HTTP error status code (e.g., 400 Bad Request).
/// > (MCP 2025-11-25, basic/transports, "Sending Messages to the Server")
#[tokio::test]
async fn an_answer_that_reaches_another_gateway_is_refused_there() {
    let (key, elicits) = ([7; 32], json!({"elicitation": {}}));
    let (_here, address) = before(asking().with_key(key)).await;
    let (_there, other) = before(asking().with_key(key)).await;
    let mut client = Client::open(address, &elicits).await;
    let mut call = client.asking_call("ask").await;
    assert_eq!(call.head().await.status, 200);
    let question = next(&mut call).await;
    let answer = response(&question, json!({"action": "decline"}));
    let unasked = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    for (address, message) in [(other, &answer), (address, &unasked)] {
        let post = client.legacy.post(message);
        let refused = RawHttp::connect(address).await.ask(&post).await;
        assert_eq!(refused.status, 400, "{}", refused.text());
        let error = refused.json();
        assert!(error.get("id").is_none_or(Value::is_null), "{error}");
        error.starts("/error/message", "this gateway has not asked that");
    }
    // The call waits all the same; and what comes twice is only late.
    client.send(&answer).await;
    let answered = next(&mut call).await;
    answered.has("/result/reply/result", json!({"action": "decline"}));
    client.send(&answer).await;
}
