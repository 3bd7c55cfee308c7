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
use crate::recorded::{read_records, time, unreadable};
use crate::response::{PageAnswer, failure, json};

/// The response to `GET /api/suggest`: the proposal of `vary suggest --json` from the calls of a client in the audit log, if
/// the caller `reads_log` and it has any, or else from those that the gateway recorded, `since`, the time of the first of them,
/// and `unread`, why the log could not be read. It starts from the variant that the client got last, so that names and
/// fixed values stay, and has the `clients` that get a variant of its id. It counts tokens: call it where nothing else waits.
pub(crate) fn respond(
    source: &dyn VariantSource,
    gateway: &Gateway,
    catalog: &CountedCatalog,
    client: &str,
    clock: Clock,
    reads_log: bool,
) -> PageAnswer {
    let Evidence {
        usage,
        since,
        last,
        unread,
    } = Evidence::read(gateway, client, clock, reads_log);
    if usage.calls == 0 {
        let note = unread.map_or_else(String::new, |why| format!("; {why}"));
        let why = format!("none of the calls that Vary still has is of a client `{client}`{note}");
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
        proposal["unread"] = unread.into();
        proposal["clients"] = clients.unwrap_or_default().into();
        Ok(proposal)
    });
    match proposed {
        Ok(proposal) => json(&proposal),
        Err(why) => failure(StatusCode::BAD_REQUEST, &why),
    }
}

/// What a client called.
struct Evidence {
    usage: Usage,
    /// When the first of the calls ended.
    since: Option<f64>,
    /// The variant of the last one.
    last: Option<String>,
    /// Why the audit log is not counted.
    unread: Option<String>,
}

impl Evidence {
    fn read(gateway: &Gateway, client: &str, clock: Clock, reads_log: bool) -> Self {
        let mut evidence = Self {
            usage: Usage::of(Some(client)),
            since: None,
            last: None,
            unread: None,
        };
        let log = reads_log.then(|| gateway.audit_file()).flatten();
        if let Some(path) = log {
            let read = read_records(&path, 0.0, f64::MAX, |_, record| {
                let call = UsedCall::of_record(record);
                evidence.add(call, time(record), &record["variant"]["id"]);
            });
            evidence.unread = read.err().map(|error| unreadable(&path, &error));
        }
        if evidence.usage.calls > 0 {
            return evidence;
        }
        // The latest come first.
        for finished in gateway.last_calls().iter().rev() {
            let recorded = serde_json::to_value(finished).unwrap_or_default();
            let call = UsedCall::of_history(&recorded);
            evidence.add(call, Some(ended_at(finished, clock)), &recorded["variant"]);
        }
        evidence
    }

    /// Adds a call, if it is of the client.
    fn add(&mut self, call: Option<UsedCall>, at: Option<f64>, variant: &Value) {
        if call.is_some_and(|call| self.usage.add(call)) {
            self.since = self.since.or(at);
            self.last = variant.as_str().map(str::to_owned);
        }
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
