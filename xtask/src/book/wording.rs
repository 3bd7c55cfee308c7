//! Words that a user does not need, on pages and in messages: private ones in the first lines of the README, habits of
//! speech, and the words for the two forms of the protocol, which are called by their revisions.

use crate::outcome::no_findings;
use crate::rust::{Token, production_tokens};
use crate::workspace::Workspace;

/// Where somebody reads first. Words of the project are explained below.
const FIRST_LINES: usize = 60;

/// Words that only the authors understand at once.
const PRIVATE: &[&str] = &[
    "era", "eras", "face", "faces", "legacy", "slip", "slips", "told",
];

/// Habits, in lower case, that make sentences hard to read.
const HABITS: &str = include_str!("wording/habits.txt");

/// Further habits in messages: what servers, clients and files do is called send, receive, be and have.
const SPEECH: &str = include_str!("wording/speech.txt");

/// Words for the two forms of the protocol, which only maintainers know. Users know revisions.
const ERAS: &[&str] = &["era", "eras", "legacy", "modern"];

/// Where these words are explained, or are values of a record.
const ABOUT_ERAS: &[&str] = &["docs/reference/audit.md", "docs/reference/glossary.md"];

/// The folders whose pages call the forms of the protocol by their revisions.
const BY_REVISION: &[&str] = &["docs/tutorial", "docs/how-to", "docs/reference"];

/// The crates whose messages users see.
const CRATES: &str = "crates";

/// Crates whose texts no user sees.
const NOT_SEEN: &[&str] = &["crates/mcp-vary-testkit/"];

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
    findings.extend(wrong_in_page("README.md", &readme, false));
    for folder in FOLDERS {
        let pages = workspace.files(folder)?.into_iter();
        for page in pages.filter(|page| page.ends_with(".md")) {
            let text = workspace.read(&page)?;
            let is_explained = ABOUT_ERAS.contains(&page.as_str());
            let by_revision = BY_REVISION.contains(folder) && !is_explained;
            findings.extend(wrong_in_page(&page, &text, by_revision));
        }
    }
    let help = workspace.files(HELP)?.into_iter();
    let mut others: Vec<_> = help.filter(|file| file.contains("__help__")).collect();
    if others.is_empty() {
        return Err(format!("{HELP}: there is no help of a command"));
    }
    others.push(SCHEMA.to_owned());
    for file in others {
        let text = workspace.read(&file)?;
        findings.extend(wrong_in_page(&file, &text, true));
    }
    findings.extend(messages(workspace)?);
    no_findings(&findings)
}

/// What is found in the texts of the program: errors, lines of the log, help.
fn messages(workspace: &Workspace) -> Result<Vec<String>, String> {
    let files = workspace.files(CRATES)?.into_iter();
    let sources = files.filter(|file| {
        let is_source = file.ends_with(".rs") && file.contains("/src/");
        let is_test = file.ends_with("tests.rs") || file.contains("/tests/");
        is_source && !is_test && !NOT_SEEN.iter().any(|start| file.starts_with(start))
    });
    let mut findings = Vec::new();
    let mut count = 0;
    for file in sources {
        let text = workspace.read(&file)?;
        for message in sentences(&production_tokens(&text)) {
            count += 1;
            findings.extend(wrong_in_message(&file, &message));
        }
    }
    match count {
        0..MESSAGES => Err(format!("{CRATES}: there are only {count} messages")),
        _ => Ok(findings),
    }
}

/// There are more messages than this; fewer were not found.
const MESSAGES: usize = 1_000;

/// A text of the program: where it begins, and its words.
#[derive(Debug, Eq, PartialEq)]
struct Message {
    line: usize,
    text: String,
}

/// The string literals with more than one word. Texts of doc comments are not tokens.
fn sentences(tokens: &[Token<'_>]) -> Vec<Message> {
    let texts = tokens.iter().filter_map(|token| {
        // A line that ends in a backslash goes on where the next one has its first word.
        let lines = token.as_string()?.lines();
        let lines = lines.map(|line| line.trim_start().trim_end_matches('\\'));
        let text = lines.collect::<String>();
        let line = token.line;
        text.contains(' ').then_some(Message { line, text })
    });
    texts.collect()
}

/// What is wrong with a text: the words, and what to do.
fn wrong(text: &str, is_message: bool, by_revision: bool) -> Vec<String> {
    let lower = text.to_lowercase();
    let more = if is_message { SPEECH } else { "" };
    let habits = HABITS.lines().chain(more.lines());
    let habits = habits.filter(|habit| lower.contains(*habit));
    let habits = habits.map(|habit| format!("`{habit}`: write who does what, as to a colleague"));
    let is_no = is_no(&lower).then(|| "`is no ...`: write `is not a ...`".to_owned());
    let eras = terms(&lower).filter(|word| by_revision && ERAS.contains(word));
    let eras = eras.map(|word| format!("`{word}`: name the revision"));
    habits.chain(is_no).chain(eras).collect()
}

fn wrong_in_message(file: &str, message: &Message) -> Vec<String> {
    // The value of a placeholder is called so in the code alone.
    let shown = without_placeholders(&message.text);
    let is_seen = ERA_CRATES.iter().any(|start| file.starts_with(start));
    let wrong = wrong(&shown, true, is_seen).into_iter();
    let place = |wrong| format!("{file}:{}: {wrong}", message.line);
    wrong.map(place).collect()
}

fn wrong_in_page(page: &str, text: &str, by_revision: bool) -> Vec<String> {
    let lines = text.lines().zip(1..);
    let findings = lines.flat_map(|(line, number)| {
        let wrong = wrong(line, false, by_revision).into_iter();
        wrong.map(move |wrong| format!("{page}:{number}: {wrong}"))
    });
    findings.collect()
}

/// The crates that print tables and help.
const ERA_CRATES: &[&str] = &["crates/mcp-vary-cli/", "crates/mcp-vary-config/"];

/// A format string without `{...}`.
fn without_placeholders(text: &str) -> String {
    let mut parts = text.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    let others = parts.map(|part| part.split_once('}').map_or("", |(_, after)| after));
    first + &others.collect::<String>()
}

/// The words of a line; a path, a file name and a word with hyphens is one.
fn terms(line: &str) -> impl Iterator<Item = &str> {
    let is_inside = |char: char| char.is_alphanumeric() || "-_./".contains(char);
    let terms = line.split(move |char| !is_inside(char));
    terms.map(|word| word.trim_matches(['.', '-', '/']))
}

fn private_words(page: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for (line, number) in text.lines().take(FIRST_LINES).zip(1..) {
        let terms = line.split(|char: char| !char.is_alphanumeric());
        for word in terms.filter(|word| PRIVATE.contains(&word.to_lowercase().as_str())) {
            findings.push(format!(
                "{page}:{number}: `{word}` is for later; use a plain word in the first {FIRST_LINES} lines"
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
            wrong_in_page("a", "x\nWhoever asks", false),
            ["a:2: `whoever`: write who does what, as to a colleague"]
        );
        assert!(wrong_in_page("a", "A client that asks", false).is_empty());
    }

    #[test]
    fn a_message_is_read_as_it_is_printed() {
        let source = "fn f() { warn!(\"x\"); error(\"`{x}` is \\\n   no URL\") }\n/// is no URL\n#[cfg(test)]\nmod tests { fn t() { say(\"a is no b\") } }";
        let found = sentences(&production_tokens(source));
        let message = Message {
            line: 1,
            text: "`{x}` is no URL".to_owned(),
        };
        assert_eq!(found, [message]);
        assert_eq!(
            wrong_in_message("crates/a/src/b.rs", &found[0]),
            ["crates/a/src/b.rs:1: `is no ...`: write `is not a ...`"]
        );
    }

    #[test]
    fn a_revision_is_named() {
        assert_eq!(
            wrong_in_page("a", "Only this era.\nlegacy-x and docs/eras.md", true),
            ["a:1: `era`: name the revision"]
        );
        let message = |text: &str| Message {
            line: 7,
            text: text.to_owned(),
        };
        let found = |text| wrong_in_message("crates/mcp-vary-cli/src/a.rs", &message(text));
        assert_eq!(
            found("a modern {era}"),
            ["crates/mcp-vary-cli/src/a.rs:7: `modern`: name the revision"]
        );
        assert!(found("a server of {era}: {legacy}").is_empty());
    }

    #[test]
    fn a_thing_is_not_another_thing() {
        assert_eq!(
            wrong_in_page("a", "`x` is no URL", false),
            ["a:1: `is no ...`: write `is not a ...`"]
        );
        for plain in [
            "There is no tool `x`",
            "it is no longer there",
            "`x` is not a URL",
        ] {
            assert!(wrong_in_page("a", plain, false).is_empty(), "{plain}");
        }
    }
}
