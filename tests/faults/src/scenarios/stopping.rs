//! A gateway that is asked to end.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::case::{Case, come_from, each_calls, holds, names};
use crate::client::Client;
use crate::gateway::Gateway;
use crate::process::until;
use crate::script::Era;

/// Takes no new client, finishes what is in flight, ends the server with all it started, and ends well.
pub(crate) async fn drains(case: &mut Case) -> Result<(), String> {
    case.server.rewrite(|script| script.starts_child = true)?;
    let mut house = case.open().await?;
    let during = async {
        case.server.has_got(&names("flight")).await?;
        house.gateway.signal(Signal::TERM)?;
        let asked = Instant::now();
        let refused = no_new_work(&house.url).await?;
        Ok::<_, String>((asked, refused))
    };
    let (seen, during) = tokio::join!(
        each_calls(&house.clients, "sleep", "flight", json!({"ms": 1500})),
        during
    );
    let (asked, refused) = during?;
    case.both_saw("calls in flight", &house.clients, &seen, asked);
    case.note("a new client", Era::Legacy, &refused.0, refused.1 - asked);
    come_from("one", &seen)?;
    ends_well(case, &mut house.gateway, asked).await
}

/// The same with a client on standard streams.
pub(crate) async fn drains_on_stdio(case: &mut Case) -> Result<(), String> {
    case.server.rewrite(|script| script.starts_child = true)?;
    let mut house = case.open_piped().await?;
    let during = async {
        case.server.has_got(&names("flight")).await?;
        house.gateway.signal(Signal::TERM)?;
        Ok::<_, String>(Instant::now())
    };
    let (seen, asked) = tokio::join!(
        each_calls(&house.clients, "sleep", "flight", json!({"ms": 1000})),
        during
    );
    let asked = asked?;
    case.both_saw("calls in flight", &house.clients, &seen, asked);
    come_from("one", &seen)?;
    ends_well(case, &mut house.gateway, asked).await
}

/// A process that ignores the end of its input and `SIGTERM`, and has a child that does: both are killed.
pub(crate) async fn stubborn(case: &mut Case) -> Result<(), String> {
    case.server.rewrite(|script| {
        script.starts_child = true;
        script.stubborn = true;
    })?;
    let mut house = case.open().await?;
    house.gateway.signal(Signal::TERM)?;
    ends_well(case, &mut house.gateway, Instant::now()).await
}

/// Tries until a new client is refused; gives what it saw.
async fn no_new_work(url: &str) -> Result<(String, Instant), String> {
    loop {
        if let Err(why) = Client::over_http(Era::Legacy, url).await {
            return Ok((why, Instant::now()));
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// The gateway ends with exit code 0, and no process that it started is left.
async fn ends_well(case: &mut Case, gateway: &mut Gateway, asked: Instant) -> Result<(), String> {
    let status = gateway.ended().await?;
    case.note_gateway(
        "vary itself",
        format!("ends with {status}"),
        asked.elapsed(),
    );
    holds(
        status.success(),
        format!("vary ended with {status} and said: {}", gateway.said()),
    )?;
    if case.is_stdio() {
        // The system takes a moment to bury what was killed.
        until(|| match case.server.left() {
            left if left.is_empty() => Ok(()),
            left => Err(format!("processes are left: {left:?}")),
        })
        .await?;
        case.note_gateway("processes of the server", "all are gone", asked.elapsed());
    }
    Ok(())
}
