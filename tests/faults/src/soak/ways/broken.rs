//! Clients that are slow, broken, or none at all.

use std::time::Duration;

use serde_json::json;

use super::super::ground::WRITE_TIMEOUT;
use super::super::http::{Http, Legacy, initialize, post};
use super::super::visit::Visit;
use super::{Gone, Way, common, rare};

pub(super) const WAYS: &[Way] = &[
    common("half a head, then nothing", |visit| {
        Box::pin(half(visit, 40))
    }),
    common("half a body, then nothing", |visit| {
        Box::pin(half(visit, usize::MAX))
    }),
    common("no HTTP at all", |visit| Box::pin(nonsense(visit))),
    common("a body that is no JSON", |visit| Box::pin(garbage(visit))),
    common("a request that is too large", |visit| {
        Box::pin(oversized(visit))
    }),
    rare("half a body, and wait", 149, |visit| {
        Box::pin(half_and_wait(visit))
    }),
    rare("session: stop reading a long stream", 151, |visit| {
        Box::pin(slow(visit))
    }),
];

/// The first bytes of a request, without the last.
async fn half(visit: Visit<'_>, bytes: usize) -> Gone {
    let whole = post("", &initialize("2025-11-25", &json!({})));
    let mut http = Http::connect(visit.address()).await?;
    http.send(&whole[..bytes.min(whole.len() - 1)]).await
}

async fn half_and_wait(visit: Visit<'_>) -> Gone {
    let whole = post("", &initialize("2025-11-25", &json!({})));
    let mut http = Http::connect(visit.address()).await?;
    http.send(&whole[..whole.len() - 1]).await?;
    http.until("HTTP/1.1 408").await.map(drop)
}

async fn nonsense(visit: Visit<'_>) -> Gone {
    let mut http = Http::connect(visit.address()).await?;
    http.send("\u{16}\u{3}\u{1} hello\r\n\r\n").await?;
    http.read_to_the_end().await.map(drop)
}

async fn garbage(visit: Visit<'_>) -> Gone {
    let mut http = Http::connect(visit.address()).await?;
    http.send(&post("", &json!("{"))).await?;
    http.until("HTTP/1.1 400").await.map(drop)
}

/// It says how large it is; what it says beside that nobody waits for.
async fn oversized(visit: Visit<'_>) -> Gone {
    let whole = post("", &json!({}));
    let large = whole.replace("Content-Length: 2\r\n", "Content-Length: 99000000\r\n");
    let mut http = Http::connect(visit.address()).await?;
    http.send(&large).await?;
    http.until("HTTP/1.1 413").await.map(drop)
}

/// Reads nothing for longer than the gateway waits for that.
async fn slow(visit: Visit<'_>) -> Gone {
    let mut client = Legacy::open(visit.address(), &json!({})).await?;
    let mut call = visit.call(2, "progress", &json!({"steps": 50_000}));
    call["params"]["_meta"] = json!({"progressToken": 2});
    client.send(&call).await?;
    tokio::time::sleep(WRITE_TIMEOUT + Duration::from_secs(1)).await;
    Ok(())
}
