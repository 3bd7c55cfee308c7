//! The file in which a client keeps its servers: `{"mcpServers": {"name": {...}}}`.
//!
//! Claude, Cursor and many others call the table so; VS Code calls it `servers` and has `inputs` beside it.

use super::file::is_setting;
use super::reader::{Located, Reader};
use super::server::{self, Servers, TO_OURS};
use crate::diagnostic::Diagnostic;
use crate::document::Entry;

/// The entry with the servers, if the file is a client's.
pub(super) fn servers(entries: &[Entry]) -> Option<&Entry> {
    let find = |key: &str| entries.iter().find(|entry| entry.key == key);
    find("mcpServers").or_else(|| find("inputs").and_then(|_| find("servers")))
}

/// Reads the servers, and says what of ours is ignored beside them.
pub(super) fn read<'t>(
    reader: &mut Reader<'_>,
    root: &Located<'t>,
    entries: &'t [Entry],
    servers: &'t Entry,
    into: &mut Servers,
) {
    reader.foreign = true;
    for entry in entries {
        if entry.key != servers.key && is_setting(&entry.key) {
            let what = "is ignored in the file of a client";
            let note = Diagnostic::new(entry.at, root.member(entry).path, what);
            reader.notes.push(note.with_fix(TO_OURS));
        }
    }
    server::read_all(reader, &root.member(servers), into);
}
