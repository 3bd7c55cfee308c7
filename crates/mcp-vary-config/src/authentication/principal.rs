//! `stdio-principal`: who the client on standard input is; and the claims that a file gives to somebody.

use std::sync::Arc;

use mcp_vary_access::{Claims, Principal};

use crate::document::Value;
use crate::json_value;
use crate::key_spec::{KeySpec, ValueKind};
use crate::reader::{Located, Reader, unusable};
use crate::schema_builder::SchemaBuilder;

/// The principal while it is read.
#[derive(Default)]
struct PartialPrincipal {
    name: Option<String>,
    claims: Claims,
}

/// Reads the table.
pub(in crate::authentication) fn read_claims(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
) -> Claims {
    if !matches!(field.node.value, Value::Table(_)) {
        reader.report(
            field,
            "is not a table of claims",
            "write {NAME: value}, such as {groups: [build]}",
        );
        return Claims::default();
    }
    let Some(json) = json_value::read(reader, field) else {
        return Claims::default();
    };
    let mut text = String::new();
    json.write(&mut text);
    Claims::from_json(&text).unwrap_or_else(|error| {
        let (what, fix) = unusable(&error);
        reader.report(field, what, &fix);
        Claims::default()
    })
}

/// Reads `stdio-principal`.
pub(crate) fn read(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<Arc<Principal>> {
    let mut draft = PartialPrincipal::default();
    reader.settings(field, &[SETTINGS], &mut draft, "{name: ...}");
    let is_table = matches!(field.node.value, Value::Table(_));
    if is_table && !field.keys().contains(&"name") && !reader.was_meant(field, &["name"]) {
        reader.report(field, "has no `name`", "add `name: ...`");
    }
    match Principal::stdio(&draft.name?, draft.claims) {
        Ok(principal) => Some(Arc::new(principal)),
        Err(error) => {
            let (what, fix) = unusable(&error);
            reader.report(&field.deepest(&["name"]), what, &fix);
            None
        }
    }
}

const SETTINGS: &[KeySpec<PartialPrincipal>] = &[
    KeySpec {
        key: "name",
        about: "the name of the principal; required",
        default: "",
        takes: ValueKind::Scalar(|principal| &mut principal.name),
    },
    KeySpec {
        key: "claims",
        about: "what rules know of the principal, as in a token: `{groups: [build]}`",
        default: "",
        takes: ValueKind::Other(SchemaBuilder::values, |reader, field, principal| {
            principal.claims = read_claims(reader, field)
        }),
    },
];

/// The schema of `stdio-principal`.
pub(crate) fn shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let shape = schema.table(&[SETTINGS]);
    schema.with_required(shape, &["name"])
}
