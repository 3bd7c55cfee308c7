//! A server of 2025-11-25 whose tool `job` can only be called as a task. A test decides what it does.

use std::collections::BTreeMap;

use super::RELATED;
use crate::support::*;

/// The server; its tasks are `work-1`, `work-2` and so on.
#[derive(Clone, Default)]
pub(super) struct Works(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    sessions: usize,
    tasks: BTreeMap<String, Task>,
    /// What is said of a task that is made, beside its id.
    said: Value,
    never_cancels: bool,
    /// Whether a task is known in every session.
    is_durable: bool,
    streams: Vec<(String, UnboundedSender<Bytes>)>,
    replies: BTreeMap<u64, Value>,
    asked: u64,
}

struct Task {
    session: String,
    status: &'static str,
    message: String,
    outcome: Option<Result<Value, Value>>,
    waiting: Vec<(ReceivedRequest, UnboundedSender<Bytes>)>,
}

impl Works {
    pub(super) async fn peer(&self) -> ScriptedServer {
        let works = self.clone();
        ScriptedServer::start(move |seen| works.script(seen)).await
    }

    /// The same server at another address, where every task is known in every session.
    pub(super) async fn everywhere(&self) -> ScriptedServer {
        self.with(|state| state.is_durable = true);
        self.peer().await
    }

    pub(super) fn script(&self, seen: &ReceivedRequest) -> Option<Reply> {
        let session = seen.header("mcp-session-id").unwrap_or_default().to_owned();
        let params = &seen.body["params"];
        match seen.method() {
            "initialize" => {
                let number = self.with(|state| {
                    state.sessions += 1;
                    state.sessions
                });
                let tasks = json!({"cancel": {}, "requests": {"tools": {"call": {}}}});
                let result = introduced("works", json!({"tools": {}, "tasks": tasks}));
                Some(seen.open(format!("s-{number}"), &result))
            }
            "GET" => {
                let (sender, reply) = Reply::stream();
                self.with(|state| state.streams.push((session, sender)));
                Some(reply)
            }
            "tools/list" => {
                let mut list = tool_list(&["job", "may", "plain"]);
                for (at, support) in ["required", "optional", "forbidden"].iter().enumerate() {
                    list["tools"][at]["execution"] = json!({"taskSupport": support});
                }
                Some(seen.answer(&list))
            }
            "tools/call" if params["task"].is_object() => Some(seen.answer(&self.make(session))),
            "tools/call" if params["name"] == "job" => {
                Some(seen.refuse(200, -32601, "Tool job requires task augmentation"))
            }
            "tools/call" => Some(seen.answer(&json!({"content": [], "said": params}))),
            method if method.starts_with("tasks/") => self.about_a_task(seen, &session),
            // An answer to what it asked.
            _ if seen.body.get("method").is_none() && seen.id().is_u64() => {
                let reported = seen.body.get("result").or(seen.body.get("error")).cloned();
                let id = seen.id().as_u64().unwrap();
                self.with(|state| state.replies.insert(id, reported.unwrap()));
                Some(Reply::new(202, "text/plain", ""))
            }
            _ => None,
        }
    }

    fn make(&self, session: String) -> Value {
        self.with(|state| {
            let id = format!("work-{}", state.tasks.len() + 1);
            let task = Task {
                session,
                status: "working",
                message: "begun".to_owned(),
                outcome: None,
                waiting: Vec::new(),
            };
            let mut created = task.to_json(&id);
            if let Some(reported) = state.said.as_object() {
                created.as_object_mut().unwrap().extend(reported.clone());
            }
            state.tasks.insert(id, task);
            json!({"task": created, "_meta": {"x": 1.50}})
        })
    }

    fn about_a_task(&self, seen: &ReceivedRequest, session: &str) -> Option<Reply> {
        let id = seen.body["params"]["taskId"].as_str()?.to_owned();
        self.with(|state| {
            let (never_cancels, is_durable) = (state.never_cancels, state.is_durable);
            let known = state.tasks.get_mut(&id);
            let known = known.filter(|task| is_durable || task.session == session);
            let Some(task) = known else {
                return Some(seen.refuse(200, -32602, &format!("no task {id} here")));
            };
            match seen.method() {
                "tasks/get" => Some(seen.answer(&task.to_json(&id))),
                "tasks/cancel" if never_cancels => Some(seen.refuse(200, -32601, "no such method")),
                "tasks/cancel" if task.is_over() => {
                    Some(seen.refuse(200, -32602, "the task is over"))
                }
                "tasks/cancel" => {
                    task.status = "cancelled";
                    task.end(Err(json!({"code": -32000, "message": "cancelled"})));
                    Some(seen.answer(&task.to_json(&id)))
                }
                "tasks/result" => {
                    let (sender, reply) = Reply::stream();
                    task.waiting.push((seen.clone(), sender));
                    if let Some(outcome) = task.outcome.clone() {
                        task.end(outcome);
                    }
                    Some(reply)
                }
                _ => None,
            }
        })
    }

    pub(super) fn with_said(self, reported: Value) -> Self {
        self.with(|state| state.said = reported);
        self
    }

    pub(super) fn never_cancels(&self) {
        self.with(|state| state.never_cancels = true);
    }

    /// Says by a notification how a task stands.
    pub(super) fn says(&self, id: &str, status: &'static str, message: &str) {
        self.with(|state| {
            let task = state.tasks.get_mut(id).unwrap();
            task.status = status;
            message.clone_into(&mut task.message);
            let sent = notification("notifications/tasks/status", task.to_json(id));
            for (session, stream) in &state.streams {
                if *session == task.session {
                    let _ = stream.send(event(&sent).into());
                }
            }
        });
    }

    /// Is at it so without saying so.
    pub(super) fn stands(&self, id: &str, status: &'static str) {
        self.with(|state| state.tasks.get_mut(id).unwrap().status = status);
    }

    /// Says something about a task where its result is waited for.
    pub(super) async fn tells(&self, id: &str, message: &Value) {
        self.is_waited_for(id).await;
        self.with(|state| {
            for (_, sender) in &state.tasks[id].waiting {
                let _ = sender.send(event(message).into());
            }
        });
    }

    /// Asks something where the result is waited for; the number of the question.
    pub(super) async fn asks(&self, id: &str, method: &str, params: Value) -> u64 {
        let (number, question) = self.question(id, method, params);
        self.stands(id, "input_required");
        self.tells(id, &question).await;
        number
    }

    /// Waits until its session is listened to.
    pub(super) async fn is_heard(&self, id: &str) {
        let session = self.session_of(id);
        self.until(|state| state.streams.iter().any(|(of, _)| *of == session))
            .await;
    }

    /// Asks something on the stream of the session.
    pub(super) async fn asks_aside(&self, id: &str, method: &str, params: Value) -> u64 {
        let (number, question) = self.question(id, method, params);
        self.is_heard(id).await;
        let session = self.session_of(id);
        self.with(|state| {
            for (_, stream) in state.streams.iter().filter(|(of, _)| *of == session) {
                let _ = stream.send(event(&question).into());
            }
        });
        number
    }

    fn question(&self, id: &str, method: &str, mut params: Value) -> (u64, Value) {
        params["_meta"] = json!({RELATED: {"taskId": id}});
        let number = self.with(|state| {
            state.asked += 1;
            state.asked
        });
        (number, request(json!(number), method, params))
    }

    /// What was answered to a question.
    pub(super) async fn reply(&self, number: u64) -> Value {
        self.until(|state| state.replies.contains_key(&number))
            .await;
        self.with(|state| state.replies[&number].clone())
    }

    /// Ends a task.
    pub(super) async fn ends(&self, id: &str, outcome: Result<Value, Value>) {
        self.is_waited_for(id).await;
        self.with(|state| {
            let task = state.tasks.get_mut(id).unwrap();
            task.status = outcome.as_ref().map_or("failed", |_| "completed");
            task.end(outcome);
        });
    }

    /// Breaks the streams on which the result of a task is waited for.
    pub(super) async fn interrupts(&self, id: &str) {
        self.is_waited_for(id).await;
        self.with(|state| state.tasks.get_mut(id).unwrap().waiting.clear());
    }

    pub(super) async fn is_waited_for(&self, id: &str) {
        let is_waiting = |task: &Task| !task.waiting.is_empty();
        self.until(|state| state.tasks.get(id).is_some_and(is_waiting))
            .await;
    }

    pub(super) fn session_of(&self, id: &str) -> String {
        self.with(|state| state.tasks[id].session.clone())
    }

    /// Forgets a task.
    pub(super) fn forgets(&self, id: &str) {
        self.with(|state| state.tasks.remove(id));
    }

    /// The task is not known any more, and its result still to be delivered.
    pub(super) async fn lets_go(&self, id: &str) -> impl FnOnce(Result<Value, Value>) + use<> {
        self.is_waited_for(id).await;
        let mut task = self.with(|state| state.tasks.remove(id).unwrap());
        move |outcome| task.end(outcome)
    }

    async fn until(&self, holds: impl Fn(&State) -> bool) {
        until(async || self.with(|state| holds(state))).await;
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap())
    }
}

impl Task {
    fn to_json(&self, id: &str) -> Value {
        json!({
            "taskId": id, "status": self.status, "statusMessage": self.message, "ttl": 60_000,
            "pollInterval": 50, "x-vendor": 1.50,
        })
    }

    fn is_over(&self) -> bool {
        self.outcome.is_some()
    }

    /// Answers whoever waits for it.
    fn end(&mut self, outcome: Result<Value, Value>) {
        for (seen, sender) in self.waiting.drain(..) {
            let message = match &outcome {
                Ok(result) => seen.message(result),
                Err(error) => json!({"jsonrpc": "2.0", "id": seen.id(), "error": error}),
            };
            let _ = sender.send(event(&message).into());
        }
        self.outcome = Some(outcome);
    }
}
