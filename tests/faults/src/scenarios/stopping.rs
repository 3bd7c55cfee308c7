//! A gateway that is stopped, or that ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::case::{Case, come_from, each_calls, holds, names};
use crate::client::{Client, Said};
use crate::gateway::Gateway;
use crate::process::until;
use crate::script::{Era, Start};

/// Takes no new client, finishes what is in flight, ends the server with all it started, and ends well.
pub(crate) async fn drains(case: &mut Case) -> Result<(), String> {
    case.server.rewrite(|script| script.starts_child = true)?;
    let mut house = case.open().await?;
    let during = async {
        case.server.has_got(&names("flight")).await?;
        house.gateway.signal(Signal::TERM)?;
        let requested = Instant::now();
        let refused = no_new_work(&house.url).await?;
        Ok::<_, String>((requested, refused))
    };
    let (seen, during) = tokio::join!(
        each_calls(&house.clients, "sleep", "flight", json!({"ms": 1500})),
        during
    );
    let (requested, refused) = during?;
    case.both_saw("calls in flight", &house.clients, &seen, requested);
    case.note_gateway("a new client", "no connection", refused - requested);
    come_from("one", &seen)?;
    ends_well(case, &mut house.gateway, requested).await
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
    let (seen, requested) = tokio::join!(
        each_calls(&house.clients, "sleep", "flight", json!({"ms": 1000})),
        during
    );
    let requested = requested?;
    case.both_saw("calls in flight", &house.clients, &seen, requested);
    come_from("one", &seen)?;
    ends_well(case, &mut house.gateway, requested).await
}

/// A call that does not finish holds the end up for as long as `drain` says, and is answered then.
pub(crate) async fn drains_for_so_long(case: &mut Case) -> Result<(), String> {
    case.limits = json!({"drain": "1s"});
    let mut house = case.open().await?;
    hangs_to_the_end(case, &house.clients, &mut house.gateway).await
}

/// The same with a client on standard streams.
pub(crate) async fn drains_on_stdio_for_so_long(case: &mut Case) -> Result<(), String> {
    case.limits = json!({"drain": "1s"});
    let mut house = case.open_piped().await?;
    hangs_to_the_end(case, &house.clients, &mut house.gateway).await
}

async fn hangs_to_the_end(
    case: &mut Case,
    clients: &[Arc<Client>; 2],
    gateway: &mut Gateway,
) -> Result<(), String> {
    let during = async {
        case.server.has_got(&names("flight")).await?;
        gateway.signal(Signal::TERM)?;
        Ok::<_, String>(Instant::now())
    };
    let (seen, requested) = tokio::join!(each_calls(clients, "hang", "flight", json!({})), during);
    let requested = requested?;
    case.both_saw("calls in flight", clients, &seen, requested);
    holds(
        seen.iter()
            .all(|seen| matches!(seen.said, Said::Error { code: -32603, .. })),
        "a call that hangs was not answered with an error",
    )?;
    ends_well(case, gateway, requested).await
}

/// A second signal ends at once what is in flight.
pub(crate) async fn twice(case: &mut Case) -> Result<(), String> {
    let mut house = case.open().await?;
    let during = async {
        case.server.has_got(&names("flight")).await?;
        house.gateway.signal(Signal::TERM)?;
        no_new_work(&house.url).await?;
        house.gateway.signal(Signal::TERM)?;
        Ok::<_, String>(Instant::now())
    };
    let (seen, requested) = tokio::join!(
        each_calls(&house.clients, "hang", "flight", json!({})),
        during
    );
    let requested = requested?;
    case.both_saw("calls in flight", &house.clients, &seen, requested);
    let status = house.gateway.ended().await?;
    case.note_gateway(
        "vary itself",
        format!("ends with {status}"),
        requested.elapsed(),
    );
    nothing_left(case, requested).await
}

/// Asked to end while the server is down, and an attempt to start it may be under way.
pub(crate) async fn while_down(case: &mut Case) -> Result<(), String> {
    let mut house = case.open_warm().await?;
    let before = case.server.processes().len();
    case.server
        .rewrite(|script| script.start = Start::Silence)?;
    case.server.kill().await?;
    if case.is_stdio() {
        until(|| {
            let started = case.server.processes().len();
            holds(started > before, "the server was not started again")
        })
        .await?;
    }
    house.gateway.signal(Signal::TERM)?;
    ends_well(case, &mut house.gateway, Instant::now()).await
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

/// The client on standard streams closes its side: what is in flight is answered, then all end.
pub(crate) async fn client_leaves(case: &mut Case) -> Result<(), String> {
    case.server.rewrite(|script| script.starts_child = true)?;
    let mut house = case.open_piped().await?;
    let during = async {
        case.server.has_got(&names("flight")).await?;
        house.pipe.close().await;
        Ok::<_, String>(Instant::now())
    };
    let (seen, requested) = tokio::join!(
        each_calls(&house.clients, "sleep", "flight", json!({"ms": 500})),
        during
    );
    let requested = requested?;
    case.both_saw("calls in flight", &house.clients, &seen, requested);
    come_from("one", &seen)?;
    ends_well(case, &mut house.gateway, requested).await
}

/// The gateway itself is killed: a process that reads its input notices, and ends by itself.
pub(crate) async fn killed(case: &mut Case) -> Result<(), String> {
    let mut house = case.open_warm().await?;
    house.gateway.signal(Signal::KILL)?;
    let requested = Instant::now();
    house.gateway.ended().await?;
    nothing_left(case, requested).await
}

/// Tries until a new client is refused; says when.
async fn no_new_work(url: &str) -> Result<Instant, String> {
    loop {
        if Client::over_http(Era::Legacy, url).await.is_err() {
            return Ok(Instant::now());
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// The gateway ends with exit code 0, and no process that it started is left.
async fn ends_well(
    case: &mut Case,
    gateway: &mut Gateway,
    requested: Instant,
) -> Result<(), String> {
    let status = gateway.ended().await?;
    case.note_gateway(
        "vary itself",
        format!("ends with {status}"),
        requested.elapsed(),
    );
    holds(
        status.success(),
        format!("vary ended with {status} and said: {}", gateway.said()),
    )?;
    nothing_left(case, requested).await
}

/// No process that the gateway started is left.
async fn nothing_left(case: &mut Case, requested: Instant) -> Result<(), String> {
    if case.is_stdio() {
        case.server.are_left(0).await?;
        case.note_gateway(
            "processes of the server",
            "all are gone",
            requested.elapsed(),
        );
    }
    Ok(())
}
