//! What may be said of a server.

use std::path::PathBuf;

use http::{HeaderName, HeaderValue, Uri};
use mcp_vary_upstream::{Isolation, Limits, RetryPolicy};
use mcp_vary_wire::methods::is_of_the_protocol;

use super::draft::{Draft, Kind};
use crate::key_spec::{Setting, Takes};
use crate::reader::{Field, MOST, Reader};
use crate::schema::Schema;

/// What a server is for every client.
pub(super) const COMMON: &[Setting<Draft>] = &[
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
pub(super) const OURS: &[Setting<Draft>] = &[
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
        takes: Takes::Duration(|draft| &mut draft.limits.ready_timeout),
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
        takes: Takes::Duration(|draft| &mut draft.limits.hang_timeout),
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
                if draft.limits.backoff > draft.limits.max_backoff {
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
        key: "allow-methods",
        about: "methods of extensions, such as `vendor/thing`, that reach the server under every variant; without it they \
pass only under variants that hide nothing",
        default: "[]",
        takes: Takes::Other(Schema::words, read_allowed_methods),
    },
    Setting {
        key: "unused",
        about: "how long a connection that nobody uses stays open, other than the first",
        default: "5m",
        takes: Takes::Duration(|draft| &mut draft.limits.idle_timeout),
    },
    Setting {
        key: "list-ttl",
        about: "how long a list is shown before it is read again, in the background, of a server that does not declare \
`listChanged`; a modern server's own `ttlMs` goes first. `off` to read it when it announces a change alone",
        default: "60s",
        takes: Takes::Other(Schema::duration_or_off, |reader, field, draft| {
            reader.duration_or_off(field, &mut draft.limits.list_ttl)
        }),
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
        takes: Takes::Count(1..=MOST, |draft| &mut draft.limits.dedicated_connections),
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
        takes: Takes::Duration(|limits| &mut limits.max_backoff),
    },
];

const REPEATS: &[(&str, RetryPolicy)] = &[
    ("never", RetryPolicy::Never),
    ("idempotent", RetryPolicy::Idempotent),
];

const ISOLATIONS: &[(&str, Isolation)] = &[
    ("shared", Isolation::Shared),
    ("session", Isolation::Session),
];

pub(super) const KINDS: &[(&str, Kind)] = &[
    ("stdio", Kind::Stdio),
    ("http", Kind::Http),
    ("streamable-http", Kind::Http),
    ("streamableHttp", Kind::Http),
    ("sse", Kind::Sse),
];

fn read_allowed_methods(reader: &mut Reader<'_>, field: &Field<'_>, draft: &mut Draft) {
    draft.allowed_methods = reader.words(field);
    let of_the_protocol = |method: &&String| is_of_the_protocol(method);
    if let Some(method) = draft.allowed_methods.iter().find(of_the_protocol) {
        let what = format!("has `{method}`, which is not a method of an extension");
        let fix = "the protocol's own methods always go by the variant; leave it out";
        reader.wrong(field, what, fix);
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

/// Reads the address of a streamable HTTP endpoint.
fn endpoint(text: &str) -> Option<Uri> {
    let uri: Uri = text.parse().ok()?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http" | "https"), Some(host)) if !host.is_empty() => Some(uri),
        _ => None,
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
