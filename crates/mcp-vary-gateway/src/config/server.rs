//! One entry of `servers`: the shape that every client's `mcpServers` has, and what Vary adds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use http::{HeaderMap, HeaderName, HeaderValue, Uri};

use super::mistake::Mistake;
use super::reader::{Field, MOST, Reader, Setting, quoted};
use super::tree::{Entry, Value};
use crate::upstream::{Isolation, Limits, Repeat, Target, UpstreamConfig};

/// The servers of a file.
#[derive(Debug, Default)]
pub(super) struct Servers {
    pub(super) enabled: Vec<UpstreamConfig>,
    /// The names of those that the file has and switches off.
    pub(super) disabled: Vec<String>,
}

/// Reads the table of servers, or the one that is wanted.
pub(super) fn read_all(reader: &mut Reader<'_>, field: &Field<'_>, into: &mut Servers) {
    let Some(entries) = reader.table(field, "an entry for each server: {name: {command: ...}}")
    else {
        return;
    };
    if let Some(only) = reader.only
        && entries.iter().all(|entry| entry.key != only)
    {
        let names: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
        let fix = format!("it has {}", quoted(&names));
        return reader.wrong(field, format!("has no server `{only}`"), &fix);
    }
    let mut taken = BTreeSet::new();
    for entry in entries {
        if reader.only.is_none_or(|only| only == entry.key) {
            read_one(reader, field, entry, &mut taken, into);
        }
    }
    if entries.is_empty() {
        reader.wrong(field, "is empty", "name at least one server");
    } else if entries.len() == into.disabled.len() {
        reader.wrong(field, "has only disabled servers", "enable one of them");
    }
}

fn read_one<'t>(
    reader: &mut Reader<'_>,
    servers: &Field<'t>,
    entry: &'t Entry,
    taken: &mut BTreeSet<String>,
    into: &mut Servers,
) {
    let field = servers.member(entry);
    let before = (reader.mistakes.len(), reader.notes.len());
    let mut draft = Draft::default();
    read_settings(reader, &field, &mut draft);
    if draft.disabled && reader.only.is_none() {
        // Half of what is switched off is switched off because something is missing.
        reader.mistakes.truncate(before.0);
        reader.notes.truncate(before.1);
        return into.disabled.push(entry.key.clone());
    }
    let name = name(reader, &field, entry);
    if !taken.insert(name.clone()) {
        let what = format!("would be called `{name}` like another one");
        reader.wrong(&field, what, "rename one of them");
    }
    if let Some(config) = draft.finish(reader, &field, name) {
        into.enabled.push(config);
    }
}

fn read_settings(reader: &mut Reader<'_>, field: &Field<'_>, draft: &mut Draft) {
    const EXAMPLE: &str = "{command: ...} or {url: ...}";
    if !reader.foreign {
        return reader.settings(field, &[COMMON, OURS], draft, EXAMPLE);
    }
    for entry in reader.table(field, EXAMPLE).unwrap_or_default() {
        let member = field.member(entry);
        if matches!(entry.node.value, Value::Null) {
            // Some programs write down what is not set.
            continue;
        }
        if let Some(setting) = COMMON.iter().find(|setting| setting.key == entry.key) {
            (setting.read)(reader, &member, draft);
        } else if OURS.iter().any(|setting| setting.key == entry.key) {
            // Clients have a `timeout`, too, some in seconds and some in milliseconds.
            let note = Mistake::new(entry.at, member.path, "is ignored in the file of a client");
            reader.notes.push(note.with_fix(TO_OURS));
        }
    }
}

/// The server's name, as tools may carry it.
fn name(reader: &mut Reader<'_>, field: &Field<'_>, entry: &Entry) -> String {
    let name = entry.key.as_str();
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(allowed) {
        return name.to_owned();
    }
    let words: Vec<&str> = name
        .split(|c| !allowed(c))
        .filter(|word| !word.is_empty())
        .collect();
    let mut better = words.join("-");
    better.truncate(LONGEST_NAME);
    if better.is_empty() {
        "server".clone_into(&mut better);
    }
    if reader.foreign {
        let what = format!("is called `{better}` here");
        let note = Mistake::new(entry.at, field.path.as_str(), what);
        let fix = "names of tools can have no other characters";
        reader.notes.push(note.with_fix(fix));
    } else {
        let what = format!(
            "is no name of a server, which has at most {LONGEST_NAME} letters, digits, `-`, `_` and `.`"
        );
        let mistake = Mistake::new(entry.at, field.path.as_str(), what);
        let fix = format!("call it `{better}`");
        reader.mistakes.push(mistake.with_fix(fix));
    }
    better
}

/// An entry while it is read.
#[derive(Default)]
struct Draft {
    disabled: bool,
    /// The keys that were given, whatever they were worth.
    given: BTreeSet<&'static str>,
    program: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    kind: Option<Kind>,
    url: Option<Uri>,
    headers: HeaderMap,
    limits: Limits,
    isolation: Isolation,
    repeat: Repeat,
    mirrored: Option<Vec<String>>,
}

/// What `type` may say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Stdio,
    Http,
    Sse,
}

impl Draft {
    /// The server, unless something is wrong with where it is.
    fn finish(
        mut self,
        reader: &mut Reader<'_>,
        field: &Field<'_>,
        name: String,
    ) -> Option<UpstreamConfig> {
        self.check_target(reader, field);
        let target = match (self.program.take(), self.url.take()) {
            (Some(program), _) => Target::Command {
                program,
                args: self.args,
                env: self.env,
                cwd: self.cwd,
            },
            (None, url) => Target::Http {
                url: url?,
                headers: self.headers,
            },
        };
        let mut config = UpstreamConfig::new(name, target)
            .with_limits(self.limits)
            .with_isolation(self.isolation);
        config.repeat = self.repeat;
        if let Some(mirrored) = self.mirrored {
            config.mirrored = mirrored;
        }
        Some(config)
    }

    fn check_target(&self, reader: &mut Reader<'_>, field: &Field<'_>) {
        let (right, beside, others) =
            match (self.given.contains("command"), self.given.contains("url")) {
                (true, true) => {
                    return reader.wrong(field, "has `command` and `url`", "keep one of them");
                }
                (false, false) => {
                    // What is no table, or has them with a slip, was told already.
                    let is_table = matches!(field.node.value, Value::Table(_));
                    if is_table && !reader.was_meant(field, &["command", "url"]) {
                        let what = "has neither `command` nor `url`";
                        reader.wrong(field, what, "write one of them");
                    }
                    return;
                }
                (true, false) => (Kind::Stdio, "command", &["headers"][..]),
                (false, true) => (Kind::Http, "url", &["args", "env", "cwd"][..]),
            };
        if self.kind == Some(Kind::Sse) {
            let what = "has the type `sse`, a transport of 2024-11-05 that is not supported";
            let fix = "write `http` and the server's streamable HTTP address";
            reader.wrong(field, what, fix);
        } else if self.kind.is_some_and(|kind| kind != right) {
            let right = if right == Kind::Stdio {
                "stdio"
            } else {
                "http"
            };
            let what = format!("has a `type` that does not go with `{beside}`");
            reader.wrong(field, what, &format!("write `{right}`, or leave it out"));
        }
        let lost: Vec<&str> = others
            .iter()
            .filter(|key| self.given.contains(**key) && !self.is_empty(key))
            .copied()
            .collect();
        if !lost.is_empty() && !reader.foreign {
            let what = format!("has {}, of no use beside `{beside}`", quoted(&lost));
            reader.wrong(field, what, "leave it out");
        }
    }

    /// Some clients write all keys, whether they are of use or not.
    fn is_empty(&self, key: &str) -> bool {
        match key {
            "args" => self.args.is_empty(),
            "env" => self.env.is_empty(),
            "headers" => self.headers.is_empty(),
            _ => false,
        }
    }
}

/// Reads the address of a streamable HTTP endpoint.
fn endpoint(text: &str) -> Option<Uri> {
    let uri: Uri = text.parse().ok()?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http" | "https"), Some(host)) if !host.is_empty() => Some(uri),
        _ => None,
    }
}

fn read_url(reader: &mut Reader<'_>, field: &Field<'_>, draft: &mut Draft) {
    draft.given.insert("url");
    let Some(text) = reader.text(field) else {
        return;
    };
    draft.url = endpoint(&text);
    if draft.url.is_none() {
        let fix = "write it like http://127.0.0.1:8800/mcp";
        reader.wrong(field, "is no URL of an MCP server", fix);
    }
}

fn read_headers(reader: &mut Reader<'_>, field: &Field<'_>, draft: &mut Draft) {
    draft.given.insert("headers");
    for entry in reader.table(field, "{NAME: value}").unwrap_or_default() {
        let member = field.member(entry);
        let Some(word) = reader.word(&member) else {
            continue;
        };
        match (
            HeaderName::try_from(&entry.key),
            HeaderValue::try_from(word),
        ) {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(true);
                draft.headers.append(name, value);
            }
            (Err(_), _) => {
                let fix = "write it like `Authorization`";
                reader.wrong(&member, "is no name of a header", fix);
            }
            (Ok(_), Err(_)) => {
                let fix = "look for line breaks and control characters";
                reader.wrong(&member, "has characters that no header may have", fix);
            }
        }
    }
}

fn read_kind(reader: &mut Reader<'_>, field: &Field<'_>, draft: &mut Draft) {
    let mut kind = Kind::Stdio;
    let before = reader.mistakes.len();
    reader.choice(field, KINDS, &mut kind);
    if reader.mistakes.len() == before {
        draft.kind = Some(kind);
    }
}

/// What a server is for every client.
const COMMON: &[Setting<Draft>] = &[
    Setting {
        key: "command",
        read: |reader, field, draft| {
            draft.given.insert("command");
            draft.program = reader.text(field);
            if draft.program.as_deref() == Some("") {
                reader.wrong(field, "is empty", "write the program to start");
            }
        },
    },
    Setting {
        key: "args",
        read: |reader, field, draft| {
            draft.given.insert("args");
            draft.args = reader.words(field);
        },
    },
    Setting {
        key: "env",
        read: |reader, field, draft| {
            draft.given.insert("env");
            draft.env = reader.named_words(field);
        },
    },
    Setting {
        key: "cwd",
        read: |reader, field, draft| {
            draft.given.insert("cwd");
            draft.cwd = reader.text(field).map(PathBuf::from);
        },
    },
    Setting {
        key: "type",
        read: read_kind,
    },
    Setting {
        key: "url",
        read: read_url,
    },
    Setting {
        key: "headers",
        read: read_headers,
    },
    Setting {
        key: "disabled",
        read: |reader, field, draft| reader.switch(field, &mut draft.disabled),
    },
];

/// What Vary adds.
const OURS: &[Setting<Draft>] = &[
    Setting {
        key: "timeout",
        read: |reader, field, draft| reader.duration(field, &mut draft.limits.idle),
    },
    Setting {
        key: "start-timeout",
        read: |reader, field, draft| reader.duration(field, &mut draft.limits.handshake),
    },
    Setting {
        key: "connect-timeout",
        read: |reader, field, draft| reader.duration(field, &mut draft.limits.connect),
    },
    Setting {
        key: "patience",
        read: |reader, field, draft| reader.duration(field, &mut draft.limits.patience),
    },
    Setting {
        key: "concurrency",
        read: |reader, field, draft| reader.count(field, 1..=MOST, &mut draft.limits.concurrency),
    },
    Setting {
        key: "max-message",
        read: |reader, field, draft| reader.size(field, &mut draft.limits.line),
    },
    Setting {
        key: "max-body",
        read: |reader, field, draft| reader.size(field, &mut draft.limits.body),
    },
    Setting {
        key: "ping",
        read: |reader, field, draft| reader.duration_or_off(field, &mut draft.limits.ping),
    },
    Setting {
        key: "hung",
        read: |reader, field, draft| reader.duration(field, &mut draft.limits.hung),
    },
    Setting {
        key: "restart",
        read: |reader, field, draft| {
            let example = "{first: 250ms, longest: 30s}";
            reader.settings(field, &[RESTART], &mut draft.limits, example);
            if draft.limits.backoff > draft.limits.longest_backoff {
                let what = "has a first pause that is longer than the longest";
                reader.wrong(field, what, "raise `longest`");
            }
        },
    },
    Setting {
        key: "isolation",
        read: |reader, field, draft| reader.choice(field, ISOLATIONS, &mut draft.isolation),
    },
    Setting {
        key: "repeat",
        read: |reader, field, draft| reader.choice(field, REPEATS, &mut draft.repeat),
    },
    Setting {
        key: "mirror",
        read: |reader, field, draft| draft.mirrored = Some(reader.words(field)),
    },
    Setting {
        key: "unused",
        read: |reader, field, draft| reader.duration(field, &mut draft.limits.unused),
    },
    Setting {
        key: "connections",
        read: |reader, field, draft| reader.count(field, 1..=MOST, &mut draft.limits.connections),
    },
];

const RESTART: &[Setting<Limits>] = &[
    Setting {
        key: "first",
        read: |reader, field, limits| reader.duration(field, &mut limits.backoff),
    },
    Setting {
        key: "longest",
        read: |reader, field, limits| reader.duration(field, &mut limits.longest_backoff),
    },
];

const REPEATS: &[(&str, Repeat)] = &[("never", Repeat::Never), ("idempotent", Repeat::Idempotent)];

const ISOLATIONS: &[(&str, Isolation)] = &[
    ("shared", Isolation::Shared),
    ("session", Isolation::Session),
];

const KINDS: &[(&str, Kind)] = &[
    ("stdio", Kind::Stdio),
    ("http", Kind::Http),
    ("streamable-http", Kind::Http),
    ("streamableHttp", Kind::Http),
    ("sse", Kind::Sse),
];

/// What a file needs to have settings of ours.
pub(super) const TO_OURS: &str = "settings of Vary need a file with `servers` of its own";

/// Letters of a server's name; with the name of a tool it has to fit where 128 fit.
const LONGEST_NAME: usize = 64;
