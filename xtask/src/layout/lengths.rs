//! The lengths of files. Clippy's `too_many_lines` limits those of functions.

use crate::outcome::no_findings;
use crate::workspace::Workspace;

/// The most lines of a file without its tests.
const PRODUCTION: usize = 500;

/// The most lines of a file of tests.
const TESTS: usize = 800;

/// No file is longer than its topic needs.
pub(super) fn lengths(workspace: &Workspace) -> Result<(), String> {
    let sources = workspace.rust_sources()?;
    let findings = sources
        .iter()
        .filter_map(|(file, text)| long_file(file, text));
    no_findings(&findings.collect::<Vec<String>>())
}

fn long_file(file: &str, text: &str) -> Option<String> {
    let count = || text.lines().count();
    let (lines, most) = if is_test_file(file) {
        (count(), TESTS)
    } else {
        let tests = text.lines().position(|line| line.ends_with("mod tests {"));
        (tests.unwrap_or_else(count), PRODUCTION)
    };
    (lines > most)
        .then(|| format!("{file}: has {lines} lines; at most {most}: give a topic of it a file"))
}

/// Whether only tests use the file: it is in a folder `tests` of a package, has the tests of the module beside it, or
/// belongs to the testkit.
fn is_test_file(file: &str) -> bool {
    let in_package = file.split_once("/src/").map_or(file, |(_, inside)| inside);
    let is_below_tests = in_package.split('/').any(|folder| folder == "tests");
    is_below_tests || file.ends_with("/tests.rs") || file.starts_with("crates/mcp-vary-testkit/")
}
