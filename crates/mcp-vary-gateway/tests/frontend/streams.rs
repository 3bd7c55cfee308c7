//! Streams of clients with a session: their first events, and how a client resumes them.

use crate::support::*;

/// What the server says about its calls, the oldest first, when the test has it say so.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<UnboundedSender<Bytes>>>>);

impl Calls {
    fn say(&self, call: usize, message: &Value) {
        let calls = self.0.lock().unwrap();
        // A call that was cancelled hears nothing more.
        let _ = calls[call].send(event(message).into());
    }

    /// One step of the first call.
    fn step(&self, step: u64) {
        self.say(0, &logged(json!(step)));
    }

    /// The answer to the call that reached the server as `seen`.
    fn finish(&self, harness: &Harness, call: usize) {
        let id = harness.peer.of("tools/call")[call].id().clone();
        let result = json!({"content": [], "done": true});
        self.say(call, &json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }
}

fn logged(data: Value) -> Value {
    let params = json!({"level": "info", "data": data});
    notification("notifications/message", params)
}

/// A gateway whose server sends what the test wants about the tool `begin`.
async fn harness(adapt: impl FnOnce(Config) -> Config) -> (Harness, Calls) {
    let calls = Calls::default();
    let script = calls.clone();
    let begin = move |seen: &ReceivedRequest| {
        (seen.body["params"]["name"] == "begin").then(|| {
            let (sender, reply) = Reply::stream();
            script.0.lock().unwrap().push(sender);
            reply
        })
    };
    let script = places_server::script(Era::Legacy).may_reply("tools/call", begin);
    (Harness::with_server(script, adapt).await, calls)
}

/// One event.
#[derive(Debug, PartialEq)]
struct Event {
    id: Option<String>,
    retry: Option<String>,
    /// Its data; of a message for the log what was logged, of an answer or error its `id`.
    data: Value,
}

impl Event {
    async fn next(http: &mut RawHttp) -> Option<Self> {
        let written = http.written_event().await?;
        let field = |name| {
            let mut fields = written.lines().filter_map(|line| line.split_once(": "));
            fields.find_map(|(field, value)| (field == name).then(|| value.to_owned()))
        };
        let data = field("data").filter(|data| !data.is_empty());
        let data: Value = data.map_or(Value::Null, |data| serde_json::from_str(&data).unwrap());
        Some(Self {
            id: field("id"),
            retry: field("retry"),
            data: match data["params"]["data"].clone() {
                Value::Null => data["id"].clone(),
                data => data,
            },
        })
    }

    /// The next one with data.
    async fn next_said(http: &mut RawHttp) -> Option<Self> {
        loop {
            let event = Self::next(http).await?;
            if !event.data.is_null() {
                return Some(event);
            }
        }
    }

    fn id(&self) -> &str {
        self.id.as_deref().expect("an event with an id")
    }
}

/// A client whose call, with the id 7, has reached the server.
async fn calling(harness: &Harness, revision: &str) -> LegacyClient {
    let mut client = LegacyClient::open(harness, revision, &json!({})).await;
    let call = client.post(&request(json!(7), "tools/call", tool("begin")));
    client.http.send(&call.bytes()).await;
    soon(harness.peer.wait_for("tools/call", 1)).await;
    client
}

async fn is_stream(http: &mut RawHttp) {
    let head = http.head().await;
    let kind = head.header("content-type");
    assert_eq!((head.status, kind), (200, Some("text/event-stream")));
}

/// A client whose call is a stream with an event for this step, and the first event of the stream.
async fn begun(harness: &Harness, calls: &Calls, step: u64) -> (LegacyClient, Event) {
    let mut client = calling(harness, "2025-11-25").await;
    calls.step(step);
    is_stream(&mut client.http).await;
    let first = Event::next(&mut client.http).await.unwrap();
    (client, first)
}

fn get(client: &LegacyClient, last: &str) -> HttpRequest {
    let get = HttpRequest::get(&client.session);
    get.with("Last-Event-ID", last)
}

/// The client has lost its connection and asks for what follows the event `last`.
async fn come_back(harness: &Harness, client: &mut LegacyClient, last: &str) {
    client.http = harness.connect().await;
    client.http.send(&get(client, last).bytes()).await;
    is_stream(&mut client.http).await;
}

async fn receives(client: &mut LegacyClient, expected: &[Value]) {
    for expected in expected {
        let event = Event::next_said(&mut client.http).await;
        assert_eq!(event.map(|event| event.data).as_ref(), Some(expected));
    }
}

async fn hears_to_the_end(client: &mut LegacyClient, expected: &[Value]) {
    receives(client, expected).await;
    assert_eq!(Event::next_said(&mut client.http).await, None);
}

#[tokio::test]
async fn a_stream_begins_as_clients_of_its_revision_can_read() {
    for (revision, primed) in [
        ("2024-11-05", false),
        ("2025-03-26", false),
        ("2025-06-18", false),
        ("2025-11-25", true),
    ] {
        let (harness, calls) = harness(|config| config).await;
        let mut client = calling(&harness, revision).await;
        calls.step(1);
        is_stream(&mut client.http).await;
        let first = Event::next(&mut client.http).await.unwrap();
        assert_eq!(first.retry.is_some(), primed, "{revision}: {first:?}");
        assert_eq!(first.data.is_null(), primed, "{revision}: {first:?}");
        let second = if primed {
            Event::next(&mut client.http).await.unwrap()
        } else {
            first
        };
        assert_eq!((&second.data, &second.retry), (&json!(1), &None));
        calls.finish(&harness, 0);
        let last = Event::next(&mut client.http).await.unwrap();
        assert_eq!(last.data, json!(7));
        assert_ne!(second.id(), last.id());

        let mut listening = harness.connect().await;
        let get = HttpRequest::get(&client.session);
        listening.send(&get.bytes()).await;
        is_stream(&mut listening).await;
        let first = Event::next(&mut listening).await.unwrap();
        let expected = (primed, primed);
        assert_eq!((first.retry.is_some(), first.id.is_some()), expected);
    }
}

/// A client that prefers a stream to JSON gets each answer, of a server or of the gateway, on a stream that it can resume.
#[tokio::test]
async fn an_answer_on_a_stream_begins_with_a_priming_event() {
    for method in ["tools/call", "ping", "tools/unknown"] {
        let (harness, _) = harness(|config| config).await;
        let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
        let asked = client.post(&request(json!(7), method, tool("odd")));
        let asked = asked.with("Accept", "text/event-stream, application/json");
        client.http.send(&asked.bytes()).await;
        is_stream(&mut client.http).await;
        let first = Event::next(&mut client.http).await.unwrap();
        assert_eq!(first.data, Value::Null, "{method}");
        assert_eq!(first.retry.as_deref(), Some("1000"), "{method}");
        let answer = Event::next(&mut client.http).await.unwrap();
        let expected = (&json!(7), &None);
        assert_eq!((&answer.data, &answer.retry), expected, "{method}");
        assert_eq!(Event::next(&mut client.http).await, None, "{method}");
        // The answer is there for a client that lost it, and nothing follows it.
        come_back(&harness, &mut client, first.id()).await;
        hears_to_the_end(&mut client, &[json!(7)]).await;
        let after = get(&client, answer.id());
        let after = harness.connect().await.ask(&after).await;
        assert_eq!(after.status, 405, "{method}");
        let mut stranger = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
        let refused = stranger.http.ask(&get(&stranger, first.id())).await;
        assert!(is_lost(&refused), "{method}: {}", refused.text());
    }
}

#[tokio::test]
async fn an_answer_on_a_stream_of_another_revision_is_its_only_event() {
    let (harness, _) = harness(|config| config).await;
    for revision in ["2025-06-18", "2026-07-28"] {
        let (mut http, asked) = match revision {
            "2026-07-28" => {
                let call = modern(json!(7), "tools/call", tool("odd"), &json!({}));
                (harness.connect().await, HttpRequest::modern(&call))
            }
            _ => {
                let client = LegacyClient::open(&harness, revision, &json!({})).await;
                let call = client.post(&request(json!(7), "tools/call", tool("odd")));
                (client.http, call)
            }
        };
        let asked = asked.with("Accept", "text/event-stream, application/json");
        http.send(&asked.bytes()).await;
        is_stream(&mut http).await;
        let only = Event::next(&mut http).await.unwrap();
        assert_eq!((only.id, only.retry, only.data), (None, None, json!(7)));
        assert_eq!(Event::next(&mut http).await, None, "{revision}");
    }
}

#[tokio::test]
async fn a_modern_stream_has_neither_ids_nor_events_without_data() {
    let (harness, calls) = harness(|config| config).await;
    let mut http = harness.connect().await;
    let mut params = tool("begin");
    params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    let call = modern(json!(7), "tools/call", params, &json!({}));
    http.send(&HttpRequest::modern(&call).bytes()).await;
    soon(harness.peer.wait_for("tools/call", 1)).await;
    calls.step(1);
    is_stream(&mut http).await;
    let first = Event::next(&mut http).await.unwrap();
    assert_eq!((first.id, first.retry, first.data), (None, None, json!(1)));
}

/// Whenever the connection is lost, what follows is heard once and in order.
#[tokio::test]
async fn who_comes_back_hears_what_it_missed() {
    for before in 0..4 {
        let (harness, calls) = harness(|config| config).await;
        let (mut client, mut last) = begun(&harness, &calls, 1).await;
        for step in 1..=before {
            calls.step(step + 1);
            last = Event::next(&mut client.http).await.unwrap();
            assert_eq!(last.data, json!(step));
        }
        client.http = harness.connect().await;
        calls.step(before + 2);
        calls.finish(&harness, 0);
        come_back(&harness, &mut client, last.id()).await;
        let rest = [json!(before + 1), json!(before + 2), json!(7)];
        hears_to_the_end(&mut client, &rest).await;
        // And again, since nobody knows whether it arrived.
        come_back(&harness, &mut client, last.id()).await;
        hears_to_the_end(&mut client, &rest).await;
    }
}

#[tokio::test]
async fn a_stream_goes_on_where_its_client_came_back_to() {
    let (harness, calls) = harness(|config| config).await;
    let (mut client, primed) = begun(&harness, &calls, 1).await;
    come_back(&harness, &mut client, primed.id()).await;
    // It may be lost once more before anything is said.
    let again = Event::next(&mut client.http).await.unwrap();
    assert!(again.id() == primed.id() && again.data.is_null());
    receives(&mut client, &[json!(1)]).await;
    calls.step(2);
    receives(&mut client, &[json!(2)]).await;
    calls.finish(&harness, 0);
    hears_to_the_end(&mut client, &[json!(7)]).await;
}

#[tokio::test]
async fn of_two_connections_the_newer_has_the_stream() {
    let (harness, calls) = harness(|config| config).await;
    let (mut client, first) = begun(&harness, &calls, 1).await;
    let mut former = std::mem::replace(&mut client.http, harness.connect().await);
    come_back(&harness, &mut client, first.id()).await;
    while let Some(event) = Event::next_said(&mut former).await {
        assert_eq!(event.data, json!(1));
    }
    calls.finish(&harness, 0);
    hears_to_the_end(&mut client, &[json!(1), json!(7)]).await;
}

/// Some clients come back although they got everything; a stream that ends at once would have them do so for
/// ever.
#[tokio::test]
async fn after_the_end_there_is_nothing_to_come_back_to() {
    let (harness, calls) = harness(|config| config).await;
    let mut client = calling(&harness, "2025-11-25").await;
    calls.step(1);
    calls.finish(&harness, 0);
    is_stream(&mut client.http).await;
    let mut last = String::new();
    while let Some(event) = Event::next(&mut client.http).await {
        event.id().clone_into(&mut last);
    }
    let answer = harness.connect().await.ask(&get(&client, &last)).await;
    assert_eq!(answer.status, 405);
}

#[tokio::test]
async fn a_cancelled_call_ends_although_nobody_reads() {
    let (harness, calls) = harness(|config| config).await;
    let mut client = calling(&harness, "2025-11-25").await;
    calls.step(1);
    is_stream(&mut client.http).await;
    let first = Event::next_said(&mut client.http).await.unwrap();
    client.http = harness.connect().await;
    let cancel = notification("notifications/cancelled", json!({"requestId": 7}));
    let cancel = client.post(&cancel);
    assert_eq!(client.http.ask(&cancel).await.status, 202);
    soon(harness.peer.wait_for("notifications/cancelled", 1)).await;
    // Nothing follows, at once or when that was noticed.
    client.http.send(&get(&client, first.id()).bytes()).await;
    let head = client.http.head().await;
    match head.status {
        200 => assert_eq!(Event::next_said(&mut client.http).await, None),
        status => assert_eq!(status, 405),
    }
}

#[tokio::test]
async fn nobody_hears_the_stream_of_another_session() {
    let (harness, calls) = harness(|config| config).await;
    let (mut client, first) = begun(&harness, &calls, 1).await;
    let mut stranger = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let answer = stranger.http.ask(&get(&stranger, first.id())).await;
    assert!(is_lost(&answer), "{}", answer.text());
    calls.finish(&harness, 0);
    hears_to_the_end(&mut client, &[json!(1), json!(7)]).await;
}

/// Whether it is one event, which says that the answer to the call is lost.
fn is_lost(answer: &HttpResponse) -> bool {
    let text = answer.text();
    let says = text.contains("\"id\":7,\"error\"") && text.contains("is no longer stored");
    says && text.matches("data: ").count() == 1
}

/// Another replica, or the same after a restart: the session goes on, the call does not.
#[tokio::test]
async fn an_answer_that_is_lost_is_said_to_be() {
    let key = |config: Config| config.with_key([7; 32]);
    let (here, calls) = harness(key).await;
    let (there, _) = harness(key).await;
    let (mut client, first) = begun(&here, &calls, 1).await;
    client.http = there.connect().await;
    client.http.send(&get(&client, first.id()).bytes()).await;
    let answer = client.http.response().await;
    assert!(is_lost(&answer), "{}", answer.text());
    let text = answer.text();
    let end = text.lines().find_map(|line| line.strip_prefix("id: "));
    let again = client.http.ask(&get(&client, end.unwrap())).await;
    assert_eq!(again.status, 405);
    assert!(there.peer.of("tools/call").is_empty());
}

#[tokio::test]
async fn ids_that_are_none_of_ours_open_another_stream() {
    let (harness, _) = harness(|config| config).await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    for last in ["7", "", "_GET_stream_1", "f-1-!", "0-0"] {
        come_back(&harness, &mut client, last).await;
        let first = Event::next(&mut client.http).await.unwrap();
        assert!(first.id() != last && first.data.is_null());
    }
}

/// What nobody reads is bounded: the oldest events go first, the answer stays.
#[tokio::test]
async fn who_stopped_reading_comes_back_for_the_answer() {
    let mut hasty = limits();
    hasty.write_timeout = Duration::from_millis(50);
    let (harness, calls) = harness(|config| config.with_limits(hasty)).await;
    let (mut client, first) = begun(&harness, &calls, 0).await;
    let heavy = "x".repeat(64 << 10);
    for step in 1..200 {
        calls.say(0, &logged(json!([step, heavy])));
    }
    calls.finish(&harness, 0);
    let former = std::mem::replace(&mut client.http, harness.connect().await);
    // It does not read until its connection is closed; the id of its call is free then.
    soon(async {
        loop {
            let ping = client.post(&request(json!(7), "ping", json!({})));
            if client.http.ask(&ping).await.status == 200 {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(former);
    come_back(&harness, &mut client, first.id()).await;
    let (mut steps, mut answered) = (Vec::new(), false);
    while let Some(event) = Event::next_said(&mut client.http).await {
        assert!(!answered);
        answered = event.data == json!(7);
        steps.extend(event.data[0].as_u64());
    }
    assert!(
        answered && steps.is_sorted() && steps.len() < 9,
        "{steps:?}"
    );
}

/// Those that run on without their clients have places; one too many is given up, and its client told so.
#[tokio::test]
async fn a_call_too_many_without_its_client_is_cancelled() {
    let mut one = limits();
    one.orphaned_requests = 1;
    let (harness, calls) = harness(|config| config.with_limits(one)).await;
    let mut clients = Vec::new();
    for call in 0..2 {
        let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
        let post = client.post(&request(json!(7), "tools/call", tool("begin")));
        client.http.send(&post.bytes()).await;
        soon(harness.peer.wait_for("tools/call", call + 1)).await;
        calls.say(call, &logged(json!(call)));
        is_stream(&mut client.http).await;
        let first = Event::next(&mut client.http).await.unwrap();
        client.http = harness.connect().await;
        clients.push((client, first));
        if call == 0 {
            calls.say(0, &logged(json!("alone")));
        }
    }
    soon(harness.peer.wait_for("notifications/cancelled", 1)).await;
    calls.finish(&harness, 0);
    calls.finish(&harness, 1);
    let mut answered = 0;
    for (client, first) in &mut clients {
        come_back(&harness, client, first.id()).await;
        while let Some(message) = client.http.event().await {
            answered += usize::from(message["result"].is_object());
            assert!(message["error"].is_null() || message["error"]["code"] == -32603);
        }
    }
    assert_eq!(answered, 1);
}

#[tokio::test]
async fn an_answer_that_takes_its_time_comes_by_a_stream() {
    let hasty = || limits().with_stream_after(Duration::from_millis(1));
    let (harness, calls) = harness(|config| config.with_limits(hasty())).await;
    let mut client = calling(&harness, "2025-11-25").await;
    is_stream(&mut client.http).await;
    let first = Event::next(&mut client.http).await.unwrap();
    assert_eq!(first.data, Value::Null);
    come_back(&harness, &mut client, first.id()).await;
    calls.finish(&harness, 0);
    hears_to_the_end(&mut client, &[json!(7)]).await;
}

/// Clients of earlier revisions get JSON, however long the answer takes.
#[tokio::test]
async fn others_wait_for_json() {
    let hasty = || limits().with_stream_after(Duration::from_millis(1));
    let (harness, calls) = harness(|config| config.with_limits(hasty())).await;
    let mut client = calling(&harness, "2025-06-18").await;
    // A later call has become a stream, so the time in which the first one would have has passed.
    let mut later = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let post = later.post(&request(json!(7), "tools/call", tool("begin")));
    later.http.send(&post.bytes()).await;
    is_stream(&mut later.http).await;
    calls.finish(&harness, 0);
    let answer = client.http.response().await;
    answer.json().has("/result/done", true);
}
