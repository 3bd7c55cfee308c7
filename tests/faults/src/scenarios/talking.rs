//! Servers that send invalid messages.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;

use super::dying::once_each;
use crate::case::{Case, DOWN, are_told, come_from, each_calls, is_told, names};
use crate::client::{Client, Seen};

/// What a process says besides its answer is passed over: the answer arrives.
pub(crate) async fn besides(case: &mut Case) -> Result<(), String> {
    let house = case.open().await?;
    for kind in ["text", "binary", "another's answer", "answer twice"] {
        let seen = noise(case, &house.clients, kind).await;
        come_from("one", &seen)?;
    }
    let begun = Instant::now();
    let kind = json!({"kind": "endless line"});
    let long = house.clients[1].call("noise", "long", kind).await;
    case.saw("a line of 17 MiB", &house.clients[1], &long, begun);
    is_told(&long.said, &["of more than"])?;
    after_it(case, &house.clients).await
}

/// What an endpoint says instead of an answer is an error that names it; the call is not made again.
pub(crate) async fn instead(case: &mut Case) -> Result<(), String> {
    let house = case.open().await?;
    let kinds = [
        "a page",
        "500",
        "no JSON",
        "nothing",
        "no HTTP",
        "no reply",
        "half an answer",
        "a stream without answer",
    ];
    for kind in kinds {
        let seen = noise(case, &house.clients, kind).await;
        are_told(&seen, DOWN)?;
        once_each(&names(kind), &case.server.calls())?;
    }
    for kind in ["another's answer", "answer twice"] {
        let seen = noise(case, &house.clients, kind).await;
        come_from("one", &seen)?;
    }
    after_it(case, &house.clients).await
}

async fn noise(case: &mut Case, clients: &[Arc<Client>; 2], kind: &'static str) -> [Seen; 2] {
    let begun = Instant::now();
    let seen = each_calls(clients, "noise", kind, json!({"kind": kind})).await;
    case.both_saw(kind, clients, &seen, begun);
    seen
}

async fn after_it(case: &mut Case, clients: &[Arc<Client>; 2]) -> Result<(), String> {
    let seen = case
        .both_call("the next call", clients, "echo", "after")
        .await;
    come_from("one", &seen)
}
