//! Connections to servers, over HTTP and to processes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod http;
mod stdio;
mod unreadable;

use mcp_vary_testkit::wait::soon;
use mcp_vary_upstream::{ConnectError, Exchange, Message, UpstreamConfig, UpstreamConnection};
use serde_json::Value;

fn parse(message: &[u8]) -> Value {
    serde_json::from_slice(message).unwrap()
}

/// What comes until the answer, and the answer.
async fn all(mut exchange: Exchange) -> (Vec<Value>, Result<Value, String>) {
    let mut notifications = Vec::new();
    loop {
        match soon(exchange.next()).await {
            Ok(Message::Notification(message)) => notifications.push(parse(&message)),
            Ok(Message::Request(request)) => panic!("nobody is here to be asked {request:?}"),
            Ok(Message::Answer(answer)) => {
                let outcome = answer.outcome().map(|result| parse(result.as_bytes()));
                return (notifications, outcome.map_err(str::to_owned));
            }
            Err(error) => return (notifications, Err(error.details())),
        }
    }
}

#[track_caller]
fn says(error: &impl ToString, parts: &[&str]) {
    let error = error.to_string();
    for part in parts {
        assert!(error.contains(part), "`{error}` does not say `{part}`");
    }
}

/// Why a connection cannot be made.
async fn fails(config: UpstreamConfig) -> ConnectError {
    UpstreamConnection::connect(config).await.unwrap_err()
}
