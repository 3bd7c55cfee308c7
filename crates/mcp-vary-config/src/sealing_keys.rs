//! `keys`: the secrets that seal sessions and cursors.

use mcp_vary_settings::sealing_keys::{SealingKey, SealingKeys};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::reader::{Located, Reader};
use super::schema_builder::SchemaBuilder;
use crate::document;

/// The minimum length. Shorter secrets can be guessed.
const SHORTEST: usize = 32;

/// Reads the list of secrets.
pub(super) fn read(reader: &mut Reader<'_>, field: &Located<'_>) -> SealingKeys {
    if !matches!(field.node.value, document::Value::List(_)) {
        reader.report(field, "is not a list", "write [\"${VARY_KEY}\"]");
        return SealingKeys::default();
    }
    let secrets = reader.list(field).into_iter();
    let keys = secrets.filter_map(|item| read_key(reader, &item, b"vary configured key v1\0"));
    SealingKeys::new(keys.collect())
}

/// Reads a secret, and derives the key for one `purpose` from it.
pub(super) fn read_key(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
    purpose: &[u8],
) -> Option<SealingKey> {
    let secret = reader.text(field)?;
    if secret.len() < SHORTEST {
        let what = format!("has less than {SHORTEST} characters");
        let fix = "set it to what `openssl rand -base64 32` prints, best in a variable";
        reader.report(field, what, fix);
        return None;
    }
    let digest = Sha256::new_with_prefix(purpose).chain_update(secret.as_bytes());
    Some(SealingKey(digest.finalize().into()))
}

/// The schema of `keys`.
pub(super) fn shape(schema: &mut SchemaBuilder) -> Value {
    let key = key_shape(schema);
    schema.list(&key)
}

/// The schema of a secret.
pub(super) fn key_shape(schema: &mut SchemaBuilder) -> Value {
    json!({"anyOf": [schema.variable(), {"allOf": [schema.text(), {"minLength": SHORTEST}]}]})
}
