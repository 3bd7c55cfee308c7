//! A variant with the tools that a client called.

mod usage;

use std::collections::BTreeMap;

use http::StatusCode;
use mcp_vary_gateway::Gateway;

pub use self::usage::{ToolKey, ToolUse, Usage, UsedCall};
use crate::catalog::CountedCatalog;
use crate::draft::{self, VariantSource};
use crate::events::{Clock, ended_at};
use crate::response::{PageAnswer, failure, json};

/// The response to `GET /api/suggest`: the proposal of `vary suggest --json` from the calls of a client that the gateway
/// recorded, and `since`, the time of the first of them. It counts tokens: call it where nothing else waits.
pub(crate) fn respond(
    source: &dyn VariantSource,
    gateway: &Gateway,
    catalog: &CountedCatalog,
    client: &str,
    clock: Clock,
) -> PageAnswer {
    let mut usage = Usage::of(Some(client));
    let mut since = None;
    // The latest come first.
    for finished in gateway.last_calls() {
        let recorded = serde_json::to_value(&finished).unwrap_or_default();
        if let Some(call) = UsedCall::of_history(&recorded) {
            let counted = usage.calls;
            usage.add(call);
            if usage.calls > counted {
                since = Some(ended_at(&finished, clock));
            }
        }
    }
    if usage.calls == 0 {
        let why = format!("none of the calls that Vary still has is of a client `{client}`");
        return failure(StatusCode::NOT_FOUND, &why);
    }
    let listed = catalog.value(gateway);
    // The history has no arguments to fix.
    let value = usage.variant(&listed, &BTreeMap::new());
    let id = usage.id();
    match source.draft(&id, value.clone(), None) {
        Ok(variant) => {
            let drafted = draft::to_json(gateway, &id, "", &variant);
            let mut proposal = usage.proposal(&value, &listed, &drafted);
            proposal["since"] = since.into();
            json(&proposal)
        }
        Err(why) => failure(StatusCode::BAD_REQUEST, &why),
    }
}
