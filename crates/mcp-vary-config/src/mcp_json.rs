//! The file in which a client keeps its servers: `{"mcpServers": {"name": {...}}}`.
//!
//! Claude, Cursor and many others call the table so; VS Code calls it `servers` and has `inputs` beside it.

use super::reader::{Located, Reader};
use super::server::{self, Servers, TO_OURS};
use crate::diagnostic::Diagnostic;
use crate::document::Entry;

/// The entry with the servers, if the file is a client's.
pub(super) fn servers(entries: &[Entry]) -> Option<&Entry> {
    let find = |key: &str| entries.iter().find(|entry| entry.key == key);
    find("mcpServers").or_else(|| find("inputs").and_then(|_| find("servers")))
}

/// The servers in the file of a client.
pub(super) struct ClientServers<'a, 't> {
    pub(super) root: &'a Located<'t>,
    pub(super) entries: &'t [Entry],
    pub(super) servers: &'t Entry,
}

impl ClientServers<'_, '_> {
    /// Reads the servers, and notes which keys beside them are ignored although Vary has settings with these names.
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
                let note = Diagnostic::new(entry.at, self.root.member(entry).path, what);
                reader.notes.push(note.with_fix(TO_OURS));
            }
        }
        server::read_all(reader, &self.root.member(self.servers), into);
    }
}
