//! The calls of clients: as they end, as server-sent events, and those that ended before.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::StatusCode;
use mcp_vary_base::tasks::spawn;
use mcp_vary_gateway::{FailedCalls, FinishedCall, Gateway, RequestWatch, WatchEvent};
use mcp_vary_operator::{PageAccess, PageBody};
use serde::Serialize;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::response::{PageAnswer, failure, json, typed};

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

/// The response to `GET /api/last-calls`: the calls that the gateway recorded, the latest first, and for the operator alone where
/// the audit log is, which has earlier ones.
pub(crate) fn last_calls(gateway: &Gateway, clock: Clock, access: PageAccess) -> PageAnswer {
    let recorded = gateway.last_calls();
    let is_operator = access == PageAccess::Full;
    let audit_file = is_operator.then(|| gateway.audit_file()).flatten();
    let calls = recorded.iter().map(|call| ShownCall::new(call, clock));
    json(&LastCalls {
        calls: calls.collect(),
        // A path that is not UTF-8 cannot be part of a command that the page shows.
        audit_file: audit_file.and_then(|path| path.into_os_string().into_string().ok()),
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LastCalls<'a> {
    calls: Vec<ShownCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit_file: Option<String>,
}

/// A call, and when it ended.
pub(crate) type ShownCall<'a> = Ended<&'a FinishedCall>;

/// What ended, and when.
#[derive(Serialize)]
pub(crate) struct Ended<T> {
    #[serde(flatten)]
    what: T,
    /// Seconds since 1970-01-01 UTC.
    at: f64,
}

impl<'a> ShownCall<'a> {
    pub(crate) fn new(call: &'a FinishedCall, clock: Clock) -> Self {
        let at = ended_at(call, clock);
        Self { what: call, at }
    }
}

/// The calls that failed or were refused since the start, and when the last one of each kind ended.
pub(crate) fn failures(gateway: &Gateway, clock: Clock) -> Vec<Ended<FailedCalls>> {
    let failures = gateway.failed_calls().into_iter();
    let ended = failures.map(|failed| Ended {
        at: time_of(failed.last, clock),
        what: failed,
    });
    ended.collect()
}

/// The calls of a server that ended lately.
#[derive(Default, Serialize)]
pub(crate) struct RecentCalls {
    count: u64,
    /// How many of them failed.
    errors: u64,
}

/// The calls of the last [`RECENT`] that the gateway still has, by server.
pub(crate) fn recent(gateway: &Gateway) -> BTreeMap<String, RecentCalls> {
    let mut servers = BTreeMap::<_, RecentCalls>::new();
    let calls = gateway.last_calls().into_iter().take(MOST_CALLS);
    for call in calls.filter(|call| call.ended.elapsed() < RECENT) {
        if let Some(server) = &call.target.server {
            let of_server = servers.entry(server.as_str().to_owned()).or_default();
            of_server.count += 1;
            of_server.errors += u64::from(call.has_failed());
        }
    }
    servers
}

/// When a call ended, in seconds since 1970-01-01 UTC.
pub(crate) fn ended_at(call: &FinishedCall, clock: Clock) -> f64 {
    time_of(call.ended, clock)
}

fn time_of(ended: Instant, clock: Clock) -> f64 {
    seconds(clock().saturating_sub(micros(ended.elapsed())))
}

/// Sends what happened in pieces of [`PACE`]: each write wakes the browser and takes longer than all of its events.
async fn send(mut watch: RequestWatch, events: mpsc::Sender<Bytes>, clock: Clock) {
    // A browser shows that it is connected when it gets something.
    let mut piece = ": connected\n\n".to_owned();
    while events.send(piece.into()).await.is_ok() {
        let event = tokio::select! {
            event = watch.next() => event,
            () = events.closed() => None,
        };
        let Some(event) = event else { return };
        piece = event_text(&event, clock);
        tokio::time::sleep(PACE).await;
        for _ in 0..MAX_EVENTS {
            let Some(Some(event)) = watch.next().now_or_never() else {
                break;
            };
            piece += &event_text(&event, clock);
        }
    }
}

/// An event of the stream.
fn event_text(event: &WatchEvent, clock: Clock) -> String {
    let (name, data) = match event {
        WatchEvent::Finished(call) => {
            let text = serde_json::to_string(&ShownCall::new(call, clock));
            ("call", text.unwrap_or_default())
        }
        WatchEvent::Dropped(count) => ("dropped", json!({"count": count}).to_string()),
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
pub(crate) fn seconds(micros: u64) -> f64 {
    (micros / 1000) as f64 / 1000.0
}

/// The time in which a server that fails is one that fails now.
const RECENT: Duration = Duration::from_secs(300);
/// The calls that are kept whatever came of them.
pub(crate) const MOST_CALLS: usize = 1000;
/// The page draws its list as often.
const PACE: Duration = Duration::from_millis(250);
/// The most events of a piece. Where more calls end than are shown, there would always be one more that tells so.
const MAX_EVENTS: usize = 256;
