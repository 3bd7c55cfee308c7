//! Words that a page for users does not need: private ones in the first lines of the README, and habits of speech.

use crate::outcome::no_findings;
use crate::workspace::Workspace;

/// Where somebody reads first. Words of the project are explained below.
const FIRST_LINES: usize = 60;

/// Words that only the authors understand at once.
const PRIVATE: &[&str] = &[
    "era", "eras", "face", "faces", "legacy", "slip", "slips", "told",
];

/// Habits, in lower case, that make sentences hard to read.
const HABITS: &[&str] = &[
    "came of",
    "for nobody",
    "holds for nothing",
    "how it stands",
    "last words",
    "nonsense",
    "reads well",
    "says nothing of",
    "what it came to",
    "who declares",
    "whoever",
];

/// The folders of pages for users; `docs/internals` and `docs/decisions` are for maintainers.
const FOLDERS: &[&str] = &[
    "docs/tutorial",
    "docs/how-to",
    "docs/reference",
    "docs/explanation",
];

/// The help of the commands, as the tests have recorded it.
const HELP: &str = "crates/mcp-vary-cli/tests/commands/snapshots";

/// What editors show about the keys of a configuration.
const SCHEMA: &str = "docs/vary.schema.json";

/// Checks the README, the pages for users, the help of the commands, and the descriptions of the keys.
///
/// # Errors
///
/// One line per word: the page, the line, and the word.
pub(super) fn check(workspace: &Workspace) -> Result<(), String> {
    let readme = workspace.read("README.md")?;
    let mut findings = private_words("README.md", &readme);
    findings.extend(habits("README.md", &readme));
    for folder in FOLDERS {
        let pages = workspace.files(folder)?.into_iter();
        for page in pages.filter(|page| page.ends_with(".md")) {
            findings.extend(habits(&page, &workspace.read(&page)?));
        }
    }
    let help = workspace.files(HELP)?.into_iter();
    let mut others: Vec<_> = help.filter(|file| file.contains("__help__")).collect();
    if others.is_empty() {
        return Err(format!("{HELP}: there is no help of a command"));
    }
    others.push(SCHEMA.to_owned());
    for file in others {
        findings.extend(habits(&file, &workspace.read(&file)?));
    }
    no_findings(&findings)
}

fn private_words(page: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for (line, number) in text.lines().take(FIRST_LINES).zip(1..) {
        let words = line.split(|char: char| !char.is_alphanumeric());
        for word in words.filter(|word| PRIVATE.contains(&word.to_lowercase().as_str())) {
            findings.push(format!(
                "{page}:{number}: `{word}` is for later; use a plain word in the first {FIRST_LINES} lines"
            ));
        }
    }
    findings
}

fn habits(page: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let lower = line.to_lowercase();
        for habit in HABITS.iter().filter(|habit| lower.contains(**habit)) {
            findings.push(format!(
                "{page}:{number}: `{habit}`: write who does what, as to a colleague"
            ));
        }
        if is_no(&lower) {
            findings.push(format!(
                "{page}:{number}: `is no ...`: write `is not a ...`"
            ));
        }
    }
    findings
}

/// Whether a line in lower case has "is no X" in place of "is not an X". "There is no" and "is no longer" are plain.
fn is_no(line: &str) -> bool {
    let parts: Vec<_> = line.split(" is no ").collect();
    parts.windows(2).any(|pair| {
        matches!(pair, [before, after] if !before.ends_with("there") && !after.starts_with("longer"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lines_have_plain_words() {
        assert_eq!(
            private_words("a", "several faces\nEra"),
            [
                "a:1: `faces` is for later; use a plain word in the first 60 lines",
                "a:2: `Era` is for later; use a plain word in the first 60 lines",
            ]
        );
        assert!(private_words("a", "several interfaces, generation").is_empty());
        assert!(private_words("a", &format!("{}legacy", "\n".repeat(60))).is_empty());
    }

    #[test]
    fn a_habit_is_found_with_its_line() {
        assert_eq!(
            habits("a", "x\nWhoever asks"),
            ["a:2: `whoever`: write who does what, as to a colleague"]
        );
        assert!(habits("a", "A client that asks").is_empty());
    }

    #[test]
    fn a_thing_is_not_another_thing() {
        assert_eq!(
            habits("a", "`x` is no URL"),
            ["a:1: `is no ...`: write `is not a ...`"]
        );
        for plain in [
            "There is no tool `x`",
            "it is no longer there",
            "`x` is not a URL",
        ] {
            assert!(habits("a", plain).is_empty(), "{plain}");
        }
    }
}
