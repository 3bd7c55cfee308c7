//! `require`: the extensions that clients must support.

use mcp_vary::extension::{CONTENT_NEGOTIATION, ExtensionId, SERVER_VARIANTS};
use mcp_vary_settings::config::Config;
use serde_json::json;

use super::reader::{Located, Placed, Reader, did_you_mean};
use super::schema_builder::SchemaBuilder;
use crate::diagnostic::nearest;

/// A required extension.
pub(super) type Required = Placed<ExtensionId>;

/// The names of the two extensions in a configuration, and their identifiers.
const OWN: [(&str, &str); 2] = [
    ("negotiation", CONTENT_NEGOTIATION),
    ("variants", SERVER_VARIANTS),
];

const FIX: &str = "write `negotiation`, `variants`, or an identifier such as `com.example/units`";

/// Reads the list of extensions.
pub(super) fn read(reader: &mut Reader<'_>, field: &Located<'_>) -> Vec<Required> {
    let items = reader.list(field).into_iter();
    let required = items.filter_map(|item| {
        let id = identifier(reader, &item)?;
        Some(item.placed(id))
    });
    required.collect()
}

fn identifier(reader: &mut Reader<'_>, item: &Located<'_>) -> Option<ExtensionId> {
    let word = reader.word(item)?;
    let known = OWN.iter().find(|(name, _)| *name == word);
    let id = known.map_or(word.as_str(), |(_, id)| id).parse();
    if id.is_err() {
        let last = |id: &str| id.rsplit('/').next() == Some(&word);
        let meant = OWN.iter().find(|(_, id)| last(id)).map(|(name, _)| *name);
        let fix = match meant.or_else(|| nearest(&word, &OWN.map(|(name, _)| name))) {
            Some(meant) => did_you_mean(meant),
            None => FIX.to_owned(),
        };
        reader.report(item, "is not an extension", &fix);
    }
    id.ok()
}

/// Reports required extensions that `config` disables.
pub(super) fn check(reader: &mut Reader<'_>, required: &[Required], config: &Config) {
    for Placed {
        at, path, value, ..
    } in required
    {
        let is_off = match value.as_str() {
            CONTENT_NEGOTIATION => !config.negotiation,
            SERVER_VARIANTS => !config.variants,
            _ => false,
        };
        let name = OWN.iter().find(|(_, known)| value.as_str() == *known);
        if let (true, Some((name, _))) = (is_off, name) {
            let fix = format!("leave it out, or remove `{name}: off`");
            reader.report_at(*at, path, "is required and switched off", &fix);
        }
    }
}

/// The pattern of the identifier of an extension.
pub(super) fn identifier_pattern() -> String {
    let label = "[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?";
    let name = "(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?";
    format!(r"{label}(?:\.{label})*/{name}")
}

/// The schema of `require`.
pub(super) fn shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let names = OWN.map(|(name, _)| name);
    let identifier = format!("^{}$", identifier_pattern());
    let item = json!({"anyOf": [
        {"enum": names},
        {"type": "string", "pattern": identifier},
        schema.variable(),
    ]});
    schema.list(&item)
}
