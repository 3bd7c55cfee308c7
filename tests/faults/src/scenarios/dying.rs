//! Servers that die while they work.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use tokio::task::JoinSet;

use crate::case::{Case, DOWN, are_told, come_from, each_calls, holds, is_told, names};
use crate::client::{Client, Seen};
use crate::script::Era;

/// Killed while each client waits for an answer: both are told at once, and the call is not made again.
pub(crate) async fn killed(case: &mut Case) -> Result<(), String> {
    let house = case.open().await?;
    let healthy = each_calls(&house.clients, "echo", "first", json!({})).await;
    come_from("one", &healthy)?;
    let (seen, killed) = tokio::join!(
        each_calls(&house.clients, "hang", "flight", json!({})),
        kill_at(case, names("flight")),
    );
    let killed = killed?;
    case.both_saw("call in flight", &house.clients, &seen, killed);
    are_told(&seen, DOWN)?;
    once_each(&case.server.calls())
}

/// Ends with an exit code because of a call.
pub(crate) async fn ends_itself(case: &mut Case) -> Result<(), String> {
    let house = case.open().await?;
    let begun = Instant::now();
    let seen = house.clients[0].call("die", "last", json!({})).await;
    case.saw("that call", &house.clients[0], &seen, begun);
    is_told(&seen.said, DOWN)?;
    once_each(&case.server.calls())
}

/// A thousand calls of four clients over HTTP: each is answered once, and made once.
pub(crate) async fn thousand(case: &mut Case) -> Result<(), String> {
    let house = case.open().await?;
    let others = [
        Client::over_http(Era::Legacy, &house.url).await?,
        Client::over_http(Era::Modern, &house.url).await?,
    ];
    let clients: Vec<_> = house
        .clients
        .into_iter()
        .chain(others.map(Arc::new))
        .collect();
    many_die(case, &clients, 250).await
}

/// Five hundred calls on one pair of streams.
pub(crate) async fn hundreds_on_stdio(case: &mut Case) -> Result<(), String> {
    let house = case.open_piped().await?;
    many_die(case, &house.clients, 250).await?;
    let again = house.pipe.answered_again();
    holds(
        again.is_empty(),
        format!("answered more than once: {again:?}"),
    )
}

/// Each of `clients` makes `each` calls, all arrive, the server dies.
async fn many_die(case: &mut Case, clients: &[Arc<Client>], each: usize) -> Result<(), String> {
    let calls: Vec<String> = (0..clients.len() * each)
        .map(|number| format!("call {number}"))
        .collect();
    let mut asked = JoinSet::new();
    for (client, calls) in clients.iter().zip(calls.chunks(each)) {
        let (client, calls) = (Arc::clone(client), calls.to_vec());
        asked.spawn(async move { (hang_all(&client, &calls).await, client) });
    }
    let (seen, killed) = tokio::join!(asked.join_all(), kill_at(case, calls.clone()));
    let killed = killed?;
    for (seen, client) in &seen {
        holds(seen.len() == each, format!("{} answers", seen.len()))?;
        for seen in seen {
            case.saw("calls in flight", client, seen, killed);
            is_told(&seen.said, DOWN)?;
        }
    }
    once_each(&case.server.calls())
}

/// Makes all calls at once and waits for all answers.
async fn hang_all(client: &Arc<Client>, calls: &[String]) -> Vec<Seen> {
    let mut waiting = JoinSet::new();
    for call in calls {
        let (client, call) = (Arc::clone(client), call.clone());
        waiting.spawn(async move { client.call("hang", &call, json!({})).await });
    }
    waiting.join_all().await
}

/// Kills the server once `calls` have arrived there, and says when.
async fn kill_at(case: &Case, calls: impl AsRef<[String]>) -> Result<Instant, String> {
    case.server.has_got(calls.as_ref()).await?;
    case.server.signal(rustix::process::Signal::KILL)?;
    Ok(Instant::now())
}

/// No call arrived twice.
fn once_each(calls: &[String]) -> Result<(), String> {
    let mut sorted: Vec<&String> = calls.iter().collect();
    sorted.sort();
    let again = sorted.windows(2).find(|two| two[0] == two[1]);
    holds(
        again.is_none(),
        format!("the call {again:?} was made twice"),
    )
}
