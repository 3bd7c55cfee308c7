//! The requests of clients as they end, as server-sent events.

use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::StatusCode;
use mcp_vary_base::tasks::spawn;
use mcp_vary_gateway::{Gateway, RequestWatch, WatchEvent};
use mcp_vary_operator::PageBody;
use serde_json::json;
use tokio::sync::mpsc;

use crate::response::{PageAnswer, failure, typed};

/// Microseconds since 1970-01-01 UTC.
pub(crate) type Clock = fn() -> u64;

/// The response to `GET /api/events`: a stream until the browser leaves.
pub(crate) fn stream(gateway: &Gateway, viewer: Option<u128>, clock: Clock) -> PageAnswer {
    let Some(watch) = gateway.watch_requests(viewer) else {
        let why = "the page is open too often; close another window of it";
        return failure(StatusCode::TOO_MANY_REQUESTS, why);
    };
    // What waits, waits in the watch, which counts what it drops.
    let (events, sent) = mpsc::channel(1);
    spawn(send(watch, events, clock));
    let mut response = typed(StatusCode::OK, "text/event-stream", Bytes::new());
    *response.body_mut() = PageBody::Events(sent);
    response
}

/// Sends what happened in pieces of [`PACE`]: each write wakes the browser and takes longer than all of its events.
async fn send(mut watch: RequestWatch, events: mpsc::Sender<Bytes>, clock: Clock) {
    // A browser shows that it is connected when it gets something.
    let mut piece = ": connected\n\n".to_owned();
    let mut calls = 0_u64;
    while events.send(piece.into()).await.is_ok() {
        let event = tokio::select! {
            event = watch.next() => event,
            () = events.closed() => None,
        };
        let Some(event) = event else { return };
        piece = event_text(&event, &mut calls, clock);
        tokio::time::sleep(PACE).await;
        for _ in 0..MAX_EVENTS {
            let Some(Some(event)) = watch.next().now_or_never() else {
                break;
            };
            piece += &event_text(&event, &mut calls, clock);
        }
    }
}

/// An event of the stream; `calls` were sent before it.
fn event_text(event: &WatchEvent, calls: &mut u64, clock: Clock) -> String {
    let (name, data) = match event {
        WatchEvent::Finished(request) => {
            *calls += 1;
            let mut data = serde_json::to_value(&**request).unwrap_or_default();
            let ended = clock().saturating_sub(micros(request.ended.elapsed()));
            data["id"] = json!(*calls);
            data["at"] = json!(seconds(ended));
            ("call", data)
        }
        WatchEvent::Dropped(count) => ("dropped", json!({"count": count})),
        _ => return String::new(),
    };
    // JSON text has no line breaks outside of strings, and those in strings are escaped.
    format!("event: {name}\ndata: {data}\n\n")
}

fn micros(time: Duration) -> u64 {
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

/// The page draws its list as often.
const PACE: Duration = Duration::from_millis(250);
/// The most events of a piece. Where more calls end than are shown, there would always be one more that tells so.
const MAX_EVENTS: usize = 256;
