//! `keys`: the secrets that seal sessions and cursors.

use mcp_vary_gateway::settings::sealing_keys::{SealingKey, SealingKeys};
use sha2::{Digest as _, Sha256};

use super::reader::{Located, Reader};
use super::schema_builder::SchemaBuilder;
use crate::document::Value;

/// The minimum length. Shorter secrets can be guessed.
pub(super) const SHORTEST: usize = 32;

/// Reads the list of secrets.
pub(super) fn read(reader: &mut Reader<'_>, field: &Located<'_>) -> SealingKeys {
    let Value::List(items) = &field.node.value else {
        reader.report(field, "is not a list", "write [\"${VARY_KEY}\"]");
        return SealingKeys::default();
    };
    let mut keys = Vec::new();
    for (index, node) in items.iter().enumerate() {
        let path = format!("{}[{index}]", field.path);
        let item = Located { path, node };
        let Some(secret) = reader.text(&item) else {
            continue;
        };
        if secret.len() < SHORTEST {
            let what = format!("has less than {SHORTEST} characters");
            let fix = "set it to what `openssl rand -base64 32` prints, best in a variable";
            reader.report(&item, what, fix);
        }
        let digest = Sha256::new_with_prefix(b"vary configured key v1\0");
        let digest = digest.chain_update(secret.as_bytes()).finalize();
        keys.push(SealingKey(digest.into()));
    }
    SealingKeys::new(keys)
}

/// The schema of `keys`.
pub(super) fn shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let variable = schema.variable();
    let text = schema.text();
    let long = serde_json::json!({"allOf": [text, {"minLength": SHORTEST}]});
    schema.list(&serde_json::json!({"anyOf": [variable, long]}))
}
