//! Servers that do not start, or not at once.

use std::time::Instant;

use serde_json::json;

use crate::case::{BESIDE, Case, DOWN, House, NAME, are_told, come_from, each_calls, holds};
use crate::gateway::Gateway;
use crate::script::{Era, Start};
use crate::server::Transport;

/// Ends at once the next three times it is started, then stays.
pub(crate) async fn flaps(case: &mut Case) -> Result<(), String> {
    fails(case, Start::Exit, 3).await.map(drop)
}

/// An endpoint that comes and goes three times.
pub(crate) async fn comes_and_goes(case: &mut Case) -> Result<(), String> {
    let house = case.open_warm().await?;
    let begun = Instant::now();
    for _ in 0..3 {
        case.server.kill().await?;
        let seen = each_calls(&house.clients, "echo", "down", json!({})).await;
        case.both_saw("a call while it is down", &house.clients, &seen, begun);
        are_told(&seen, DOWN)?;
        case.server.start().await?;
    }
    let back = Instant::now();
    case.recovers(&house.clients, "one", back).await
}

/// The next process takes what comes and says nothing, the one after that serves.
pub(crate) async fn silent(case: &mut Case) -> Result<(), String> {
    let _house = fails(case, Start::Silence, 1).await?;
    case.server.are_left(1).await
}

/// The next two processes leave after the handshake, the one after them serves.
pub(crate) async fn leaves(case: &mut Case) -> Result<(), String> {
    fails(case, Start::Leave, 2).await.map(drop)
}

/// The next `starts` come to `start`, after which calls work again.
async fn fails(case: &mut Case, start: Start, starts: usize) -> Result<House, String> {
    let house = case.open_warm().await?;
    case.server.rewrite(|script| {
        script.start = start;
        script.starts = Some(starts);
    })?;
    case.server.kill().await?;
    let killed = Instant::now();
    case.recovers(&house.clients, "one", killed).await?;
    Ok(house)
}

/// Alone and not there: `vary serve` says why and ends.
pub(crate) async fn alone(case: &mut Case) -> Result<(), String> {
    is_down(case).await?;
    let begun = Instant::now();
    let mut arguments = case.arguments()?;
    arguments.insert(0, "--require-all".into());
    let gateway = Gateway::on_http(&case.vary, &arguments)?;
    let (status, reported) = case.note_refusal(gateway, None, begun).await?;
    holds(
        !status.success() && reported.contains(NAME),
        format!("{status}: {reported}"),
    )
}

/// Not there when `vary serve` starts, beside another that is: its tools come when it comes.
pub(crate) async fn late(case: &mut Case) -> Result<(), String> {
    beside(case).await?;
    is_down(case).await?;
    let begun = Instant::now();
    let house = case.open_before_server().await?;
    let seen = each_calls(&house.clients, "other_echo", "beside", json!({})).await;
    case.both_saw("a call to the other server", &house.clients, &seen, begun);
    come_from("beside", &seen)?;
    let requested = Instant::now();
    for client in &house.clients {
        let seen = client.ask("tools/list", json!({})).await;
        case.saw("the list", client, &seen, requested);
    }
    case.server.rewrite(|script| script.start = Start::Serve)?;
    case.server.start().await?;
    let back = Instant::now();
    case.appears("notes_echo", &house.clients, back).await?;
    case.recovers_with("notes_echo", &house.clients, "one", back)
        .await
}

/// Down for a while beside another server: calls to that go on, and the lists stay.
pub(crate) async fn down_beside(case: &mut Case) -> Result<(), String> {
    beside(case).await?;
    let house = case.open().await?;
    let seen = each_calls(&house.clients, "notes_echo", "first", json!({})).await;
    come_from("one", &seen)?;
    case.server.rewrite(|script| script.start = Start::Exit)?;
    case.server.kill().await?;
    let killed = Instant::now();
    // Once the first attempts to start it have failed, too.
    for moment in ["a call while it is down", "another one"] {
        let seen = case
            .both_call(moment, &house.clients, "notes_echo", "second")
            .await;
        are_told(&seen, DOWN)?;
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }
    let seen = case
        .both_call(
            "a call to the other server",
            &house.clients,
            "other_echo",
            "beside",
        )
        .await;
    come_from("beside", &seen)?;
    case.appears("notes_echo", &house.clients, killed).await?;
    case.server.rewrite(|script| script.start = Start::Serve)?;
    case.server.start().await?;
    let back = Instant::now();
    case.recovers_with("notes_echo", &house.clients, "one", back)
        .await
}

/// The server is not there.
async fn is_down(case: &mut Case) -> Result<(), String> {
    if case.is_stdio() {
        return case.server.rewrite(|script| script.start = Start::Exit);
    }
    // It takes a port and leaves it.
    case.server.start().await?;
    case.server.kill().await
}

/// Puts a server that does not fail behind the same gateway.
async fn beside(case: &mut Case) -> Result<(), String> {
    let mut other = case.server.sibling(BESIDE, Transport::Stdio, Era::Legacy)?;
    other.rewrite(|script| script.name = "beside".to_owned())?;
    case.beside = Some(other);
    Ok(())
}

/// The port that `vary serve` is to listen on is taken.
pub(crate) async fn no_port(case: &mut Case) -> Result<(), String> {
    let house = case.open().await?;
    let begun = Instant::now();
    let address = house
        .url
        .trim_start_matches("http://")
        .trim_end_matches("/mcp");
    let second = Gateway::on_address(&case.vary, address, &case.arguments()?)?;
    let (status, reported) = case.note_refusal(second, Some(address), begun).await?;
    holds(status.code() == Some(2), format!("{status}: {reported}"))?;
    let seen = each_calls(&house.clients, "echo", "first", json!({})).await;
    come_from("one", &seen)
}
