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
fn pages(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let pages = paths.flat_map(|path| match path.is_dir() {
        true => pages(&path),
        false => vec![path],
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
    let (_, rest) = PAGE.split_once(&format!("\n{after}")).unwrap();
    let table = rest.split("|---|---|---|\n").nth(1).unwrap();
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

/// A file that says at one place what the page calls the default.
fn file_with(place: &str, key: &str, default: &str) -> String {
    let server = "a: {command: x";
    match place {
        "top" => format!("servers: {{{server}}}}}\n{key}: {default}"),
        "limits" => format!("servers: {{{server}}}}}\nlimits: {{{key}: {default}}}"),
        "ranking" => format!("servers: {{{server}}}}}\nranking: {{{key}: {default}}}"),
        "model" => format!(
            "servers: {{{server}}}}}\nranking: {{model: {{url: \"https://a.example/v1\", name: m, {key}: {default}}}}}"
        ),
        "weight" => {
            format!(
                "servers: {{{server}}}}}\nranking: {{weights: {{useCase: {{{key}: {default}}}}}}}"
            )
        }
        "rule" => {
            format!("servers: {{{server}}}}}\nclients: [{{variant: compact, {key}: {default}}}]")
        }
        "variant" => {
            format!("servers: {{{server}}}}}\nvariants: {{standard: {{{key}: {default}}}}}")
        }
        "condition" => format!(
            "servers: {{{server}}}}}\nvariants: {{standard: {{tools: [{{{key}: {default}}}]}}}}"
        ),
        "deprecation" => format!(
            "servers: {{{server}}}}}\nvariants: {{standard: {{}}, old: {{deprecation: {{message: m, {key}: {default}}}}}}}"
        ),
        "argument" => format!(
            "servers: {{{server}}}}}\nvariants: {{standard: {{overrides: {{tools: {{t: {{arguments: {{a: {{{key}: {default}}}}}}}}}}}}}}}"
        ),
        "experiment" => format!(
            "servers: {{{server}}}}}\nexperiments: [{{name: a, arms: {{standard: 1, compact: 1}}, {key}: {default}}}]"
        ),
        "log" => format!("servers: {{{server}}}}}\nlog: {{{key}: {default}}}"),
        "audit" => format!("servers: {{{server}}}}}\naudit: {{to: stdout, {key}: {default}}}"),
        "restart" => format!("servers: {{{server}, restart: {{{key}: {default}}}}}}}"),
        "passthrough" => {
            format!("servers: {{{server}, passthrough: {{{key}: {default}}}}}}}")
        }
        "access" | "pattern" | "auth" | "key" | "issuer" | "tls" | "stdio" => {
            let section = section_on_clients(place, key, default);
            format!("servers: {{{server}}}}}\n{section}")
        }
        _ => format!("servers: {{{server}, {key}: {default}}}}}"),
    }
}

/// The section of a file that decides who may do what, with the key.
fn section_on_clients(place: &str, key: &str, default: &str) -> String {
    match place {
        "access" => format!("access: [{{when: {{anyone: on}}, allow: [x], {key}: {default}}}]"),
        "pattern" => format!("access: [{{when: {{anyone: on}}, allow: [{{{key}: {default}}}]}}]"),
        "auth" => format!("auth: {{anonymous: on, {key}: {default}}}"),
        "key" => format!(
            "auth: {{keys: [{{name: a, sha256: {}, {key}: {default}}}]}}",
            "0".repeat(64)
        ),
        "issuer" => format!(
            "public-url: https://a.example\nauth: {{issuers: [{{issuer: https://b.example, {key}: {default}}}]}}"
        ),
        "tls" => {
            format!("tls: {{certificate: a, key: b, {key}: {default}}}")
        }
        "stdio" => {
            format!("stdio-principal: {{name: a, {key}: {default}}}")
        }
        other => unreachable!("{other}"),
    }
}

#[test]
fn every_default_of_the_reference_is_the_programs() {
    let plain = format!("{:?}", read("x", "servers: {a: {command: x}}"));
    let tables = [
        ("top", "# Top level"),
        ("server", "# A server"),
        ("restart", "| key of `restart`"),
        ("ranking", "# `ranking`"),
        ("limits", "# `limits`"),
    ];
    for (place, heading) in tables {
        for (key, default) in rows(heading) {
            let Some(default) = default else { continue };
            let mut file = read("x", &file_with(place, key, default));
            // Only a file that says an address has a place for it.
            file.addresses_at.clear();
            let mut said = format!("{file:?}");
            // Where nothing is said, the program has its own.
            said = said.replace("listen: Some(\"127.0.0.1:8800\")", "listen: None");
            said = said.replace("start_wait: Some(3s)", "start_wait: None");
            assert_eq!(said, plain, "{place}: {key}: {default}");
        }
    }
}

/// What a mistake lists as known is what the page has.
#[test]
fn every_setting_is_in_the_reference() {
    for (place, heading) in [
        ("top", "# Top level"),
        ("server", "# A server"),
        ("restart", "| key of `restart`"),
        ("passthrough", "| key of `passthrough`"),
        ("rule", "| key of a rule"),
        ("variant", "| key of a variant"),
        ("condition", "| key of a condition"),
        ("deprecation", "| key of `deprecation`"),
        ("argument", "| key of an argument"),
        ("ranking", "# `ranking`"),
        ("weight", "| key of a weight"),
        ("model", "| key of a model"),
        ("limits", "# `limits`"),
        ("access", "| key of an access rule"),
        ("pattern", "| key of an access pattern"),
        ("auth", "# `auth`"),
        ("key", "| key of an API key"),
        ("issuer", "| key of an issuer"),
        ("stdio", "| key of `stdio-principal`"),
        ("tls", "| key of `tls`"),
        ("log", "| key of `log`"),
        ("audit", "| key of `audit`"),
        ("experiment", "| key of an experiment"),
    ] {
        let text = file_with(place, "zzzzzz", "1");
        let mistakes = Source::new("x", &text).read(&environment).unwrap_err();
        let fix = mistakes.all[0].fix.clone().unwrap();
        if let Some(count) = fix.strip_prefix("`vary config schema` describes the ") {
            let documented = rows(heading);
            assert_eq!(count, format!("{} keys", documented.len()), "{place}");
            for (key, _) in documented {
                let text = file_with(place, key, "[]");
                let read = Source::new("x", &text).read(&environment);
                let said = read.err().map_or_else(String::new, |all| all.to_string());
                assert!(!said.contains("is not a known key"), "{place} {key}");
            }
            continue;
        }
        let known = fix.trim_start_matches("there are ").split(", ");
        let mut known: Vec<&str> = known.map(|key| key.trim_matches('`')).collect();
        let mut documented: Vec<&str> = rows(heading).into_iter().map(|(key, _)| key).collect();
        known.sort_unstable();
        documented.sort_unstable();
        assert_eq!(known, documented, "{place}");
    }
}
