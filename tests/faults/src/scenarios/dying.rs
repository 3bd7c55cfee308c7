//! Servers that die while they work.

use std::sync::Arc;
use std::time::Instant;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::leaking::{no_more_than, settled};
use crate::case::{Case, DOWN, House, are_told, come_from, each_calls, holds, is_told, names};
use crate::client::{Client, Said, Seen};
use crate::process::until;
use crate::script::Era;

/// Killed while each client waits for an answer: both are told at once, and the call is not made again.
pub(crate) async fn killed(case: &mut Case) -> Result<(), String> {
    case.server.rewrite(|script| script.starts_child = true)?;
    let house = case.open_warm().await?;
    let calls = names("flight");
    let (seen, killed) = tokio::join!(
        each_calls(&house.clients, "hang", "flight", json!({})),
        kill_at(case, &calls, 2),
    );
    let killed = killed?;
    case.both_saw("call in flight", &house.clients, &seen, killed);
    are_told(&seen, DOWN)?;
    if case.is_stdio() {
        case.recovers(&house.clients, "one", killed).await?;
        // What the dead one had started is gone with it.
        case.server.are_left(2).await?;
    }
    once_each(&calls, &case.server.calls())
}

/// The operator lets calls be repeated that change nothing: they are, once, and others are not.
pub(crate) async fn repeats(case: &mut Case) -> Result<(), String> {
    case.set("retry", "idempotent");
    case.set("ready-timeout", "20s");
    // Long enough for the endpoint to be there again at the first attempt.
    case.set("restart", json!({"first": "2s", "longest": "2s"}));
    let house = case.open_warm().await?;
    let (retained, others) = (names("kept"), names("other"));
    let both = [retained.clone(), others.clone()].concat();
    let killing = async {
        let killed = kill_at(case, &both, 4).await;
        case.server.start().await.and(killed)
    };
    let (kept_seen, others_seen, killed) = tokio::join!(
        each_calls(&house.clients, "get", "kept", pause()),
        each_calls(&house.clients, "sleep", "other", pause()),
        killing
    );
    let killed = killed?;
    case.both_saw(
        "a call that may be repeated",
        &house.clients,
        &kept_seen,
        killed,
    );
    case.both_saw("another one", &house.clients, &others_seen, killed);
    come_from("one", &kept_seen)?;
    are_told(&others_seen, DOWN)?;
    let arrived = case.server.calls();
    once_each(&others, &arrived)?;
    for call in &retained {
        let times = arrived.iter().filter(|arrived| *arrived == call).count();
        holds(times == 2, format!("`{call}` was made {times} times"))?;
    }
    Ok(())
}

/// Ends with an exit code because of a call, which is not made again of the next process.
pub(crate) async fn ends_itself(case: &mut Case) -> Result<(), String> {
    let house = case.open().await?;
    let last = names("last");
    for (client, call) in house.clients.iter().zip(&last) {
        let begun = Instant::now();
        let seen = client.call("die", call, json!({})).await;
        case.saw("that call", client, &seen, begun);
        is_told(&seen.said, DOWN)?;
        case.server.start().await?;
        case.recovers(&house.clients, "one", begun).await?;
    }
    once_each(&last, &case.server.calls())
}

/// A thousand calls of four clients over HTTP, all at the server: each is an error at once.
pub(crate) async fn thousand(case: &mut Case) -> Result<(), String> {
    case.set("concurrency", 1000);
    let house = case.open_warm().await?;
    let before = settled(&house.gateway).await?;
    let clients = four(&house).await?;
    let crowd = Crowd::new("hang", 250, 1000);
    let killed = crowd.loses_server(case, &clients).await?;
    case.recovers(&house.clients, "one", killed).await?;
    no_more_than(before, case, &house.gateway).await.map(drop)
}

/// The same, of which the server gets 256 at once, the default: the others wait and are answered by the next process.
pub(crate) async fn thousand_in_turn(case: &mut Case) -> Result<(), String> {
    case.set("ready-timeout", "30s");
    let house = case.open_warm().await?;
    let before = settled(&house.gateway).await?;
    let clients = four(&house).await?;
    let crowd = Crowd::new("sleep", 250, 256);
    let killed = crowd.loses_server(case, &clients).await?;
    case.recovers(&house.clients, "one", killed).await?;
    if case.is_stdio() {
        no_more_than(before, case, &house.gateway).await?;
    }
    // Connections to the new endpoint, one for each call that ran, stay open for the next calls for a while.
    Ok(())
}

/// Five hundred calls on one pair of streams.
pub(crate) async fn hundreds_on_stdio(case: &mut Case) -> Result<(), String> {
    case.set("concurrency", 1000);
    let house = case.open_piped().await?;
    let crowd = Crowd::new("hang", 250, 500);
    crowd.loses_server(case, &house.clients).await?;
    let again = house.pipe.answered_again();
    holds(
        again.is_empty(),
        format!("answered more than once: {again:?}"),
    )
}

/// Two clients of each era.
async fn four(house: &House) -> Result<Vec<Arc<Client>>, String> {
    let mut clients = house.clients.to_vec();
    for era in Era::BOTH {
        clients.push(Arc::new(Client::over_http(era, &house.url).await?));
    }
    Ok(clients)
}

/// Many calls at once.
struct Crowd {
    tool: &'static str,
    /// How many each client makes.
    each: usize,
    /// How many have to be at the server before it is killed.
    arrive: usize,
}

impl Crowd {
    const fn new(tool: &'static str, each: usize, arrive: usize) -> Self {
        Self { tool, each, arrive }
    }

    /// Makes the calls and kills the server: each is answered once, and made at most once. Says when it was killed.
    async fn loses_server(
        &self,
        case: &mut Case,
        clients: &[Arc<Client>],
    ) -> Result<Instant, String> {
        let calls = clients.len() * self.each;
        let calls: Vec<String> = (0..calls).map(|number| format!("call {number}")).collect();
        let mut requested = JoinSet::new();
        for (client, calls) in clients.iter().zip(calls.chunks(self.each)) {
            let (client, calls, tool) = (Arc::clone(client), calls.to_vec(), self.tool);
            requested.spawn(async move { (all_at_once(&client, tool, &calls).await, client) });
        }
        let killing = async {
            let killed = kill_at(case, &calls, self.arrive).await;
            // Over HTTP somebody has to.
            let started = case.server.start().await;
            started.and(killed)
        };
        let (seen, killed) = tokio::join!(requested.join_all(), killing);
        let killed = killed?;
        let mut answers = 0;
        for (seen, client) in &seen {
            for seen in seen {
                answers += 1;
                case.saw("calls in flight", client, seen, killed);
                if self.arrive == calls.len() || !matches!(seen.said, Said::Result(_)) {
                    is_told(&seen.said, DOWN)?;
                }
            }
        }
        holds(
            answers == calls.len(),
            format!("{answers} answers to {} calls", calls.len()),
        )?;
        once_each(&calls, &case.server.calls())?;
        Ok(killed)
    }
}

/// Makes all calls at once and waits for all answers.
async fn all_at_once(client: &Arc<Client>, tool: &'static str, calls: &[String]) -> Vec<Seen> {
    let mut waiting = JoinSet::new();
    for call in calls {
        let (client, call) = (Arc::clone(client), call.clone());
        waiting.spawn(async move { client.call(tool, &call, pause()).await });
    }
    waiting.join_all().await
}

/// Long enough for all that may be at the server to be there at once.
fn pause() -> Value {
    json!({"ms": 1000})
}

/// Kills the server once `count` of `calls` have arrived there, and says when.
async fn kill_at(case: &Case, calls: &[String], count: usize) -> Result<Instant, String> {
    until(|| {
        let here = case.server.calls();
        let arrived = here.iter().filter(|call| calls.contains(call)).count();
        holds(
            arrived >= count,
            format!("only {arrived} of {count} calls reached the server"),
        )
    })
    .await?;
    case.server.signal(Signal::KILL)?;
    Ok(Instant::now())
}

/// None of `calls` arrived twice.
pub(super) fn once_each(calls: &[String], arrived: &[String]) -> Result<(), String> {
    let mut sorted: Vec<&String> = arrived.iter().filter(|call| calls.contains(call)).collect();
    sorted.sort();
    let again = sorted.windows(2).find(|two| two[0] == two[1]);
    holds(
        again.is_none(),
        format!("the call {again:?} was made twice"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn once(arrived: &[&str], fine: bool) {
        let arrived: Vec<String> = arrived.iter().map(|call| (*call).to_owned()).collect();
        let calls = ["a", "b"].map(str::to_owned);
        assert_eq!(once_each(&calls, &arrived).is_ok(), fine, "{arrived:?}");
    }

    #[test]
    fn a_call_that_arrives_twice_is_noticed() {
        once(&["b", "a"], true);
        once(&["again", "a", "again"], true);
        once(&["a", "b", "a"], false);
    }
}
