//! Clients with sessions, and their calls.

use serde_json::json;

use super::super::client_run::ClientRun;
use super::super::http::{Http, Legacy, initialize, notification, post, request};
use super::{Scenario, ScenarioResult};

scenarios! {
    "session: a list, a call, `DELETE`" => |run| whole(run);
    "session: `initialize` and never come back" => |run| vanishes(run);
    "session: vanish before the answer to `initialize`" => |run| hasty(run);
    "session: hang up while an answer is awaited" => |run| silent_hang_up(run);
    "session: hang up in the middle of a call's stream" => |run| hang_up(run, false);
    "session: the same, then `DELETE`" => |run| hang_up(run, true);
    "session: lose a call's stream, come back, read to its end" => |run| resumes(run);
    "session: lose a call's stream, come back, hang up again" => |run| resumes_twice(run);
    "session: cancel a call on its stream" => |run| cancels(run);
    "session: cancel a call that has said nothing" => |run| cancels_silence(run);
    "session: leave a stream unread, hang up" => |run| does_not_read(run);
    "batch: read to its end" => |run| batch(run, true);
    "batch: hang up in the middle of its stream" => |run| batch(run, false);
}

async fn open(run: ClientRun<'_>) -> Result<Legacy, String> {
    Legacy::open(run.address(), &json!({})).await
}

async fn whole(run: ClientRun<'_>) -> ScenarioResult {
    let mut client = open(run).await?;
    client.send(&request(2, "tools/list", &json!({}))).await?;
    client.http.until("\"id\":2").await?;
    client.send(&run.steps(3)).await?;
    client.http.until("\"id\":3").await?;
    client.end(run.address()).await
}

async fn vanishes(run: ClientRun<'_>) -> ScenarioResult {
    open(run).await.map(drop)
}

async fn hasty(run: ClientRun<'_>) -> ScenarioResult {
    let mut http = Http::connect(run.address()).await?;
    http.send(&post("", &initialize("2025-11-25", &json!({}))))
        .await
}

async fn silent_hang_up(run: ClientRun<'_>) -> ScenarioResult {
    let mut client = open(run).await?;
    client.send(&run.silent(2)).await
}

/// Calls, reads the first report, and returns the header with the id of its event.
async fn begin(client: &mut Legacy, run: ClientRun<'_>) -> Result<String, String> {
    client.send(&run.steps(2)).await?;
    let read = client.http.until("notifications/progress").await?;
    let mut lines = read.lines().rev();
    let id = lines.find_map(|line| line.strip_prefix("id: "));
    Ok(format!("Last-Event-ID: {}\r\n", id.ok_or(read.clone())?))
}

async fn hang_up(run: ClientRun<'_>, ends: bool) -> ScenarioResult {
    let mut client = open(run).await?;
    begin(&mut client, run).await?;
    if ends {
        client.end(run.address()).await?;
    }
    Ok(())
}

async fn resumes(run: ClientRun<'_>) -> ScenarioResult {
    let mut client = open(run).await?;
    let last = begin(&mut client, run).await?;
    client.reconnect(run.address()).await?;
    client.verb("GET", &last).await?;
    let remaining = client.http.until("\"id\":2").await?;
    // Each report once: the first was read before.
    match remaining.matches("notifications/progress").count() {
        2 => Ok(()),
        others => Err(format!("{others} reports instead of 2: {remaining}")),
    }
}

async fn resumes_twice(run: ClientRun<'_>) -> ScenarioResult {
    let mut client = open(run).await?;
    let last = begin(&mut client, run).await?;
    client.reconnect(run.address()).await?;
    client.verb("GET", &last).await?;
    client.http.until("\r\n\r\n").await.map(drop)
}

async fn cancels(run: ClientRun<'_>) -> ScenarioResult {
    let mut client = open(run).await?;
    begin(&mut client, run).await?;
    client.cancel(2, run.address()).await?;
    client.http.until("0\r\n\r\n").await.map(drop)
}

/// The call may have a result before it is cancelled.
async fn cancels_silence(run: ClientRun<'_>) -> ScenarioResult {
    let mut client = open(run).await?;
    client.send(&run.silent(2)).await?;
    client.cancel(2, run.address()).await?;
    client.http.until("HTTP/1.1 20").await.map(drop)
}

async fn does_not_read(run: ClientRun<'_>) -> ScenarioResult {
    let mut client = open(run).await?;
    client.send(&run.steps(2)).await?;
    let received = notification("notifications/initialized", &json!({}));
    client.say(&received, run.address()).await
}

async fn batch(run: ClientRun<'_>, reads_to_end: bool) -> ScenarioResult {
    let mut client = Legacy::of(run.address(), "2025-03-26", &json!({})).await?;
    client.send(&json!([run.steps(2), run.silent(3)])).await?;
    let end = if reads_to_end {
        "0\r\n\r\n"
    } else {
        "notifications/progress"
    };
    let read = client.http.until(end).await?;
    if !(reads_to_end && read.matches("{\"jsonrpc\":\"2.0\",\"id\":").count() != 2) {
        Ok(())
    } else {
        Err(format!("not two answers: {read}"))
    }
}
