//! Servers that do not answer, or late.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::case::{Case, DOWN, are_told, come_from, each_calls, holds, names};

/// A call that takes long holds up nobody else.
pub(crate) async fn slow(case: &mut Case) -> Result<(), String> {
    let house = case.open().await?;
    let begun = Instant::now();
    let beside = async {
        case.server.has_got(&names("slow")).await?;
        let requested = Instant::now();
        let seen = each_calls(&house.clients, "echo", "beside", json!({})).await;
        Ok::<_, String>((seen, requested))
    };
    let (slow, beside) = tokio::join!(
        each_calls(&house.clients, "sleep", "slow", json!({"ms": 1000})),
        beside
    );
    let (beside, requested) = beside?;
    case.both_saw("a call of 1 s", &house.clients, &slow, begun);
    case.both_saw("another meanwhile", &house.clients, &beside, requested);
    come_from("one", &slow)?;
    come_from("one", &beside)
}

/// A call that is never answered fails after `timeout`; the server is fine.
pub(crate) async fn never_answers(case: &mut Case) -> Result<(), String> {
    case.set("timeout", "1s");
    let house = case.open_warm().await?;
    let before = case.server.processes().len();
    let seen = case
        .both_call("that call", &house.clients, "hang", "lost")
        .await;
    are_told(&seen, &["sent nothing for"])?;
    let next = case
        .both_call("the next call", &house.clients, "echo", "next")
        .await;
    come_from("one", &next)?;
    let again = case.server.processes().len() - before;
    holds(
        again == 0,
        format!("the server was started {again} times more"),
    )
}

/// Stopped by `SIGSTOP` for a while and continued: the call waits and is answered.
pub(crate) async fn stopped_for_a_while(case: &mut Case) -> Result<(), String> {
    let house = case.open_warm().await?;
    case.server.signal(Signal::STOP)?;
    let stopped = Instant::now();
    let (seen, continued) = tokio::join!(
        each_calls(&house.clients, "echo", "second", json!({})),
        async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            case.server.signal(Signal::CONT)
        }
    );
    continued?;
    case.both_saw("a call meanwhile", &house.clients, &seen, stopped);
    come_from("one", &seen)
}

/// Stopped by `SIGSTOP` for good: a call fails after `timeout`; a process is killed and started again, an endpoint
/// is down until it goes on.
pub(crate) async fn stopped(case: &mut Case) -> Result<(), String> {
    case.set("timeout", "1s");
    let house = case.open_warm().await?;
    case.server.signal(Signal::STOP)?;
    let stopped = Instant::now();
    let seen = each_calls(&house.clients, "echo", "second", json!({})).await;
    case.both_saw("a call meanwhile", &house.clients, &seen, stopped);
    are_told(&seen, DOWN)?;
    let since = if case.is_stdio() {
        stopped
    } else {
        // Long enough to be found out; whoever runs the endpoint notices then.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let seen = case
            .both_call("a call once that is known", &house.clients, "echo", "third")
            .await;
        are_told(&seen, DOWN)?;
        case.server.signal(Signal::CONT)?;
        Instant::now()
    };
    case.recovers(&house.clients, "one", since).await?;
    if case.is_stdio() {
        case.server.are_left(1).await?;
    }
    Ok(())
}

/// Stopped by `SIGSTOP` while nobody calls: it is found out and started again before anybody notices.
pub(crate) async fn stopped_unnoticed(case: &mut Case) -> Result<(), String> {
    let house = case.open_warm().await?;
    let before = case.server.processes().len();
    let stopped = Instant::now();
    case.server.signal(Signal::STOP)?;
    case.server.has_started_again(before).await?;
    case.note_gateway(
        "nobody calls",
        "the server is started again",
        stopped.elapsed(),
    );
    let seen = case
        .both_call("the next call", &house.clients, "echo", "next")
        .await;
    come_from("one", &seen)?;
    case.server.are_left(1).await
}
