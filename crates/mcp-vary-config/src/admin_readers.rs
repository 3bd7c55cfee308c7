//! `admin-readers`: whose access tokens may read the operator's page.

use mcp_vary_access::When;
use serde_json::Value;

use crate::access::{read_when, when_shape};
use crate::document::Value::Table;
use crate::reader::{Located, Reader};
use crate::schema_builder::SchemaBuilder;

/// Reads the conditions.
pub(super) fn read(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<When> {
    let what = match &field.node.value {
        Table(entries) if entries.is_empty() => "names nobody",
        Table(entries) if entries.iter().any(|entry| entry.key == ANYONE) => "admits anyone",
        _ => return read_when(reader, field),
    };
    let fix = "name a claim that only operators have, such as `{groups: operators}`";
    reader.report(field, what, fix);
    None
}

/// Reports readers that nobody can recognise, since clients do not authenticate.
pub(super) fn check(reader: &mut Reader<'_>, root: &Located<'_>, has_authentication: bool) {
    let field = root.deepest(&[KEY]);
    if !has_authentication && field.path == KEY {
        let fix = "add `auth` with the issuer of the tokens, or leave this out";
        reader.report(&field, "needs `auth`", fix);
    }
}

/// The schema.
pub(super) fn shape(schema: &mut SchemaBuilder) -> Value {
    let mut when = when_shape(schema);
    if let Some(properties) = when["properties"].as_object_mut() {
        properties.insert(ANYONE.to_owned(), Value::Bool(false));
    }
    when
}

const KEY: &str = "admin-readers";
const ANYONE: &str = "anyone";
