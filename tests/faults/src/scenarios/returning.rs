//! Servers that come back, as they were or as others.

use std::time::Instant;

use serde_json::json;

use crate::case::{Case, House, come_from, each_calls, holds};
use crate::client::Said;
use crate::process::LONG;
use crate::script::Start;

/// Calls fail while it is down, and work once it is back, for sessions that were there before, too.
pub(crate) async fn comes_back(case: &mut Case) -> Result<(), String> {
    let house = case.open().await?;
    come_from(
        "one",
        &each_calls(&house.clients, "echo", "first", json!({})).await,
    )?;
    let killed = replace(case, &house, |_| {}).await?;
    case.recovers(&house.clients, "one", killed).await
}

/// Another program has its port, or its command is another program's; the right one comes back later.
pub(crate) async fn another_program(case: &mut Case) -> Result<(), String> {
    let house = case.open().await?;
    come_from(
        "one",
        &each_calls(&house.clients, "echo", "first", json!({})).await,
    )?;
    replace(case, &house, |script| script.start = Start::Garbage).await?;
    let asked = Instant::now();
    let seen = each_calls(&house.clients, "echo", "second", json!({})).await;
    case.both_saw("a call to the other program", &house.clients, &seen, asked);
    crate::case::are_told(&seen, crate::case::DOWN)?;
    let back = replace(case, &house, |script| script.start = Start::Serve).await?;
    case.recovers(&house.clients, "one", back).await
}

/// It has a tool more: clients list it and can call it.
pub(crate) async fn other_tools(case: &mut Case) -> Result<(), String> {
    let house = case.open().await?;
    let asked = Instant::now();
    for client in &house.clients {
        let seen = client.ask("tools/list", json!({})).await;
        case.saw("the list before", client, &seen, asked);
        holds(
            !lists(&seen.said, "added"),
            "the tool is listed before it is there",
        )?;
    }
    let replaced = replace(case, &house, |script| {
        script.name = "two".to_owned();
        script.tool = Some("added".to_owned());
    })
    .await?;
    case.recovers(&house.clients, "two", replaced).await?;
    for client in &house.clients {
        let seen = loop {
            let seen = client.ask("tools/list", json!({})).await;
            if lists(&seen.said, "added") {
                break seen;
            }
            holds(
                replaced.elapsed() < LONG,
                format!("the new tool is not listed: {}", seen.said),
            )?;
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        };
        case.saw("the list after", client, &seen, replaced);
    }
    come_from(
        "two",
        &each_calls(&house.clients, "added", "third", json!({})).await,
    )
}

fn lists(said: &Said, name: &str) -> bool {
    match said {
        Said::Result(result) => {
            let tools = result["tools"].as_array();
            tools.into_iter().flatten().any(|tool| tool["name"] == name)
        }
        _ => false,
    }
}

/// Kills the server; the next start reads another script. Says when it was killed.
///
/// A process is started again by the gateway, an endpoint by whoever runs it: here, after a call has failed.
pub(super) async fn replace(
    case: &mut Case,
    house: &House,
    change: impl FnOnce(&mut crate::script::Script),
) -> Result<Instant, String> {
    case.server.rewrite(change)?;
    case.server.kill().await?;
    let killed = Instant::now();
    if !case.is_stdio() {
        let seen = each_calls(&house.clients, "echo", "while it is down", json!({})).await;
        case.both_saw("a call while it is down", &house.clients, &seen, killed);
        crate::case::are_told(&seen, crate::case::DOWN)?;
        case.server.start().await?;
    }
    Ok(killed)
}
