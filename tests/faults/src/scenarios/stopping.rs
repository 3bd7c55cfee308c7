//! A gateway that is stopped, or that ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::case::{Case, come_from, each_calls, holds, names};
use crate::client::{Client, Said, Seen};
use crate::gateway::Gateway;
use crate::script::{Era, Start};

/// Takes no new client, finishes what is in flight, ends the server with all it started, and ends well.
pub(crate) async fn drains(case: &mut Case) -> Result<(), String> {
    case.server.rewrite(|script| script.starts_child = true)?;
    let mut house = case.open().await?;
    let stop = async {
        house.gateway.signal(Signal::TERM)?;
        let requested = Instant::now();
        let refused = no_new_work(&house.url).await?;
        Ok((requested, refused))
    };
    let call = ("sleep", json!({"ms": 1500}));
    let (seen, (requested, refused)) = in_flight(case, &house.clients, call, stop).await?;
    case.both_saw("calls in flight", &house.clients, &seen, requested);
    case.note_gateway("a new client", "no connection", refused - requested);
    come_from("one", &seen)?;
    ends_well(case, &mut house.gateway, requested).await
}

/// The same with a client on standard streams.
pub(crate) async fn drains_on_stdio(case: &mut Case) -> Result<(), String> {
    case.server.rewrite(|script| script.starts_child = true)?;
    let mut house = case.open_piped().await?;
    let stop = async { house.gateway.signal(Signal::TERM) };
    let call = ("sleep", json!({"ms": 1000}));
    let (seen, requested) = stopped_in_flight(case, &house.clients, call, stop).await?;
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
    let stop = async { gateway.signal(Signal::TERM) };
    let (seen, requested) = stopped_in_flight(case, clients, ("hang", json!({})), stop).await?;
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
    let stop = async {
        house.gateway.signal(Signal::TERM)?;
        no_new_work(&house.url).await?;
        house.gateway.signal(Signal::TERM)
    };
    let call = ("hang", json!({}));
    let (_, requested) = stopped_in_flight(case, &house.clients, call, stop).await?;
    case.note_end(&mut house.gateway, requested).await?;
    nothing_left(case, requested).await
}

/// Does `stop` while each client waits for its call of a tool. Returns what the clients saw, and what `stop` gives.
async fn in_flight<T>(
    case: &Case,
    clients: &[Arc<Client>; 2],
    (tool, arguments): (&str, Value),
    stop: impl Future<Output = Result<T, String>>,
) -> Result<([Seen; 2], T), String> {
    let during = async {
        case.server.has_got(&names("flight")).await?;
        stop.await
    };
    let (seen, stopped) = tokio::join!(each_calls(clients, tool, "flight", arguments), during);
    Ok((seen, stopped?))
}

/// The same, noted from the moment when `stop` was done, which is returned.
async fn stopped_in_flight(
    case: &mut Case,
    clients: &[Arc<Client>; 2],
    call: (&str, Value),
    stop: impl Future<Output = Result<(), String>>,
) -> Result<([Seen; 2], Instant), String> {
    let stop = async { stop.await.map(|()| Instant::now()) };
    let (seen, requested) = in_flight(case, clients, call, stop).await?;
    case.both_saw("calls in flight", clients, &seen, requested);
    Ok((seen, requested))
}

/// Asked to end while the server is down, and an attempt to start it may be under way.
pub(crate) async fn while_down(case: &mut Case) -> Result<(), String> {
    let mut house = case.open_warm().await?;
    let before = case.server.processes().len();
    case.server
        .rewrite(|script| script.start = Start::Silence)?;
    case.server.kill().await?;
    if case.is_stdio() {
        case.server.has_started_again(before).await?;
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
    let leave = async {
        house.pipe.close().await;
        Ok(())
    };
    let call = ("sleep", json!({"ms": 500}));
    let (seen, requested) = stopped_in_flight(case, &house.clients, call, leave).await?;
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
    let status = case.note_end(gateway, requested).await?;
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
