//! The cost of notifying many listeners of a changed list.

use std::io;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::endpoint::Endpoint;
use crate::load::{Connection, Era, call_body, post};
use crate::machine::Usage;
use crate::report::Fan;
use crate::subject::{Programs, Running, Subject};
use crate::upstream::tools;
use crate::upstream_spec::UpstreamSpec;

/// The names of these rows.
pub(crate) const NAMES: [&str; 2] = [
    "a list changes, 1,000 clients listen",
    "a list changes, 1,000 streams of subscriptions/listen",
];

/// The number of open streams: the gateway's limit, less a few for other clients.
const LISTENERS: usize = 1000;

/// The minimum time before the gateway reads a list again.
const PAUSE: Duration = Duration::from_millis(1_500);

/// Measures the time from the change until the last listener is notified, `times` times: first the limit, then Vary,
/// for each `wanted` row.
pub(crate) async fn measure(
    programs: &Programs,
    times: usize,
    wanted: impl Fn(&str) -> bool,
) -> io::Result<Vec<Fan>> {
    let mut fans = Vec::new();
    for (name, era) in NAMES.into_iter().zip([Era::Legacy, Era::Modern]) {
        if !wanted(name) {
            continue;
        }
        let limit = programs.fan()?;
        fans.push(of(name, Subject::Fan, &limit, Era::Legacy, times).await?);
        drop(limit);
        let upstream = programs.upstream(UpstreamSpec::ONE)?;
        let vary = programs.proxy(Subject::Vary, &upstream)?;
        fans.push(of(name, Subject::Vary, &vary, era, times).await?);
    }
    Ok(fans)
}

async fn of(
    name: &'static str,
    subject: Subject,
    running: &Running,
    era: Era,
    times: usize,
) -> io::Result<Fan> {
    let place = &running.endpoint;
    let mut caller = Connection::open(place.address).await?;
    if subject == Subject::Vary {
        caller.initialize(place).await?;
    }
    let mut listeners = Vec::new();
    for _ in 0..LISTENERS {
        listeners.push(listener(subject, era, place).await?);
    }
    let mut fan = Fan::new(name, subject, LISTENERS);
    // A session is notified of the change once for each variant that has the tool; all notifications count.
    announce(&mut caller, place).await?;
    tokio::time::sleep(PAUSE).await;
    let counts = listeners
        .iter_mut()
        .map(|listener| listener.count_received(CHANGED));
    let each = counts.max().unwrap_or(1).max(1);
    for _ in 0..times {
        tokio::time::sleep(PAUSE).await;
        let (used, started) = (Usage::of(running.process())?, Instant::now());
        announce(&mut caller, place).await?;
        let mut delays = Vec::new();
        for listener in &mut listeners {
            for _ in 0..each {
                let received = tokio::time::timeout(PATIENCE, listener.read_until(CHANGED)).await;
                received
                    .map_err(|_| io::Error::other("a listener is not notified of a change"))??;
            }
            delays.push(started.elapsed());
        }
        let cpu = Usage::of(running.process())?.cpu - used.cpu;
        fan.add(&delays, cpu);
    }
    Ok(fan)
}

const CHANGED: &[u8] = b"notifications/tools/list_changed";

/// The time limit for a notification.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection on which a client receives notifications.
async fn listener(subject: Subject, era: Era, place: &Endpoint) -> io::Result<Connection> {
    let mut listener = Connection::open(place.address).await?;
    match era {
        Era::Legacy => {
            if subject == Subject::Vary {
                listener.initialize(place).await?;
            }
            listener.listen(place).await?;
        }
        Era::Modern => {
            listener.subscribe(&listen(place)).await?;
            listener
                .read_until(b"notifications/subscriptions/acknowledged")
                .await?;
        }
    }
    Ok(listener)
}

/// A request for changes of the list of tools.
fn listen(Endpoint { address, path, .. }: &Endpoint) -> Vec<u8> {
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen",
        "params": {
            "notifications": {"toolsListChanged": true},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "vary-bench", "version": "1.0.0"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    });
    let body = body.to_string();
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: \
         application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: \
         subscriptions/listen\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Makes the server change its list and send a notification.
async fn announce(caller: &mut Connection, place: &Endpoint) -> io::Result<()> {
    let body = call_body(tools::ECHO, r#"{"text":"x","change":true}"#);
    let request = post(place, caller.session(), &body);
    match caller.exchange(&request).await?.status {
        200 => Ok(()),
        status => Err(io::Error::other(format!(
            "the call is answered with {status}"
        ))),
    }
}
