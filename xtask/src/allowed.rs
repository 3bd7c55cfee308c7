//! Lists of today's violations of a new rule. A list can only become shorter.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::workspace::Workspace;

/// One violation: its place (a path or crate) and its name, as a line `place name`.
pub(crate) type Line = (String, String);

/// A violation that was found, with the sentence to report.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Finding {
    pub(crate) line: Line,
    pub(crate) report: String,
}

/// The lines of the list `file`; lines that start with `#` are comments.
pub(crate) fn read(workspace: &Workspace, file: &str) -> Result<BTreeSet<Line>, String> {
    Ok(parse(&workspace.read(file)?))
}

fn parse(text: &str) -> BTreeSet<Line> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(' '))
        .map(|(place, name)| (place.to_owned(), name.to_owned()))
        .collect()
}

/// Reports every finding that is not in the list, and every line of the list without a finding.
pub(crate) fn compare(file: &str, allowed: &BTreeSet<Line>, findings: &[Finding]) -> Vec<String> {
    let found: BTreeSet<&Line> = findings.iter().map(|finding| &finding.line).collect();
    let new = findings
        .iter()
        .filter(|finding| !allowed.contains(&finding.line))
        .map(|finding| finding.report.clone());
    let stale = allowed
        .iter()
        .filter(|line| !found.contains(line))
        .map(|(place, name)| {
            format!(
                "{file}: `{place} {name}` no longer exists; delete this line, or run `cargo xtask prune`"
            )
        });
    new.chain(stale).collect()
}

/// Deletes the lines of the list `file` that have no finding, and follows names to the places they moved to.
///
/// # Errors
///
/// When the list cannot be read or written.
pub(crate) fn prune(
    workspace: &Workspace,
    file: &str,
    findings: &[Finding],
) -> Result<String, String> {
    let text = workspace.read(file)?;
    let allowed = parse(&text);
    let pruned = pruned(&allowed, findings);
    let comments = text.lines().filter(|line| line.starts_with('#'));
    let lines = pruned.iter().map(|(place, name)| format!("{place} {name}"));
    let mut new: String = comments
        .map(str::to_owned)
        .chain(lines)
        .collect::<Vec<_>>()
        .join("\n");
    new.push('\n');
    fs::write(workspace.path(file), new)
        .map_err(|error| format!("cannot write {file}: {error}"))?;
    Ok(format!(
        "{file}: {} lines, {} before",
        pruned.len(),
        allowed.len()
    ))
}

/// The lines of `allowed` that are still found. A line whose place is gone stands for as many new places of its name.
fn pruned(allowed: &BTreeSet<Line>, findings: &[Finding]) -> BTreeSet<Line> {
    let found: BTreeSet<&Line> = findings.iter().map(|finding| &finding.line).collect();
    let mut moved: BTreeMap<&str, usize> = BTreeMap::new();
    for line in allowed.iter().filter(|line| !found.contains(line)) {
        *moved.entry(&line.1).or_default() += 1;
    }
    let mut pruned = BTreeSet::new();
    for line in found {
        let left = moved.get_mut(&*line.1).filter(|left| **left > 0);
        if allowed.contains(line) {
            pruned.insert(line.clone());
        } else if let Some(left) = left {
            *left -= 1;
            pruned.insert(line.clone());
        }
    }
    pruned
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(place: &str, name: &str) -> Finding {
        Finding {
            line: (place.to_owned(), name.to_owned()),
            report: format!("{place}: {name}"),
        }
    }

    #[test]
    fn new_findings_and_stale_lines_are_reported() {
        let allowed = parse("# comment\na.rs told\nb.rs heard\n");
        let findings = [finding("a.rs", "told"), finding("c.rs", "ear")];
        assert_eq!(
            compare("list.txt", &allowed, &findings),
            [
                "c.rs: ear",
                "list.txt: `b.rs heard` no longer exists; delete this line, or run `cargo xtask prune`",
            ]
        );
    }

    #[test]
    fn a_list_follows_moved_names_and_never_gets_longer() {
        let allowed = parse("a.rs told\nb.rs heard\n");
        let findings = [
            finding("moved.rs", "told"),
            finding("new.rs", "told"),
            finding("new.rs", "ear"),
        ];
        let pruned = pruned(&allowed, &findings);
        assert_eq!(pruned, parse("moved.rs told\n"));
    }
}
