//! One server of another program's file.

use std::collections::BTreeSet;
use std::path::Path;

use http::Uri;
use mcp_vary_upstream::secret::replace_secrets;

use super::client_need::ClientNeed;
use super::foreign_keys::no_equivalent;
use super::text::{Inputs, converted, is_variable};
use super::tool_filter::ToolFilter;
use super::{Format, Found};
use crate::diagnostic::{Diagnostic, Position, nearest};
use crate::document::{Entry, Value};
use crate::reader::{Located, did_you_mean};
use crate::variables::variable_name;

/// A server, converted to Vary's configuration.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) name: String,
    /// The position of the server in its file.
    pub(super) at: Position,
    pub(super) key: String,
    /// Comments about the server, for the user.
    pub(super) about: Vec<String>,
    pub(super) settings: Vec<(&'static str, Out)>,
    pub(super) disabled: bool,
    pub(super) tools: ToolFilter,
    pub(super) client_need: Option<ClientNeed>,
}

/// A value to be printed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Out {
    Text(String),
    /// A number or a boolean.
    Scalar(String),
    List(Vec<Self>),
    Table(Vec<(String, Self)>),
}

impl Server {
    /// Whether it is the same server, whichever tools are shown.
    pub(super) fn has_same_settings(&self, other: &Self) -> bool {
        self.settings == other.settings && self.disabled == other.disabled
    }

    fn has(&self, key: &str) -> bool {
        self.settings.iter().any(|(known, _)| *known == key)
    }

    /// The address, unless it has variables.
    pub(super) fn url(&self) -> Option<Uri> {
        let (_, out) = self.settings.iter().find(|(key, _)| *key == "url")?;
        let Out::Text(url) = out else { return None };
        url.parse().ok()
    }

    /// Adds entries to a table among the settings. Existing entries stay. Returns the keys that were not added.
    fn extend(&mut self, key: &'static str, entries: Vec<(String, Out)>) -> Vec<String> {
        let mut unused = Vec::new();
        if !self.has(key) && !entries.is_empty() {
            self.settings.push((key, Out::Table(Vec::new())));
        }
        let table = self.settings.iter_mut().find(|(known, _)| *known == key);
        if let Some((_, Out::Table(table))) = table {
            for (name, out) in entries {
                let exists = |(known, _): &(String, Out)| match key {
                    "headers" => known.eq_ignore_ascii_case(&name),
                    _ => *known == name,
                };
                if table.iter().any(exists) {
                    unused.push(name);
                } else {
                    table.push((name, out));
                }
            }
        }
        unused
    }
}

/// Reads an entry and adds the server to `found`.
pub(super) fn read(
    format: Format,
    inputs: &Inputs,
    name: &str,
    field: &Located<'_>,
    found: &mut Found,
) {
    let Value::Table(entries) = &field.node.value else {
        found.left_out.push(name.to_owned());
        return found.leave_out(field, "is not a server");
    };
    let server = Server {
        name: name.to_owned(),
        at: field.node.at,
        key: field.path.clone(),
        about: Vec::new(),
        settings: Vec::new(),
        disabled: false,
        tools: ToolFilter::default(),
        client_need: ClientNeed::of(entries, found.project.is_some()),
    };
    let mut reader = ServerReader {
        format,
        inputs,
        server,
        found,
    };
    for entry in entries {
        reader.read_key(&field.member(entry), entry);
    }
    reader.finish(field);
}

/// A server while it is read.
struct ServerReader<'a> {
    format: Format,
    inputs: &'a Inputs,
    server: Server,
    found: &'a mut Found,
}

impl ServerReader<'_> {
    /// Reads one key, as any of the supported programs spells it.
    fn read_key(&mut self, field: &Located<'_>, entry: &Entry) {
        if matches!(field.node.value, Value::Null) {
            return;
        }
        let is_list = matches!(field.node.value, Value::List(_));
        match entry.key.as_str() {
            "command" if is_list => self.command_line(field),
            "command" => self.text("command", field),
            "args" => self.strings("args", field),
            "env" | "environment" => self.named_strings("env", field),
            "cwd" | "workingDirectory" => self.text("cwd", field),
            "url" | "serverUrl" | "httpUrl" => self.text("url", field),
            "headers" | "http_headers" => self.named_strings("headers", field),
            "type" | "transport" => self.kind(field),
            "disabled" => self.server.disabled |= field.written() == "true",
            "enabled" => self.server.disabled |= field.written() == "false",
            "env_vars" => self.inherited(field),
            "env_http_headers" => self.headers_of_variables(field),
            "bearer_token_env_var" => self.bearer(field),
            "startup_timeout_sec" => self.duration("start-timeout", field, "s"),
            "startup_timeout_ms" => self.duration("start-timeout", field, "ms"),
            "timeout" if self.format == Format::Opencode => {
                self.duration("start-timeout", field, "ms")
            }
            "tool_timeout_sec" => self.duration("timeout", field, "s"),
            "enabled_tools" | "includeTools" | "enabledTools" => self.allowed(field),
            "tools" if is_list => self.allowed(field),
            "disabled_tools" | "excludeTools" | "disabledTools" => self.denied(field),
            "title" | "description" => self.server.about.extend(one_line(field.written())),
            "name" => {}
            key => match nearest(key, KNOWN) {
                Some(meant) => {
                    let what = "is not a known key, and is left out";
                    self.found.note(field, what, did_you_mean(meant));
                }
                None => {
                    let (what, fix) = no_equivalent(key);
                    self.found.note(field, what, fix);
                }
            },
        }
    }

    /// Finishes the server when all keys have been read.
    fn finish(mut self, field: &Located<'_>) {
        let unused: &[&str] = match (self.server.has("command"), self.server.has("url")) {
            (false, false) => {
                self.found.left_out.push(self.server.name);
                let what = "has neither a command nor an address";
                return self.found.leave_out(field, what);
            }
            (true, true) => &["url", "headers", "type"],
            (true, false) => &["headers", "type"],
            (false, true) => &["args", "env", "cwd"],
        };
        for key in unused {
            if self.server.has(key) {
                let what = format!("has `{key}`, which is of no use here");
                self.found.leave_out(field, what);
                self.server.settings.retain(|(known, _)| known != key);
            }
        }
        if let Some(directory) = self.directory_in_project() {
            self.set("cwd", Out::Text(directory));
        }
        self.server
            .settings
            .sort_by_key(|(key, _)| ORDER.iter().position(|known| known == key));
        self.found.servers.push(self.server);
    }

    fn set(&mut self, key: &'static str, out: Out) {
        self.server.settings.retain(|(known, _)| *known != key);
        self.server.settings.push((key, out));
    }

    /// A text with Vary's variables. `None` if the value is not a text.
    fn converted(&mut self, field: &Located<'_>) -> Option<String> {
        match &field.node.value {
            Value::Scalar(word) => Some(word.clone()),
            Value::Text(text) => Some(converted(self.format, self.inputs, field, text, self.found)),
            Value::Null => None,
            Value::List(_) | Value::Table(_) => {
                self.found.leave_out(field, "is not text");
                None
            }
        }
    }

    fn extend(&mut self, key: &'static str, entries: Vec<(String, Out)>, field: &Located<'_>) {
        for name in self.server.extend(key, entries) {
            let what = format!("says `{name}` a second time");
            self.found.note(field, what, "the first is taken");
        }
    }

    fn word(&mut self, field: &Located<'_>) -> Option<Out> {
        let is_word = matches!(field.node.value, Value::Scalar(_));
        let text = self.converted(field)?;
        Some(if is_word {
            Out::Scalar(text)
        } else {
            Out::Text(text)
        })
    }

    fn text(&mut self, key: &'static str, field: &Located<'_>) {
        let Some(text) = self.converted(field) else {
            return;
        };
        if text.is_empty() {
            return self.found.leave_out(field, "is empty");
        }
        let checked = match key {
            "url" => self.checked(field, "", text, &format!("{}_KEY", self.server.name)),
            _ => text,
        };
        self.set(key, Out::Text(checked));
    }

    fn items<'t>(&mut self, field: &Located<'t>) -> Vec<Located<'t>> {
        if !matches!(field.node.value, Value::List(_)) {
            self.found.leave_out(field, "is not a list");
        }
        field.items()
    }

    fn members<'t>(&mut self, field: &Located<'t>) -> Vec<(&'t str, Located<'t>)> {
        if !matches!(field.node.value, Value::Table(_)) {
            self.found.leave_out(field, "is not a table of keys");
        }
        let entries = field.node.entries().iter();
        entries
            .map(|entry| (entry.key.as_str(), field.member(entry)))
            .collect()
    }

    fn strings(&mut self, key: &'static str, field: &Located<'_>) {
        let mut strings = Vec::new();
        let mut flag = String::new();
        for item in self.items(field) {
            let Some(word) = self.word(&item) else {
                continue;
            };
            match word {
                Out::Text(text) => {
                    // The argument after `--token` is a secret.
                    let next = text.strip_prefix("--").unwrap_or_default().to_owned();
                    let variable = format!("{}_KEY", self.server.name);
                    strings.push(Out::Text(self.checked(&item, &flag, text, &variable)));
                    flag = next;
                }
                other => strings.push(other),
            }
        }
        if !strings.is_empty() {
            self.set(key, Out::List(strings));
        }
    }

    fn command_line(&mut self, field: &Located<'_>) {
        self.strings("args", field);
        let Some(at) = self
            .server
            .settings
            .iter()
            .position(|(key, _)| *key == "args")
        else {
            return;
        };
        if let (_, Out::List(mut strings)) = self.server.settings.remove(at) {
            let program = strings.remove(0);
            self.set("command", program);
            if !strings.is_empty() {
                self.set("args", Out::List(strings));
            }
        }
    }

    fn named_strings(&mut self, key: &'static str, field: &Located<'_>) {
        let mut table = Vec::new();
        for (name, member) in self.members(field) {
            if matches!(member.node.value, Value::Null) {
                self.found
                    .leave_out(&member, "takes a variable away, which is not possible here");
                continue;
            }
            let Some(word) = self.word(&member) else {
                continue;
            };
            let variable = match key {
                "env" => name.to_owned(),
                _ => format!("{}_{name}", self.server.name),
            };
            let out = match word {
                Out::Text(text) => Out::Text(self.checked(&member, name, text, &variable)),
                other => other,
            };
            table.push((name.to_owned(), out));
        }
        self.extend(key, table, field);
    }

    /// The text of `name` as the configuration has it: a secret of a project's file becomes a variable, which is called
    /// `base` as far as a variable can, with a number if another secret is called so. A note names the place of a secret,
    /// and does not show it.
    fn checked(&mut self, field: &Located<'_>, name: &str, text: String, base: &str) -> String {
        let first_choice = variable_name(base);
        let is_project = self.found.project.is_some();
        let mut variables = BTreeSet::new();
        let replaced = replace_secrets(name, &text, |secret| {
            let variable = if is_project {
                self.found.variable_for(&first_choice, secret)
            } else {
                first_choice.clone()
            };
            let reference = format!("${{{variable}}}");
            variables.insert(variable);
            reference
        });
        let Some(replaced) = replaced else {
            return text;
        };
        if is_project {
            for variable in variables {
                let what = format!("looks like a secret, and is `${{{variable}}}` here");
                self.found
                    .note(field, what, format!("set the variable {variable}"));
                self.found.needs(&variable, "a secret");
            }
            return replaced;
        }
        let what = "looks like a secret, and the configuration contains it";
        let fix = format!(
            "write `${{{first_choice}}}` in its place, and set the variable {first_choice}"
        );
        let note = Diagnostic::new(field.node.at, field.path.as_str(), what);
        self.found.secrets.push(note.with_fix(fix));
        text
    }

    /// Where the program of a project's server runs; `None` if its file says so, or if it is another server.
    fn directory_in_project(&self) -> Option<String> {
        let project = self.found.project.as_deref()?.replace("${", "$${");
        let mut settings = self.server.settings.iter();
        let written = settings.find_map(|(key, out)| match out {
            Out::Text(text) if *key == "cwd" => Some(text),
            _ => None,
        });
        match written {
            _ if !self.server.has("command") => None,
            Some(cwd) if cwd.starts_with("${") => None,
            Some(cwd) => Some(Path::new(&project).join(cwd).display().to_string()),
            None => Some(project),
        }
    }

    fn kind(&mut self, field: &Located<'_>) {
        match field.written() {
            "stdio" | "local" | "http" | "remote" | "streamable-http" | "streamable_http"
            | "streamableHttp" => {}
            "sse" => self.set("type", Out::Text("sse".to_owned())),
            _ => self.found.leave_out(field, "is not a known transport"),
        }
    }

    /// Reads variables that the server inherits in any case.
    fn inherited(&mut self, field: &Located<'_>) {
        for item in self.items(field) {
            let name = item.deepest(&["name"]).written();
            if is_variable(name) {
                self.found.needs(name, "inherited by a server");
            }
            if item.deepest(&["source"]).written() == "remote" {
                let what = "is a variable of another machine";
                self.found.note(&item, what, "set it where Vary runs");
            }
        }
    }

    fn headers_of_variables(&mut self, field: &Located<'_>) {
        let mut headers = Vec::new();
        for (name, member) in self.members(field) {
            let variable = member.written();
            if is_variable(variable) {
                self.found.needs(variable, "");
                headers.push((name.to_owned(), Out::Text(format!("${{{variable}}}"))));
            } else {
                self.found.leave_out(&member, "is not a variable name");
            }
        }
        self.extend("headers", headers, field);
    }

    fn bearer(&mut self, field: &Located<'_>) {
        let variable = field.written();
        if !is_variable(variable) {
            return self.found.leave_out(field, "is not a variable name");
        }
        self.found.needs(variable, "");
        let value = Out::Text(format!("Bearer ${{{variable}}}"));
        self.extend("headers", vec![("Authorization".to_owned(), value)], field);
    }

    fn duration(&mut self, key: &'static str, field: &Located<'_>, unit: &str) {
        let text = format!("{}{unit}", field.written().trim_end_matches(".0"));
        match crate::units::duration(&text) {
            Ok(_) => self.set(key, Out::Text(text)),
            Err((what, fix)) => self.found.note(field, what, fix + "; it is left out"),
        }
    }

    fn allowed(&mut self, field: &Located<'_>) {
        let tools = self.tools(field);
        if tools.iter().all(|tool| tool != "*") {
            self.server.tools.allowed = Some(tools);
        }
    }

    fn denied(&mut self, field: &Located<'_>) {
        let tools = self.tools(field);
        self.server.tools.denied.extend(tools);
    }

    fn tools(&mut self, field: &Located<'_>) -> Vec<String> {
        let mut tools = Vec::new();
        for item in self.items(field) {
            let tool = item.written();
            let is_plain =
                |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '*');
            if !tool.is_empty() && tool.chars().all(is_plain) {
                tools.push(tool.to_owned());
            } else {
                let fix = "say with `variants` which tools are shown";
                self.found
                    .note(&item, "is not a tool name that can be imported", fix);
            }
        }
        tools
    }
}

/// The text as a comment on one line.
fn one_line(text: &str) -> Option<String> {
    let strings: Vec<&str> = text.split_whitespace().collect();
    Some(strings.join(" ")).filter(|line| !line.is_empty())
}

/// The keys that most files have, for those that are misspelled.
const KNOWN: &[&str] = &[
    "command", "args", "env", "cwd", "url", "headers", "type", "disabled", "enabled",
];

/// The order in which settings are printed.
const ORDER: &[&str] = &[
    "command",
    "args",
    "env",
    "cwd",
    "type",
    "url",
    "headers",
    "start-timeout",
    "timeout",
];
