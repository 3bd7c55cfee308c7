//! The budget: the lines of code of each part, without blank lines and comments. budget.toml has the figure of each, with
//! the reason why it is not lower.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use crate::modules::{Sources, lines};
use crate::outcome::no_findings;
use crate::workspace::Workspace;

const FILE: &str = "budget.toml";

const HEAD: &str = "\
# The lines of code of each part, without blank lines and comments. `cargo xtask test layout` refuses more lines than here.
# To raise a figure, write the reason behind it, in the same change; `cargo xtask budget --write --reason TEXT` does both.
";

/// The sections of the file. What is neither a product nor its tests is a tool.
const SECTIONS: [&str; 3] = ["product", "tests", "tools"];

/// The crate of helpers for tests.
const TESTKIT: &str = "mcp-vary-testkit";

/// A section and the name of a part in it.
type Part = (&'static str, String);

/// The most lines of a part.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Limit {
    lines: usize,
    reason: String,
}

type Limits = BTreeMap<Part, Limit>;

/// Prints the lines of each part with its limit. With `write`, also sets the limits to them.
///
/// # Errors
///
/// When a file cannot be read or written.
pub(crate) fn budget(
    workspace: &Workspace,
    write: bool,
    reason: Option<&str>,
) -> Result<(), String> {
    let counted = counted(&workspace.rust_sources()?);
    let mut limits = limits(&workspace.read(FILE).unwrap_or_default())?;
    if write {
        limits = updated(&limits, &counted, reason.unwrap_or_default());
        fs::write(workspace.path(FILE), to_text(&limits))
            .map_err(|error| format!("{FILE}: {error}"))?;
    }
    print!("{}", table(&counted, &limits));
    Ok(())
}

/// Prints the lines of each part, and checks that none has more than its limit, and that each raised limit has a reason.
pub(crate) fn check(workspace: &Workspace) -> Result<(), String> {
    let counted = counted(&workspace.rust_sources()?);
    let limits = limits(&workspace.read(FILE)?)?;
    print!("{}", table(&counted, &limits));
    let before = workspace.git(&["show", &format!("{}:{FILE}", workspace.base())]);
    let before = before.map_or_else(|_| Ok(Limits::new()), |text| self::limits(&text))?;
    no_findings(&[exceeded(&counted, &limits), unexplained(&limits, &before)].concat())
}

/// The lines of code of each part.
fn counted(sources: &Sources) -> BTreeMap<Part, usize> {
    let mut counted = BTreeMap::new();
    for (path, text) in sources {
        let part = part(path);
        let lines = lines(text).into_iter();
        let is_code = |line: &str| !line.is_empty() && !line.starts_with("//");
        for (_, is_test) in lines.filter(|(line, _)| is_code(line.trim())) {
            let section = match part.0 {
                "product" if is_test => "tests",
                section => section,
            };
            *counted.entry((section, part.1.clone())).or_default() += 1;
        }
    }
    counted
}

/// The part that a file belongs to. Code of a product can have tests behind it.
fn part(path: &str) -> Part {
    let folders: Vec<&str> = path.split('/').collect();
    match folders[..] {
        ["crates", name, ..] if name != TESTKIT => {
            let is_test = ["/tests/", "/benches/", "/examples/"]
                .iter()
                .any(|folder| path.contains(folder))
                || path.ends_with("/tests.rs")
                || path.ends_with("_tests.rs");
            (if is_test { "tests" } else { "product" }, name.to_owned())
        }
        [first @ ("crates" | "tests"), second, ..] => ("tools", format!("{first}/{second}")),
        [first, ..] => ("tools", first.to_owned()),
        [] => ("tools", String::new()),
    }
}

/// Reads the sections of `name = lines # reason`.
fn limits(text: &str) -> Result<Limits, String> {
    let mut limits = Limits::new();
    let mut section = None;
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong =
            || format!("{FILE}:{number}: `{line}` is not `[section]` or `name = lines # reason`");
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            let known = SECTIONS.iter().find(|section| **section == name);
            section = Some(*known.ok_or_else(wrong)?);
            continue;
        }
        let (name, value) = line.split_once('=').ok_or_else(wrong)?;
        let (lines, reason) = value.split_once('#').unwrap_or((value, ""));
        let limit = Limit {
            lines: lines.trim().parse().map_err(|_| wrong())?,
            reason: reason.trim().to_owned(),
        };
        let name = name.trim().trim_matches('"').to_owned();
        limits.insert((section.ok_or_else(wrong)?, name), limit);
    }
    Ok(limits)
}

fn to_text(limits: &Limits) -> String {
    let mut text = HEAD.to_owned();
    for section in SECTIONS {
        let _ = writeln!(text, "\n[{section}]");
        for ((_, name), Limit { lines, reason }) in
            limits.iter().filter(|((of, _), _)| *of == section)
        {
            let key = if name.contains('/') {
                format!("\"{name}\"")
            } else {
                name.clone()
            };
            let _ = writeln!(text, "{key} = {lines} # {reason}");
        }
    }
    text
}

/// The limits set to what was counted. Those that are new or higher get the reason, if there is one.
fn updated(limits: &Limits, counted: &BTreeMap<Part, usize>, reason: &str) -> Limits {
    let update = |(part, lines): (&Part, &usize)| {
        let old = limits.get(part).cloned().unwrap_or_default();
        let is_raised = *lines > old.lines && !reason.is_empty();
        let reason = if is_raised {
            reason.to_owned()
        } else {
            old.reason
        };
        (
            part.clone(),
            Limit {
                lines: *lines,
                reason,
            },
        )
    };
    counted.iter().map(update).collect()
}

fn exceeded(counted: &BTreeMap<Part, usize>, limits: &Limits) -> Vec<String> {
    let missing = Limit::default();
    let findings = counted.iter().filter_map(|(part, lines)| {
        let limit = limits.get(part).unwrap_or(&missing);
        let (section, name) = part;
        (*lines > limit.lines).then(|| {
            format!(
                "{section} {name} has {lines} lines of code, {} in {FILE}: remove some, or raise the figure and write the reason behind it",
                limit.lines
            )
        })
    });
    findings.collect()
}

/// The limits without a reason, and those that are higher than `before` for the same reason.
fn unexplained(limits: &Limits, before: &Limits) -> Vec<String> {
    let findings = limits.iter().filter_map(|(part, limit)| {
        let is_raised = |old: &Limit| limit.lines > old.lines && limit.reason == old.reason;
        let is_unexplained = limit.reason.is_empty() || before.get(part).is_some_and(is_raised);
        let (section, name) = part;
        is_unexplained.then(|| {
            format!(
                "{FILE}: {section} {name}: write the reason for {} lines behind the figure",
                limit.lines
            )
        })
    });
    findings.collect()
}

fn table(counted: &BTreeMap<Part, usize>, limits: &Limits) -> String {
    let mut table = String::new();
    for section in SECTIONS {
        let of_section = counted.iter().filter(|((of, _), _)| *of == section);
        let mut sums = [0, 0];
        for (part, lines) in of_section {
            let limit = limits.get(part).map_or(0, |limit| limit.lines);
            sums = [sums[0] + lines, sums[1] + limit];
            let _ = writeln!(
                table,
                "  {section:<8} {:<24} {lines:>7} of {limit:>7}",
                part.1
            );
        }
        let _ = writeln!(
            table,
            "  {section:<8} {:<24} {:>7} of {:>7}",
            "in all", sums[0], sums[1]
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn counts(path: &str, text: &str, expected: &[(&str, &str, usize)]) {
        let sources = [(path.to_owned(), text.to_owned())].into();
        let counted = counted(&sources);
        let found = counted
            .iter()
            .map(|((section, name), lines)| (*section, name.as_str(), *lines));
        assert_eq!(found.collect::<Vec<_>>(), expected, "{path}");
    }

    #[test]
    fn blank_lines_and_comments_do_not_count() {
        let text = "//! a\n\nuse b;\n    // c\nfn d() {} // e\n";
        counts("crates/a/src/lib.rs", text, &[("product", "a", 2)]);
    }

    #[test]
    fn tests_are_behind_their_attribute_or_in_files_of_tests() {
        let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    // b\n}\n";
        counts(
            "crates/a/src/lib.rs",
            text,
            &[("product", "a", 1), ("tests", "a", 3)],
        );
        for path in [
            "crates/a/tests/b/c.rs",
            "crates/a/src/b/tests.rs",
            "crates/a/src/b_tests.rs",
            "crates/a/benches/b.rs",
        ] {
            counts(path, text, &[("tests", "a", 4)]);
        }
    }

    #[test]
    fn all_else_is_a_tool() {
        counts("xtask/src/main.rs", "fn a() {}", &[("tools", "xtask", 1)]);
        counts(
            "tests/faults/src/lib.rs",
            "fn a() {}",
            &[("tools", "tests/faults", 1)],
        );
        counts(
            "crates/mcp-vary-testkit/src/lib.rs",
            "fn a() {}",
            &[("tools", "crates/mcp-vary-testkit", 1)],
        );
    }

    const TEXT: &str =
        "[product]\na = 10 # the first count\n\n[tools]\n\"tests/b\" = 5 # its scenarios\n";

    #[test]
    fn a_file_is_read_as_it_is_written() {
        let limits = limits(TEXT).unwrap();
        assert_eq!(limits.len(), 2);
        assert_eq!(self::limits(&to_text(&limits)), Ok(limits));
        let error = self::limits("[product]\na = many").unwrap_err();
        assert!(
            error.starts_with("budget.toml:2: `a = many` is not"),
            "{error}"
        );
    }

    #[test]
    fn more_lines_need_a_higher_figure_with_a_reason() {
        let old = limits(TEXT).unwrap();
        let a = || ("product", "a".to_owned());
        assert_eq!(exceeded(&[(a(), 10)].into(), &old), [""; 0]);
        let more = [(a(), 11)].into();
        assert_eq!(exceeded(&more, &old).len(), 1);
        let raised = updated(&old, &more, "");
        assert_eq!(raised[&a()].lines, 11);
        assert_eq!(unexplained(&raised, &old).len(), 1);
        let explained = updated(&old, &more, "it also sings");
        assert_eq!(unexplained(&explained, &old), [""; 0]);
        assert_eq!(
            updated(&explained, &[(a(), 9)].into(), "")[&a()].reason,
            "it also sings"
        );
    }
}
