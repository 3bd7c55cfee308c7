//! Servers that do not answer, or late.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::case::{Case, come_from, each_calls, names};

/// A call that takes long holds up nobody else.
pub(crate) async fn slow(case: &mut Case) -> Result<(), String> {
    let house = case.open().await?;
    let begun = Instant::now();
    let beside = async {
        case.server.has_got(&names("slow")).await?;
        let asked = Instant::now();
        Ok::<_, String>((
            each_calls(&house.clients, "echo", "beside", json!({})).await,
            asked,
        ))
    };
    let (slow, beside) = tokio::join!(
        each_calls(&house.clients, "sleep", "slow", json!({"ms": 1000})),
        beside
    );
    let (beside, asked) = beside?;
    case.both_saw("a call of 1 s", &house.clients, &slow, begun);
    case.both_saw("another meanwhile", &house.clients, &beside, asked);
    come_from("one", &slow)?;
    come_from("one", &beside)
}

/// Stopped by `SIGSTOP` for a while and continued: the call waits and is answered.
pub(crate) async fn stopped_for_a_while(case: &mut Case) -> Result<(), String> {
    let house = case.open().await?;
    come_from(
        "one",
        &each_calls(&house.clients, "echo", "first", json!({})).await,
    )?;
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
