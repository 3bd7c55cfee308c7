//! The clients and people of a status: the recent ones, what they saved, and those that use deprecated variants.

use mcp_vary::variant::VariantId;
use mcp_vary_gateway::{ClientUse, DeprecatedUse, PersonUse, SavingsStatus};

use super::document::StatusDocument;
use crate::print::table::table;

/// The recent clients after an empty line: the variant of each, and what selected it; empty if there are none.
pub(super) fn clients(status: &StatusDocument) -> String {
    let is_own = |used: &&ClientUse| {
        used.client.name == "vary" && Some(&used.client.version) == status.version.as_ref()
    };
    let (by_vary, uses): (Vec<_>, Vec<_>) = status.clients.iter().partition(is_own);
    let note = match by_vary.iter().map(|used| used.requests).sum::<u64>() {
        0 => String::new(),
        requests => format!("without {requests} requests of `vary` itself\n"),
    };
    if uses.is_empty() {
        return String::new();
    }
    let variant = status.variants.iter().find(|variant| variant.default);
    let default = variant.map(|variant| &variant.id);
    let heading = [
        "client", "version", "variant", "reason", "requests", "calls",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for used in uses.iter().take(SHOWN_CLIENTS) {
        let variant = used.variant.as_ref();
        rows.push(vec![
            declared(&used.client.name),
            declared(&used.client.version),
            variant.map_or("-", VariantId::as_str).to_owned(),
            reason(used, variant == default),
            used.requests.to_string(),
            used.calls.to_string(),
        ]);
    }
    format!("\n{}{}{note}", table(&rows, 4), more(uses.len()))
}

/// The people who used the gateway recently, after an empty line; empty if there are none.
pub(super) fn people(people: &[PersonUse]) -> String {
    if people.is_empty() {
        return String::new();
    }
    let heading = ["person", "requests", "calls", "refused", "tokens"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(people.iter().take(SHOWN_CLIENTS).map(|used| {
        let counts = [used.requests, used.calls, used.refused, used.tokens];
        let mut row = vec![used.person.clone()];
        row.extend(counts.map(|count| count.to_string()));
        row
    }));
    format!("\n{}{}", table(&rows, 1), more(people.len()))
}

/// A line about the rows of a table that are not shown; empty if all are.
fn more(rows: usize) -> String {
    match rows.saturating_sub(SHOWN_CLIENTS) {
        0 => String::new(),
        more => format!("and {more} more; --json shows all\n"),
    }
}

/// The tokens that clients saved, after an empty line; empty if no model read anything.
pub(super) fn savings(savings: &SavingsStatus) -> String {
    let heading = ["client", "person", "tokens", "without Vary", "saved"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for saving in savings.clients.iter().take(SHOWN_CLIENTS) {
        let cost = saving.cost;
        let person = saving.person.as_deref().unwrap_or_default();
        let mut row = vec![declared(&saving.client), declared(person)];
        row.extend([cost.with, cost.without, cost.saved()].map(|count| count.to_string()));
        rows.push(row);
    }
    let by_client = match rows.len() {
        1 => String::new(),
        _ => format!("\n{}", table(&rows, 2)),
    };
    if savings.days.is_empty() {
        return by_client;
    }
    let days = savings.days.values().map(|day| day.saved()).sum::<u64>();
    let total = savings.total.saved();
    format!("{by_client}\ntokens saved: {total} since the start, {days} in the last 30 days\n")
}

/// The clients that use deprecated variants, after an empty line; empty if there are none.
pub(crate) fn deprecated_use(status: &StatusDocument) -> String {
    match &status.deprecated_use[..] {
        [] => String::new(),
        uses => format!("\n{}", self::uses(uses)),
    }
}

fn uses(uses: &[DeprecatedUse]) -> String {
    let mut rows = vec![
        ["deprecated use of", "by", "version", "requests"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for used in uses {
        let [name, version] = match &used.client {
            Some(client) => [&client.name, &client.version].map(|text| declared(text)),
            None => ["others", "-"].map(str::to_owned),
        };
        let variant = used.variant.as_str().to_owned();
        rows.push(vec![variant, name, version, used.requests.to_string()]);
    }
    table(&rows, 3)
}

/// A name or version that a client declares; `-` if that is empty.
fn declared(name: &str) -> String {
    let shown = if name.is_empty() { "-" } else { name };
    shown.to_owned()
}

/// What selected the variant of a client, and by which rule.
fn reason(used: &ClientUse, is_default: bool) -> String {
    let reason = used.reason.as_deref().unwrap_or("-");
    if reason == "ranking" && is_default {
        return "default".to_owned();
    }
    match used.rule.as_deref() {
        Some("variant") => format!("{reason} `variant` of the file"),
        Some(rule) => format!("{reason} {rule}").trim_end().to_owned(),
        None => reason.to_owned(),
    }
}

/// The clients and people that are shown, the most recent ones.
const SHOWN_CLIENTS: usize = 20;
