//! Clients that create tasks.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::ground::{SERVERS, TASKS};
use super::super::http::{Http, Legacy, modern, request};
use super::super::visit::Visit;
use super::{Gone, Way, common};

pub(super) const WAYS: &[Way] = &[
    common("session: have a task made, forget it", |visit| {
        Box::pin(session(with_sessions(visit), Then::Forget))
    }),
    common("session: have a task made, cancel it, `DELETE`", |visit| {
        Box::pin(session(with_sessions(visit), Then::Cancel))
    }),
    common(
        "session: have a task made, wait for what it comes to",
        |visit| Box::pin(session(with_sessions(visit), Then::Fetch)),
    ),
    common(
        "session: have a task made, hang up while waiting for what it comes to",
        |visit| Box::pin(session(with_sessions(visit), Then::HangUp)),
    ),
    common(
        "session: have a task of 2026-07-28 made, forget it",
        |visit| Box::pin(session(without_sessions(visit), Then::Forget)),
    ),
    common(
        "session: have a task of 2026-07-28 made, cancel it, `DELETE`",
        |visit| Box::pin(session(without_sessions(visit), Then::Cancel)),
    ),
    common(
        "session: have a task of 2026-07-28 made, wait for what it comes to",
        |visit| Box::pin(session(without_sessions(visit), Then::Fetch)),
    ),
    common(
        "session: have a task of 2026-07-28 made, hang up while waiting for it",
        |visit| Box::pin(session(without_sessions(visit), Then::HangUp)),
    ),
    common("stateless: have a task made, forget it", |visit| {
        Box::pin(stateless(visit, Then::Forget))
    }),
    common("stateless: have a task made, cancel it", |visit| {
        Box::pin(stateless(visit, Then::Cancel))
    }),
    common(
        "stateless: have a task made, fetch what it came to",
        |visit| Box::pin(stateless(visit, Then::Fetch)),
    ),
    common(
        "stateless: have a task of 2025-11-25 made, forget it",
        |visit| Box::pin(stateless(with_sessions(visit), Then::Forget)),
    ),
    common(
        "stateless: have a task of 2025-11-25 made, cancel it",
        |visit| Box::pin(stateless(with_sessions(visit), Then::Cancel)),
    ),
    common(
        "stateless: have a task of 2025-11-25 made, fetch what it came to",
        |visit| Box::pin(stateless(with_sessions(visit), Then::Fetch)),
    ),
];

/// To the server whose tasks are of 2025-11-25.
fn with_sessions(visit: Visit<'_>) -> Visit<'_> {
    Visit {
        server: &TASKS,
        ..visit
    }
}

/// To a server whose tasks are of the extension.
fn without_sessions(visit: Visit<'_>) -> Visit<'_> {
    let mut servers = SERVERS.iter().filter(|server| server.is_modern).cycle();
    let server = servers.nth(visit.number % SERVERS.len());
    Visit {
        server: server.unwrap_or(visit.server),
        ..visit
    }
}

/// What a client does about its task.
#[derive(Clone, Copy)]
enum Then {
    Forget,
    Cancel,
    Fetch,
    HangUp,
}

/// A call that takes a moment, or longer than the client is there.
fn call(visit: Visit<'_>, then: Then) -> Value {
    let seconds = match then {
        Then::Cancel | Then::HangUp => 5.0,
        Then::Forget | Then::Fetch => 0.2,
    };
    visit.call(2, visit.server.slow, &json!({"seconds": seconds}))
}

async fn session(visit: Visit<'_>, then: Then) -> Gone {
    let mut client = Legacy::open(visit.address(), &json!({})).await?;
    let mut call = call(visit, then);
    call["params"]["task"] = json!({"ttl": 60_000});
    client.send(&call).await?;
    let made = result(&mut client.http).await?;
    let id = made["task"]["taskId"].as_str();
    let task = json!({"taskId": id.ok_or_else(|| format!("no task: {made}"))?});
    let waits = request(3, "tasks/result", &task);
    match then {
        Then::Forget => Ok(()),
        Then::HangUp => client.send(&waits).await,
        Then::Cancel => {
            client.send(&request(3, "tasks/cancel", &task)).await?;
            result(&mut client.http).await?;
            client.end(visit.address()).await
        }
        Then::Fetch => {
            client.send(&waits).await?;
            let result = result(&mut client.http).await?;
            match result["content"].is_array() {
                true => client.end(visit.address()).await,
                false => Err(format!("no result: {result}")),
            }
        }
    }
}

async fn stateless(visit: Visit<'_>, then: Then) -> Gone {
    let mut http = Http::connect(visit.address()).await?;
    let made = ask(&mut http, call(visit, then)).await?;
    let id = made["taskId"].as_str();
    let task = json!({"taskId": id.ok_or_else(|| format!("no task: {made}"))?});
    match then {
        Then::Forget | Then::HangUp => Ok(()),
        Then::Cancel => ask(&mut http, request(3, "tasks/cancel", &task))
            .await
            .map(drop),
        Then::Fetch => loop {
            let got = ask(&mut http, request(3, "tasks/get", &task)).await?;
            match got["status"].as_str() {
                Some("working") => tokio::time::sleep(POLL).await,
                Some("completed") if got["result"]["content"].is_array() => return Ok(()),
                _ => return Err(format!("a task that does not complete: {got}")),
            }
        },
    }
}

/// The result of a request of a client that can have tasks.
async fn ask(http: &mut Http, message: Value) -> Result<Value, String> {
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
