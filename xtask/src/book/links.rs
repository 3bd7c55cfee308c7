//! The links of Markdown files: each leads to a file of the workspace, and to a heading in it.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use crate::outcome::no_findings;
use crate::workspace::Workspace;

/// Where links are checked, besides all pages in `docs` and the READMEs of the crates and examples.
const OTHERS: &[&str] = &[
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
];

/// A link as it is written.
#[derive(Debug, Eq, PartialEq)]
struct Link<'a> {
    line: usize,
    target: &'a str,
}

/// Checks every relative link of the documentation.
///
/// # Errors
///
/// One line per link that leads nowhere: the page, the line, the link, and what is missing.
pub(super) fn check(workspace: &Workspace) -> Result<(), String> {
    let mut pages = workspace.files("docs")?;
    pages.extend(workspace.files("crates")?);
    pages.extend(workspace.files("examples")?);
    pages.retain(|file| is_markdown(file));
    pages.extend(OTHERS.iter().map(|&file| file.to_owned()));
    let mut texts = BTreeMap::new();
    for page in pages {
        let text = workspace.read(&page)?;
        texts.insert(page, text);
    }
    let exists = |path: &str| workspace.path(path).exists();
    no_findings(&broken(&texts, exists))
}

fn is_markdown(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|end| end == "md")
}

/// The links that lead nowhere, with the reasons.
fn broken(texts: &BTreeMap<String, String>, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let anchors: BTreeMap<&str, Vec<String>> = texts
        .iter()
        .map(|(page, text)| (page.as_str(), anchors(text)))
        .collect();
    let mut findings = Vec::new();
    for (page, text) in texts {
        for Link { line, target } in links(text) {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let place = format!("{page}:{line}: `{target}`");
            let Some(file) = resolve(page, path) else {
                findings.push(format!("{place}: leads out of the workspace"));
                continue;
            };
            if !exists(&file) {
                findings.push(format!("{place}: there is no {file}"));
            } else if !anchor.is_empty()
                && let Some(known) = anchors.get(file.as_str())
                && !known.iter().any(|known| known == anchor)
            {
                findings.push(format!("{place}: {file} has no heading `#{anchor}`"));
            }
        }
    }
    findings
}

/// The file that a link of `page` names, relative to the workspace; `None` if it is outside.
fn resolve(page: &str, path: &str) -> Option<String> {
    if path.is_empty() {
        return Some(page.to_owned());
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for component in Path::new(path).components() {
        match component {
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::ParentDir => {
                parts.pop()?;
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

/// The relative links of a page, outside of code.
fn links(text: &str) -> Vec<Link<'_>> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        for part in line.split("](").skip(1) {
            let target = part.split([')', ' ']).next().unwrap_or_default();
            if !target.contains(':') && !target.is_empty() {
                let line = number;
                found.push(Link { line, target });
            }
        }
    }
    found
}

/// The anchors of the headings of a page, as GitHub makes them; `docs/hooks.py` makes the same.
fn anchors(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (_, line) in prose(text) {
        let heading = line.trim_start_matches('#');
        if heading.len() < line.len() && heading.starts_with(' ') {
            found.push(slug(heading));
        }
    }
    found
}

/// The anchor of a heading: lower case, spaces as hyphens, without other punctuation.
fn slug(heading: &str) -> String {
    let lower = heading.trim().to_lowercase();
    let slug = lower
        .chars()
        .filter(|char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_'));
    slug.map(|char| if char == ' ' { '-' } else { char })
        .collect()
}

/// The lines outside of fenced code, with their numbers.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut is_code = false;
    let mut lines = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            lines.push((number, line));
        }
    }
    lines
}
