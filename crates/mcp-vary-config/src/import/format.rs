//! Detects the format of a file and finds its servers.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::entry;
use super::text::Inputs;
use super::{Found, ImportSource, some};
use crate::diagnostic::{Diagnostic, nearest};
use crate::document::{self, Entry, Value};
use crate::file::is_setting;
use crate::reader::{Located, did_you_mean};

/// A format of files in which programs configure their MCP servers.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Format {
    /// `mcpServers`: Claude, Cursor, Windsurf, Gemini and many others, and the proposed `mcp.json` (SEP-2633).
    McpServers,
    /// VS Code's `mcp.json`: `servers` and `inputs`; also under `mcp` in its settings.
    VsCode,
    /// Codex: `[mcp_servers.NAME]` in TOML.
    Codex,
    /// opencode: `mcp`, with or without `servers` in it.
    Opencode,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 4] = [Self::McpServers, Self::VsCode, Self::Codex, Self::Opencode];

    /// The name of the format: `mcp-servers`, `vscode`, `codex` or `opencode`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::McpServers => "mcp-servers",
            Self::VsCode => "vscode",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
        }
    }

    /// The paths of keys that lead to the servers, most likely first.
    const fn paths(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::McpServers => &[&["mcpServers"], &["context_servers"]],
            Self::VsCode => &[&["servers"], &["mcp", "servers"]],
            Self::Codex => &[&["mcp_servers"]],
            Self::Opencode => &[&["mcp", "servers"], &["mcp"]],
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let mut all = Self::ALL.into_iter();
        all.find(|format| format.as_str() == name)
            .ok_or(UnknownFormat)
    }
}

/// The error for an unknown name of a [`Format`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("no format is called so; there are mcp-servers, vscode, codex and opencode")]
#[non_exhaustive]
pub struct UnknownFormat;

/// Reads the servers of a file.
pub(super) fn read(file: &ImportSource<'_>, found: &mut Found) -> Result<(), Vec<Diagnostic>> {
    let root = document::read(&language(file), file.text)?;
    let field = Located {
        path: String::new(),
        node: &root,
    };
    let format = match file.format {
        Some(format) => format,
        None => detect(&field).map_err(|diagnostic| vec![diagnostic])?,
    };
    let Some((path, servers)) = servers(&field, format) else {
        let path = format.paths()[0].join(".");
        let what = format!("has no `{path}`, in which the format {format} has its servers");
        let diagnostic = Diagnostic::new(root.at, "", what);
        return Err(vec![
            diagnostic.with_fix("choose another with `--format`, or leave it out"),
        ]);
    };
    let inputs = Inputs::read(&field, &path);
    for (name, server) in named(&servers, found) {
        entry::read(format, &inputs, &name, &server, found);
    }
    beside(&field, &path, found);
    if found.servers.is_empty() {
        let diagnostic = Diagnostic::new(
            servers.node.at,
            servers.path,
            "has no server that can be used",
        );
        let mut diagnostics = std::mem::take(&mut found.notes);
        diagnostics.push(diagnostic.with_fix("name at least one with `command` or `url`"));
        return Err(diagnostics);
    }
    Ok(())
}

/// The name of the file, with an extension that matches its syntax.
fn language(file: &ImportSource<'_>) -> String {
    let start = file.text.trim_start_matches('\u{feff}').trim_start();
    let is_toml = || {
        let mut lines = start.lines().map(str::trim_start);
        lines.any(|line| line.starts_with("[mcp_servers"))
    };
    match start.as_bytes().first() {
        Some(b'{' | b'/') => "x.json".to_owned(),
        _ if is_toml() => "x.toml".to_owned(),
        _ => file.name.to_owned(),
    }
}

/// The setting beside `servers` that makes the file a configuration of Vary, which is not imported.
pub(super) fn setting_of_vary(file: &ImportSource<'_>) -> Option<String> {
    let root = document::read(&language(file), file.text).ok()?;
    let field = Located {
        path: String::new(),
        node: &root,
    };
    if detect(&field).is_ok() {
        return None;
    }
    let keys = field.keys();
    own_setting(&keys).map(str::to_owned)
}

/// The first of `keys` that only a configuration of Vary has beside `servers`.
fn own_setting<'a>(keys: &[&'a str]) -> Option<&'a str> {
    // `inputs` are those of VS Code.
    if keys.contains(&"inputs") {
        return None;
    }
    let mut others = keys.iter().filter(|key| **key != "servers");
    others.find(|key| is_setting(key)).copied()
}

/// Detects the format of the file.
fn detect(root: &Located<'_>) -> Result<Format, Diagnostic> {
    let keys = root.keys();
    let has = |key: &str| keys.contains(&key);
    if has("mcpServers") || has("context_servers") {
        return Ok(Format::McpServers);
    }
    if has("mcp_servers") {
        return Ok(Format::Codex);
    }
    if has("mcp") {
        let (_, servers) = servers(root, Format::Opencode).ok_or_else(|| unknown(root))?;
        let is_opencode = servers.node.entries().iter().any(|entry| {
            let kind = servers.member(entry).deepest(&["type"]);
            matches!(kind.written(), "local" | "remote")
        });
        return Ok(if is_opencode {
            Format::Opencode
        } else {
            Format::VsCode
        });
    }
    if let Some(ours) = own_setting(&keys) {
        let what = format!("is a configuration of Vary already: it has `{ours}`");
        let diagnostic = Diagnostic::new(root.node.at, "", what);
        return Err(diagnostic.with_fix("use it as it is: `vary serve FILE`"));
    }
    if has("servers") {
        return Ok(Format::VsCode);
    }
    let is_server = |entry: &Entry| {
        let keys = root.member(entry).keys();
        ["command", "url", "serverUrl", "httpUrl"]
            .iter()
            .any(|key| keys.contains(key))
    };
    // The content of `mcpServers`, copied without that key.
    let all = root.node.entries();
    if !all.is_empty() && all.iter().all(is_server) {
        return Ok(Format::McpServers);
    }
    Err(unknown(root))
}

fn unknown<'t>(root: &Located<'t>) -> Diagnostic {
    let meant =
        |entry: &'t Entry| Some((entry, nearest(&entry.key, &["mcpServers", "mcp_servers"])?));
    if let Some((entry, meant)) = root.node.entries().iter().find_map(meant) {
        let diagnostic = Diagnostic::new(entry.at, entry.key.as_str(), "is not a known key");
        return diagnostic.with_fix(did_you_mean(meant));
    }
    let what =
        "no servers are found; they stand under `mcpServers`, `servers`, `mcp_servers` or `mcp`";
    Diagnostic::new(root.node.at, "", what).with_fix("name the format with `--format`")
}

/// The value that contains the servers, and the keys that lead to it.
fn servers<'t>(root: &Located<'t>, format: Format) -> Option<(Vec<&'static str>, Located<'t>)> {
    for path in format.paths() {
        let mut at = root.deepest(&[]);
        let found = path.iter().all(|key| {
            let entry = at.node.entries().iter().find(|entry| entry.key == *key);
            let next = entry.map(|entry| at.member(entry));
            next.map(|next| at = next).is_some()
        });
        if found {
            return Some((path.to_vec(), at));
        }
    }
    let has_names = format == Format::McpServers && !root.node.entries().is_empty();
    let is_bare = has_names && !root.keys().contains(&"mcp");
    is_bare.then(|| (Vec::new(), root.deepest(&[])))
}

/// The servers with their names, from a table, or from a list whose items have names.
fn named<'t>(servers: &Located<'t>, found: &mut Found) -> Vec<(String, Located<'t>)> {
    if let Value::List(_) = servers.node.value {
        let items = servers.items().into_iter();
        let named_items = items.map(|item| (item.deepest(&["name"]).written().to_owned(), item));
        return named_items.collect();
    }
    let all = servers.node.entries().iter();
    let (keys, all): (Vec<_>, Vec<_>) = all
        .map(|entry| (entry.key.clone(), servers.member(entry)))
        .partition(|(key, _)| key.starts_with('$'));
    for (_, key) in keys {
        found.leave_out(&key, "is not a server");
    }
    all
}

/// Adds notes for the other keys of the file.
fn beside(root: &Located<'_>, path: &[&'static str], found: &mut Found) {
    let known = |key: &&str| path.first() == Some(key) || matches!(*key, "$schema" | "inputs");
    if path.is_empty() {
        return;
    }
    if root.keys().contains(&"projects") {
        let projects = root.deepest(&["projects"]);
        let fix = "copy the `mcpServers` of a project into a file, and import that, too";
        found.note(
            &projects,
            "may have servers of single projects, which are left out",
            fix,
        );
    }
    let others: BTreeSet<&str> = root.keys().into_iter().filter(|key| !known(key)).collect();
    let about_tools: Vec<_> = ["tools", "permission", "mcp"]
        .into_iter()
        .filter(|key| others.contains(key))
        .collect();
    for key in about_tools {
        let fix = "say what clients see with `variants`, where it is about MCP servers";
        found.note(&root.deepest(&[key]), "is left out", fix);
    }
    let unused: BTreeSet<&str> = others
        .into_iter()
        .filter(|key| !matches!(*key, "tools" | "permission" | "mcp" | "projects"))
        .collect();
    if !unused.is_empty() {
        let what = format!("what is not about servers is left out: {}", some(&unused));
        found.notes.push(Diagnostic::new(root.node.at, "", what));
    }
}
