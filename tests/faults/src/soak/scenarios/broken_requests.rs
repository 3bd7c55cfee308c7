//! Requests that are slow, broken, or not HTTP.

use std::time::Duration;

use serde_json::json;

use super::super::client_run::ClientRun;
use super::super::deployment::WRITE_TIMEOUT;
use super::super::http::{Http, Legacy, initialize, post};
use super::{Scenario, ScenarioResult};

scenarios! {
    "half a head, then nothing" => |run| half(run, 40);
    "half a body, then nothing" => |run| half(run, usize::MAX);
    "no HTTP at all" => |run| nonsense(run);
    "a body that is no JSON" => |run| garbage(run);
    "a request that is too large" => |run| oversized(run);
    "half a body, and wait" one in 149 => |run| half_and_wait(run);
    "session: stop reading a long stream" one in 151 => |run| slow(run);
}

/// The first bytes of a request, without the last.
async fn half(run: ClientRun<'_>, bytes: usize) -> ScenarioResult {
    let whole = post("", &initialize("2025-11-25", &json!({})));
    let mut http = Http::connect(run.address()).await?;
    http.send(&whole[..bytes.min(whole.len() - 1)]).await
}

async fn half_and_wait(run: ClientRun<'_>) -> ScenarioResult {
    let whole = post("", &initialize("2025-11-25", &json!({})));
    let mut http = Http::connect(run.address()).await?;
    http.send(&whole[..whole.len() - 1]).await?;
    http.until("HTTP/1.1 408").await.map(drop)
}

async fn nonsense(run: ClientRun<'_>) -> ScenarioResult {
    let mut http = Http::connect(run.address()).await?;
    http.send("\u{16}\u{3}\u{1} hello\r\n\r\n").await?;
    http.read_to_the_end().await.map(drop)
}

async fn garbage(run: ClientRun<'_>) -> ScenarioResult {
    let mut http = Http::connect(run.address()).await?;
    http.send(&post("", &json!("{"))).await?;
    http.until("HTTP/1.1 400").await.map(drop)
}

/// Declares a large body and does not send it.
async fn oversized(run: ClientRun<'_>) -> ScenarioResult {
    let whole = post("", &json!({}));
    let large = whole.replace("Content-Length: 2\r\n", "Content-Length: 99000000\r\n");
    let mut http = Http::connect(run.address()).await?;
    http.send(&large).await?;
    http.until("HTTP/1.1 413").await.map(drop)
}

/// Does not read for longer than the write timeout of the gateway.
async fn slow(run: ClientRun<'_>) -> ScenarioResult {
    let mut client = Legacy::open(run.address(), &json!({})).await?;
    let mut call = run.call(2, "progress", &json!({"steps": 50_000}));
    call["params"]["_meta"] = json!({"progressToken": 2});
    client.send(&call).await?;
    tokio::time::sleep(WRITE_TIMEOUT + Duration::from_secs(1)).await;
    Ok(())
}
