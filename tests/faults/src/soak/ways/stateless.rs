//! Clients of 2026-07-28 and their calls.

use serde_json::json;

use super::super::http::{Http, modern, request};
use super::super::visit::Visit;
use super::{Gone, Way, common};

pub(super) const WAYS: &[Way] = &[
    common("stateless: `server/discover`, a call", |visit| {
        Box::pin(whole(visit))
    }),
    common(
        "stateless: hang up in the middle of a call's stream",
        |visit| Box::pin(hang_up(visit)),
    ),
    common("stateless: hang up while an answer is awaited", |visit| {
        Box::pin(silent(visit))
    }),
];

async fn whole(visit: Visit<'_>) -> Gone {
    let mut http = Http::connect(visit.address()).await?;
    let discover = request(1, "server/discover", &json!({}));
    http.send(&modern(discover, &json!({}))).await?;
    http.until("\"id\":1").await?;
    http.send(&modern(visit.steps(2), &json!({}))).await?;
    http.until("\"id\":2").await.map(drop)
}

async fn hang_up(visit: Visit<'_>) -> Gone {
    let mut http = Http::connect(visit.address()).await?;
    http.send(&modern(visit.steps(2), &json!({}))).await?;
    http.until("notifications/progress").await.map(drop)
}

async fn silent(visit: Visit<'_>) -> Gone {
    let mut http = Http::connect(visit.address()).await?;
    http.send(&modern(visit.silent(2), &json!({}))).await
}
