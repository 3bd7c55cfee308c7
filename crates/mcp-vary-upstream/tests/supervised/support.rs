//! What both kinds of server have in common here.

use std::sync::Arc;
use std::time::Duration;

use mcp_vary_testkit::wait::soon;
use mcp_vary_upstream::{
    ConnectionState, Event, Limits, Request, SupervisedConnection, UpstreamConfig,
    UpstreamConnection,
};
use serde_json::{Value, json};
use tokio::sync::broadcast;

/// Limits that let a test see in a moment what takes a minute otherwise.
pub(crate) fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.backoff = Duration::from_millis(20);
    limits.grace = Duration::from_millis(200);
    // What a test is not about does not come into its way.
    limits.ping = Duration::ZERO;
    limits.ready_timeout = Duration::from_secs(60);
    limits
}

/// A connection that is supervised, and its first one.
pub(crate) async fn open(
    config: UpstreamConfig,
) -> (Arc<SupervisedConnection>, Arc<UpstreamConnection>) {
    let line = SupervisedConnection::open(config);
    let upstream = soon(line.first_attempt()).await.unwrap();
    (line, upstream)
}

pub(crate) fn call(name: &str, arguments: &Value) -> Request {
    let params = json!({"name": name, "arguments": arguments});
    Request::new("tools/call", Some(params.to_string())).with_name(name)
}

pub(crate) async fn result(upstream: &UpstreamConnection, name: &str, arguments: &Value) -> Value {
    let exchange = soon(upstream.request(call(name, arguments))).await.unwrap();
    let answer = soon(exchange.answer()).await.unwrap();
    serde_json::from_str(answer.outcome().unwrap()).unwrap()
}

/// Waits for the next event but list changes: `connected`, or why the connection was lost.
pub(crate) async fn next(events: &mut broadcast::Receiver<Event>) -> String {
    loop {
        match soon(events.recv()).await {
            Ok(Event::Connected) => return "connected".to_owned(),
            Ok(Event::Lost { reason }) => return format!("lost: {reason}"),
            Ok(Event::Closed { reason }) => return format!("closed: {reason}"),
            Ok(Event::ListChanged(_) | Event::ListMayHaveChanged(_)) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// The pauses of the next `count` failures.
pub(crate) async fn pauses(line: &Arc<SupervisedConnection>, count: usize) -> Vec<u128> {
    let mut state = line.state();
    let mut pauses = Vec::new();
    while pauses.len() < count {
        soon(state.changed()).await.unwrap();
        if let ConnectionState::Disconnected { pause, .. } = &*state.borrow_and_update() {
            pauses.push(pause.as_millis());
        }
    }
    pauses
}

#[track_caller]
pub(crate) fn says(error: &impl ToString, parts: &[&str]) {
    let error = error.to_string();
    for part in parts {
        assert!(error.contains(part), "`{error}` does not say `{part}`");
    }
}
