//! Refuses names that are not standard terms.

mod definitions;

use std::collections::{BTreeMap, BTreeSet};

use crate::layout::packages;
use crate::modules::{Modules, Sources};
use crate::outcome::{Outcome, no_findings};
use crate::workspace::Workspace;

use definitions::{Definition, definitions};

/// The page with the table of refused names.
const PAGE: &str = "CONTRIBUTING.md";
const HEADING: &str = "## Names that changed";

/// Words that no name may contain as a part. Names are split at `_`, `-` and capitals.
const REFUSED_PARTS: &[&str] = &[
    "told", "hears", "heard", "ear", "hearsay", "whose", "whoever", "slip", "slips", "manner",
    "manners", "lasting", "aside", "road", "door",
];

/// A name that changed.
#[derive(Debug, Eq, PartialEq)]
struct Renamed {
    new: String,
    /// Beginnings of the paths in which the old name is refused; everywhere if there are none.
    places: Vec<String>,
}

/// The old names of the table, each with its new names: one for each place where it had a different meaning.
type Table = BTreeMap<String, Vec<Renamed>>;

/// Checks that no name outside tests is or contains a refused word.
pub(crate) fn phase(workspace: &Workspace) -> Outcome {
    Outcome::of(check(workspace))
}

fn check(workspace: &Workspace) -> Result<(), String> {
    no_findings(&all(workspace)?)
}

fn all(workspace: &Workspace) -> Result<Vec<String>, String> {
    let table = table(&workspace.read(PAGE)?)?;
    let sources = workspace.rust_sources()?;
    let packages = packages::read(workspace)?;
    let roots = packages.iter().flat_map(packages::Package::roots);
    let roots: Vec<String> = roots.filter(|root| !root.starts_with("tests/")).collect();
    Ok(findings(&sources, &roots, &table))
}

/// The refused names in the targets whose crate roots are `roots`.
fn findings(sources: &Sources, roots: &[String], table: &Table) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut findings = Vec::new();
    for root in roots {
        for file in Modules::read(sources, root).files {
            if !seen.insert(file.path.clone()) {
                continue;
            }
            for definition in definitions(&file.tokens) {
                if let Some(reason) = refusal(&definition, &file.path, table) {
                    let Definition { name, kind, line } = definition;
                    findings.push(format!("{}:{line}: {kind} `{name}`: {reason}", file.path));
                }
            }
        }
    }
    findings
}

/// Why a definition in the file `path` is refused, if it is.
fn refusal(definition: &Definition<'_>, path: &str, table: &Table) -> Option<String> {
    let name = definition.name;
    if let Some(part) = parts(name)
        .into_iter()
        .find(|part| REFUSED_PARTS.contains(&&**part))
    {
        return Some(format!("`{part}` is not a standard term; see {PAGE}"));
    }
    let renamed = table
        .get(name)?
        .iter()
        .find(|renamed| renamed.is_in(path))?;
    Some(format!("the name changed: {}; see {PAGE}", renamed.new))
}

/// The parts of a name, in lower case.
fn parts(name: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let letters: Vec<char> = name.chars().collect();
    let mut part = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let after = letters.get(at + 1);
        let is_new_word = letter.is_uppercase()
            && (before.is_some_and(|before| !before.is_uppercase())
                || after.is_some_and(|after| after.is_lowercase()));
        if is_new_word || matches!(letter, '_' | '-') {
            parts.push(std::mem::take(&mut part));
        }
        if !matches!(letter, '_' | '-') {
            part.extend(letter.to_lowercase());
        }
    }
    parts.push(part);
    parts
}

impl Renamed {
    fn is_in(&self, path: &str) -> bool {
        self.places.is_empty() || self.places.iter().any(|place| path.starts_with(place))
    }
}

/// Reads the table below its heading: rows `| old names | new names | places |`, names and places in backquotes.
fn table(page: &str) -> Result<Table, String> {
    let (_, section) = page
        .split_once(&format!("\n{HEADING}\n"))
        .ok_or_else(|| format!("{PAGE} has no section `{HEADING}`"))?;
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut table = Table::new();
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [old, new, places] = cells[..] else {
            return Err(format!("{PAGE}: `{row}` does not have three cells"));
        };
        for name in quoted(old) {
            table.entry(name).or_default().push(Renamed {
                new: new.to_owned(),
                places: quoted(places),
            });
        }
    }
    if table.is_empty() {
        return Err(format!("{PAGE}: no table below `{HEADING}`"));
    }
    Ok(table)
}

/// The texts in backquotes.
fn quoted(cell: &str) -> Vec<String> {
    let quoted = cell.split('`').skip(1).step_by(2);
    quoted.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\n## Names that changed\n\ntext\n\n| old | new | only in |\n|---|---|---|\n\
        | `Keeper`, `keep` | `Supervisor` | |\n| `Held` | `DedicatedLease` | `x/src/own` |\n\n## Next\n\n| `a` | `b` | |\n";

    #[track_caller]
    fn refuses(text: &str, expected: &[&str]) {
        let sources: Sources = [("x/src/lib.rs".to_owned(), text.to_owned())].into();
        let table = table(TABLE).unwrap();
        let found = findings(&sources, &["x/src/lib.rs".to_owned()], &table);
        // A report has the name in its first backquotes.
        let name = |report| str::split(report, '`').nth(1).unwrap();
        let names: Vec<&str> = found.iter().map(|report| name(report)).collect();
        assert_eq!(names, expected, "{text}");
    }

    #[test]
    fn refused_words_are_refused_as_parts() {
        refuses(
            "struct AsTold; fn who_heard() {} const DOOR_SIZE: u8 = 1; enum E { IsSlip } struct S { ear_of: u8 }",
            &["AsTold", "who_heard", "DOOR_SIZE", "IsSlip", "ear_of"],
        );
        refuses(
            "fn f() { debug!(told = 1); K { key: \"told-at\" } }",
            &["told", "told-at"],
        );
    }

    #[test]
    fn longer_words_are_not_parts() {
        refuses(
            "fn search() {} fn year() {} mod doorway {} fn broadcast() {} struct Ears;",
            &[],
        );
    }

    #[test]
    fn changed_names_are_refused_as_a_whole() {
        refuses(
            "struct Keeper; struct KeeperOf; fn keep() {} fn keeps() {}",
            &["Keeper", "keep"],
        );
    }

    #[test]
    fn a_name_can_be_refused_in_one_place_only() {
        refuses("struct Held;", &[]);
        let table = table(TABLE).unwrap();
        assert!(table["Held"][0].is_in("x/src/own/lines.rs"));
        assert!(!table.contains_key("a"));
    }

    #[test]
    fn parts_are_split_at_underscores_and_capitals() {
        assert_eq!(
            parts("HTTPServer_ofX9Y-z"),
            ["http", "server", "of", "x9", "y", "z"]
        );
    }

    #[test]
    fn the_names_of_this_workspace_are_standard_terms() {
        assert_eq!(check(&Workspace::here()), Ok(()));
    }
}
