//! Vary's own entry in the file of a client, which may be the file that Vary serves.

use http::Uri;

use crate::diagnostic::{Diagnostic, Position};

/// How the entries that lead to Vary itself are recognised in the file of a client, which may be the file that Vary serves.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "callers name both")]
pub struct VaryEntries<'a> {
    /// The names of those that Vary wrote.
    pub names: &'a [String],
    /// The port of this machine on which Vary serves.
    pub port: Option<u16>,
}

impl VaryEntries<'_> {
    /// Whether the entry `name`, for a server at `url` or for a program, leads to Vary itself.
    pub(super) fn contains(&self, name: &String, url: Option<&Uri>) -> bool {
        let is_its_address = |url: &Uri| {
            let is_loopback = matches!(url.host(), Some("127.0.0.1" | "localhost" | "[::1]"));
            is_loopback && self.port.is_some() && url.port_u16() == self.port
        };
        self.names.contains(name) || url.is_some_and(is_its_address)
    }

    /// The note about such an entry.
    pub(super) fn note(at: Position, key: String) -> Diagnostic {
        let note = Diagnostic::new(at, key, "is Vary itself, and is not served");
        note.with_fix("leave it in the file: the client uses it")
    }
}
