//! The page that lists each example of the source documents with the test that holds it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::outcome::no_findings;
use crate::page::links;
use crate::workspace::Workspace;

pub(crate) const PAGE: &str = "docs/internals/examples.md";

/// The documents, and how many examples each of their sections has.
static DOCUMENTS: LazyLock<BTreeMap<String, BTreeMap<String, usize>>> = LazyLock::new(|| {
    serde_saphyr::from_str(include_str!("document_examples.yaml")).expect("the file has counts")
});

/// Checks that the page has as many rows for each section as the section has examples.
pub(crate) fn sections(workspace: &Workspace) -> Result<(), String> {
    no_findings(&findings(&workspace.read(PAGE)?))
}

/// Checks that the words in code of each example are in the file of a test that its row names, or in the vectors that
/// this test runs: so a test of something else is found.
pub(crate) fn mentions(workspace: &Workspace) -> Result<(), String> {
    let page = workspace.read(PAGE)?;
    no_findings(&absent_words(&page, &|file| workspace.read(file))?)
}

fn absent_words(
    page: &str,
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Vec<String>, String> {
    let mut absent = Vec::new();
    for row in page.lines().filter_map(|line| line.strip_prefix("| ")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [section, example, tests] = cells.as_slice() else {
            continue;
        };
        let mut texts = Vec::new();
        for (test, file) in links(tests) {
            let vectors = file.ends_with("tests/vectors.rs");
            let vectors = vectors.then(|| read(&format!("spec/vectors/{test}.json")));
            // A test of vectors may read a file of another name.
            texts.extend(vectors.and_then(Result::ok));
            texts.push(read(file)?);
        }
        let terms = example.split('`').skip(1).step_by(2);
        let terms = terms.map(|word| word.trim_end_matches('*'));
        let missing = terms.filter(|word| !texts.iter().any(|text| text.contains(word)));
        let missing = missing.filter(|_| !texts.is_empty());
        absent.extend(missing.map(|word| {
            format!("{PAGE}: {section}: no test that the row names has `{word}` in its file")
        }));
    }
    Ok(absent)
}

fn findings(page: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for (document, sections) in &*DOCUMENTS {
        let mut rows = rows(page, document);
        for (section, expected) in sections {
            let found = rows.remove(section.as_str()).unwrap_or_default();
            if found != *expected {
                findings.push(format!(
                    "{PAGE}: {document}, {section}: {found} rows for {expected} examples"
                ));
            }
        }
        for section in rows.keys() {
            findings.push(format!("{PAGE}: {document} has no section `{section}`"));
        }
    }
    findings
}

/// The number of rows of each section in the table of `document`.
fn rows<'a>(page: &'a str, document: &str) -> BTreeMap<&'a str, usize> {
    let heading = format!("\n## {document}\n");
    let table = page.split_once(&heading).map_or("", |(_, after)| after);
    let table = table.split("\n## ").next().unwrap_or_default();
    let mut rows = BTreeMap::new();
    let cells = table.lines().filter_map(|line| line.strip_prefix("| "));
    for row in cells.filter(|row| !row.starts_with("section |")) {
        let section = row.split(" | ").next().unwrap_or_default();
        *rows.entry(section).or_default() += 1;
    }
    rows
}
