//! The commands that the documentation shows are commands of this program.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::args::Args;

/// How pages start Vary.
const PREFIXES: &[&str] = &["vary ", "npx -y ./mcp-vary-cli-0.1.0.tgz "];

/// The READMEs for users, and the pages below `docs`.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![
        root.join("README.md"),
        root.join("examples/configurations/README.md"),
    ];
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// The arguments of the commands in a page's blocks of shell.
fn commands(page: &str) -> Vec<Vec<String>> {
    let starts = page.split("```sh\n").skip(1);
    let blocks = starts.filter_map(|start| start.split("\n```").next());
    let lines = blocks.flat_map(str::lines).map(str::trim);
    let arguments = lines.filter_map(|line| PREFIXES.iter().find_map(|it| line.strip_prefix(it)));
    arguments.map(words).collect()
}

/// The words of a line as a shell splits it, up to a comment, a pipe or a redirection.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for char in line.chars() {
        match (quote, char) {
            (Some(open), _) if char == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(char),
            (None, '\'' | '"') => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (None, '#' | '|' | '>' | '&' | ';') if word.is_none() => break,
            (None, _) => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    words
}

#[test]
fn every_command_in_the_book_is_accepted() {
    let mut seen = 0;
    for page in pages() {
        for words in commands(&fs::read_to_string(&page).unwrap()) {
            seen += 1;
            let line = ["vary".to_owned()].into_iter().chain(words.clone());
            match Args::try_parse_from(line) {
                Ok(_) => {}
                Err(error) => {
                    let shows = [ErrorKind::DisplayHelp, ErrorKind::DisplayVersion];
                    let command = words.join(" ");
                    assert!(
                        shows.contains(&error.kind()),
                        "{}: vary {command}: {error}",
                        page.display()
                    );
                }
            }
        }
    }
    assert!(seen >= 80, "{seen}");
}

#[test]
fn a_line_is_split_as_a_shell_splits_it() {
    assert_eq!(
        words("call a '{\"b\": 1}' x=\"y z\" > file  # c"),
        ["call", "a", "{\"b\": 1}", "x=y z"]
    );
    assert_eq!(words("serve --listen 1 # all"), ["serve", "--listen", "1"]);
}
