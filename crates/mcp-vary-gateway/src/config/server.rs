//! One entry of `servers`: the shape that every client's `mcpServers` has, and what Vary adds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use serde_json::{Value, json};

use super::mistake::Mistake;
use super::reader::{Field, MOST, Reader, quoted};
use super::schema::Schema;
use super::setting::{Setting, Takes};
use super::tree::{self, Entry};
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
        if matches!(entry.node.value, tree::Value::Null) {
            // Some programs write down what is not set.
            continue;
        }
        if let Some(setting) = COMMON.iter().find(|setting| setting.key == entry.key) {
            setting.takes.read(reader, &member, draft);
        } else if OURS.iter().any(|setting| setting.key == entry.key) {
            // Clients have a `timeout`, too, some in seconds and some in milliseconds.
            let note = Mistake::new(entry.at, member.path, "is ignored in the file of a client");
            reader.notes.push(note.with_fix(TO_OURS));
        }
    }
}

/// The server's name, as tools may carry it.
fn name(reader: &mut Reader<'_>, field: &Field<'_>, entry: &Entry) -> String {
    let better = plain_name(&entry.key);
    if better == entry.key {
        return better;
    }
    if reader.foreign {
        let what = format!("is called `{better}` here");
        let note = Mistake::new(entry.at, field.path.as_str(), what);
        reader.notes.push(note.with_fix(NO_OTHER_CHARACTERS));
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

/// The name itself where a server may have it, else one like it.
pub(super) fn plain_name(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(allowed) {
        return name.to_owned();
    }
    let words = name.split(|c| !allowed(c));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let mut better = words.join("-");
    better.truncate(LONGEST_NAME);
    if better.is_empty() {
        "server".clone_into(&mut better);
    }
    better
}

/// Why a server is called otherwise.
pub(super) const NO_OTHER_CHARACTERS: &str = "names of tools can have no other characters";

/// What may stand under `servers`.
pub(super) fn shape(schema: &mut Schema) -> Value {
    let server = schema.define("server", |schema| {
        let mut server = schema.table(&[COMMON, OURS]);
        // Half of what is switched off is switched off because something is missing.
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

/// A program or an address, with what goes with it. An editor may see a merged table before it is merged.
fn has_a_target() -> Value {
    let kinds = |kind: Kind| {
        let kinds = KINDS.iter().filter(move |(_, other)| *other == kind);
        kinds.map(|(name, _)| *name).collect::<Vec<_>>()
    };
    let nothing = json!({"maxProperties": 0});
    json!({
        "anyOf": [{"required": ["command"]}, {"required": ["url"]}, {"required": ["<<"]}],
        "properties": {"type": {"not": {"enum": kinds(Kind::Sse)}}},
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
            "properties": {"type": {"not": {"enum": kinds(Kind::Http)}}, "headers": nothing},
        },
    })
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
                    let is_table = matches!(field.node.value, tree::Value::Table(_));
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
        about: "the program, a path or a name on `PATH`",
        default: "",
        takes: Takes::Other(Schema::program, |reader, field, draft| {
            draft.given.insert("command");
            draft.program = reader.text(field);
            if draft.program.as_deref() == Some("") {
                reader.wrong(field, "is empty", "write the program to start");
            }
        }),
    },
    Setting {
        key: "args",
        about: "its arguments, a list",
        default: "",
        takes: Takes::Other(Schema::words, |reader, field, draft| {
            draft.given.insert("args");
            draft.args = reader.words(field);
        }),
    },
    Setting {
        key: "env",
        about: "added to the environment that it inherits",
        default: "",
        takes: Takes::Other(Schema::named_words, |reader, field, draft| {
            draft.given.insert("env");
            draft.env = reader.named_words(field);
        }),
    },
    Setting {
        key: "cwd",
        about: "where it runs; where Vary runs without it",
        default: "",
        takes: Takes::Other(Schema::text, |reader, field, draft| {
            draft.given.insert("cwd");
            draft.cwd = reader.text(field).map(PathBuf::from);
        }),
    },
    Setting {
        key: "type",
        about: "`stdio` with `command`, `http` with `url`; may be left out",
        default: "",
        takes: Takes::Other(|schema| schema.choice(KINDS), read_kind),
    },
    Setting {
        key: "url",
        about: "the endpoint",
        default: "",
        takes: Takes::Other(Schema::url, read_url),
    },
    Setting {
        key: "headers",
        about: "sent with every request to it",
        default: "",
        takes: Takes::Other(Schema::headers, read_headers),
    },
    Setting {
        key: "disabled",
        about: "leaves the server out, with whatever is wrong in its entry",
        default: "off",
        takes: Takes::Switch(|draft| &mut draft.disabled),
    },
];

/// What Vary adds.
const OURS: &[Setting<Draft>] = &[
    Setting {
        key: "timeout",
        about: "how long a call may be without any sign of life; progress is one",
        default: "10m",
        takes: Takes::Duration(|draft| &mut draft.limits.idle),
    },
    Setting {
        key: "start-timeout",
        about: "from start to ready. Long, since `npx` and `uvx` download first",
        default: "1m",
        takes: Takes::Duration(|draft| &mut draft.limits.handshake),
    },
    Setting {
        key: "connect-timeout",
        about: "opening a connection to `url`",
        default: "10s",
        takes: Takes::Duration(|draft| &mut draft.limits.connect),
    },
    Setting {
        key: "patience",
        about: "how long a call waits for its turn, or for a server that is being started",
        default: "10s",
        takes: Takes::Duration(|draft| &mut draft.limits.patience),
    },
    Setting {
        key: "concurrency",
        about: "calls at once, of all clients; further ones wait for their turn, up to 16 times as many",
        default: "256",
        takes: Takes::Count(1..=MOST, |draft| &mut draft.limits.concurrency),
    },
    Setting {
        key: "max-message",
        about: "one line of a program, or one event of a stream",
        default: "16 MiB",
        takes: Takes::Size(|draft| &mut draft.limits.line),
    },
    Setting {
        key: "max-body",
        about: "one body of an HTTP reply",
        default: "64 MiB",
        takes: Takes::Size(|draft| &mut draft.limits.body),
    },
    Setting {
        key: "ping",
        about: "how long the server may be silent before it is asked whether it is there; `off` to never \
ask",
        default: "30s",
        takes: Takes::Other(Schema::duration_or_off, |reader, field, draft| {
            reader.duration_or_off(field, &mut draft.limits.ping)
        }),
    },
    Setting {
        key: "hung",
        about: "how long it may take to say so while no call is running; then it counts as lost",
        default: "20s",
        takes: Takes::Duration(|draft| &mut draft.limits.hung),
    },
    Setting {
        key: "restart",
        about: "the pauses before a lost server is connected to again",
        default: "",
        takes: Takes::Other(
            |schema| schema.table(&[RESTART]),
            |reader, field, draft| {
                let example = "{first: 250ms, longest: 30s}";
                reader.settings(field, &[RESTART], &mut draft.limits, example);
                if draft.limits.backoff > draft.limits.longest_backoff {
                    let what = "has a first pause that is longer than the longest";
                    reader.wrong(field, what, "raise `longest`");
                }
            },
        ),
    },
    Setting {
        key: "isolation",
        about: "`shared`: clients that can do the same share a connection. `session`: each session of a \
client has its own, until it ends or nobody used it for `unused`; one more is shared by \
clients without sessions. When there are no more, a session is refused",
        default: "shared",
        takes: Takes::Other(
            |schema| schema.choice(ISOLATIONS),
            |reader, field, draft| reader.choice(field, ISOLATIONS, &mut draft.isolation),
        ),
    },
    Setting {
        key: "repeat",
        about: "which calls are sent once more when the server is lost while it works on them. \
`idempotent`: those of tools that declare `idempotentHint` or `readOnlyHint`, once, \
while the client was told nothing of them yet",
        default: "never",
        takes: Takes::Other(
            |schema| schema.choice(REPEATS),
            |reader, field, draft| reader.choice(field, REPEATS, &mut draft.repeat),
        ),
    },
    Setting {
        key: "mirror",
        about: "extensions whose settings the server is told when a client declares them",
        default: "[io.modelcontextprotocol/ui, io.modelcontextprotocol/tasks]",
        takes: Takes::Other(Schema::words, |reader, field, draft| {
            draft.mirrored = Some(reader.words(field))
        }),
    },
    Setting {
        key: "unused",
        about: "how long a connection that nobody uses stays open, other than the first",
        default: "5m",
        takes: Takes::Duration(|draft| &mut draft.limits.unused),
    },
    Setting {
        key: "connections",
        about: "connections at most, for clients that can do different things or share none; with \
`isolation: session` one of them is for clients without sessions",
        default: "8",
        takes: Takes::Count(1..=MOST, |draft| &mut draft.limits.connections),
    },
    Setting {
        key: "own-connections",
        about: "beside those: connections that one client each has alone at most, for calls of clients that the \
server can ask something. Who is idle gives way; when all are in use, a call is refused",
        default: "64",
        takes: Takes::Count(1..=MOST, |draft| &mut draft.limits.own_connections),
    },
];

const RESTART: &[Setting<Limits>] = &[
    Setting {
        key: "first",
        about: "the first pause; doubled each time it fails",
        default: "250ms",
        takes: Takes::Duration(|limits| &mut limits.backoff),
    },
    Setting {
        key: "longest",
        about: "the longest pause",
        default: "30s",
        takes: Takes::Duration(|limits| &mut limits.longest_backoff),
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

/// The names that a server may have.
const NAME: &str = "[A-Za-z0-9._-]{1,64}";

/// Letters of a server's name; with the name of a tool it has to fit where 128 fit.
const LONGEST_NAME: usize = 64;
