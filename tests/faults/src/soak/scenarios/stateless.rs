//! Clients of 2026-07-28 and their calls.

use serde_json::json;

use super::super::client_run::ClientRun;
use super::super::http::{Http, modern, request};
use super::{Scenario, ScenarioResult};

scenarios! {
    "stateless: `server/discover`, a call" => |run| whole(run);
    "stateless: hang up in the middle of a call's stream" => |run| hang_up(run);
    "stateless: hang up while an answer is awaited" => |run| silent(run);
}

async fn whole(run: ClientRun<'_>) -> ScenarioResult {
    let mut http = Http::connect(run.address()).await?;
    let discover = request(1, "server/discover", &json!({}));
    http.send(&modern(discover, &json!({}))).await?;
    http.until("\"id\":1").await?;
    http.send(&modern(run.steps(2), &json!({}))).await?;
    http.until("\"id\":2").await.map(drop)
}

async fn hang_up(run: ClientRun<'_>) -> ScenarioResult {
    let mut http = Http::connect(run.address()).await?;
    http.send(&modern(run.steps(2), &json!({}))).await?;
    http.until("notifications/progress").await.map(drop)
}

async fn silent(run: ClientRun<'_>) -> ScenarioResult {
    let mut http = Http::connect(run.address()).await?;
    http.send(&modern(run.silent(2), &json!({}))).await
}
