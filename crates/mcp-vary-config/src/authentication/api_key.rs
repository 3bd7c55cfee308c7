//! `auth.keys`: the API keys that are accepted.

use std::collections::BTreeMap;

use mcp_vary::variant::Date;
use mcp_vary_access::Claims;
use mcp_vary_auth::key::{KeyDigest, KeyEntry, KeyFault, KeyTable, MAX_API_KEYS, PREFIX};

use super::principal::read_claims;
use super::tables;
use crate::diagnostic::Position;
use crate::document::Value;
use crate::key_spec::ValueKind::Scalar;
use crate::key_spec::{KeySpec, keys, value};
use crate::reader::{Located, Placed, Reader, unusable};
use crate::schema_builder::SchemaBuilder;

const EXAMPLE: &str = "{name: ..., sha256: ...}";

/// A key while it is read.
#[derive(Default)]
struct PartialKey {
    name: Option<String>,
    digest: Option<KeyDigest>,
    claims: Claims,
    expires: Option<Date>,
}

/// Reads the list of keys.
pub(super) fn read(reader: &mut Reader<'_>, field: &Located<'_>) -> Vec<Placed<KeyEntry>> {
    let read = tables(reader, field, SETTINGS, MAX_API_KEYS, EXAMPLE);
    let finished = read.into_iter().filter_map(|(item, draft)| {
        let entry = draft.finish(reader, &item)?;
        Some(item.placed(entry))
    });
    finished.collect()
}

impl PartialKey {
    fn finish(self, reader: &mut Reader<'_>, item: &Located<'_>) -> Option<KeyEntry> {
        if !matches!(item.node.value, Value::Table(_)) {
            return None;
        }
        reader.require(
            item,
            &[
                ("name", "add `name: ...`, by which rules and logs call it"),
                (
                    "sha256",
                    "add `sha256: ...`; `vary key new NAME` prints both",
                ),
            ],
        );
        if let Some((expires, today)) = self.expires.zip(reader.today) {
            note_end(reader, item, expires.days_since(today));
        }
        let entry = KeyEntry {
            name: self.name?,
            digest: self.digest?,
            claims: self.claims,
            expires_at: self.expires.map(end_of),
        };
        // What is wrong with one key is reported at its name.
        match KeyTable::new(vec![entry.clone()]) {
            Ok(_) => Some(entry),
            Err(error) => {
                reader.refuse(&item.deepest(&["name"]), &error.fault);
                None
            }
        }
    }
}

/// Adds a note for a key whose last day, after so many `days`, was or comes soon.
fn note_end(reader: &mut Reader<'_>, item: &Located<'_>, days: i64) {
    let [day, name] = ["expires", "name"].map(|key| item.deepest(&[key]).written());
    let what = match days {
        ..0 => format!("is past: the key of `{name}` is refused since the end of {day}"),
        0..=14 => format!("is near: the key of `{name}` is refused after {day}"),
        _ => return,
    };
    let fix = format!("make another with `vary key new {name}`, and remove this one");
    reader.note(&item.deepest(&["expires"]), what, fix);
}

/// The first second after a day in UTC, in seconds since 1970-01-01.
fn end_of(day: Date) -> u64 {
    let days = day.days_since(Date::from_unix(0)).saturating_add(1);
    u64::try_from(days).unwrap_or_default() * 24 * 60 * 60
}

/// Reports names and digests that several keys have.
pub(super) fn check(reader: &mut Reader<'_>, keys: &[Placed<KeyEntry>]) {
    let mut names = BTreeMap::<&str, Position>::new();
    let mut digests = BTreeMap::<KeyDigest, Position>::new();
    for key in keys {
        let same_name = names.insert(&key.value.name, key.at);
        let repeated_name = same_name.map(|at| (at, KeyFault::RepeatedName));
        let same_digest = digests.insert(key.value.digest, key.at);
        let repeated_digest = same_digest.map(|at| (at, KeyFault::RepeatedDigest));
        if let Some((first, fault)) = repeated_name.or(repeated_digest) {
            let (what, fix) = unusable(&fault);
            let what = format!("{what} (line {})", first.line);
            reader.report_at(key.at, &key.path, what, &fix);
        }
    }
}

fn read_digest(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<KeyDigest> {
    let is_key = |text: &str| text.trim().starts_with(PREFIX);
    reader.value(field, |text| match text.parse::<KeyDigest>() {
        Err(_) if is_key(text) => Err(
            "it is a key, and not the digest of one; write the `sha256` that `vary key new` prints, and a new key is \
safer than one that was in a file"
                .to_owned(),
        ),
        parsed => parsed.map_err(|error| error.to_string()),
    })
}

/// The keys of one entry.
const SETTINGS: &[KeySpec<PartialKey>] = keys![
    /// whose key it is, at most 64 bytes, for rules, limits and logs; required
    "name" => Scalar(|key| &mut key.name),
    /// the SHA-256 digest of the key, 64 hexadecimal digits; required
    "sha256" => value!(|schema| schema.pattern("^[0-9A-Fa-f]{64}$"), read_digest, |key| key.digest),
    /// claims for rules, as in a token: `{groups: [build]}`
    "claims" => value!(SchemaBuilder::values, read_claims, |key| key.claims),
    /// the last day, in UTC, on which the key is accepted, as `2027-01-31`
    "expires" => value!(|schema| schema.pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}$"), read_day, |key| key.expires),
];

fn read_day(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<Date> {
    let word = reader.word(field)?;
    let is_whole = word.len() == "2027-01-31".len();
    let day = is_whole.then(|| word.parse().ok()).flatten();
    if day.is_none() {
        reader.report(
            field,
            "is not a day of the calendar",
            "write one like `2027-01-31`",
        );
    }
    day
}

/// The schema of `keys`.
pub(super) fn shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let key = schema.table("an API key", &[SETTINGS]);
    let key = schema.with_required(key, &["name", "sha256"]);
    schema.list(&key)
}
