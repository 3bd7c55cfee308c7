//! The status of a task is sent to the client that created it and to those that listen to it, and to no other.

use std::collections::BTreeMap;

use crate::support::*;

const TASKS: &str = "io.modelcontextprotocol/tasks";
const CORE_STATUS: &str = "notifications/tasks/status";
const STATUS: &str = "notifications/tasks";

/// Which tasks a server makes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Form {
    Core,
    Extension,
}

/// A server whose tool `job` becomes a task, which stands as the test says.
#[derive(Clone)]
struct Jobs {
    era: Era,
    form: Form,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    sessions: usize,
    /// The session in which a task was made, by the server's id.
    made: BTreeMap<String, String>,
    /// Whether a task is told of before the answer that it was made.
    hurries: bool,
    streams: Vec<Stream>,
}

struct Stream {
    session: String,
    /// The id of the subscription; none for the stream of a `GET`.
    id: Value,
    filter: Value,
    sender: UnboundedSender<Bytes>,
}

impl Jobs {
    fn new(era: Era, form: Form) -> Self {
        let state = Arc::default();
        Self { era, form, state }
    }

    async fn peer(&self) -> ScriptedServer {
        let jobs = self.clone();
        ScriptedServer::start(move |seen| jobs.reply_to(seen)).await
    }

    /// A gateway before it, and before another of its kind.
    async fn harness(&self) -> (Harness, ScriptedServer) {
        let other = Self::new(self.era, self.form);
        let servers = [self.peer().await, other.peer().await];
        Harness::behind_two(servers, |config| config).await
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock().unwrap())
    }

    async fn until(&self, holds: impl Fn(&State) -> bool) {
        until(async || self.with(|state| holds(state))).await;
    }

    /// Waits until it was asked to tell of exactly these tasks, by whatever streams are open.
    async fn tells_of(&self, ids: &[&str]) {
        self.until(|state| {
            let open = state.streams.iter().filter(|it| !it.sender.is_closed());
            let sent = open.map(|stream| stream.filter["taskIds"].clone());
            let sent: Vec<_> = sent.filter(|ids| !ids.is_null()).collect();
            match ids {
                [] => sent.is_empty(),
                ids => sent == [json!(ids)],
            }
        })
        .await;
    }

    /// Says how a task stands: in the session that had it made, or on the streams that ask for it.
    fn say(&self, id: &str, status: &str) {
        let method = match self.form {
            Form::Core => CORE_STATUS,
            Form::Extension => STATUS,
        };
        self.with(|state| {
            state.streams.retain(|stream| !stream.sender.is_closed());
            for stream in &state.streams {
                let mut params = self.state(id, status);
                if self.era == Era::Modern {
                    let ids = stream.filter["taskIds"].as_array();
                    if !ids.is_some_and(|ids| ids.contains(&json!(id))) {
                        continue;
                    }
                    params["_meta"][SUBSCRIPTION] = stream.id.clone();
                } else if state.made.get(id) != Some(&stream.session) {
                    continue;
                }
                let message = event(&notification(method, params));
                let _ = stream.sender.send(message.into());
            }
        });
    }

    fn state(&self, id: &str, status: &str) -> Value {
        let mut state = json!({"taskId": id, "status": status, "ttlMs": 1.50});
        if status == "completed" && self.form == Form::Extension {
            state["result"] = json!({
                "content": [
                    {"type": "text", "text": "{\"a\":1}"},
                    {"type": "resource_link", "uri": "made:7", "name": "made"},
                ],
                "structuredContent": {"a": 1},
            });
        }
        state
    }

    fn reply_to(&self, seen: &ReceivedRequest) -> Option<Reply> {
        let params = &seen.body["params"];
        let session = seen.header("mcp-session-id").unwrap_or_default().to_owned();
        let result = match (seen.method(), self.era) {
            ("initialize", Era::Legacy) => return Some(self.initialize(seen)),
            ("server/discover", Era::Modern) => discovered(self.capabilities()),
            ("GET", Era::Legacy) => return Some(self.listen(session, &Value::Null, &json!({}))),
            ("subscriptions/listen", Era::Modern) => {
                return Some(self.listen(session, seen.id(), &params["notifications"]));
            }
            ("tools/list", _) => tool_list(&["job"]),
            ("resources/list", _) => json!({"resources": []}),
            ("resources/templates/list", _) => json!({"resourceTemplates": []}),
            ("resources/read", _) => json!({"contents": [{"uri": params["uri"], "text": "7"}]}),
            ("tools/call", _) => self.make(session),
            ("tasks/get", _) => self.state(params["taskId"].as_str()?, "completed"),
            _ => return None,
        };
        Some(seen.answer(&result))
    }

    fn capabilities(&self) -> Value {
        let mut all = json!({"tools": {}, "resources": {}});
        match self.form {
            Form::Core => all["tasks"] = json!({"requests": {"tools": {"call": {}}}}),
            Form::Extension => all["extensions"][TASKS] = json!({}),
        }
        all
    }

    fn initialize(&self, seen: &ReceivedRequest) -> Reply {
        let session = self.with(|state| {
            state.sessions += 1;
            format!("s-{}", state.sessions)
        });
        seen.open(session, &introduced("jobs", self.capabilities()))
    }

    fn make(&self, session: String) -> Value {
        let (id, hurries) = self.with(|state| {
            let id = format!("job-{}", state.made.len() + 1);
            state.made.insert(id.clone(), session);
            (id, state.hurries)
        });
        if hurries {
            self.say(&id, "completed");
        }
        let mut created = self.state(&id, "working");
        match self.form {
            Form::Core => json!({"task": created}),
            Form::Extension => {
                created["resultType"] = json!("task");
                created
            }
        }
    }

    fn listen(&self, session: String, id: &Value, filter: &Value) -> Reply {
        let (sender, reply) = Reply::subscription(id, filter);
        let (id, filter) = (id.clone(), filter.clone());
        let stream = Stream {
            session,
            id,
            filter,
            sender,
        };
        self.with(|state| state.streams.push(stream));
        reply
    }

    /// Ends the streams that are open.
    fn interrupt(&self) {
        self.with(|state| state.streams.clear());
    }
}

/// A client with a session that has a task made.
async fn with_a_task(harness: &Harness, capabilities: &Value) -> (LegacyClient, RawHttp, String) {
    let mut client = LegacyClient::open(harness, "2025-11-25", capabilities).await;
    let stream = stream_of(harness, &client).await;
    let mut call = tool("one_job");
    call["task"] = json!({});
    let created = client.answer("tools/call", call).await;
    let result = &created["result"];
    let id = result["task"]["taskId"].as_str();
    let id = id.or(result["taskId"].as_str());
    let id = id.unwrap_or_else(|| panic!("no task: {created}"));
    (client, stream, id.to_owned())
}

/// Method, id and status of what is told next, past what else changed.
async fn sent(stream: &mut RawHttp) -> (String, String, String) {
    loop {
        let sent = soon(stream.event()).await.expect("the stream goes on");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let method = text(&sent["method"]);
        if !method.ends_with("list_changed") {
            let params = &sent["params"];
            return (method, text(&params["taskId"]), text(&params["status"]));
        }
    }
}

fn status(method: &str, id: &str, status: &str) -> (String, String, String) {
    (method.to_owned(), id.to_owned(), status.to_owned())
}

/// SV-28: the servers' connections are shared, their tasks are not.
#[tokio::test]
async fn a_session_hears_of_its_own_tasks() {
    for (form, method, capabilities) in [
        (Form::Core, CORE_STATUS, json!({})),
        (Form::Extension, STATUS, json!({"extensions": {TASKS: {}}})),
        // One that can be asked has a connection of its own.
        (Form::Core, CORE_STATUS, json!({"elicitation": {}})),
    ] {
        let jobs = Jobs::new(Era::Legacy, form);
        let (harness, _two) = jobs.harness().await;
        let (_one, mut first, a) = with_a_task(&harness, &capabilities).await;
        let (_other, mut second, b) = with_a_task(&harness, &capabilities).await;
        assert_ne!(a, b);
        let received = |id: &'static str| {
            move |state: &State| {
                let session = &state.made[id];
                state.streams.iter().any(|it| it.session == *session)
            }
        };
        jobs.until(received("job-1")).await;
        jobs.until(received("job-2")).await;
        jobs.say("job-1", "working");
        jobs.say("job-2", "working");
        jobs.say("job-1", "completed");
        jobs.say("job-2", "failed");
        for (stream, id, last) in [(&mut first, a, "completed"), (&mut second, b, "failed")] {
            for stands in ["working", last] {
                let expected = status(method, &id, stands);
                assert_eq!(sent(stream).await, expected, "{form:?}");
            }
        }
    }
}

/// What is told before the answer that names the task is told after it.
#[tokio::test]
async fn a_status_that_overtakes_the_answer_is_told_after_it() {
    let jobs = Jobs::new(Era::Legacy, Form::Core);
    let (harness, _two) = jobs.harness().await;
    jobs.until(|state| !state.streams.is_empty()).await;
    jobs.with(|state| state.hurries = true);
    let (_client, mut stream, id) = with_a_task(&harness, &json!({})).await;
    let expected = status(CORE_STATUS, &id, "completed");
    assert_eq!(sent(&mut stream).await, expected);
}

fn knows_tasks() -> Value {
    json!({"extensions": {TASKS: {}}})
}

/// The id of a task that a modern client had made.
async fn created(harness: &Harness, capabilities: &Value) -> String {
    let call = under("compact", tool("one_job"));
    let created = ask_modern_as(harness, capabilities, "tools/call", call).await;
    created["result"]["taskId"].as_str().unwrap().to_owned()
}

/// SEP-2663, SV-15: the stream tells of the tasks that it was opened for, by the client's ids, whatever the era of
/// their server.
#[tokio::test]
async fn a_stream_tells_of_the_tasks_that_it_listens_to() {
    for era in [Era::Modern, Era::Legacy] {
        let jobs = Jobs::new(era, Form::Extension);
        let (harness, _two) = jobs.harness().await;
        let knows = knows_tasks();
        let a = created(&harness, &knows).await;
        let b = created(&harness, &knows).await;
        let ids = [&*a, "of nobody", &*a];
        let (mut first, told_of) = listening_to_tasks(&harness, &knows, &ids).await;
        assert_eq!(told_of, json!({"taskIds": [a]}), "{era:?}");
        let (mut both, told_of) = listening_to_tasks(&harness, &knows, &[&b, &a]).await;
        assert_eq!(told_of, json!({"taskIds": [b, a]}));
        match era {
            Era::Modern => jobs.tells_of(&["job-1", "job-2"]).await,
            Era::Legacy => jobs.until(|state| !state.streams.is_empty()).await,
        }
        jobs.say("job-2", "working");
        jobs.say("job-1", "failed");
        let expected = status(STATUS, &b, "working");
        assert_eq!(sent(&mut both).await, expected, "{era:?}");
        let last = soon(both.event()).await.unwrap();
        last.has("/params/taskId", a.as_str());
        last.has("/params/_meta", json!({SUBSCRIPTION: "listen"}));
        last.has("/params/ttlMs", 1.5);
        assert_eq!(sent(&mut first).await, status(STATUS, &a, "failed"));
        drop((first, both));
        if era == Era::Modern {
            jobs.tells_of(&[]).await;
        }
    }
}

/// CN-19, SV-28: what a task has come to is told as `tasks/get` would tell it, and what it points to can be read.
#[tokio::test]
async fn the_result_in_a_status_is_that_of_the_task() {
    for era in [Era::Modern, Era::Legacy] {
        let jobs = Jobs::new(era, Form::Extension);
        let (harness, _two) = jobs.harness().await;
        let mut knows = features(&["agent", "format=json"]);
        knows["extensions"][TASKS] = json!({});
        let id = created(&harness, &knows).await;
        let uri = json!({"uri": "made:7"});
        let read = || ask_modern_as(&harness, &knows, "resources/read", uri.clone());
        assert_eq!(read().await["error"]["code"], -32602);
        let (mut stream, _) = listening_to_tasks(&harness, &knows, &[&id]).await;
        jobs.until(|state| !state.streams.is_empty()).await;
        jobs.say("job-1", "completed");
        let told = soon(stream.event()).await.unwrap();
        let result = &told["params"]["result"];
        assert_eq!(result["structuredContent"], json!({"a": 1}), "{told}");
        let found = &result["_meta"]["vary/applied"]["variant"];
        assert_eq!(*found, "compact", "{era:?} {told}");
        assert_eq!(result["content"].as_array().unwrap().len(), 1, "{told}");
        assert_eq!(read().await["result"]["contents"][0]["text"], "7");
    }
}

/// SV-14: the same for what is asked for: a link in the result of a task is one of its tool.
#[tokio::test]
async fn what_the_result_of_a_task_points_to_can_be_read() {
    let jobs = Jobs::new(Era::Modern, Form::Extension);
    let (harness, _two) = jobs.harness().await;
    let knows = knows_tasks();
    let id = created(&harness, &knows).await;
    let ask = |method, params| ClientKind::HttpModern.ask(&harness, &knows, method, params);
    let read = || ask("resources/read", json!({"uri": "made:7"}));
    assert_eq!(read().await["error"]["code"], -32602);
    let got = ask("tasks/get", json!({"taskId": id})).await;
    got.has("/result/status", "completed");
    assert_eq!(read().await["result"]["contents"][0]["text"], "7");
}

/// > If a client requests task status notifications but does not declare the extension capability, the server MUST
/// > return a JSON-RPC error (SEP-2663, "Task Status Notifications")
#[tokio::test]
async fn only_who_knows_tasks_can_listen_to_them() {
    let ask = async |harness: &Harness, ids: Value| {
        let params = json!({"notifications": {"taskIds": ids}});
        harness.ask_modern("subscriptions/listen", params).await
    };
    for (era, form) in [(Era::Modern, Form::Extension), (Era::Legacy, Form::Core)] {
        let (harness, _two) = Jobs::new(era, form).harness().await;
        let refused = ask(&harness, json!(["x"])).await;
        refused.has("/error/code", -32021);
        let missing = &refused["error"]["data"]["requiredCapabilities"]["extensions"];
        assert_eq!(missing, &json!({TASKS: {}}));
        let wrong = ask(&harness, json!("x")).await;
        wrong.has("/error/code", -32602);
    }
    // Where there are no tasks nothing is promised.
    let harness = Harness::start().await;
    let (_stream, told_of) = listening_to_tasks(&harness, &json!({}), &["x"]).await;
    assert_eq!(told_of, json!({}));
}

/// A stream that breaks behind the gateway has the task told as it stands then: its end may have been missed.
#[tokio::test]
async fn what_was_missed_of_a_task_is_told() {
    for era in [Era::Modern, Era::Legacy] {
        let jobs = Jobs::new(era, Form::Extension);
        let (harness, _two) = jobs.harness().await;
        let knows = knows_tasks();
        let id = created(&harness, &knows).await;
        let (mut stream, _) = listening_to_tasks(&harness, &knows, &[&id]).await;
        jobs.until(|state| !state.streams.is_empty()).await;
        jobs.interrupt();
        let expected = status(STATUS, &id, "completed");
        assert_eq!(sent(&mut stream).await, expected, "{era:?}");
    }
}

/// The same on standard input and output.
#[tokio::test]
async fn a_process_hears_of_tasks_too() {
    let jobs = Jobs::new(Era::Modern, Form::Extension);
    let (harness, _two) = jobs.harness().await;
    let knows = knows_tasks();
    let id = created(&harness, &knows).await;
    let mut pipe = open_pipe(&harness.gateway);
    let params = json!({"notifications": {"taskIds": [id]}});
    let listen = modern(json!("listen"), "subscriptions/listen", params, &knows);
    let told = pipe.ask(&listen).await;
    told.has("/params/notifications", json!({"taskIds": [id]}));
    jobs.say("job-1", "cancelled");
    let told = pipe.receive().await;
    told.has("/method", STATUS);
    told.has("/params/taskId", id.as_str());
}

/// SV-15: a stream goes on when the gateway is configured anew: its server is asked once more where it is connected to anew,
/// and says nothing more where it is gone.
#[tokio::test]
async fn a_stream_of_tasks_outlives_a_configuration() {
    let jobs = Jobs::new(Era::Modern, Form::Extension);
    let (harness, two) = jobs.harness().await;
    let knows = knows_tasks();
    let id = created(&harness, &knows).await;
    let call = tool("two_job");
    let other = ask_as(&harness, ClientKind::HttpModern, &knows, "tools/call", call).await;
    let other = other["result"]["taskId"].as_str().unwrap().to_owned();
    let (mut stream, told_of) = listening_to_tasks(&harness, &knows, &[&id, &other]).await;
    assert_eq!(told_of, json!({"taskIds": [id, other]}));
    let mut changed: Config = config(Target::command("none", []));
    let entry = UpstreamConfig::new("one", Target::http(harness.peer.url.clone()));
    changed.servers = vec![entry.with_capabilities(r#"{"experimental":{}}"#)];
    harness.reload(changed).await;
    two.stop().await;
    // What was said while one connection took the place of the other is asked for.
    assert_eq!(sent(&mut stream).await, status(STATUS, &id, "completed"));
    jobs.tells_of(&["job-1"]).await;
    jobs.say("job-1", "cancelled");
    assert_eq!(sent(&mut stream).await, status(STATUS, &id, "cancelled"));
}
