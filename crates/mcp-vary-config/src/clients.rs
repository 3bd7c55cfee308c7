//! `clients`: rules for clients.

use std::sync::Arc;

use http::HeaderName;
use mcp_vary::variant::VariantId;
use mcp_vary_catalog::selection::client_rule::{ClientPattern, ClientRule, JsonContent};

use super::reader::{Located, Placed, Reader, meant_or_known, not_a_variant};
use super::schema_builder::SchemaBuilder;
use super::variants::{DIALECTS, RESULTS, features};
use crate::document::Value;
use crate::key_spec::ValueKind::Other;
use crate::key_spec::{KeySpec, choice, keys, set, value};

const EXAMPLE: &str = "[{name: \"claude*\", variant: compact}]";

/// A reference to a variant.
pub(super) type Named = Placed<VariantId>;

/// Reads the list of rules.
pub(super) fn read(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
    into: &mut Vec<ClientRule>,
    named: &mut Vec<Named>,
) {
    if !matches!(field.node.value, Value::List(_)) {
        return reader.report(field, "is not a list", &format!("write {EXAMPLE}"));
    }
    for item in field.items() {
        let mut draft = PartialClientRule::default();
        reader.settings(&item, &[SETTINGS], &mut draft, "{name: ..., variant: ...}");
        named.append(&mut draft.named);
        draft.check(reader, &item);
        into.push(draft.rule);
    }
}

/// Reads the id of a variant. It is [checked](check) when all variants are known.
pub(super) fn variant(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
    named: &mut Vec<Named>,
) -> Option<VariantId> {
    let word = reader.word(field)?;
    let id: VariantId = match word.parse() {
        Ok(id) => id,
        Err(_) => {
            reader.report(field, not_a_variant(field.written()), "write the id of one");
            return None;
        }
    };
    named.push(field.placed(id.clone()));
    Some(id)
}

/// Reads a list of the ids of variants, likewise.
pub(super) fn variants(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
    named: &mut Vec<Named>,
) -> Vec<VariantId> {
    let items = reader.list(field);
    if items.is_empty() && matches!(field.node.value, Value::List(_)) {
        let fix = "name at least one variant, or leave it out";
        reader.report(field, "is empty", fix);
    }
    let ids = items.iter();
    ids.filter_map(|item| variant(reader, item, named))
        .collect()
}

/// The schema of such a list.
pub(super) fn variants_shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let id = schema.variant_id();
    let mut ids = schema.list(&id);
    ids["minItems"] = serde_json::json!(1);
    ids
}

/// Reports references to variants that are not declared.
pub(super) fn check(reader: &mut Reader<'_>, named: &[Named], ids: &[VariantId]) {
    let names: Vec<_> = ids.iter().map(VariantId::as_str).collect();
    let unknown = named.iter().filter(|named| !ids.contains(&named.value));
    for Placed {
        at,
        path,
        written,
        value,
    } in unknown
    {
        // An arm is a key, which the path has.
        let what = if path.ends_with(written) {
            "is not a variant".to_owned()
        } else {
            not_a_variant(written)
        };
        let fix = meant_or_known(value.as_str(), &names);
        reader.report_at(*at, path, what, &fix);
    }
}

/// The schema of `clients`.
pub(super) fn shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let mut rule = schema.table("a rule of `clients`", &[SETTINGS]);
    // The key may also come from a table that is merged into the rule.
    let keys = EFFECTS.iter().chain(&["<<"]);
    let is_effective: Vec<_> = keys
        .map(|key| serde_json::json!({"required": [key]}))
        .collect();
    rule["allOf"] = serde_json::json!([{"anyOf": is_effective}]);
    schema.list(&rule)
}

/// A rule while it is read.
#[derive(Default)]
struct PartialClientRule {
    rule: ClientRule,
    named: Vec<Named>,
}

/// The keys that set what clients receive.
const EFFECTS: [&str; 6] = [
    "variant",
    "result",
    "dialect",
    "features",
    "json-content",
    "lift-json-text",
];

impl PartialClientRule {
    /// Reports a rule that sets nothing, which is probably a mistake.
    fn check(&self, reader: &mut Reader<'_>, field: &Located<'_>) {
        let is_table = matches!(field.node.value, Value::Table(_));
        let keys = field.keys();
        let is_effective = EFFECTS.iter().any(|key| keys.contains(key));
        // If a misspelled key like `varient` was reported, the missing `variant` is not reported, too.
        if is_table && !is_effective && !reader.was_meant(field, &EFFECTS) {
            let fix = "add `variant: ...`, `result`, `dialect`, `features`, `json-content` or `lift-json-text`";
            reader.report(field, "does not say what clients get", fix);
        }
    }
}

const SETTINGS: &[KeySpec<PartialClientRule>] = keys![
    /// what the client calls itself (`clientInfo.name`); `*` is anything, `{a,b}` one of several, upper and lower case
    /// are the same
    "name" => value!(SchemaBuilder::word, pattern, |draft| draft.rule.name),
    /// its version, likewise
    "version" => value!(SchemaBuilder::word, pattern, |draft| draft.rule.version),
    /// headers of its request, each likewise; a client on stdio has none
    "headers" => Other(SchemaBuilder::headers, |reader, field, draft| {
        let entries = reader.table(field, "{X-Team: \"ops*\"}");
        for entry in entries.unwrap_or_default() {
            let member = field.member(entry);
            let Ok(name) = HeaderName::try_from(entry.key.as_str()) else {
                reader.report(&member, "is not a header name", "write one, such as `X-Team`");
                continue;
            };
            let value = pattern(reader, &member);
            draft.rule.headers.extend(value.map(|pattern| (name, pattern)));
        }
    }),
    /// the variant that it gets when it names none
    "variant" => Other(SchemaBuilder::variant_id, |reader, field, draft| {
        draft.rule.variant = variant(reader, field, &mut draft.named);
    }),
    /// which field of a tool's result it gets, in variants that do not set it: `both`, `content`, `structured`
    "result" => choice!(RESULTS, |draft| &mut draft.rule.result),
    /// the dialect of its tools' schemas, in variants that do not set one: `gemini`, `openai-strict`, `none`
    "dialect" => choice!(DIALECTS, |draft| &mut draft.rule.dialect),
    /// its feature tags if it declares none, in variants that do not set them
    "features" => Other(SchemaBuilder::strings, |reader, field, draft| {
        draft.rule.features = Some(Arc::new(features(reader, field)));
    }),
    /// what it gets beside JSON, as [at the top of the file](top-level.md): `strict`, `texts` or `both`
    "json-content" => choice!(JSON_CONTENTS, |draft| &mut draft.rule.json_content),
    /// whether JSON in a text becomes the structured value for it, as [at the top of the file](top-level.md)
    "lift-json-text" => set!(SchemaBuilder::switch, Reader::switch, |draft| &mut draft.rule.lift_json_text),
];

/// The values of `json-content`.
pub(crate) const JSON_CONTENTS: &[(&str, JsonContent)] = &[
    ("strict", JsonContent::Strict),
    ("texts", JsonContent::Texts),
    ("both", JsonContent::Both),
];

fn pattern(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<ClientPattern> {
    let word = reader.word(field)?;
    match ClientPattern::new(&word) {
        Ok(pattern) => Some(pattern),
        Err(why) => {
            let what = format!("is not a pattern: {why}");
            reader.report(
                field,
                what,
                "write `*` for anything, `{a,b}` for one of several",
            );
            None
        }
    }
}
