//! The text of the configuration that `vary up` writes.

use super::diff::merged;
use super::journal::{ADMIN, Journal};

/// The configuration that begins with `head`, with the `imported` servers.
pub(super) fn with_servers(head: &str, imported: &str) -> String {
    // The first line says that another command wrote it.
    let servers = imported.split_once('\n').map_or("", |(_, after)| after);
    format!("{head}{ADMIN}{servers}")
}

/// The `imported` servers with what the user changed in the configuration, which is `current`; `None` if there is none, or
/// if it was changed in the same lines.
pub(super) fn with_changes(imported: &str, current: &str, journal: &Journal) -> Option<String> {
    let (head, _) = journal.generated.split_once(ADMIN)?;
    merged(&journal.generated, &with_servers(head, imported), current)
}
