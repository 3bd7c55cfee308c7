//! The cost of a changed list of one server of several: from the notification to the first list that shows the
//! change, in all variants.

use std::io;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::configurations::server_name;
use crate::endpoint::Endpoint;
use crate::load::{Connection, call_body, post};
use crate::machine::Usage;
use crate::report::Change;
use crate::rows::ALIKE;
use crate::subject::{Programs, Running, Subject};
use crate::upstream::tools;
use crate::upstream_spec::UpstreamSpec;

const SERVERS: usize = 5;

/// The minimum time before the gateway reads a list again.
const PAUSE: Duration = Duration::from_millis(1_500);

/// Measures Vary with one variant and with many, `times` times each.
pub(crate) async fn measure(programs: &Programs, times: usize) -> io::Result<Vec<Change>> {
    let mut changes = Vec::new();
    for (subject, variants) in [(Subject::Alone, 1), (Subject::Vary, ALIKE)] {
        let upstream = programs.upstream(UpstreamSpec {
            tools: 40,
            servers: SERVERS,
            alike: variants,
            ..UpstreamSpec::ONE
        })?;
        let running = programs.proxy(subject, &upstream)?;
        changes.push(of(&running, variants, times).await?);
    }
    Ok(changes)
}

async fn of(running: &Running, variants: usize, times: usize) -> io::Result<Change> {
    let place = &running.endpoint;
    let mut connection = Connection::open(place.address).await?;
    connection.initialize(place).await?;
    let mut change = Change {
        variants,
        cpu: Vec::new(),
        took: Vec::new(),
    };
    let mut before = list(&mut connection, place).await?;
    for _ in 0..times {
        tokio::time::sleep(PAUSE).await;
        let (used, started) = (Usage::of(running.process())?, Instant::now());
        announce(&mut connection, place).await?;
        let now = list(&mut connection, place).await?;
        change.took.push(started.elapsed().as_secs_f64() * 1e3);
        // Background work may end a little later.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let cpu = Usage::of(running.process())?.cpu - used.cpu;
        change
            .cpu
            .push(Duration::from_nanos(cpu).as_secs_f64() * 1e3);
        if now == before {
            return Err(io::Error::other("a list that changed is shown as it was"));
        }
        before = now;
    }
    Ok(change)
}

/// Makes the last server change its list and send a notification.
async fn announce(connection: &mut Connection, place: &Endpoint) -> io::Result<()> {
    let tool = format!("{}_{}", server_name(SERVERS - 1), tools::ECHO);
    let body = call_body(&tool, r#"{"text":"x","change":true}"#);
    exchange(connection, place, &body).await.map(drop)
}

/// The tools as text.
async fn list(connection: &mut Connection, place: &Endpoint) -> io::Result<String> {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let answer = exchange(connection, place, body).await?;
    let answer: Value = serde_json::from_str(&answer)?;
    let tools = answer["result"]["tools"].as_array();
    match tools.filter(|tools| tools.len() == SERVERS * 40) {
        Some(_) => Ok(answer["result"].to_string()),
        None => Err(io::Error::other(format!(
            "no list of 200 tools: {answer:.200}"
        ))),
    }
}

async fn exchange(connection: &mut Connection, place: &Endpoint, body: &str) -> io::Result<String> {
    let request = post(place, connection.session(), body);
    let response = connection.exchange(&request).await?;
    let text = String::from_utf8_lossy(response.body).into_owned();
    match response.status {
        200 if !text.contains("\"error\"") => Ok(text),
        status => Err(io::Error::other(format!("{status}: {text}"))),
    }
}
