//! An entry of `servers`: the settings that every client's `mcpServers` has, and those that Vary adds.

mod auth;
mod draft;
mod headers;
mod limits;
mod settings;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

pub use self::auth::{AuthMethod, ServerAuth};
use self::draft::{Kind, PartialServer};
use self::settings::{COMMON, KINDS, SETTINGS};
use super::reader::{Located, Reader, did_you_mean, quoted};
use super::schema_builder::SchemaBuilder;
use super::vary_entries::VaryEntries;
use crate::diagnostic::{Diagnostic, Position, nearest};
use crate::document::{self, Entry};
use mcp_vary_upstream::{HeaderTemplate, Target, UpstreamConfig};

/// The servers of a file.
#[derive(Debug, Default)]
pub(super) struct Servers {
    pub(super) enabled: Vec<UpstreamConfig>,
    /// The names of the disabled servers.
    pub(super) disabled: Vec<String>,
    /// The servers of a client's file whose entries cannot be used.
    pub(super) left_out: Vec<LeftOut>,
    /// How Vary authenticates at enabled servers with `auth`, by their names.
    pub(super) auth: BTreeMap<String, ServerAuth>,
    /// The entries of a client's file that lead to Vary itself.
    vary_entries: Vec<(UpstreamConfig, Diagnostic)>,
    /// The names of the enabled servers with `trust-annotations`.
    pub(super) trusted_annotations: BTreeSet<String>,
    /// Where the tokens of clients are exchanged.
    exchanges_at: Vec<(Position, String)>,
    /// Where headers with claims are.
    pub(super) claim_headers_at: Vec<(Position, String)>,
}

impl Servers {
    /// The names of the claims in headers.
    pub(super) fn claim_names(&self) -> BTreeSet<&str> {
        let headers = self.enabled.iter().flat_map(|server| &server.claim_headers);
        headers
            .flat_map(|(_, template): &(_, HeaderTemplate)| template.claims())
            .collect()
    }

    /// Reports headers with claims where no client can have claims, and exchanges of tokens where none has a token.
    pub(super) fn check_claims(
        &self,
        reader: &mut Reader<'_>,
        has_principals: bool,
        accepts_tokens: bool,
    ) {
        if !accepts_tokens {
            for (at, path) in &self.exchanges_at {
                let what = "exchanges access tokens, but no client has any";
                let fix = "add `auth` with `issuers`, whose tokens clients send";
                reader.report_at(*at, path, what, fix);
            }
        }
        if has_principals {
            return;
        }
        for (at, path) in &self.claim_headers_at {
            let what = "uses claims, but without authentication no client has any";
            let fix = "add `auth`, or `stdio-principal` with `claims`";
            reader.report_at(*at, path, what, fix);
        }
    }
}

/// A server of a client's file whose entry cannot be used. The other servers are served without it.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The name of the server in the file.
    pub name: String,
    /// The errors in the entry.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads the table of servers, or only the requested ones.
pub(super) fn read_all(reader: &mut Reader<'_>, field: &Located<'_>, into: &mut Servers) {
    let Some(entries) = reader.table(field, "an entry for each server: {name: {command: ...}}")
    else {
        return;
    };
    let is_missing = |only: &&String| entries.iter().all(|entry| entry.key != **only);
    if let Some(only) = reader.only.iter().find(is_missing) {
        let names: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
        let fix = format!("it has {}", quoted(&names));
        return reader.report(field, format!("has no server `{only}`"), &fix);
    }
    let is_setting = |entry: &Entry| {
        matches!(entry.key.as_str(), "command" | "url")
            && matches!(entry.node.value, document::Value::Text(_))
    };
    let mut empty = entries
        .iter()
        .filter(|entry| matches!(entry.node.value, document::Value::Null));
    let has_setting = entries.iter().any(is_setting);
    if has_setting && let Some(empty) = empty.next() {
        let fix = "indent its settings by two spaces more than its name";
        return reader.report(&field.member(empty), "is empty", fix);
    }
    let mut names = BTreeSet::new();
    for entry in entries {
        let is_table = matches!(
            entry.node.value,
            document::Value::Table(_) | document::Value::Null
        );
        if !is_table && !reader.foreign && is_setting_of_server(&entry.key) {
            let what = "is a setting of a server";
            reader.report(
                &field.member(entry),
                what,
                "indent it below the name of its server",
            );
        } else if reader.only.is_empty() || reader.only.contains(&entry.key) {
            read_one(reader, field, entry, &mut names, into);
        }
    }
    let vary_entries = std::mem::take(&mut into.vary_entries).into_iter();
    if into.enabled.is_empty() {
        into.enabled.extend(vary_entries.map(|(server, _)| server));
    } else {
        reader.notes.extend(vary_entries.map(|(_, note)| note));
    }
    if entries.is_empty() {
        reader.report(field, "is empty", "name at least one server");
    } else if entries.len() == into.disabled.len() {
        reader.report(field, "has only disabled servers", "enable one of them");
    } else if into.enabled.is_empty() {
        // No server is left, so the errors of the entries are reported.
        let left_out = std::mem::take(&mut into.left_out);
        let diagnostics = left_out.into_iter().flat_map(|server| server.diagnostics);
        reader.diagnostics.extend(diagnostics);
    }
}

/// Whether `key` is one of the keys of a server.
pub(super) fn is_setting_of_server(key: &str) -> bool {
    let mut all = SETTINGS.iter().copied().flatten();
    all.any(|setting| setting.key == key)
}

fn read_one<'t>(
    reader: &mut Reader<'_>,
    servers: &Located<'t>,
    entry: &'t Entry,
    names: &mut BTreeSet<String>,
    into: &mut Servers,
) {
    let field = servers.member(entry);
    let before = (reader.diagnostics.len(), reader.notes.len());
    let mut draft = PartialServer::new(&entry.key);
    read_settings(reader, &field, &mut draft);
    if draft.disabled && reader.only.is_empty() {
        // Servers are often disabled because something is missing, so errors in them are ignored.
        reader.diagnostics.truncate(before.0);
        reader.notes.truncate(before.1);
        return into.disabled.push(entry.key.clone());
    }
    let name = name(reader, &field, entry);
    if !names.insert(name.clone()) {
        let what = format!("would be called `{name}` like another one");
        reader.report(&field, what, "rename one of them");
    }
    let trusts_annotations = draft.trusts_annotations;
    let config = draft.finish(reader, &field, name);
    // A client's file is not written for Vary. Other programs may be able to use this entry.
    if reader.foreign && reader.only.is_empty() && reader.diagnostics.len() > before.0 {
        return into.left_out.push(LeftOut {
            name: entry.key.clone(),
            diagnostics: reader.diagnostics.split_off(before.0),
        });
    }
    if let Some((config, auth)) = config {
        note_missing_package(reader, &field, &config.target);
        let url = match &config.target {
            Target::Http { url, .. } => Some(url),
            Target::Command { .. } | Target::InProcess(_) => None,
        };
        if reader.foreign && reader.only.is_empty() && reader.vary_entries.contains(&entry.key, url)
        {
            let note = VaryEntries::note(entry.at, field.path);
            return into.vary_entries.push((config, note));
        }
        if let Some(auth) = auth {
            if matches!(auth.method, AuthMethod::TokenExchange(_)) {
                let exchange = field.deepest(&["auth", "token-exchange"]);
                into.exchanges_at.push((exchange.node.at, exchange.path));
            }
            into.auth.insert(config.name.clone(), auth);
        }
        if config.needs_claims() {
            let headers = field.deepest(&["headers"]);
            into.claim_headers_at.push((headers.node.at, headers.path));
        }
        if trusts_annotations {
            into.trusted_annotations.insert(config.name.clone());
        }
        into.enabled.push(config);
    }
}

/// Notes that `target` starts a program that downloads packages, and names none.
fn note_missing_package(reader: &mut Reader<'_>, server: &Located<'_>, target: &Target) {
    if !target.lacks_package() {
        return;
    }
    let runner = target.package_runner().unwrap_or_default();
    let before = match runner {
        "npx" => "-y, ",
        "pipx" => "run, ",
        _ => "",
    };
    let command = server.deepest(&["command"]);
    let what = format!("starts `{runner}`, which got no package to run");
    let fix = format!("add it: `args: [{before}PACKAGE]`");
    reader.note(&command, what, fix);
}

fn read_settings(reader: &mut Reader<'_>, field: &Located<'_>, draft: &mut PartialServer) {
    const EXAMPLE: &str = "{command: ...} or {url: ...}";
    if !reader.foreign {
        draft.given = field.keys().into_iter().map(str::to_owned).collect();
        return reader.settings(field, SETTINGS, draft, EXAMPLE);
    }
    let known: Vec<_> = COMMON.iter().map(|setting| setting.key).collect();
    for entry in reader.table(field, EXAMPLE).unwrap_or_default() {
        let member = field.member(entry);
        if matches!(entry.node.value, document::Value::Null) {
            // Some programs also write settings without a value.
            continue;
        }
        let key = match entry.key.as_str() {
            // As Windsurf and the Gemini CLI write it.
            "serverUrl" | "httpUrl" => "url",
            key => key,
        };
        if let Some(setting) = COMMON.iter().find(|setting| setting.key == key) {
            draft.given.insert(setting.key.to_owned());
            setting.kind.read(reader, &member, draft);
        } else if is_setting_of_server(&entry.key) {
            // Clients have a `timeout` as well, in seconds or in milliseconds.
            let what = "is ignored in the file of a client";
            reader.note_at(entry.at, &member.path, what, TO_OURS);
        } else if IMPORTED.contains(&&*entry.key) {
            let what = "is ignored here: it changes what the server has or gets";
            let fix = format!(
                "{} takes over what can be",
                reader.variables.import_command()
            );
            reader.note_at(entry.at, &member.path, what, fix);
        } else if let Some(meant) = nearest(&entry.key, &known) {
            let what = "is not a known key, and is ignored";
            let mut note = Diagnostic::new(entry.at, member.path, what);
            note.meant = Some(meant.into());
            reader.notes.push(note.with_fix(did_you_mean(meant)));
        }
    }
}

/// What other clients write about the tools and the environment of a server.
const IMPORTED: [&str; 9] = [
    "includeTools",
    "excludeTools",
    "enabledTools",
    "disabledTools",
    "enabled_tools",
    "disabled_tools",
    "allowedTools",
    "envFile",
    "env_file",
];

/// The name of the server, with only the characters that names of tools can have.
fn name(reader: &mut Reader<'_>, field: &Located<'_>, entry: &Entry) -> String {
    let better = plain_name(&entry.key);
    if better == entry.key {
        return better;
    }
    if reader.foreign {
        let what = format!("is called `{better}` here");
        reader.note_at(entry.at, &field.path, what, NO_OTHER_CHARACTERS);
    } else {
        let what = format!(
            "is not a server name, which has at most {LONGEST_NAME} ASCII letters, digits, `-`, `_` and `.`"
        );
        let fix = format!("call it `{better}`");
        reader.report_at(entry.at, &field.path, what, &fix);
    }
    better
}

/// Returns the name if it is valid for a server, else a similar valid name.
pub(super) fn plain_name(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(allowed) {
        return name.to_owned();
    }
    let pieces = name.split(|c| !allowed(c));
    let parts: Vec<&str> = pieces.filter(|word| !word.is_empty()).collect();
    let mut better = parts.join("-");
    better.truncate(LONGEST_NAME);
    if better.is_empty() {
        "server".clone_into(&mut better);
    }
    better
}

/// Why a server gets another name.
pub(super) const NO_OTHER_CHARACTERS: &str = "names of tools can have no other characters";

/// The schema of `servers`.
pub(super) fn shape(schema: &mut SchemaBuilder) -> Value {
    let server = schema.define("server", |schema| {
        let mut server = schema.table("a server", SETTINGS);
        // Servers are often disabled because something is missing, so errors in them are ignored.
        server["if"] = is_disabled();
        server["else"] = has_a_target();
        server
    });
    let mut servers = schema.named(NAME, &server);
    servers["minProperties"] = json!(1);
    servers["not"] = json!({"minProperties": 1, "additionalProperties": is_disabled()});
    servers
}

fn is_disabled() -> Value {
    json!({
        "type": "object",
        "properties": {"disabled": {"enum": [true, "on", "true", "yes"]}},
        "required": ["disabled"],
    })
}

/// A program or an address, with the settings that belong to it. An editor may validate a table before merge keys are
/// resolved.
fn has_a_target() -> Value {
    let kinds = |kind: Kind| {
        let kinds = KINDS.iter().filter(move |(_, other)| *other == kind);
        kinds.map(|(name, _)| *name).collect::<Vec<_>>()
    };
    let of_url = [kinds(Kind::Http), kinds(Kind::Sse)].concat();
    let nothing = json!({"maxProperties": 0});
    json!({
        "anyOf": [{"required": ["command"]}, {"required": ["url"]}, {"required": ["<<"]}],
        "if": {"required": ["url"]},
        "then": {
            "not": {"required": ["command"]},
            "properties": {
                "type": {"not": {"enum": kinds(Kind::Stdio)}},
                "args": {"maxItems": 0},
                "env": nothing,
                "cwd": false,
            },
        },
        "else": {
            "properties": {
                "type": {"not": {"enum": of_url}},
                "headers": nothing,
                "ca": false,
                "certificate": false,
                "key": false,
                "auth": false,
            },
        },
    })
}

/// The fix for settings of Vary in the file of a client.
pub(super) const TO_OURS: &str = "settings of Vary need a file with `servers` of its own";

/// The pattern for names of servers.
const NAME: &str = "[A-Za-z0-9._-]{1,64}";

/// The maximum length of a server's name. Together with the name of a tool it must fit into 128 characters.
const LONGEST_NAME: usize = 64;
