//! Settings that were renamed: a file with an old key gets an error that names the new one.

/// The settings that were renamed: the table of the file that has the setting, the old key and the new key.
///
/// CONTRIBUTING.md lists the same rows under "Settings that were renamed".
pub(super) const RENAMED_SETTINGS: &[(&str, &str, &str)] = &[
    ("limits", "held-calls", "suspended-calls"),
    (
        "limits",
        "held-calls-per-principal",
        "suspended-calls-per-principal",
    ),
    ("limits", "kept-events", "replay-buffer"),
    ("limits", "kept-events-for", "replay-ttl"),
    ("limits", "kept-for", "result-ttl"),
    ("limits", "kept-results", "result-store"),
    ("limits", "own-connections", "dedicated-connections"),
    ("limits", "questions", "pending-server-requests"),
    ("limits", "rounds", "max-rounds"),
    ("limits", "unheard", "orphaned-requests"),
    ("servers", "hung", "hang-timeout"),
    ("servers", "mirror", "forward-extensions"),
    ("servers", "own-connections", "dedicated-connections"),
    ("servers", "patience", "ready-timeout"),
    ("servers", "repeat", "retry"),
    ("servers", "unused", "idle-timeout"),
];

/// The new key of the setting that was called `key`, if the table at `path` has it among its `known` keys.
pub(super) fn new_key(path: &str, key: &str, known: &[&str]) -> Option<&'static str> {
    let table = path.split('.').next().unwrap_or_default();
    let mut rows = RENAMED_SETTINGS.iter();
    let row = rows.find(|(at, old, new)| *at == table && *old == key && known.contains(new));
    row.map(|(_, _, new)| *new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

    const CONTRIBUTING: &str = include_str!("../../../CONTRIBUTING.md");

    #[test]
    fn a_file_with_an_old_key_gets_an_error_that_names_the_new_one() {
        for (table, old, new) in RENAMED_SETTINGS {
            let (path, text) = match *table {
                "servers" => (
                    "servers.a",
                    format!("servers:\n  a: {{command: x, {old}: 1}}\n"),
                ),
                _ => (
                    "limits",
                    format!("servers: {{a: {{command: x}}}}\nlimits: {{{old}: 1}}\n"),
                ),
            };
            let error = Source::new("vary.yaml", &text).read(&|_| None).unwrap_err();
            let expected = format!("`{path}.{old}` is called `{path}.{new}` now");
            assert!(error.to_string().contains(&expected), "{error}");
        }
    }

    #[test]
    fn the_guide_lists_every_renamed_setting() {
        let (_, section) = CONTRIBUTING
            .split_once("## Settings that were renamed")
            .unwrap();
        for (table, old, new) in RENAMED_SETTINGS {
            let path = match *table {
                "servers" => "servers.NAME",
                table => table,
            };
            let row = format!("| `{path}.{old}` | `{path}.{new}` |");
            assert!(section.contains(&row), "{row}");
        }
    }
}
