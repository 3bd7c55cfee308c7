//! The requests of clients as they end, as server-sent events.

use bytes::Bytes;
use http::StatusCode;
use mcp_vary_gateway::{Gateway, RequestWatch, WatchEvent};
use mcp_vary_operator::PageBody;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::response::{PageAnswer, failure, typed};

/// Microseconds since 1970-01-01 UTC.
pub(crate) type Clock = fn() -> u64;

/// The response to `GET /api/events`: a stream until the browser leaves.
pub(crate) fn stream(gateway: &Gateway, clock: Clock) -> PageAnswer {
    let Some(watch) = gateway.watch_requests() else {
        let why = "the page is open too often; close another window of it";
        return failure(StatusCode::TOO_MANY_REQUESTS, why);
    };
    // What waits, waits in the watch, which counts what it drops.
    let (events, sent) = mpsc::channel(1);
    tokio::spawn(send(watch, events, clock));
    let mut response = typed(StatusCode::OK, "text/event-stream", Bytes::new());
    *response.body_mut() = PageBody::Events(sent);
    response
}

async fn send(mut watch: RequestWatch, events: mpsc::Sender<Bytes>, clock: Clock) {
    // A browser shows that it is connected when it gets something.
    let mut next = Bytes::from_static(b": connected\n\n");
    let mut id = 0_u64;
    while events.send(next).await.is_ok() {
        let event = tokio::select! {
            event = watch.next() => event,
            () = events.closed() => None,
        };
        next = match event {
            Some(WatchEvent::Finished(request)) => {
                id += 1;
                let mut data = serde_json::to_value(&*request).unwrap_or_default();
                let ended = clock().saturating_sub(micros(request.ended.elapsed()));
                data["id"] = json!(id);
                data["at"] = json!(seconds(ended));
                event_text("call", &data)
            }
            Some(WatchEvent::Dropped(count)) => event_text("dropped", &json!({"count": count})),
            _ => return,
        };
    }
}

fn event_text(name: &str, data: &Value) -> Bytes {
    // JSON text has no line breaks outside of strings, and those in strings are escaped.
    format!("event: {name}\ndata: {data}\n\n").into()
}

fn micros(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Microseconds as seconds, with a digit for each millisecond.
#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds since 1970 are exact for 280,000 years"
)]
fn seconds(micros: u64) -> f64 {
    (micros / 1000) as f64 / 1000.0
}
