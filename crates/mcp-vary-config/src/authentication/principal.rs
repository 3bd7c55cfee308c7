//! `stdio-principal`: who the client on standard input is; and the claims that a file gives to somebody.

use std::sync::Arc;

use mcp_vary_access::{Claims, Principal};

use crate::document::Value;
use crate::json_value;
use crate::key_spec::ValueKind::Scalar;
use crate::key_spec::{KeySpec, keys, value};
use crate::reader::{Located, Reader};
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
    let claims = Claims::from_json(&text);
    reader.usable(field, claims).unwrap_or_default()
}

/// Reads `stdio-principal`.
pub(crate) fn read(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<Arc<Principal>> {
    let mut draft = PartialPrincipal::default();
    reader.settings(field, &[SETTINGS], &mut draft, "{name: ...}");
    reader.require(field, &[("name", "add `name: ...`")]);
    let principal = Principal::stdio(&draft.name?, draft.claims);
    let principal = reader.usable(&field.deepest(&["name"]), principal);
    principal.map(Arc::new)
}

const SETTINGS: &[KeySpec<PartialPrincipal>] = keys![
    /// the name of the principal; required
    "name" => Scalar(|principal| &mut principal.name),
    /// what rules know of the principal, as in a token: `{groups: [build]}`
    "claims" => value!(SchemaBuilder::values, read_claims, |principal| principal.claims),
];

/// The schema of `stdio-principal`.
pub(crate) fn shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let shape = schema.table("`stdio-principal`", &[SETTINGS]);
    schema.with_required(shape, &["name"])
}
