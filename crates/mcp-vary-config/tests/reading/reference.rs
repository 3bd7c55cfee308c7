//! The reference page agrees with the program.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use super::*;

/// The pages on the configuration, one after the other.
static PAGE: LazyLock<String> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/configuration");
    let pages = pages(&folder);
    assert!(pages.len() >= 18, "{pages:?}");
    let texts = pages
        .iter()
        .map(|page| std::fs::read_to_string(page).unwrap());
    texts.collect::<Vec<_>>().join("\n")
});

const README: &str = include_str!("../../../../README.md");
const AUTHENTICATION: &str = include_str!("../../../../docs/reference/authentication.md");

/// The blocks of one language on a page.
pub(super) fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let starts = page
        .split(&format!("```{language}\n"))
        .skip(1)
        .collect::<Vec<_>>();
    let blocks = starts
        .iter()
        .filter_map(|start| start.split("\n```").next());
    blocks.collect()
}

#[test]
fn every_example_of_the_reference_can_be_read() {
    let any = |name: &str| Some(name.to_owned());
    let (yaml, toml) = (blocks(&PAGE, "yaml"), blocks(&PAGE, "toml"));
    let (first, authentication) = (blocks(README, "yaml"), blocks(AUTHENTICATION, "yaml"));
    assert!(yaml.len() >= 5 && !toml.is_empty() && !first.is_empty() && authentication.len() >= 4);
    let files = yaml.iter().chain(&first).chain(&authentication);
    let files = files.map(|text| ("x.yaml", *text));
    for (name, text) in files.chain(toml.iter().map(|text| ("x.toml", *text))) {
        if let Err(mistakes) = Source::new(name, text).read(&any) {
            panic!("{mistakes}\n{text}");
        }
    }
}

/// The Markdown files below a directory.
pub(super) fn pages(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let pages = paths.flat_map(|path| {
        if path.is_dir() {
            pages(&path)
        } else {
            vec![path]
        }
    });
    let mut pages: Vec<PathBuf> = pages
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    pages.sort();
    pages
}

#[test]
fn every_configuration_in_the_book_can_be_read() {
    let any = |name: &str| {
        Some(format!(
            "{name}: long enough for the keys that seal sessions"
        ))
    };
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut read = 0;
    for page in pages(&docs) {
        let text = std::fs::read_to_string(&page).unwrap();
        let starts = text.split("```yaml\n").skip(1);
        for block in starts.filter_map(|start| start.split("\n```").next()) {
            if !block.starts_with("servers:") {
                continue;
            }
            read += 1;
            if let Err(mistakes) = Source::new("x.yaml", block).read(&any) {
                panic!("{}: {mistakes}\n{block}", page.display());
            }
        }
    }
    assert!(read >= 35, "{read}");
}

/// The rows of the table under a heading: key and default.
fn rows(after: &str) -> Vec<(&'static str, Option<&'static str>)> {
    let (_, remaining) = PAGE.split_once(&format!("\n{after}")).unwrap();
    let table = remaining.split("|---|---|---|\n").nth(1).unwrap();
    let lines = table.lines().take_while(|line| line.starts_with('|'));
    lines
        .map(|line| {
            let mut cells = line
                .split('|')
                .skip(1)
                .map(|cell| cell.trim().trim_matches('`'));
            let (key, default) = (cells.next().unwrap(), cells.next().unwrap());
            (key, Some(default).filter(|default| !default.is_empty()))
        })
        .collect()
}

/// A file with a key of a table of the page.
fn file_with(table: &str, key: &str, default: &str) -> String {
    let setting = format!("{{{key}: {default}}}");
    let server = "{command: x}";
    match table {
        "top" => format!("servers: {{a: {server}}}\n{key}: {default}"),
        "server" => format!("servers: {{a: {{command: x, {key}: {default}}}}}"),
        "restart" => format!("servers: {{a: {{command: x, restart: {setting}}}}}"),
        section => format!("servers: {{a: {server}}}\n{section}: {setting}"),
    }
}

#[test]
fn every_default_of_the_reference_is_the_programs() {
    let plain = shown(&read("x", "servers: {a: {command: x}}"));
    let tables = [
        ("top", "| key of the file"),
        ("server", "| key of a server"),
        ("restart", "| key of `restart`"),
        ("ranking", "| key of `ranking`"),
        ("limits", "| key of `limits` |"),
    ];
    for (place, heading) in tables {
        for (key, default) in rows(heading) {
            let Some(default) = default else { continue };
            let mut file = read("x", &file_with(place, key, default));
            // Only a file that says an address has a place for it.
            file.addresses_at.clear();
            let mut said = shown(&file);
            // Where nothing is said, the program has its own.
            said = said.replace("listen: Some(\"127.0.0.1:8800\")", "listen: None");
            said = said.replace("start_wait: Some(2s)", "start_wait: None");
            assert_eq!(said, plain, "{place}: {key}: {default}");
        }
    }
}
