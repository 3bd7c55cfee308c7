//! Servers that say what they should not.

use std::time::Instant;

use serde_json::json;

use crate::case::{Case, come_from, each_calls, is_told};
use crate::client::Said;

/// What a process says besides its answer is passed over: the answer arrives.
pub(crate) async fn besides(case: &mut Case) -> Result<(), String> {
    let house = case.open().await?;
    for kind in ["text", "binary", "another's answer", "answer twice"] {
        let begun = Instant::now();
        let seen = each_calls(&house.clients, "noise", kind, json!({"kind": kind})).await;
        case.both_saw(kind, &house.clients, &seen, begun);
        come_from("one", &seen)?;
    }
    let begun = Instant::now();
    let long = house.clients[1]
        .call("noise", "long", json!({"kind": "endless line"}))
        .await;
    case.saw("a line of 17 MiB", &house.clients[1], &long, begun);
    is_told(&long.said, &["of more than"])?;
    after_it(case, &house.clients).await
}

/// What an endpoint says instead of an answer is an error that names it, and harms nobody else.
pub(crate) async fn instead(case: &mut Case) -> Result<(), String> {
    let house = case.open().await?;
    let kinds = [
        "a page",
        "500",
        "no JSON",
        "nothing",
        "no HTTP",
        "half an answer",
        "a stream without answer",
    ];
    for kind in kinds {
        let begun = Instant::now();
        let seen = each_calls(&house.clients, "noise", kind, json!({"kind": kind})).await;
        case.both_saw(kind, &house.clients, &seen, begun);
        for seen in &seen {
            is_told(
                &seen.said,
                &["protocol", "broke", "answered HTTP 500", "reached"],
            )?;
        }
    }
    for kind in ["another's answer", "answer twice"] {
        let begun = Instant::now();
        let seen = each_calls(&house.clients, "noise", kind, json!({"kind": kind})).await;
        case.both_saw(kind, &house.clients, &seen, begun);
        for seen in &seen {
            if !matches!(seen.said, Said::Result(_)) {
                return Err(format!("{kind}: {}", seen.said));
            }
        }
    }
    after_it(case, &house.clients).await
}

async fn after_it(
    case: &mut Case,
    clients: &[std::sync::Arc<crate::client::Client>; 2],
) -> Result<(), String> {
    let begun = Instant::now();
    let seen = each_calls(clients, "echo", "after", json!({})).await;
    case.both_saw("the next call", clients, &seen, begun);
    come_from("one", &seen)
}
