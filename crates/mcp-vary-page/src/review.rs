//! What should go, and what does not work: what the status and the lists of a gateway show together.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mcp_vary::json::{edit, unquoted};
use mcp_vary_gateway::{ChangeSubject, DeprecatedUse, Gateway, SeenChange, Status};
use mcp_vary_view::nearest;
use serde_json::{Value, json};

use crate::draft::VariantSource;
use crate::response::{PageAnswer, json as json_answer};

/// The response to `GET /api/review`.
pub(crate) fn respond(gateway: &Gateway, source: Option<&dyn VariantSource>) -> PageAnswer {
    let status = gateway.status();
    let used = status.deprecated_use.iter();
    let deprecated = used.map(|used| deprecated_json(used, &status));
    let collisions = gateway.collisions().into_iter().map(|name| {
        json!({"list": name.list, "id": name.id, "reachable": name.reachable, "hidden": name.hidden})
    });
    let counts = status.rate_limits.iter();
    let limits = counts.map(|(limit, count)| json!({"limit": limit, "count": count}));
    let denials = gateway.denials().map(|denials| {
        let counts = denials.into_iter();
        counts
            .map(|(rule, count)| json!({"rule": rule, "count": count}))
            .collect::<Value>()
    });
    json_answer(&json!({
        "deprecated": deprecated.collect::<Value>(),
        "changes": gateway.server_changes().iter().map(change_json).collect::<Value>(),
        "setup": source.map(|source| source.problems(gateway)),
        "meant": meant_tools(gateway),
        "collisions": collisions.collect::<Value>(),
        "denials": denials,
        "credentials": gateway.refused_credentials(),
        "refusedCredentials": status.refused_credentials,
        "limits": limits.collect::<Value>(),
        "counters": status.counters,
        "failedResults": gateway.failed_results(),
    }))
}

/// The tool that a client probably meant with a name that no list has.
fn meant_tools(gateway: &Gateway) -> BTreeMap<String, String> {
    let served = gateway.served();
    let tools = || served.iter().filter(|item| item.list == "tools/list");
    let calls = gateway.last_calls();
    let unknown = calls.iter().filter(|call| call.is_unknown_tool);
    let targets = unknown.filter_map(|call| call.target.target.as_ref());
    let called: BTreeSet<&str> = targets.map(|target| target.as_str()).collect();
    let meant = called.into_iter().take(MOST_COMPARED).filter_map(|name| {
        let near = nearest(name, tools().map(|item| &*item.id))?;
        Some((name.to_owned(), near.to_owned()))
    });
    meant.collect()
}

/// The most names for which a similar one is looked for.
const MOST_COMPARED: usize = 50;

/// A change, with the texts of the members that differ; of what is new or gone, its description.
fn change_json(SeenChange { at, change }: &SeenChange) -> Value {
    let of = |definition: &Option<Arc<str>>, member: &str| {
        let value = edit::get(definition.as_deref()?, member)?;
        Some(unquoted(value).map_or_else(|| value.to_owned(), Cow::into_owned))
    };
    let description = ["description".to_owned()];
    let instructions = ["instructions".to_owned()];
    let members = match &change.members[..] {
        [] if change.subject == ChangeSubject::Instructions => &instructions[..],
        [] => &description,
        members => members,
    };
    let texts = members.iter().map(|member| {
        let before = of(&change.before, member).unwrap_or_default();
        let after = of(&change.after, member).unwrap_or_default();
        let (before, after) = around_difference(&before, &after);
        json!({"member": member, "before": before, "after": after})
    });
    json!({
        "at": at,
        "server": &*change.server,
        "subject": change.subject.as_str(),
        "name": &*change.name,
        "summary": change.summary(),
        "members": texts.collect::<Value>(),
    })
}

/// Two texts from a little before their first difference, bounded in length.
fn around_difference(before: &str, after: &str) -> (String, String) {
    let pairs = before.chars().zip(after.chars());
    let same = pairs.take_while(|(before, after)| before == after).count();
    let start = same.saturating_sub(MAX_BEFORE);
    let part = |text: &str| {
        let cut = if start > 0 { "…" } else { "" };
        let shown: String = text.chars().skip(start).take(MAX_SHOWN).collect();
        let more = text.chars().nth(start + MAX_SHOWN).map_or("", |_| "…");
        format!("{cut}{shown}{more}")
    };
    (part(before), part(after))
}

/// Characters of a text that are shown before its first difference.
const MAX_BEFORE: usize = 200;
/// Characters of a text that are shown.
const MAX_SHOWN: usize = 4_000;

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
