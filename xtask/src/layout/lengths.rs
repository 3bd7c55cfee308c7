//! The lengths of functions and files.

use crate::outcome::no_findings;
use crate::rust::{Token, after_brackets, text_at, tokens};
use crate::workspace::Workspace;

/// The most lines of a function, from the line with `fn` to the line with the last brace. Many cases of a test are a
/// constant.
const FUNCTION: usize = 60;

/// The most lines of a file without its tests.
const PRODUCTION: usize = 500;

/// The most lines of a file of tests.
const TESTS: usize = 800;

/// No function is longer than a screen, and no file is longer than its topic needs.
pub(super) fn lengths(workspace: &Workspace) -> Result<(), String> {
    let mut findings = Vec::new();
    for (file, text) in workspace.rust_sources()? {
        findings.extend(long_functions(&file, &text));
        findings.extend(long_file(&file, &text));
    }
    no_findings(&findings)
}

fn long_functions(file: &str, text: &str) -> Vec<String> {
    let tokens = tokens(text);
    let mut findings = Vec::new();
    for index in 0..tokens.len() {
        let lines = function_lines(&tokens, index);
        let Some(lines) = lines.filter(|lines| *lines > FUNCTION) else {
            continue;
        };
        let (line, name) = (tokens[index].line, tokens[index + 1].text);
        findings.push(format!(
            "{file}:{line}: `{name}` has {lines} lines; at most {FUNCTION}: give a part of it a name"
        ));
    }
    findings
}

/// The number of lines in front of the tests.
fn production_lines(file: &str, text: &str) -> usize {
    if is_test_file(file) {
        return 0;
    }
    let tests = text.lines().position(|line| line.ends_with("mod tests {"));
    tests.unwrap_or_else(|| text.lines().count())
}

/// The lines of the function whose `fn` is at `index`; `None` if there is none, or if it has no body.
fn function_lines(tokens: &[Token<'_>], index: usize) -> Option<usize> {
    if text_at(tokens, index) != "fn" || !tokens.get(index + 1)?.is_word() {
        return None;
    }
    let mut at = index + 2;
    loop {
        match text_at(tokens, at) {
            "{" => break,
            ";" | "" => return None,
            "(" | "[" => at = after_brackets(tokens, at),
            _ => at += 1,
        }
    }
    let last = after_brackets(tokens, at) - 1;
    Some(tokens[last].line - tokens[index].line + 1)
}

fn long_file(file: &str, text: &str) -> Option<String> {
    let (lines, most) = match is_test_file(file) {
        true => (text.lines().count(), TESTS),
        false => (production_lines(file, text), PRODUCTION),
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

    fn function(lines: usize) -> String {
        format!("fn f(\n) {{{}}}\n", "\n".repeat(lines - 2))
    }

    #[test]
    fn a_function_is_counted_from_its_name_to_its_brace() {
        assert_eq!(long_functions("a.rs", &function(60)), [""; 0]);
        let text = format!("//\n{}", function(61));
        assert_eq!(
            long_functions("a.rs", &text),
            ["a.rs:2: `f` has 61 lines; at most 60: give a part of it a name"]
        );
    }

    #[test]
    fn functions_in_functions_and_tests_are_counted() {
        let tests = |lines| format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function(lines));
        assert_eq!(long_functions("a.rs", &tests(60)), [""; 0]);
        assert_eq!(long_functions("a.rs", &tests(61)).len(), 1);
        let text = format!("fn g() {{\n{}}}\n", function(61));
        assert_eq!(long_functions("a.rs", &text).len(), 2);
    }

    #[test]
    fn types_and_declarations_have_no_body() {
        for text in [
            "type F = fn(&str) -> String;",
            "trait T { fn f(&self, array: [u8; 2]) -> u8; }",
        ] {
            let tokens = tokens(text);
            let of = |index| function_lines(&tokens, index);
            assert!((0..tokens.len()).all(|index| of(index).is_none()), "{text}");
        }
        let tokens = tokens("fn f(array: [u8; 2]) -> [u8; 2] { array }");
        assert_eq!(function_lines(&tokens, 0), Some(1));
    }

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
