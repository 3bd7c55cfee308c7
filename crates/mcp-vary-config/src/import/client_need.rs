//! What a server needs of the client in whose file it is.

use std::fmt;
use std::path::Path;

use crate::document::{Entry, Node, Value};

/// What a server needs of the client in whose file it is. A service for several clients does not have it.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ClientNeed {
    /// The folder that the client has open, with what refers to it.
    Folder(String),
    /// The variables of a file, with the key that names the file.
    VariableFile(String),
    /// That the client does not start it: it is disabled, with the key that does so.
    Disabled(String),
}

/// As a sentence about the server. It contains no values.
impl fmt::Display for ClientNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(reference) => write!(
                f,
                "it uses the folder that the client has open (`{reference}`)"
            ),
            Self::VariableFile(key) => write!(
                f,
                "it reads its variables from a file (`{key}`), which Vary does not"
            ),
            Self::Disabled(key) => write!(f, "it is disabled there (`{key}`)"),
        }
    }
}

impl ClientNeed {
    /// What the server with these `entries` needs. In a project that is not the folder, since its program runs there.
    pub(super) fn of(entries: &[Entry], is_in_project: bool) -> Option<Self> {
        let is_switch = |entry: &&Entry| {
            let disabling = [("disabled", "true"), ("enabled", "false")];
            disabling.contains(&(entry.key.as_str(), entry.node.written()))
        };
        if let Some(switch) = entries.iter().find(is_switch) {
            return Some(Self::Disabled(switch.key.clone()));
        }
        let is_file = |entry: &&Entry| {
            let is_key = matches!(entry.key.as_str(), "envFile" | "env_file");
            is_key && !matches!(entry.node.value, Value::Null)
        };
        if let Some(file) = entries.iter().find(is_file) {
            return Some(Self::VariableFile(file.key.clone()));
        }
        if is_in_project {
            return None;
        }
        reference_to_folder(entries).map(Self::Folder)
    }
}

/// Whether the variable `name` is the folder that a client has open.
pub(super) fn is_open_folder(name: &str) -> bool {
    matches!(
        name,
        "workspaceFolder"
            | "workspaceRoot"
            | "fileWorkspaceFolder"
            | "cwd"
            | "PWD"
            | "CLAUDE_PROJECT_DIR"
    )
}

/// What refers to the folder that the client has open: a variable, a relative path, or the key of one without a dot.
fn reference_to_folder(entries: &[Entry]) -> Option<String> {
    let mut all = with(entries, USED).flat_map(|entry| texts(&entry.node));
    if let Some(variable) = all.find_map(folder_variable) {
        return Some(variable);
    }
    let directory = with(entries, DIRECTORY).find(|entry| !entry.node.written().is_empty());
    if let Some(entry) = directory {
        // Other relative paths begin there.
        return (!is_absolute(entry.node.written())).then(|| entry.key.clone());
    }
    let mut paths = with(entries, WITH_PATHS).flat_map(|entry| texts(&entry.node));
    if let Some(start) = paths.find_map(relative_start) {
        return Some(start);
    }
    let command = &with(entries, COMMAND).next()?.node;
    let program = command.items().first().unwrap_or(command).written();
    let is_relative = program.contains(['/', '\\']) && !is_absolute(program);
    is_relative.then(|| "command".to_owned())
}

/// The `entries` with one of these keys.
fn with<'a>(
    entries: &'a [Entry],
    keys: &'static [&'static str],
) -> impl Iterator<Item = &'a Entry> {
    let all = entries.iter();
    all.filter(move |entry| keys.contains(&entry.key.as_str()))
}

/// The text of the node, or those of its items or members.
fn texts(node: &Node) -> impl Iterator<Item = &str> {
    let items = node.items().iter();
    let members = node.entries().iter().map(|entry| &entry.node);
    let all = std::iter::once(node).chain(items).chain(members);
    all.map(Node::written)
}

/// The first variable in `text` that depends on the folder that the client has open.
fn folder_variable(text: &str) -> Option<String> {
    let mut of_shell = OF_SHELL.iter();
    if let Some(found) = of_shell.find(|found| text.contains(**found)) {
        return Some((*found).to_owned());
    }
    let parts: Vec<&str> = text.split('{').collect();
    parts.windows(2).find_map(|pair| {
        let &[before, inner] = pair else { return None };
        let of_environment = inner.strip_prefix("env:");
        if of_environment.is_none() && !before.ends_with('$') {
            return None;
        }
        let start = of_environment.unwrap_or(inner);
        let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        let name = start.split(is_end).next().unwrap_or_default();
        let is_of_folder = is_open_folder(name)
            || name.starts_with("workspaceFolder")
            || name.starts_with("workspaceRoot");
        is_of_folder.then(|| format!("${{{name}}}"))
    })
}

/// The start of the first path in `text` that begins with `.` or `..`, also after `--flag=`, in `.:/data` and as the
/// default of a variable.
fn relative_start(text: &str) -> Option<String> {
    let mut parts = text.split(['=', ':', ',', '}']);
    parts.find_map(|part| {
        let path = part.trim_start_matches('-');
        let first = path.split(['/', '\\']).next().unwrap_or_default();
        let shown = path.get(..=first.len()).unwrap_or(first);
        matches!(first, "." | "..").then(|| shown.to_owned())
    })
}

/// Whether `path` means the same in each folder, as far as it can be known before its variables are replaced.
fn is_absolute(path: &str) -> bool {
    Path::new(path).has_root() || path.starts_with(['~', '$', '%', '{']) || path.contains(':')
}

/// The keys of an entry that Vary uses.
const USED: &[&str] = &[
    "command",
    "args",
    "env",
    "environment",
    "cwd",
    "workingDirectory",
    "url",
    "serverUrl",
    "httpUrl",
    "headers",
    "http_headers",
];

/// The key of a program.
const COMMAND: &[&str] = &["command"];

/// The keys of the directory in which a program runs.
const DIRECTORY: &[&str] = &["cwd", "workingDirectory"];

/// The keys of what may be a path for the program.
const WITH_PATHS: &[&str] = &["command", "args", "env", "environment"];

/// How a shell names the folder in which it runs.
const OF_SHELL: &[&str] = &["$PWD", "$(pwd)"];
