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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_of_a_file_do_not_count_as_its_lines() {
        let text = format!(
            "{}#[cfg(test)]\nmod tests {{\n{}}}\n",
            "\n".repeat(499),
            "\n".repeat(400)
        );
        assert_eq!(long_file("crates/a/src/b.rs", &text), None);
        let text = format!("\n{text}");
        assert_eq!(
            long_file("crates/a/src/b.rs", &text).as_deref(),
            Some("crates/a/src/b.rs: has 501 lines; at most 500: give a topic of it a file")
        );
    }

    #[test]
    fn files_of_tests_may_be_longer() {
        let text = "\n".repeat(800);
        for file in [
            "crates/a/tests/b.rs",
            "crates/a/src/b/tests.rs",
            "crates/a/src/b/tests/c.rs",
            "crates/mcp-vary-testkit/src/a.rs",
        ] {
            assert_eq!(long_file(file, &text), None, "{file}");
            assert!(long_file(file, &format!("{text}\n")).is_some(), "{file}");
        }
        for file in [
            "crates/a/src/b.rs",
            "tests/faults/src/b.rs",
            "examples/a/src/main.rs",
        ] {
            assert!(long_file(file, &text).is_some(), "{file}");
        }
    }
}
