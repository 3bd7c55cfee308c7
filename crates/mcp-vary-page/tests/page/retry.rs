//! Trying to reach a server at once.

use crate::support::*;

/// OP-9
#[tokio::test]
async fn a_server_that_is_down_is_tried_at_once() {
    let address = places_server::start(Era::Modern).await.stop().await;
    let late =
        format!("  late: {{url: 'http://{address}/mcp', restart: {{first: 1h, longest: 1h}}}}\n");
    let shown = Shown::with(&late).await;
    let state = async || shown.get("/api/status").await.json()["servers"][1]["state"].clone();
    assert_eq!(state().await, "down");
    let script = places_server::script(Era::Modern);
    let _late = ScriptedServer::start_at(address, move |seen| script.reply_to(seen)).await;
    let none = "/api/retry?server=none";
    shown
        .refuses(none, &json!({}), 404, "no server `none`")
        .await;
    assert_eq!(state().await, "down");
    let answer = shown.post("/api/retry?server=late", &json!({})).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    until(async || state().await == "up").await;
}
