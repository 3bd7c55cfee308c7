//! The settings of a server.

use std::path::PathBuf;

use mcp_vary::extension::EXTENSIONS;
use mcp_vary::variant::VariantId;
use mcp_vary_upstream::endpoint_url::{endpoint_example, parse_endpoint};
use mcp_vary_upstream::{Isolation, Limits, Processes, RetryPolicy};
use mcp_vary_wire::method_names::is_of_the_protocol;

use super::draft::{Kind, PartialServer};
use super::{auth, headers};
use crate::document;
use crate::key_spec::ValueKind::{Count, Duration, Other, Size, Switch};
use crate::key_spec::{KeySpec, choice, keys};
use crate::reader::{Located, MOST, Reader};
use crate::schema_builder::SchemaBuilder;

/// The settings that every client supports.
pub(super) const COMMON: &[KeySpec<PartialServer>] = keys![
    /// the program, a path or a name on `PATH`
    "command" => Other(SchemaBuilder::program, |reader, field, draft| {
        draft.given.insert("command");
        draft.program = read_path(reader, field);
        if draft.program.as_deref() == Some("") {
            reader.report(field, "is empty", "write the program to start");
        }
    }),
    /// its arguments, a list
    "args" => Other(SchemaBuilder::strings, |reader, field, draft| {
        draft.given.insert("args");
        draft.args = reader.strings(field);
        check_paths(reader, field, &draft.args);
    }),
    /// environment variables that are added to those that it inherits
    "env" => Other(SchemaBuilder::named_strings, |reader, field, draft| {
        draft.given.insert("env");
        draft.env = reader.named_strings(field);
    }),
    /// its working directory; by default that of Vary: where you start it, or `--directory`
    "cwd" => Other(SchemaBuilder::text, |reader, field, draft| {
        draft.given.insert("cwd");
        draft.cwd = read_path(reader, field).map(PathBuf::from);
    }),
    /// the endpoint
    "url" => Other(SchemaBuilder::url, read_url),
    /// sent with every request. `${claims.NAME}` is a [verified claim](../authentication.md#headers-from-claims) of the
    /// user who sends the request, and needs `auth` or `stdio-principal`. A table with `command` is a value that a
    /// program prints, such as a token
    "headers" => Other(headers::shape, |reader, field, draft| {
        draft.given.insert("headers");
        headers::read(reader, field, &mut draft.headers);
    }),
    /// `stdio` (or `local`, as Copilot writes it) with `command`, `http` with `url`; may be left out. `sse` with `url`:
    /// the transport of 2024-11-05, without trying streamable HTTP first
    "type" => choice!(KINDS, |draft| &mut draft.kind),
    /// leaves the server out; mistakes in its entry are ignored
    "disabled" = "off" => Switch(|draft| &mut draft.disabled),
];

/// The settings that Vary adds.
pub(super) const OURS: &[KeySpec<PartialServer>] = keys![
    /// how long a call may run without a message from the server, such as a progress notification
    "timeout" = "10m" => Duration(|draft| &mut draft.config.limits.idle),
    /// how long the server may take to start, with downloads by `npx` and `uvx`, to finish the handshake, and to send each list; a program that speaks 2025-11-25 and 2026-07-28, and needs more than 5 s for its first answer, is started twice
    "start-timeout" = "1m" => Duration(|draft| &mut draft.config.limits.handshake),
    /// opening a connection to `url`
    "connect-timeout" = "10s" => Duration(|draft| &mut draft.config.limits.connect),
    /// the file of further authorities, in PEM, that are trusted for `url` beside those of the system
    "ca" => Other(SchemaBuilder::text, |reader, field, draft| {
        draft.given.insert("ca");
        draft.config.ca = read_file(reader, field);
    }),
    /// the file of the client certificate for `url`, followed by those of intermediate authorities, in PEM; needs
    /// `key`. Vary reads both files again when they change
    "certificate" => Other(SchemaBuilder::text, |reader, field, draft| {
        draft.given.insert("certificate");
        draft.certificate = read_file(reader, field);
    }),
    /// the file of its private key, in PEM
    "key" => Other(SchemaBuilder::text, |reader, field, draft| {
        draft.given.insert("key");
        draft.key = read_file(reader, field);
    }),
    /// how Vary authenticates at `url`: `login`, or a table with one [method](../../how-to/remote-servers.md). Without
    /// it and without `Authorization` in `headers`, Vary uses the login of the person who started it, unless the file
    /// has `auth` at its top
    "auth" => Other(auth::shape, |reader, field, draft| {
        draft.given.insert("auth");
        draft.auth = auth::read(reader, field);
    }),
    /// concurrent calls of all clients; at most 16 times as many wait
    "concurrency" = "256" => Count(1..=MOST, |draft| &mut draft.config.limits.concurrency),
    /// how long a call waits for a free slot, or for a server that is starting
    "ready-timeout" = "10s" => Duration(|draft| &mut draft.config.limits.ready_timeout),
    /// shared connections at most; one user has at most a quarter of them. If all are in use, an idle one is closed for
    /// another user, except with `isolation: principal` and `session`; with `session` one of them is for clients
    /// without sessions
    "connections" = "256" => Count(1..=MOST, |draft| &mut draft.config.limits.connections),
    /// dedicated connections at most, in addition, each for one client that accepts server requests. If all are in use,
    /// an idle one is closed, or else the call is rejected
    "dedicated-connections" = "256" => Count(1..=MOST, |draft| &mut draft.config.limits.dedicated_connections),
    /// how long an idle connection stays open; the first connection always does
    "idle-timeout" = "5m" => Duration(|draft| &mut draft.config.limits.idle_timeout),
    /// how long a list is shown before it is read again, in the background, if the server does not declare
    /// `listChanged`. The `ttlMs` of a server of 2026-07-28 wins. `off`: it is read only when the server announces a
    /// change
    "list-ttl" = "60s" => Other(SchemaBuilder::duration_or_off, |reader, field, draft| {
        reader.duration_or_off(field, &mut draft.config.limits.list_ttl)
    }),
    /// `automatic`: clients with the same capabilities share a connection; with `auth`, each user has its own, unless
    /// the server is stateless over HTTP. `shared`: all clients share, even different users. `principal`: each user has
    /// its own. `session`: each session has its own until it ends or was idle for `idle-timeout`; clients without
    /// sessions share one more, each user its own. If no connection is left, a client's calls to the server fail
    "isolation" = "automatic" => choice!(ISOLATIONS, |draft| &mut draft.config.isolation),
    /// of a program. `several`: clients that declare `roots`, `sampling` or `elicitation` have a process of their own, as
    /// have those that `isolation` keeps apart. `one`: all clients share one, also different users, for a program that
    /// takes a port or a lock; it can [ask a client](../../decisions/0017-connections-of-ones-own.md) only while no other
    /// client calls, and not for its roots
    "processes" = "several" => choice!(PROCESSES, |draft| &mut draft.config.processes),
    /// `idempotent`: if the server is lost during the call of a tool that declares `idempotentHint` or `readOnlyHint`,
    /// the call is sent once more, if the client has received nothing yet
    "retry" = "never" => choice!(REPEATS, |draft| &mut draft.config.retry),
    /// extensions whose settings the server gets from clients that declare them, besides those that it declares itself; not
    /// those that Vary negotiates
    "forward-extensions" = "[io.modelcontextprotocol/ui, io.modelcontextprotocol/tasks]" => Other(
        SchemaBuilder::strings,
        |reader, field, draft| draft.config.forwarded_extensions = read_forwarded(reader, field),
    ),
    /// the variant that Vary selects with every request, if the server [offers
    /// variants](../../decisions/0047-passthrough.md). Without it the server's default. A server that does not offer it
    /// is not used
    "variant" => Other(SchemaBuilder::variant_id, |reader, field, draft| {
        draft.config.variant = reader.value(field, |word| word.parse::<VariantId>());
    }),
    /// whether the server gets the feature tags of clients, and shapes its results itself, if it negotiates content
    /// ([why](../../decisions/0047-passthrough.md)). Rules of `results`, `resources` and `prompts` for its items switch it
    /// off
    "passthrough" = "off" => Switch(|draft| &mut draft.config.passthrough),
    /// methods of extensions, such as `vendor/thing`, that reach the server under every variant; others pass only under
    /// variants that hide nothing
    "allow-methods" = "[]" => Other(SchemaBuilder::strings, read_allowed_methods),
    /// whether rules of `access` can allow tools by the hints that this server declares; otherwise they only deny by
    /// them
    "trust-annotations" = "off" => Switch(|draft| &mut draft.trusts_annotations),
    /// one line of a program, or one event of a stream
    "max-message" = "16 MiB" => Size(|draft| &mut draft.config.limits.message),
    /// one body of an HTTP reply
    "max-body" = "64 MiB" => Size(|draft| &mut draft.config.limits.body),
    /// how long the server may be silent before Vary pings it; `off` for no pings
    "ping" = "30s" => Other(SchemaBuilder::duration_or_off, |reader, field, draft| {
        reader.duration_or_off(field, &mut draft.config.limits.ping)
    }),
    /// how long a ping may stay unanswered while no call is running, before the server counts as lost
    "hang-timeout" = "20s" => Duration(|draft| &mut draft.config.limits.hang_timeout),
    /// the pauses before Vary reconnects to a lost server
    "restart" => Other(
        |schema| schema.table("`restart`", &[RESTART]),
        |reader, field, draft| {
            let limits = &mut draft.config.limits;
            reader.settings(field, &[RESTART], limits, "{first: 250ms, longest: 30s}");
            if limits.backoff > limits.max_backoff {
                let what = "has a first pause that is longer than the longest";
                reader.report(field, what, "raise `longest`");
            }
        },
    ),
];

/// Reads the extensions to forward. Those that Vary negotiates itself are none of them.
fn read_forwarded(reader: &mut Reader<'_>, field: &Located<'_>) -> Vec<String> {
    for item in reader.list(field) {
        let id = reader.word(&item);
        if id.is_some_and(|id| EXTENSIONS.iter().any(|extension| extension.id == id)) {
            let what = "is negotiated by Vary itself";
            let fix = "remove it; `passthrough: on` forwards feature tags, and `variant` selects a variant of the server";
            reader.report(&item, what, fix);
        }
    }
    reader.strings(field)
}

const RESTART: &[KeySpec<Limits>] = keys![
    /// the first pause; doubled after each failed attempt
    "first" = "250ms" => Duration(|limits| &mut limits.backoff),
    /// the longest pause
    "longest" = "30s" => Duration(|limits| &mut limits.max_backoff),
];

const REPEATS: &[(&str, RetryPolicy)] = &[
    ("never", RetryPolicy::Never),
    ("idempotent", RetryPolicy::Idempotent),
];

const ISOLATIONS: &[(&str, Isolation)] = &[
    ("automatic", Isolation::Automatic),
    ("shared", Isolation::Shared),
    ("principal", Isolation::Principal),
    ("session", Isolation::Session),
];

const PROCESSES: &[(&str, Processes)] = &[("several", Processes::Several), ("one", Processes::One)];

pub(super) const KINDS: &[(&str, Kind)] = &[
    ("stdio", Kind::Stdio),
    ("http", Kind::Http),
    ("streamable-http", Kind::Http),
    ("streamableHttp", Kind::Http),
    ("sse", Kind::Sse),
    // As Copilot writes it.
    ("local", Kind::Stdio),
];

fn read_allowed_methods(reader: &mut Reader<'_>, field: &Located<'_>, draft: &mut PartialServer) {
    draft.config.allowed_methods = reader.strings(field);
    let of_the_protocol = |method: &&String| is_of_the_protocol(method);
    if let Some(method) = draft.config.allowed_methods.iter().find(of_the_protocol) {
        let what = format!("has `{method}`, which is not a method of an extension");
        let fix = "the protocol's own methods always go by the variant; leave it out";
        reader.report(field, what, fix);
    }
}

fn read_url(reader: &mut Reader<'_>, field: &Located<'_>, draft: &mut PartialServer) {
    draft.given.insert("url");
    let Some(text) = reader.text(field) else {
        return;
    };
    draft.url = parse_endpoint(&text);
    if draft.url.is_none() {
        let fix = format!("write it like {}", endpoint_example(field.written()));
        reader.report(field, "is not the URL of an MCP server", &fix);
    }
}

const CONTROL_CHARACTER: &str = "contains a control character";
const BACKSLASHES: &str =
    "write `\\\\` for each backslash, or put the path into single quotes in YAML";

/// Reports arguments that are paths with lost backslashes.
fn check_paths(reader: &mut Reader<'_>, field: &Located<'_>, arguments: &[String]) {
    let document::Value::List(items) = &field.node.value else {
        return;
    };
    for (index, (node, argument)) in items.iter().zip(arguments).enumerate() {
        if argument.get(1..2) == Some(":") && argument.contains(char::is_control) {
            let path = format!("{}[{index}]", field.path);
            reader.report(&Located { path, node }, CONTROL_CHARACTER, BACKSLASHES);
        }
    }
}

/// Reads the path of a file.
fn read_file(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<PathBuf> {
    let path = read_path(reader, field)?;
    if path.is_empty() {
        reader.report(field, "is empty", "write the path of a file");
    }
    Some(PathBuf::from(path))
}

/// Reads the path of a program, a file or a directory.
fn read_path(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<String> {
    let path = reader.text(field)?;
    if path == "~" || path.starts_with("~/") {
        let fix = "write the whole path, or `${HOME}` in its place";
        reader.report(field, "begins with `~`, which only shells replace", fix);
    } else if path.contains(char::is_control) {
        reader.report(field, CONTROL_CHARACTER, BACKSLASHES);
    }
    Some(path)
}
