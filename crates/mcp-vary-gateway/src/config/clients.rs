//! `clients`: which variant clients get that name none.

use http::HeaderName;
use mcp_vary::variant::VariantId;

use super::mistake::{Mistake, Position};
use super::reader::{Field, Reader, Setting, meant_or_known};
use super::schema::Schema;
use super::tree::Value;
use crate::choose::{ClientRule, Pattern};

const EXAMPLE: &str = "[{name: \"claude*\", variant: compact}]";

/// Where a variant is named, by what key, and which.
type Named = (Position, String, VariantId);

/// Reads the list of rules; those in which something is wrong are left out.
pub(super) fn read(
    reader: &mut Reader<'_>,
    field: &Field<'_>,
    into: &mut Vec<ClientRule>,
    named: &mut Vec<Named>,
) {
    let Value::List(items) = &field.node.value else {
        return reader.wrong(field, "is no list", &format!("write {EXAMPLE}"));
    };
    for (index, node) in items.iter().enumerate() {
        let path = format!("{}[{index}]", field.path);
        let item = Field { path, node };
        let mut draft = Draft::default();
        reader.settings(&item, &[SETTINGS], &mut draft, "{name: ..., variant: ...}");
        named.append(&mut draft.named);
        into.extend(draft.finish(reader, &item));
    }
}

/// The id of a variant, which is to be [checked](check) when all are known.
pub(super) fn variant(
    reader: &mut Reader<'_>,
    field: &Field<'_>,
    named: &mut Vec<Named>,
) -> Option<VariantId> {
    let word = reader.word(field)?;
    let id: VariantId = match word.parse() {
        Ok(id) => id,
        Err(_) => {
            reader.wrong(field, "is no variant", "write the id of one");
            return None;
        }
    };
    named.push((field.node.at, field.path.clone(), id.clone()));
    Some(id)
}

/// Says which of the variants that were named are not declared.
pub(super) fn check(reader: &mut Reader<'_>, named: &[Named], ids: &[VariantId]) {
    let names: Vec<_> = ids.iter().map(VariantId::as_str).collect();
    for (at, key, id) in named.iter().filter(|(_, _, id)| !ids.contains(id)) {
        let fix = meant_or_known(id.as_str(), &names);
        let mistake = Mistake::new(*at, key.as_str(), "is no variant");
        reader.mistakes.push(mistake.with_fix(fix));
    }
}

/// What may stand under `clients`.
pub(super) fn shape(schema: &mut Schema) -> serde_json::Value {
    let mut rule = schema.table(&[SETTINGS]);
    rule["required"] = serde_json::json!(["variant"]);
    schema.list(&rule)
}

/// A rule while it is read.
#[derive(Default)]
struct Draft {
    name: Option<Pattern>,
    version: Option<Pattern>,
    headers: Vec<(HeaderName, Pattern)>,
    variant: Option<VariantId>,
    /// Whether `variant` was given, whatever it was worth.
    says_variant: bool,
    named: Vec<Named>,
}

impl Draft {
    fn finish(self, reader: &mut Reader<'_>, field: &Field<'_>) -> Option<ClientRule> {
        if !self.says_variant && matches!(field.node.value, Value::Table(_)) {
            reader.wrong(field, "says no variant", "add `variant: ...`");
        }
        let mut rule = ClientRule::new(self.variant?);
        (rule.name, rule.version, rule.headers) = (self.name, self.version, self.headers);
        Some(rule)
    }
}

const SETTINGS: &[Setting<Draft>] = &[
    Setting {
        key: "name",
        about: "what the client calls itself (`clientInfo.name`); `*` is anything, `{a,b}` one of \
several, upper and lower case are the same",
        default: "",
        shape: Schema::word,
        read: |reader, field, draft| draft.name = pattern(reader, field),
    },
    Setting {
        key: "version",
        about: "its version, likewise",
        default: "",
        shape: Schema::word,
        read: |reader, field, draft| draft.version = pattern(reader, field),
    },
    Setting {
        key: "headers",
        about: "headers of its request, each likewise; a client on stdio has none",
        default: "",
        shape: Schema::headers,
        read: |reader, field, draft| {
            for entry in reader
                .table(field, "{X-Team: \"ops*\"}")
                .unwrap_or_default()
            {
                let member = field.member(entry);
                match HeaderName::try_from(entry.key.as_str()) {
                    Ok(name) => {
                        let pattern = pattern(reader, &member);
                        draft.headers.extend(pattern.map(|pattern| (name, pattern)));
                    }
                    Err(_) => reader.wrong(
                        &member,
                        "is no name of a header",
                        "write one, such as `X-Team`",
                    ),
                }
            }
        },
    },
    Setting {
        key: "variant",
        about: "what it gets; required",
        default: "",
        shape: Schema::variant_id,
        read: |reader, field, draft| {
            draft.says_variant = true;
            draft.variant = variant(reader, field, &mut draft.named);
        },
    },
];

fn pattern(reader: &mut Reader<'_>, field: &Field<'_>) -> Option<Pattern> {
    let word = reader.word(field)?;
    match Pattern::new(&word) {
        Ok(pattern) => Some(pattern),
        Err(why) => {
            let what = format!("is no pattern: {why}");
            reader.wrong(
                field,
                what,
                "write `*` for anything, `{a,b}` for one of several",
            );
            None
        }
    }
}
