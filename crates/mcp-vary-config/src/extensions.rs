//! `extensions`: which server answers the methods of an extension that several declare.

use std::collections::BTreeMap;

use mcp_vary::extension::{EXTENSIONS, ExtensionId};

use serde_json::Value;

use super::reader::{Located, Placed, Reader, meant_or_known};
use super::require::identifier_pattern;
use super::schema_builder::SchemaBuilder;
use super::server::Servers;

/// A named server, with the identifier of the extension.
pub(super) type Chosen = Placed<(String, String)>;

/// Reads the table.
pub(super) fn read(reader: &mut Reader<'_>, field: &Located<'_>) -> Vec<Chosen> {
    let example = "{com.example/units: SERVER}";
    let entries = reader.table(field, example).unwrap_or_default();
    let chosen = entries.iter().filter_map(|entry| {
        let member = field.member(entry);
        let id = entry.key.as_str();
        let is_negotiated = EXTENSIONS.iter().any(|extension| extension.id == id);
        if is_negotiated || id.parse::<ExtensionId>().is_err() {
            let what = if is_negotiated {
                "is negotiated by Vary itself"
            } else {
                "is not the identifier of an extension"
            };
            reader.report(&member, what, "write one such as `com.example/units`");
            return None;
        }
        let server = reader.word(&member)?;
        Some(member.placed((id.to_owned(), server)))
    });
    chosen.collect()
}

/// The schema of `extensions`.
pub(super) fn shape(schema: &mut SchemaBuilder) -> Value {
    let word = schema.word();
    schema.named(&identifier_pattern(), &word)
}

/// The server of each extension. Reports those that the file does not have.
pub(super) fn finish(
    reader: &mut Reader<'_>,
    chosen: &[Chosen],
    known_servers: &Servers,
) -> BTreeMap<String, String> {
    let enabled = known_servers
        .enabled
        .iter()
        .map(|server| server.name.as_str());
    let known: Vec<&str> = enabled.collect();
    let disabled = &known_servers.disabled;
    for Placed {
        at, path, value, ..
    } in chosen
    {
        let server = &value.1;
        if !known.contains(&server.as_str()) && !disabled.contains(server) {
            let what = format!("is not a server: `{server}`");
            reader.report_at(*at, path, what, &meant_or_known(server, &known));
        }
    }
    let servers = chosen.iter().map(|chosen| chosen.value.clone());
    servers.collect()
}
