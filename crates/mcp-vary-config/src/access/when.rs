//! `when`: the clients to whom a rule applies.

use mcp_vary_access::{MAX_WHEN_PATTERNS, Presence, When, WhenError};
use serde_json::json;

use crate::diagnostic::nearest;
use crate::document::Value;
use crate::reader::{Located, Reader, did_you_mean};
use crate::schema_builder::{ANYTHING, SchemaBuilder};
use crate::variants::selection::pattern;

const EXAMPLE: &str = "{groups: [dev, sre]}, or {anyone: on}";

/// The keys that are not claims.
const KEYS: [&str; 3] = ["anyone", "client", "key"];

/// Reads the conditions.
pub(crate) fn read(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<When> {
    let entries = reader.table(field, EXAMPLE)?;
    let before = reader.diagnostics.len();
    let mut is_anyone = false;
    let mut when = When::new();
    for entry in entries {
        let member = field.member(entry);
        if entry.key == "anyone" {
            reader.switch(&member, &mut is_anyone);
            continue;
        }
        let Some(presence) = presence(reader, &member) else {
            continue;
        };
        let added = match entry.key.as_str() {
            "key" => when.clone().with_key(presence),
            "client" => when.clone().with_client(presence),
            claim => {
                note_reserved(reader, &member, claim);
                when.clone().with_claim(claim, presence)
            }
        };
        match added {
            Ok(added) => when = added,
            Err(error) => refuse(reader, &member, &error),
        }
    }
    if reader.diagnostics.len() > before {
        return None;
    }
    match (is_anyone, when.is_empty()) {
        (true, true) => Some(When::anyone()),
        (false, false) => Some(when),
        (false, true) => {
            reader.report(field, "names nobody", "write `anyone: on` for everyone");
            None
        }
        (true, false) => {
            let fix = "keep `anyone: on`, or the others";
            reader.report(field, "has `anyone` and other conditions", fix);
            None
        }
    }
}

/// Adds a note for a claim whose name looks like one of the other keys: `keys: absent` would hold for every key.
fn note_reserved(reader: &mut Reader<'_>, member: &Located<'_>, claim: &str) {
    if let Some(meant) = nearest(claim, &KEYS) {
        reader.note(member, "is read as a claim", did_you_mean(meant));
    }
}

fn refuse(reader: &mut Reader<'_>, member: &Located<'_>, error: &WhenError) {
    match error {
        WhenError::Claim(error) => reader.refuse(member, error),
        error => reader.refuse(member, error),
    }
}

/// Reads `absent`, a pattern, or a list of patterns.
fn presence(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<Presence> {
    if !matches!(field.node.value, Value::List(_)) {
        if reader.word(field)? == ABSENT {
            return Some(Presence::Absent);
        }
        // A mistake in a variable was reported above, so this reads a valid word.
        return pattern(reader, field).map(|only| Presence::AnyOf(vec![only]));
    }
    let items = reader.list(field);
    if items.is_empty() {
        let fix = "write `absent`, or at least one pattern";
        reader.report(field, "is empty, so it matches no client", fix);
        return None;
    }
    let items = reader.at_most(MAX_WHEN_PATTERNS, field, items);
    let mut patterns = Vec::new();
    for item in items {
        if item.written() == ABSENT {
            let fix = "write it alone, in a rule of its own; `[a]bsent` is the text";
            reader.report(&item, "is not a pattern: `absent` in a list", fix);
        }
        patterns.extend(pattern(reader, &item));
    }
    Some(Presence::AnyOf(patterns))
}

/// The word for a claim, key or certificate that a client must not have.
const ABSENT: &str = "absent";

/// The schema of `when`.
pub(crate) fn shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let mut patterns = schema.strings();
    patterns["minItems"] = json!(1);
    patterns["maxItems"] = json!(MAX_WHEN_PATTERNS);
    let presence = json!({"anyOf": [schema.word(), patterns]});
    let mut when = schema.named(ANYTHING, &presence);
    when["properties"]["anyone"] = schema.switch();
    when["minProperties"] = json!(1);
    when
}
