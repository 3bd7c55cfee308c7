//! `spec/requirements.yaml`: every requirement with its tests, or with the reason why it has none yet.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::outcome::{Outcome, no_findings};
use crate::workspace::Workspace;

const FILE: &str = "spec/requirements.yaml";
const VECTORS: &str = "spec/vectors";

/// The families of requirements, and the number of requirements in each. Add new requirements here first.
const FAMILIES: &[(&str, usize)] = &[
    ("EXT", 10),
    ("CN", 22),
    ("SV", 28),
    ("TR", 5),
    ("OP", 9),
    ("LI", 9),
];

/// The levels of requirements. `MUST*` deliberately differs from its source; `D` is the project's own.
const LEVELS: &[&str] = &["MUST", "MUST*", "SHOULD", "MAY", "D"];

/// One requirement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Requirement {
    id: String,
    level: String,
    /// The requirement in one line.
    #[serde(rename = "says")]
    summary: String,
    /// Its tests: `file.rs::function` or a file of vectors.
    #[serde(default)]
    tests: Vec<String>,
    /// The reason why there is no test.
    none: Option<String>,
    /// The part that is not tested yet, if any.
    later: Option<String>,
}

/// A file of language-neutral cases.
#[derive(Debug, Deserialize)]
struct Cases {
    cases: Vec<Vector>,
}

/// One case; only its runner reads the other members.
#[derive(Debug, Deserialize)]
struct Vector {
    requirement: String,
}

/// The requirements of each file of vectors.
type Vectors = BTreeMap<String, BTreeSet<String>>;

/// Checks the file.
pub(crate) fn phase(workspace: &Workspace) -> Outcome {
    let result = read(workspace).and_then(|(requirements, vectors)| {
        let mut broken = incomplete(&requirements);
        for requirement in &requirements {
            broken.extend(malformed(requirement));
            broken.extend(broken_references(workspace, requirement, &vectors));
        }
        broken.extend(unknown(&requirements, &vectors));
        no_findings(&broken)
    });
    Outcome::of_all(&[(FILE, result)])
}

fn read(workspace: &Workspace) -> Result<(Vec<Requirement>, Vectors), String> {
    let text = workspace.read(FILE)?;
    let requirements =
        serde_saphyr::from_str(&text).map_err(|error| format!("cannot be read: {error}"))?;
    let mut vectors = Vectors::new();
    for file in workspace.files(VECTORS)? {
        if !file.ends_with(".json") {
            continue;
        }
        let content: Cases = serde_json::from_str(&workspace.read(&file)?)
            .map_err(|error| format!("{file}: {error}"))?;
        let ids = content
            .cases
            .into_iter()
            .map(|case| case.requirement)
            .collect();
        vectors.insert(file, ids);
    }
    Ok((requirements, vectors))
}

/// Identifiers that are missing, unknown or there twice.
fn incomplete(requirements: &[Requirement]) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = FAMILIES
        .iter()
        .flat_map(|(family, last)| (1..=*last).map(move |number| format!("{family}-{number}")))
        .map(|id| (id, 0))
        .collect();
    let mut broken = Vec::new();
    for requirement in requirements {
        match counts.get_mut(&requirement.id) {
            Some(count) => *count += 1,
            None => broken.push(format!("{}: no such requirement", requirement.id)),
        }
    }
    let wrong = counts.into_iter().filter(|(_, count)| *count != 1);
    broken.extend(wrong.map(|(id, count)| format!("{id}: there {count} times")));
    broken
}

/// The missing and superfluous members of an entry.
fn malformed(requirement: &Requirement) -> Vec<String> {
    let Requirement {
        id,
        level,
        summary,
        tests,
        none,
        later,
    } = requirement;
    let blank = |text: &Option<String>| text.as_ref().is_some_and(|text| text.trim().is_empty());
    let rules = [
        (LEVELS.contains(&level.as_str()), "has an unknown level"),
        (!summary.trim().is_empty(), "says nothing"),
        (
            tests.is_empty() == none.is_some(),
            "needs either `tests` or `none` with a reason",
        ),
        (!blank(none) && !blank(later), "gives a blank reason"),
        (
            later.is_none() || none.is_none(),
            "says all of `later` in `none`",
        ),
    ];
    rules
        .iter()
        .filter(|(holds, _)| !holds)
        .map(|(_, complaint)| format!("{id}: {complaint}"))
        .collect()
}

/// The tests of an entry that do not exist.
fn broken_references(
    workspace: &Workspace,
    requirement: &Requirement,
    vectors: &Vectors,
) -> Vec<String> {
    let id = &requirement.id;
    requirement
        .tests
        .iter()
        .filter_map(|test| {
            missing(workspace, id, test, vectors).map(|why| format!("{id}: {test}: {why}"))
        })
        .collect()
}

/// The reason why `test` is not a test of the requirement `id`; `None` if it is one.
fn missing(workspace: &Workspace, id: &str, test: &str, vectors: &Vectors) -> Option<String> {
    let Some((file, function)) = test.split_once("::") else {
        return match vectors.get(test) {
            None => Some(format!("no such file of vectors in {VECTORS}")),
            Some(ids) if !ids.contains(id) => Some("holds no vector of it".to_owned()),
            Some(_) => None,
        };
    };
    match workspace.read(file) {
        Err(error) => Some(error),
        Ok(text) if !has_test(&text, function) => Some("no such test".to_owned()),
        Ok(_) => None,
    }
}

/// Whether `text` has a function of this name with a `test` attribute above it.
pub(crate) fn has_test(text: &str, function: &str) -> bool {
    let Some(at) = text.find(&format!("fn {function}(")) else {
        return false;
    };
    // Skips the line of the function itself, such as `pub` or `async` in front of `fn`.
    text[..at]
        .lines()
        .rev()
        .skip(usize::from(!text[..at].ends_with('\n')))
        .map(str::trim_start)
        .take_while(|line| line.starts_with("#[") || line.starts_with("//"))
        .any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
}

/// Vectors of requirements that do not exist, or whose entry does not name them.
fn unknown(requirements: &[Requirement], vectors: &Vectors) -> Vec<String> {
    let mut broken = Vec::new();
    for (file, ids) in vectors {
        for id in ids {
            let entry = requirements.iter().find(|entry| entry.id == *id);
            let complaint = match entry {
                None => "no such requirement",
                Some(entry) if !entry.tests.contains(file) => "its entry does not name this file",
                Some(_) => continue,
            };
            broken.push(format!("{file}: {id}: {complaint}"));
        }
    }
    broken
}
