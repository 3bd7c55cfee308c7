//! `store`: what replicas share.

use mcp_vary_settings::config::Config;
use mcp_vary_settings::store::{StoreFailure, StoreUrl};
use serde_json::Value;

use super::reader::{Located, Reader};
use super::schema_builder::SchemaBuilder;

/// Reads the address. A message never repeats it: it may have a password.
pub(super) fn read(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<StoreUrl> {
    let text = reader.text(field)?;
    let Ok(url) = text.parse::<StoreUrl>() else {
        let what = "is not the address of a store";
        let fix = "write `redis://USER:PASSWORD@HOST:PORT/DATABASE`, or `redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/NAME/DATABASE`; with `rediss` for TLS";
        reader.report(field, what, fix);
        return None;
    };
    Some(url)
}

/// Checks that a file with `store` has `keys`, without which no replica could read what another one wrote.
pub(super) fn check(reader: &mut Reader<'_>, root: &Located<'_>, config: &Config) {
    if config.store.is_some() && config.named_keys.split().is_none() {
        let fix = "add `keys: [\"${VARY_KEY}\"]`, with the same secret at each replica";
        reader.report(&root.deepest(&["store"]), "needs `keys`", fix);
    }
}

/// The values of `store-failure`.
pub(super) const FAILURES: &[(&str, StoreFailure)] = &[
    ("open", StoreFailure::Open),
    ("closed", StoreFailure::Closed),
];

/// The schema of `store`.
pub(super) fn shape(schema: &mut SchemaBuilder) -> Value {
    schema.pattern(r"^rediss?(\+sentinel)?://[^?#]+$")
}
