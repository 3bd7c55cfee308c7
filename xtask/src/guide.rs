//! The guide: its examples are part of compiled code, and the tests that it names exist.

use crate::outcome::{Outcome, no_findings};
use crate::requirements::has_test;
use crate::workspace::Workspace;

/// The page about the library. A link to its file follows each example.
const LIBRARY: &str = "docs/how-to/library.md";

/// The behaviour that the reference implementations test, and our tests of it.
const REFERENCES: &str = "docs/internals/references.md";

/// The guarantees, and their tests.
const THREATS: &str = "docs/explanation/threat-model.md";

/// How many tests the Go reference has.
const REFERENCE_TESTS: usize = 26;

/// Checks the pages of the guide.
pub(crate) fn phase(workspace: &Workspace) -> Outcome {
    Outcome::of_all(&[
        ("examples", examples(workspace)),
        ("named tests", named_tests(workspace)),
        ("rows", rows(workspace)),
    ])
}

/// Checks that each example is part of one that the tests compile.
fn examples(workspace: &Workspace) -> Result<(), String> {
    let page = workspace.read(LIBRARY)?;
    let blocks = blocks(&page);
    if blocks.is_empty() {
        return Err("no example in Rust".to_owned());
    }
    let mut broken = Vec::new();
    for (example, place) in blocks {
        let first = example.lines().next().unwrap_or_default();
        let place = links(place).into_iter().next().map(|(_, file)| file);
        let Some(file) = place.filter(|file| file.ends_with(".rs")) else {
            broken.push(format!("`{first}`: no link to its file stands below it"));
            continue;
        };
        if !documented(&workspace.read(file)?).contains(&format!("\n{example}\n")) {
            broken.push(format!("`{first}`: not so in the documentation of {file}"));
        }
    }
    no_findings(&broken)
}

/// The examples in Rust of a page, and the line that follows each.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let starts = page.split("```rust\n").skip(1);
    let parts = starts.filter_map(|start| start.split_once("\n```\n"));
    parts
        .map(|(block, rest)| (block, rest.trim_start().lines().next().unwrap_or_default()))
        .collect()
}

/// The doc comments of a file as a reader sees them: without the lines that rustdoc hides.
fn documented(text: &str) -> String {
    let mut shown = String::from("\n");
    for line in text.lines().map(str::trim_start) {
        let comment = line
            .strip_prefix("//!")
            .or_else(|| line.strip_prefix("///"));
        let Some(said) = comment else { continue };
        let said = said.strip_prefix(' ').unwrap_or(said);
        if said != "#" && !said.starts_with("# ") {
            shown.push_str(said);
            shown.push('\n');
        }
    }
    shown
}

/// Each test that a page links to is in that file.
fn named_tests(workspace: &Workspace) -> Result<(), String> {
    let mut broken = Vec::new();
    for page in [LIBRARY, REFERENCES, THREATS] {
        let text = workspace.read(page)?;
        for (name, file) in links(&text) {
            // The page about the library also leads to sources; the others name tests only.
            let is_test = file.ends_with(".rs") && (page != LIBRARY || file.contains("/tests/"));
            if is_test && !has_test(&workspace.read(file)?, name) {
                broken.push(format!("{page}: {file}::{name}: no such test"));
            }
        }
    }
    no_findings(&broken)
}

/// The words in code and the files of the links to the workspace's own files.
fn links(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("`](../../") {
        let name = before.rsplit("[`").next().unwrap_or_default();
        let end = after.find(')').unwrap_or(after.len());
        found.push((name, &after[..end]));
        rest = &after[end..];
    }
    found
}

/// Each row names a test or a reason, and no test of the reference is missing.
fn rows(workspace: &Workspace) -> Result<(), String> {
    let page = workspace.read(REFERENCES)?;
    let mut broken = Vec::new();
    let mut numbers = Vec::new();
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        numbers.extend(cells[0].parse::<usize>().ok());
        if cells.iter().any(|cell| cell.is_empty()) {
            broken.push(format!("`{}`: an empty cell", cells[0]));
        }
    }
    if !numbers.iter().copied().eq(1..=REFERENCE_TESTS) {
        broken.push(format!("not the tests 1 to {REFERENCE_TESTS}: {numbers:?}"));
    }
    no_findings(&broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_says_what_is_true() {
        let outcome = phase(&Workspace::here());
        assert_eq!(outcome.failed, 0, "{}", outcome.report);
    }

    #[test]
    fn an_example_is_followed_by_its_place() {
        let page =
            "a\n```rust\nlet a = 1;\n\nf(a);\n```\n\n[`b.rs`](../../src/b.rs)\n\n```toml\nc\n```\n";
        let found = blocks(page);
        assert_eq!(found, [("let a = 1;\n\nf(a);", "[`b.rs`](../../src/b.rs)")]);
        assert_eq!(links(found[0].1), [("b.rs", "src/b.rs")]);
        assert!(links("[a](../../a.rs) [`c`](../c.md) [`b`](https://b)").is_empty());
    }

    #[test]
    fn what_rustdoc_hides_is_not_shown() {
        let text = "//! one\n    /// # two\n    ///\n    /// #\n    /// #[three]\nfn four() {}\n";
        assert_eq!(documented(text), "\none\n\n#[three]\n");
    }
}
