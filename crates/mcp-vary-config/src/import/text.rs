//! Converts the placeholders in other programs' texts to Vary's variables.

use std::collections::BTreeMap;

use super::client_need::is_open_folder;
use super::{Format, Found};
use crate::document::Node;
use crate::reader::Located;
use crate::variables::variable_name;

/// The values that VS Code asks its user for, by id.
#[derive(Default)]
pub(super) struct Inputs {
    all: BTreeMap<String, Input>,
}

struct Input {
    about: String,
    default: Option<String>,
}

impl Inputs {
    /// Reads `inputs`, which is next to the servers.
    pub(super) fn read(root: &Located<'_>, path_to_servers: &[&str]) -> Self {
        let mut above: Vec<&str> =
            path_to_servers[..path_to_servers.len().saturating_sub(1)].to_vec();
        above.push("inputs");
        let mut all = BTreeMap::new();
        for item in root.deepest(&above).node.items() {
            let member = |key: &str| {
                let mut entries = item.entries().iter();
                entries.find(|entry| entry.key == key)
            };
            let text = |key: &str| {
                member(key)
                    .map(|member| member.node.written().to_owned())
                    .filter(|text| !text.is_empty())
            };
            let mut about = text("description").unwrap_or_default();
            if text("password").as_deref() == Some("true") {
                about.push_str(" (a secret)");
            }
            if text("type").as_deref() == Some("command") {
                about.push_str(" (the output of a command of the editor)");
            }
            let options = member("options").map_or(&[][..], |member| member.node.items());
            if !options.is_empty() {
                let names: Vec<_> = options.iter().map(Node::written).collect();
                about.push_str(&format!(" (one of {})", names.join(", ")));
            }
            if let Some(id) = text("id") {
                let default = text("default");
                all.insert(
                    id,
                    Input {
                        about: about.trim().to_owned(),
                        default,
                    },
                );
            }
        }
        Self { all }
    }
}

/// Replaces the placeholders of `format` in the text with Vary's variables.
pub(super) fn converted(
    format: Format,
    inputs: &Inputs,
    field: &Located<'_>,
    text: &str,
    found: &mut Found,
) -> String {
    match format {
        Format::Codex => text.replace("${", "$${"),
        Format::Opencode => of_opencode(field, text, found),
        Format::McpServers | Format::VsCode => of_clients(inputs, field, text, found),
    }
}

/// Converts `{env:NAME}` and `{file:PATH}`.
fn of_opencode(field: &Located<'_>, text: &str, found: &mut Found) -> String {
    let mut out = String::new();
    let mut remaining = text;
    while let Some((before, after)) = remaining.split_once('{') {
        out.push_str(before);
        let inner = after.split_once('}');
        let known = inner.and_then(|(inner, after)| {
            let variable = inner.strip_prefix("env:").map(str::to_owned);
            let file = inner.strip_prefix("file:");
            let is_file = file.is_some();
            let name = variable.or_else(|| file.map(variable_name))?;
            Some((name, is_file, after))
        });
        match known {
            Some((name, is_file, after)) if is_variable(&name) => {
                if is_file {
                    let what = format!("reads a file; it is the variable `{name}` here");
                    found.note(
                        field,
                        what,
                        format!("set {name} to the content of the file"),
                    );
                }
                found.needs(&name, if is_file { "what stood in a file" } else { "" });
                if out.ends_with('$') {
                    out.pop();
                    found.note(
                        field,
                        "has a `$` before a variable, which is left out",
                        "see that it means the same",
                    );
                }
                out.push_str(&format!("${{{name}}}"));
                remaining = after;
            }
            _ => {
                // A dollar sign in front of it would turn it into a variable of Vary.
                if out.ends_with('$') {
                    out.push('$');
                }
                out.push('{');
                remaining = after;
            }
        }
    }
    out + remaining
}

/// Whether `name` is a valid name of a variable.
pub(super) fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Converts `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${input:ID}`, `${workspaceFolder}`, `${{ secrets.NAME }}` and
/// others.
fn of_clients(inputs: &Inputs, field: &Located<'_>, text: &str, found: &mut Found) -> String {
    let mut out = String::new();
    let mut remaining = text;
    while let Some((before, after)) = remaining.split_once("${") {
        out.push_str(before);
        // A dollar sign in front of our variable would escape it.
        let dollar = out.ends_with('$');
        if let Some(template) = after.strip_prefix('{') {
            let parts = template.split_once("}}");
            let closed = parts.filter(|(inner, _)| !inner.contains(['{', '}', '$']));
            if !dollar && let Some((inner, after)) = closed {
                out.push_str(&of_template(field, inner, found));
                remaining = after;
            } else {
                out.push_str(if dollar { "${{" } else { "$${{" });
                remaining = template;
            }
            continue;
        }
        let Some((inner, after)) = after.split_once('}') else {
            out.push_str("$${");
            remaining = after;
            continue;
        };
        remaining = after;
        if inner.contains("${") {
            remaining = remaining.strip_prefix('}').unwrap_or(remaining);
            let what = "has a variable inside of a default, which is left out";
            found.note(field, what, "write the default itself");
            let name = inner.split(":-").next().unwrap_or_default();
            out.push_str(&replacement(inputs, field, name, found));
        } else if dollar {
            out.push_str("${");
            out.push_str(inner);
            out.push('}');
            found.note(
                field,
                "has `$$`, which stands for `$` here",
                "see that it means the same",
            );
        } else {
            out.push_str(&replacement(inputs, field, inner, found));
        }
    }
    out.push_str(remaining);
    if out.len() > 1 && out.strip_prefix('$').is_some_and(is_variable) {
        let fix = format!("write `${{{}}}` if it is", &out[1..]);
        found.note(
            field,
            "may be a variable in some programs, and is text here",
            fix,
        );
    }
    out
}

/// The replacement for `${{inner}}`, as Continue writes secrets and inputs.
fn of_template(field: &Located<'_>, inner: &str, found: &mut Found) -> String {
    let name = variable_name(inner);
    let (namespace, key) = inner.trim().split_once('.').unwrap_or_default();
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let is_known = matches!(namespace, "secrets" | "inputs") && !key.is_empty();
    if !is_known || !key.chars().all(is_word) {
        let what =
            format!("has `${{{{...}}}}`, which Vary cannot replace; it is the variable `{name}`");
        found.note(field, what, format!("set {name}"));
    }
    let is_secret = namespace == "secrets";
    found.needs(&name, if is_secret { "a secret" } else { "" });
    format!("${{{name}}}")
}

/// The replacement for `${inner}`.
fn replacement(inputs: &Inputs, field: &Located<'_>, inner: &str, found: &mut Found) -> String {
    // SEP-2633 allows a chain, of which the first value that is set counts.
    let mut chain = inner.split('|').map(str::trim);
    let first = chain.next().unwrap_or_default();
    let default = chain.find_map(|link| link.strip_prefix("value:"));
    let (first, default) = match first.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (first, default),
    };
    let with_default = |name: &str| match default {
        Some(default) => format!("${{{name}:-{default}}}"),
        None => format!("${{{name}}}"),
    };
    let name = first.strip_prefix("env:").unwrap_or(first);
    let (scheme, remaining) = first.split_once(':').unwrap_or((first, ""));
    if let Some(directory) = &found.project
        && (is_open_folder(scheme) || is_open_folder(name))
    {
        return directory.replace("${", "$${");
    }
    match scheme {
        "value" => remaining.to_owned(),
        // The directory of Vary, whatever `PWD` is there.
        "workspaceFolder" | "workspaceRoot" | "cwd" => ".".to_owned(),
        "userHome" => "${HOME}".to_owned(),
        "pathSeparator" | "/" => "/".to_owned(),
        "input" => {
            let name = variable_name(remaining);
            let input = inputs.all.get(remaining);
            let written = input.and_then(|input| input.default.as_deref());
            let default = written.filter(|default| !default.contains(['}', '$']));
            let mut about = input.map(|input| input.about.clone()).unwrap_or_default();
            if default.is_some() {
                about.push_str(", or leave it out");
            }
            found.needs(&name, &about);
            match default {
                Some(default) => format!("${{{name}:-{default}}}"),
                None => {
                    let what = format!("has `${{{first}}}`, which is the variable `{name}` here");
                    found.note(field, what, format!("set {name}"));
                    format!("${{{name}}}")
                }
            }
        }
        _ if is_variable(name) => {
            if default.is_none() {
                found.needs(name, "");
            }
            with_default(name)
        }
        _ => {
            let name = variable_name(first);
            let what = format!(
                "has `${{{scheme}...}}`, which Vary cannot replace; it is the variable `{name}`"
            );
            found.note(field, what, format!("set {name}"));
            found.needs(&name, "");
            with_default(&name)
        }
    }
}
