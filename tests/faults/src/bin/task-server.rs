//! A server of 2025-11-25 on standard streams, whose tool `job` can only be called as a task.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

struct Task {
    status: &'static str,
    /// The requests that wait for its result.
    waiting: Vec<Value>,
}

#[derive(Clone, Default)]
struct Tasks(Arc<Mutex<BTreeMap<String, Task>>>);

fn main() {
    let tasks = Tasks::default();
    let mut created = 0;
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            return;
        };
        let (id, params) = (&message["id"], &message["params"]);
        let task = params["taskId"].as_str().unwrap_or_default();
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => say(id, "result", &hello(&params["protocolVersion"])),
            "ping" => say(id, "result", &json!({})),
            "tools/list" => say(id, "result", &tools()),
            "tools/call" => {
                created += 1;
                tasks.begin(
                    id,
                    &format!("task-{created}"),
                    &params["arguments"]["seconds"],
                );
            }
            "tasks/result" => tasks.wait(id, task),
            "tasks/get" => tasks.state(id, task),
            "tasks/cancel" => tasks.cancel(id, task),
            _ if !id.is_null() => refuse(id, "no such method"),
            _ => {}
        }
    }
}

fn hello(revision: &Value) -> Value {
    json!({
        "protocolVersion": revision,
        "capabilities": {"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}},
        "serverInfo": {"name": "tasks", "version": "1"},
    })
}

fn tools() -> Value {
    json!({"tools": [{
        "name": "job", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"},
    }]})
}

fn state(task: &str, status: &str) -> Value {
    json!({"taskId": task, "status": status, "ttl": TTL.as_millis(), "pollInterval": 100})
}

/// So long a task is known after its work.
const TTL: Duration = Duration::from_secs(10);

impl Tasks {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Task>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, id: &Value, task: &str, seconds: &Value) {
        let working = Task {
            status: "working",
            waiting: Vec::new(),
        };
        self.lock().insert(task.to_owned(), working);
        say(id, "result", &json!({"task": state(task, "working")}));
        let (tasks, task) = (self.clone(), task.to_owned());
        let time = Duration::from_secs_f64(seconds.as_f64().unwrap_or(1.0));
        thread::spawn(move || {
            thread::sleep(time);
            tasks.end(&task, "completed");
            thread::sleep(TTL);
            tasks.lock().remove(&task);
        });
    }

    /// Whoever waits for a task that is over now is answered.
    fn end(&self, task: &str, status: &'static str) {
        let mut tasks = self.lock();
        let Some(known) = tasks.get_mut(task).filter(|it| it.status == "working") else {
            return;
        };
        known.status = status;
        for id in std::mem::take(&mut known.waiting) {
            finish(&id, status);
        }
    }

    fn wait(&self, id: &Value, task: &str) {
        match self.lock().get_mut(task) {
            Some(known) if known.status == "working" => known.waiting.push(id.clone()),
            Some(known) => finish(id, known.status),
            None => refuse(id, "no such task"),
        }
    }

    fn state(&self, id: &Value, task: &str) {
        match self.lock().get(task) {
            Some(known) => say(id, "result", &state(task, known.status)),
            None => refuse(id, "no such task"),
        }
    }

    fn cancel(&self, id: &Value, task: &str) {
        self.end(task, "cancelled");
        self.state(id, task);
    }
}

/// What a task that is over came to.
fn finish(id: &Value, status: &str) {
    let result = json!({"content": [{"type": "text", "text": "done"}]});
    match status {
        "completed" => say(id, "result", &result),
        _ => refuse(id, "the task was cancelled"),
    }
}

fn refuse(id: &Value, why: &str) {
    say(id, "error", &json!({"code": -32602, "message": why}));
}

/// Whoever does not listen any more has ended this with its input.
fn say(id: &Value, member: &str, value: &Value) {
    let message = json!({"jsonrpc": "2.0", "id": id, member: value});
    let mut output = io::stdout().lock();
    let _ = writeln!(output, "{message}").and_then(|()| output.flush());
}
