//! What should go, and what does not work: what the status and the lists of a gateway show together.

use mcp_vary_gateway::{DeprecatedUse, Gateway, Status};
use serde_json::{Value, json};

use crate::response::{PageAnswer, json as json_answer};

/// The response to `GET /api/review`.
pub(crate) fn respond(gateway: &Gateway) -> PageAnswer {
    let status = gateway.status();
    let deprecated = status.deprecated_use.iter();
    let deprecated = deprecated.map(|used| deprecated_json(used, &status));
    let unmatched = gateway.unmatched_overrides().into_iter();
    let unmatched =
        unmatched.map(|(id, problem)| json!({"variant": id, "problem": problem.to_string()}));
    let collisions = gateway.collisions().into_iter().map(
        |it| json!({"list": it.list, "id": it.id, "reachable": it.reachable, "hidden": it.hidden}),
    );
    let limits = status.rate_limits.iter();
    let limits = limits.map(|(limit, count)| json!({"limit": limit, "count": count}));
    let denials = gateway.denials().map(|denials| {
        let denials = denials.into_iter();
        denials
            .map(|(rule, count)| json!({"rule": rule, "count": count}))
            .collect::<Value>()
    });
    json_answer(&json!({
        "deprecated": deprecated.collect::<Value>(),
        "unmatched": unmatched.collect::<Value>(),
        "collisions": collisions.collect::<Value>(),
        "denials": denials,
        "limits": limits.collect::<Value>(),
        "counters": status.counters,
        "failedResults": gateway.failed_results(),
    }))
}

fn deprecated_json(used: &DeprecatedUse, status: &Status) -> Value {
    let mut variants = status.variants.iter();
    let variant = variants.find(|variant| variant.id == used.variant);
    json!({
        "client": used.client,
        "variant": used.variant,
        "replacement": variant.and_then(|variant| variant.replacement.as_ref()),
        "removalDate": variant.and_then(|variant| variant.removal_date.as_ref()),
        "daysLeft": variant.and_then(|variant| variant.days_left),
        "requests": used.requests,
    })
}
