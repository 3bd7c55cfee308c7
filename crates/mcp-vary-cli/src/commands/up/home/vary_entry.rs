//! The entry of Vary in the file of a client.

use percent_encoding::percent_decode_str;
use serde_json::Value;

/// The variant of an entry of Vary.
pub(crate) fn variant_in(entry: &Value) -> String {
    named_variant(entry).unwrap_or_else(|| "standard".to_owned())
}

/// The variant in the URL of an entry of Vary; `None` if there is none.
pub(super) fn named_variant(entry: &Value) -> Option<String> {
    let text = entry.to_string();
    let (_, after) = text.split_once("/mcp/v/")?;
    let variant = after.split(['"', '?']).next()?;
    Some(percent_decode_str(variant).decode_utf8_lossy().into_owned())
}

/// Adds to `entry` what its user has in `other` beside it.
pub(super) fn add_missing(entry: &mut Value, other: Value) {
    let Value::Object(members) = other else {
        return;
    };
    for (key, value) in members {
        if entry.get(&key).is_none() {
            entry[key] = value;
        }
    }
}
