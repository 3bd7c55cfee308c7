//! Prints a configuration as YAML.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use mcp_vary::text::is_invisible;

use super::All;
use super::entry::{Out, Server};
use crate::yaml_text::scalar;

/// Prints the whole file.
pub(super) fn configuration(files: &[&str], all: &All) -> String {
    let (servers, variables) = (&all.servers, &all.variables);
    let mut out = format!(
        "# Made by `vary config import` of {}.\n",
        commented(&files.join(", "))
    );
    if !variables.is_empty() {
        out.push_str("# Set these variables of the environment before the start:\n");
    }
    for (name, about) in variables {
        let about = if about.is_empty() {
            String::new()
        } else {
            format!(": {}", commented(about))
        };
        let _ = writeln!(out, "#   {name}{about}");
    }
    out.push_str("servers:\n");
    for server in servers {
        let _ = writeln!(out, "  {}:", scalar(&server.name));
        for line in &server.about {
            let _ = writeln!(out, "    # {}", commented(line));
        }
        if server.disabled {
            out.push_str("    disabled: true\n");
        }
        for (key, value) in &server.settings {
            put(&mut out, 4, key, value);
        }
    }
    out + &variants(all)
}

/// Prints the allowed and denied tools of servers, for each built-in variant, and the variants of files.
fn variants(all: &All) -> String {
    let servers: Vec<&Server> = all.servers.iter().collect();
    let is_limited = !servers.iter().all(|server| server.tools.is_free());
    let is_whole = all.files.iter().all(|file| file.variant.is_none());
    if !is_limited && is_whole {
        return String::new();
    }
    let mut out = String::new();
    if is_limited {
        out.push_str("# Which tools are shown, as the clients had it.\nx-tools: &tools\n");
        let is_narrower = servers.iter().any(|server| server.tools.allowed.is_some());
        selection(&mut out, 2, &servers, is_narrower);
    }
    out.push_str("variants:\n");
    for name in ["standard", "compact", "directory", "read-only"] {
        let tools = if is_limited { "tools: *tools" } else { "" };
        let _ = writeln!(out, "  {name}: {{{tools}}}");
    }
    let mut printed = BTreeSet::new();
    for variant in all.files.iter().filter_map(|file| file.variant.as_ref()) {
        if !printed.insert(variant) {
            continue;
        }
        let narrowed = all.servers.iter().filter_map(|server| {
            let tools = all.variants.get(variant)?.get(&server.name)?.clone();
            let whole = server.clone();
            Some(Server { tools, ..whole })
        });
        let its_servers: Vec<Server> = narrowed.collect();
        let names: Vec<String> = its_servers.iter().map(|it| scalar(&it.name)).collect();
        let _ = writeln!(
            out,
            "  {}:\n    from: standard\n    servers: [{}]",
            scalar(variant),
            names.join(", ")
        );
        let is_free = its_servers.iter().all(|server| server.tools.is_free());
        if !is_free {
            out.push_str("    tools:\n");
            let is_narrower = its_servers.iter().any(|it| it.tools.allowed.is_some());
            let limited: Vec<&Server> = its_servers.iter().collect();
            selection(&mut out, 6, &limited, is_narrower);
        }
    }
    out
}

/// Prints which tools of the servers are shown; of other servers none if `is_narrower`.
fn selection(out: &mut String, indent: usize, servers: &[&Server], is_narrower: bool) {
    let allowed = |server: &Server| match &server.tools.allowed {
        Some(tools) => tools.iter().map(|tool| rule(server, tool)).collect(),
        None => vec![format!("{{server: {}}}", scalar(&server.name))],
    };
    let denied = |server: &Server| {
        let tools = server.tools.denied.iter();
        tools.map(|tool| rule(server, tool)).collect()
    };
    let mut on = servers.iter().filter(|server| !server.disabled);
    if is_narrower && on.all(|server| allowed(server).is_empty()) {
        // An empty list would show everything.
        let _ = writeln!(out, "{:indent$}exclude: [\"*\"]", "");
        return;
    }
    if is_narrower {
        list(out, indent, "include", servers, allowed);
    }
    if servers.iter().any(|server| !server.tools.denied.is_empty()) {
        list(out, indent, "exclude", servers, denied);
    }
}

/// Prints a list of conditions. Conditions on disabled servers have no effect yet.
fn list(
    out: &mut String,
    indent: usize,
    key: &str,
    servers: &[&Server],
    rules: impl Fn(&Server) -> Vec<String>,
) {
    let (off, enabled): (Vec<&Server>, Vec<&Server>) =
        servers.iter().copied().partition(|server| server.disabled);
    let on: Vec<String> = enabled.into_iter().flat_map(&rules).collect();
    let empty = if on.is_empty() { " []" } else { "" };
    let _ = writeln!(out, "{:indent$}{key}:{empty}", "");
    for rule in on {
        let _ = writeln!(out, "{:indent$}  - {rule}", "");
    }
    for rule in off.into_iter().flat_map(rules) {
        let _ = writeln!(out, "{:indent$}  # - {rule}  # when it is enabled", "");
    }
}

/// A condition for a tool by the server's own name. It matches regardless of the number of servers.
fn rule(server: &Server, tool: &str) -> String {
    format!(
        "{{server: {}, name: {}}}",
        scalar(&server.name),
        scalar(tool)
    )
}

fn put(out: &mut String, indent: usize, key: &str, value: &Out) {
    let _ = write!(out, "{:indent$}{}:", "", scalar(key));
    match value {
        Out::Text(text) => {
            let _ = writeln!(out, " {}", scalar(text));
        }
        Out::Scalar(word) => {
            let _ = writeln!(out, " {word}");
        }
        Out::List(items) => {
            let texts = items.iter().map(|item| match item {
                Out::Text(text) => scalar(text),
                Out::Scalar(word) => word.clone(),
                Out::List(_) | Out::Table(_) => String::new(),
            });
            let _ = writeln!(out, " [{}]", texts.collect::<Vec<_>>().join(", "));
        }
        Out::Table(entries) => {
            out.push('\n');
            for (key, value) in entries {
                put(out, indent + 2, key, value);
            }
        }
    }
}

/// Text for a comment: one line.
fn commented(text: &str) -> String {
    text.chars()
        .map(|c| if is_invisible(c) { ' ' } else { c })
        .collect()
}
