//! A variant with the tools that a client called.

mod usage;

use std::collections::BTreeMap;

use http::StatusCode;
use mcp_vary_gateway::Gateway;
use serde_json::{Map, Value};

pub use self::usage::{ToolKey, ToolUse, Usage, UsedCall};
use crate::catalog::CountedCatalog;
use crate::draft::{self, VariantSource};
use crate::events::{Clock, ended_at};
use crate::response::{PageAnswer, failure, json};

/// The response to `GET /api/suggest`: the proposal of `vary suggest --json` from the calls of a client that the gateway
/// recorded, and `since`, the time of the first of them. It starts from the variant that the client got last, so that names and
/// fixed values stay, and has the `clients` that get a variant of its id. It counts tokens: call it where nothing else waits.
pub(crate) fn respond(
    source: &dyn VariantSource,
    gateway: &Gateway,
    catalog: &CountedCatalog,
    client: &str,
    clock: Clock,
) -> PageAnswer {
    let mut usage = Usage::of(Some(client));
    let (mut since, mut last) = (None, None);
    // The latest come first.
    for finished in gateway.last_calls() {
        let recorded = serde_json::to_value(&finished).unwrap_or_default();
        if let Some(call) = UsedCall::of_history(&recorded) {
            let counted = usage.calls;
            usage.add(call);
            if usage.calls > counted {
                since = Some(ended_at(&finished, clock));
                last = last.or_else(|| recorded["variant"].as_str().map(str::to_owned));
            }
        }
    }
    if usage.calls == 0 {
        let why = format!("none of the calls that Vary still has is of a client `{client}`");
        return failure(StatusCode::NOT_FOUND, &why);
    }
    let listed = catalog.value(gateway);
    // The history has no arguments to fix.
    let called = usage.variant(&listed, &BTreeMap::new());
    let id = usage.id();
    let entry = starting_from(source, last.filter(|last| *last != id), called);
    let proposed = entry.and_then(|value| {
        let clients = source.written(&id)?.map(|written| written.clients);
        let variant = source.draft(&id, value.clone(), None)?;
        let drafted = draft::to_json(gateway, &id, "", &variant);
        let mut proposal = usage.proposal(&value, &listed, &drafted);
        proposal["since"] = since.into();
        proposal["clients"] = clients.unwrap_or_default().into();
        Ok(proposal)
    });
    match proposed {
        Ok(proposal) => json(&proposal),
        Err(why) => failure(StatusCode::BAD_REQUEST, &why),
    }
}

/// The entry of a variant with what it starts from, if the configuration has that.
fn starting_from(
    source: &dyn VariantSource,
    from: Option<String>,
    value: Value,
) -> Result<Value, String> {
    let Some(from) = from else {
        return Ok(value);
    };
    if source.written(&from)?.is_none() {
        return Ok(value);
    }
    let mut entry = Map::from_iter([("from".to_owned(), from.into())]);
    if let Value::Object(members) = value {
        entry.extend(members);
    }
    Ok(entry.into())
}
