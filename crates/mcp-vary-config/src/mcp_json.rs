//! The file in which a client configures its servers: `{"mcpServers": {"name": {...}}}`.
//!
//! Claude, Cursor and many others use this name for the table. VS Code calls it `servers` and has `inputs` next to it.

use mcp_vary_upstream::command_line::shell_word;

use super::reader::{Located, Reader};
use super::server::{self, Servers, TO_OURS};
use crate::diagnostic::Diagnostic;
use crate::document::{Entry, Node, Value};

/// The entry with the servers, if this is the file of a client.
pub(super) fn servers(entries: &[Entry]) -> Option<&Entry> {
    let find = |key: &str| entries.iter().find(|entry| entry.key == key);
    find("mcpServers").or_else(|| find("inputs").and_then(|_| find("servers")))
}

/// The error for a file of a program whose servers are read by an import only, or whose key for them is misspelled.
pub(super) fn only_importable(file: &str, root: &Node) -> Option<Diagnostic> {
    let all = root.entries();
    let is_misspelled =
        |entry: &&Entry| entry.key.eq_ignore_ascii_case("mcpServers") && entry.key != "mcpServers";
    if let Some(entry) = all.iter().find(is_misspelled) {
        let diagnostic = Diagnostic::new(entry.at, entry.key.as_str(), "is not a known key");
        return Some(diagnostic.with_fix("did you mean `mcpServers`?"));
    }
    let is_list =
        |entry: &Entry| entry.key == "mcpServers" && matches!(entry.node.value, Value::List(_));
    let entry = all.iter().find(|entry| {
        let keys = ["mcp_servers", "mcp", "context_servers"];
        keys.contains(&entry.key.as_str()) || is_list(entry)
    })?;
    let inner = entry.node.entries();
    let nested = inner.iter().find(|entry| entry.key == "servers");
    let servers = nested.map_or(inner, |nested| nested.node.entries());
    let is_opencode = |server: &Entry| {
        server.node.entries().iter().any(|setting| {
            let kind = &setting.node.value;
            setting.key == "type"
                && matches!(kind, Value::Text(kind) if matches!(kind.as_str(), "local" | "remote"))
        })
    };
    let program = match entry.key.as_str() {
        "mcp_servers" => "Codex",
        "mcpServers" => "Continue",
        "context_servers" => "Zed",
        _ if servers.iter().any(is_opencode) => "opencode",
        _ if nested.is_some() => "VS Code",
        _ => return None,
    };
    let what = format!("has servers as {program} writes them, which Vary has to import");
    let file = shell_word(file);
    let fix = format!("run `vary config import {file} > vary.yaml`, and name vary.yaml instead");
    Some(Diagnostic::new(entry.at, entry.key.as_str(), what).with_fix(fix))
}

/// The servers in the file of a client.
pub(super) struct ClientServers<'a, 't> {
    pub(super) root: &'a Located<'t>,
    pub(super) entries: &'t [Entry],
    pub(super) servers: &'t Entry,
}

impl ClientServers<'_, '_> {
    /// Reads the servers. Adds notes for other keys that are ignored although Vary has settings with these names.
    pub(super) fn read(
        &self,
        reader: &mut Reader<'_>,
        is_setting: fn(&str) -> bool,
        into: &mut Servers,
    ) {
        reader.foreign = true;
        for entry in self.entries {
            if entry.key != self.servers.key && is_setting(&entry.key) {
                let what = "is ignored in the file of a client";
                reader.note_at(entry.at, &self.root.member(entry).path, what, TO_OURS);
            }
        }
        server::read_all(reader, &self.root.member(self.servers), into);
    }
}
