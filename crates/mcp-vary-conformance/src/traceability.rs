//! Which sentences of the documents are checked, and why the others are not.
//!
//! The files have the form that SEP-2484 requires: YAML with `sep`, `spec_url` and `requirements`, each with `check` and
//! `text`, or with `text` and `excluded`, the reason why nothing checks it.

use std::fmt::Write as _;

use crate::check::Level;
use crate::registry;

/// The files in `spec/traceability`, each with the beginning of the sources of its checks.
pub const FILES: [(&str, &str); 4] = [
    ("sep-2053.yaml", "SEP-2053,"),
    ("sep-2133.yaml", "SEP-2133,"),
    ("content-negotiation.yaml", "Content Negotiation SEP,"),
    ("tool-result-visibility.yaml", "Tool Result Visibility SEP,"),
];

/// `yaml` with the checks whose source begins with `source` in place of those that it has. Its head and the sentences
/// that no check has are written by hand, and stay. `None` if it has no `requirements`.
///
/// Decisions (`MUST*`) are not sentences of a document, and are left out.
pub fn updated(yaml: &str, source: &str) -> Option<String> {
    let (head, rows) = yaml.split_once("\nrequirements:\n")?;
    let excluded = rows.find("  - text: ").map_or("", |start| &rows[start..]);
    let mut updated = format!("{head}\nrequirements:\n");
    let all = registry::checks().chain(registry::client_checks());
    let checks = all.filter(|check| check.source.starts_with(source));
    for check in checks.filter(|check| check.level != Level::Decision) {
        _ = writeln!(updated, "  - check: {}", check.id);
        let sentence = check.sentence.replace('\'', "''");
        _ = writeln!(updated, "    text: '{sentence}'");
    }
    Some(updated + excluded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sentence_of_these_documents_is_in_one_file() {
        let checks = registry::checks().chain(registry::client_checks());
        for check in checks.filter(|check| check.level != Level::Decision) {
            let files = FILES
                .iter()
                .filter(|(_, source)| check.source.starts_with(source));
            // The core specification is another document.
            let expected = usize::from(!check.source.starts_with("MCP "));
            assert_eq!(files.count(), expected, "{}", check.id);
        }
    }

    #[test]
    fn only_the_checks_are_replaced() {
        let head = "sep: visibility\nrequirements:\n";
        let excluded = "  - text: 'A client''s: choice'\n    excluded: 'Not on the wire'\n";
        let old = format!("{head}  - check: TR-0/old\n    text: 'Old.'\n{excluded}");
        let updated = updated(&old, "Tool Result Visibility SEP,").unwrap();
        let added = "  - check: TR-3/structure-comes-with-content\n    text: 'For backwards";
        assert!(updated.starts_with(&format!("{head}{added}")), "{updated}");
        assert!(updated.ends_with(excluded), "{updated}");
        assert!(!updated.contains("TR-0"), "{updated}");
        // A sentence with an apostrophe is a scalar in single quotes, too.
        let tags = self::updated(head, "Content Negotiation SEP,").unwrap();
        assert!(tags.contains("text: 'MCP''s capability system"), "{tags}");
        assert_eq!(self::updated("sep: none\n", "SEP-2053,"), None);
    }
}
