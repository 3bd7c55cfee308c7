//! Servers that come back, as they were or as others.

use std::time::Instant;

use serde_json::json;

use crate::case::{Case, DOWN, House, are_told, come_from, each_calls};
use crate::script::{Script, Start};

/// Calls fail while it is down, and work once it is back, for sessions that were there before, too.
pub(crate) async fn comes_back(case: &mut Case) -> Result<(), String> {
    let house = case.open_warm().await?;
    let killed = replace(case, &house, |_| {}).await?;
    case.recovers(&house.clients, "one", killed).await
}

/// Another program has its port, or its command is another program's; the right one comes back later.
pub(crate) async fn another_program(case: &mut Case) -> Result<(), String> {
    let house = case.open_warm().await?;
    replace(case, &house, |script| script.start = Start::Garbage).await?;
    let seen = case
        .both_call(
            "a call to the other program",
            &house.clients,
            "echo",
            "second",
        )
        .await;
    are_told(&seen, DOWN)?;
    case.server.rewrite(|script| script.start = Start::Serve)?;
    case.server.kill().await?;
    case.server.start().await?;
    let back = Instant::now();
    case.recovers(&house.clients, "one", back).await
}

/// It has a tool more: clients list it and can call it.
pub(crate) async fn other_tools(case: &mut Case) -> Result<(), String> {
    let house = case.open_warm().await?;
    let change = |script: &mut Script| {
        script.name = "two".to_owned();
        script.tool = Some("added".to_owned());
    };
    let replaced = replace(case, &house, change).await?;
    case.recovers(&house.clients, "two", replaced).await?;
    case.appears("added", &house.clients, replaced).await?;
    let seen = each_calls(&house.clients, "added", "third", json!({})).await;
    come_from("two", &seen)
}

/// It speaks the other era: clients notice nothing of that.
pub(crate) async fn other_era(case: &mut Case) -> Result<(), String> {
    let house = case.open_warm().await?;
    let change = |script: &mut Script| {
        script.name = "two".to_owned();
        script.era = script.era.other();
    };
    let replaced = replace(case, &house, change).await?;
    case.recovers(&house.clients, "two", replaced).await
}

/// An endpoint that is replaced between two calls, so that no call finds it down.
pub(crate) async fn unnoticed(case: &mut Case) -> Result<(), String> {
    let house = case.open_warm().await?;
    case.server.rewrite(|script| {
        script.name = "two".to_owned();
        script.tool = Some("added".to_owned());
    })?;
    case.server.kill().await?;
    case.server.start().await?;
    let replaced = Instant::now();
    case.appears("added", &house.clients, replaced).await?;
    case.recovers(&house.clients, "two", replaced).await
}

/// Kills the server; the next start reads another script. Says when it was killed.
///
/// A process is started again by the gateway, an endpoint by whoever runs it: here, after a call has failed.
pub(super) async fn replace(
    case: &mut Case,
    house: &House,
    change: impl FnOnce(&mut Script),
) -> Result<Instant, String> {
    case.server.rewrite(change)?;
    case.server.kill().await?;
    let killed = Instant::now();
    if !case.is_stdio() {
        let seen = each_calls(&house.clients, "echo", "down", json!({})).await;
        case.both_saw("a call while it is down", &house.clients, &seen, killed);
        are_told(&seen, DOWN)?;
        case.server.start().await?;
    }
    Ok(killed)
}
