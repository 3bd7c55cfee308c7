//! Clients that create tasks.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::client_run::ClientRun;
use super::super::deployment::TASKS;
use super::super::http::{Http, Legacy, modern, request};
use super::{Scenario, ScenarioResult};

scenarios! {
    "session: create a task, forget it" => |run| session(with_sessions(run), Then::Forget);
    "session: create a task, cancel it, `DELETE`" => |run| session(with_sessions(run), Then::Cancel);
    "session: create a task, wait for its result" => |run| session(with_sessions(run), Then::Fetch);
    "session: create a task, hang up while waiting for its result" => |run| session(with_sessions(run), Then::HangUp);
    "stateless: create a task, forget it" => |run| stateless(run, Then::Forget);
    "stateless: create a task, cancel it" => |run| stateless(run, Then::Cancel);
    "stateless: create a task, fetch its result" => |run| stateless(run, Then::Fetch);
    "stateless: create a task of 2025-11-25, forget it" => |run| stateless(with_sessions(run), Then::Forget);
    "stateless: create a task of 2025-11-25, cancel it" => |run| stateless(with_sessions(run), Then::Cancel);
    "stateless: create a task of 2025-11-25, fetch its result" => |run| stateless(with_sessions(run), Then::Fetch);
}

/// To the server whose tasks are of 2025-11-25.
fn with_sessions(run: ClientRun<'_>) -> ClientRun<'_> {
    ClientRun {
        server: &TASKS,
        ..run
    }
}

/// What a client does after it has created a task.
#[derive(Clone, Copy)]
enum Then {
    Forget,
    Cancel,
    Fetch,
    HangUp,
}

/// A call that is quick, or longer than the client is connected.
fn call(run: ClientRun<'_>, then: Then) -> Value {
    let seconds = match then {
        Then::Cancel | Then::HangUp => 5.0,
        Then::Forget | Then::Fetch => 0.2,
    };
    run.call(2, run.server.slow, &json!({"seconds": seconds}))
}

async fn session(run: ClientRun<'_>, then: Then) -> ScenarioResult {
    let mut client = Legacy::open(run.address(), &json!({})).await?;
    let mut call = call(run, then);
    call["params"]["task"] = json!({"ttl": 60_000});
    client.send(&call).await?;
    let created = result(&mut client.http).await?;
    let id = created["task"]["taskId"].as_str();
    let task = json!({"taskId": id.ok_or_else(|| format!("no task: {created}"))?});
    let wait = request(3, "tasks/result", &task);
    match then {
        Then::Forget => Ok(()),
        Then::HangUp => client.send(&wait).await,
        Then::Cancel => {
            client.send(&request(3, "tasks/cancel", &task)).await?;
            result(&mut client.http).await?;
            client.end(run.address()).await
        }
        Then::Fetch => {
            client.send(&wait).await?;
            let result = result(&mut client.http).await?;
            if result["content"].is_array() {
                client.end(run.address()).await
            } else {
                Err(format!("no result: {result}"))
            }
        }
    }
}

async fn stateless(run: ClientRun<'_>, then: Then) -> ScenarioResult {
    let mut http = Http::connect(run.address()).await?;
    let created = result_of(&mut http, call(run, then)).await?;
    let id = created["taskId"].as_str();
    let task = json!({"taskId": id.ok_or_else(|| format!("no task: {created}"))?});
    match then {
        Then::Forget | Then::HangUp => Ok(()),
        Then::Cancel => result_of(&mut http, request(3, "tasks/cancel", &task))
            .await
            .map(drop),
        Then::Fetch => loop {
            let task_state = result_of(&mut http, request(3, "tasks/get", &task)).await?;
            match task_state["status"].as_str() {
                Some("working") => tokio::time::sleep(POLL).await,
                Some("completed") if task_state["result"]["content"].is_array() => return Ok(()),
                _ => return Err(format!("a task that does not complete: {task_state}")),
            }
        },
    }
}

/// The result of a request of a client that can have tasks.
async fn result_of(http: &mut Http, message: Value) -> Result<Value, String> {
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    http.send(&modern(message, &tasks)).await?;
    result(http).await
}

async fn result(http: &mut Http) -> Result<Value, String> {
    let mut answer = http.answer().await?;
    match answer["result"].take() {
        Value::Null => Err(format!("no result: {answer}")),
        result => Ok(result),
    }
}

const POLL: Duration = Duration::from_millis(100);
