//! The guide: its examples are part of compiled code, the tests that it names exist, and each library has a README.

use crate::document_examples;
use crate::outcome::{Outcome, no_findings};
use crate::page::links;
use crate::requirements::has_test;
use crate::workspace::Workspace;

/// The page about the library. A link to its file follows each example.
const LIBRARY: &str = "docs/how-to/library.md";

/// The pages whose examples are followed by links to their files.
const LINKED: &[&str] = &[LIBRARY, "docs/how-to/embed.md"];

/// The page whose examples the phase `library` compiles.
const TUTORIAL: &str = "docs/tutorial/library.md";

/// The crate that is for the tests of this workspace only.
const FOR_TESTS: &str = "crates/mcp-vary-testkit/";

/// The behaviour that the reference implementations test, and our tests of it.
const REFERENCES: &str = "docs/internals/references.md";

/// What the SDK does not allow, and the tests of it.
const RMCP: &str = "docs/internals/rmcp.md";

/// The guarantees, and their tests.
const THREATS: &str = "docs/internals/threats.md";

/// How many tests the Go reference has.
const REFERENCE_TESTS: usize = 26;

/// Checks the pages of the guide.
pub(crate) fn phase(workspace: &Workspace) -> Outcome {
    Outcome::of_all(&[
        ("examples", examples(workspace)),
        ("named tests", named_tests(workspace)),
        ("rows", rows(workspace)),
        (
            "examples of the documents",
            document_examples::sections(workspace),
        ),
        (
            "words of these examples",
            document_examples::mentions(workspace),
        ),
        ("READMEs of crates", readmes(workspace)),
    ])
}

/// Checks that each example in Rust is part of compiled code.
fn examples(workspace: &Workspace) -> Result<(), String> {
    let mut broken = Vec::new();
    let pages = workspace.files("docs")?;
    for page in pages.iter().filter(|page| page.ends_with(".md")) {
        let text = workspace.read(page)?;
        let blocks = blocks(&text);
        if LINKED.contains(&page.as_str()) {
            for (example, place) in blocks {
                let wrong = without_code(workspace, example, place)?;
                broken.extend(wrong.map(|wrong| format!("{page}: {wrong}")));
            }
        } else if !blocks.is_empty() && page != TUTORIAL {
            broken.push(format!(
                "{page}: nothing compiles its examples in Rust; add it to the pages of this check"
            ));
        }
    }
    no_findings(&broken)
}

/// Why `example` is not compiled: `place`, the line below it, has to link to a file of which it is a documented example,
/// or the whole.
fn without_code(
    workspace: &Workspace,
    example: &str,
    place: &str,
) -> Result<Option<String>, String> {
    let first = example.lines().next().unwrap_or_default();
    let file = links(place).into_iter().next().map(|(_, file)| file);
    let Some(file) = file.filter(|file| file.ends_with(".rs")) else {
        return Ok(Some(format!(
            "`{first}`: no link to its file stands below it"
        )));
    };
    let text = workspace.read(file)?;
    let is_part = documented(&text).contains(&format!("\n{example}\n"));
    let wrong = format!("`{first}`: not so in {file}, nor in its documentation");
    Ok((!is_part && text.trim_end() != example).then_some(wrong))
}

/// Checks that each crate that others can use has a README, and names it for crates.io.
fn readmes(workspace: &Workspace) -> Result<(), String> {
    let mut broken = Vec::new();
    let files = workspace.files("crates")?;
    let manifests = files
        .iter()
        .filter_map(|file| file.strip_suffix("Cargo.toml"));
    for folder in manifests.filter(|folder| *folder != FOR_TESTS) {
        let name = folder
            .trim_end_matches('/')
            .rsplit('/')
            .next()
            .unwrap_or_default();
        let manifest = workspace.read(&format!("{folder}Cargo.toml"))?;
        if !manifest.contains("\nreadme = \"README.md\"\n") {
            broken.push(format!("{folder}Cargo.toml: no `readme = \"README.md\"`"));
        }
        let readme = workspace.read(&format!("{folder}README.md"));
        if !readme.is_ok_and(|readme| readme.starts_with(&format!("# {name}\n\n"))) {
            broken.push(format!("{folder}README.md: does not begin with `# {name}`"));
        }
    }
    no_findings(&broken)
}

/// The examples in Rust of a page, and the line that follows each.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let starts = page.split("```rust\n").skip(1);
    let parts = starts.filter_map(|start| start.split_once("\n```\n"));
    parts
        .map(|(block, after)| (block, after.trim_start().lines().next().unwrap_or_default()))
        .collect()
}

/// The doc comments of a file as a reader sees them: without the lines that rustdoc hides.
fn documented(text: &str) -> String {
    let mut shown = String::from("\n");
    for line in text.lines().map(str::trim_start) {
        let comment = line
            .strip_prefix("//!")
            .or_else(|| line.strip_prefix("///"));
        let Some(shown_line) = comment else { continue };
        let shown_line = shown_line.strip_prefix(' ').unwrap_or(shown_line);
        if shown_line != "#" && !shown_line.starts_with("# ") {
            shown.push_str(shown_line);
            shown.push('\n');
        }
    }
    shown
}

/// Each test that a page links to is in that file.
fn named_tests(workspace: &Workspace) -> Result<(), String> {
    let mut broken = Vec::new();
    for page in [LIBRARY, RMCP, REFERENCES, THREATS, document_examples::PAGE] {
        let text = workspace.read(page)?;
        for (name, file) in links(&text) {
            // The pages about the library also lead to sources; the others name tests only.
            let has_sources = [LIBRARY, RMCP].contains(&page);
            let is_test = file.ends_with(".rs") && (!has_sources || file.contains("/tests/"));
            if is_test && !has_test(&workspace.read(file)?, name) {
                broken.push(format!("{page}: {file}::{name}: no such test"));
            }
        }
    }
    no_findings(&broken)
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
