//! The file in which a client configures its servers: `{"mcpServers": {"name": {...}}}`.
//!
//! Claude, Cursor and many others use this name for the table. VS Code calls it `servers` and has `inputs` next to it.

use super::reader::{Located, Reader};
use super::server::{self, Servers, TO_OURS};
use crate::diagnostic::Diagnostic;
use crate::document::Entry;

/// The entry with the servers, if this is the file of a client.
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
                let note = Diagnostic::new(entry.at, self.root.member(entry).path, what);
                reader.notes.push(note.with_fix(TO_OURS));
            }
        }
        server::read_all(reader, &self.root.member(self.servers), into);
    }
}
