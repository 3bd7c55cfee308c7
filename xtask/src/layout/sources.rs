//! What source files must not contain: effects that belong in the command line, paths of one machine.

use crate::modules::lines;
use crate::outcome::no_findings;
use crate::workspace::Workspace;

use super::packages::RULES;

/// Starts of paths that exist on one machine only.
const PATHS: &[&str] = &[
    "/home/",
    "/root/",
    "/Users/",
    "/work/",
    "/shared",
    "../shared",
];

/// Crates print, exit, and read the environment or the clock only where their rules allow it.
pub(super) fn effects(workspace: &Workspace) -> Result<(), String> {
    let mut findings = Vec::new();
    for (package, banned) in RULES.banned().filter(|(_, banned)| !banned.is_empty()) {
        let sources = format!("crates/{package}/src");
        if !workspace.path(&sources).exists() {
            continue;
        }
        for file in workspace.files(&sources)? {
            if file.ends_with("/tests.rs") {
                continue;
            }
            findings.extend(banned_lines(&file, &workspace.read(&file)?, banned));
        }
    }
    no_findings(&findings)
}

/// The lines of code outside tests and comments that contain a banned text.
fn banned_lines(file: &str, text: &str, banned: &[impl AsRef<str>]) -> Vec<String> {
    lines(text)
        .into_iter()
        .enumerate()
        .filter(|(_, (line, is_test))| !is_test && !line.trim_start().starts_with("//"))
        .flat_map(|(at, (line, _))| {
            banned
                .iter()
                .map(AsRef::as_ref)
                .filter(|word| contains(line, word))
                .map(move |word| format!("{file}:{}: `{word}` belongs in the cli", at + 1))
        })
        .collect()
}

/// Whether `line` contains `word`, and not as the end of a longer word.
fn contains(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
    })
}

/// No file names a path of one machine.
pub(super) fn paths(workspace: &Workspace) -> Result<(), String> {
    let mut findings = Vec::new();
    for file in workspace.files(".")? {
        // This file contains the paths that it looks for. Files that are not text contain none.
        if file == "xtask/src/layout/sources.rs" {
            continue;
        }
        let Ok(text) = workspace.read(&file) else {
            continue;
        };
        findings.extend(machine_paths(&file, &text));
    }
    no_findings(&findings)
}

fn machine_paths(file: &str, text: &str) -> Vec<String> {
    text.lines()
        .enumerate()
        .flat_map(|(at, line)| {
            PATHS
                .iter()
                .filter(move |path| begins_a_path(line, path))
                .map(move |path| format!("{file}:{}: `{path}` is a path of one machine", at + 1))
        })
        .collect()
}

/// Whether a path in `line` begins with `path`.
fn begins_a_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + path.len()..].chars().next();
        let inside = before
            .is_some_and(|letter| letter.is_alphanumeric() || matches!(letter, '.' | '-' | '_'));
        let longer_word = !path.ends_with('/') && after.is_some_and(char::is_alphanumeric);
        !inside && !longer_word
    })
}
