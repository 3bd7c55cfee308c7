//! The settings of a server.

use std::path::PathBuf;

use mcp_vary::extension::EXTENSIONS;
use mcp_vary::variant::VariantId;
use mcp_vary_upstream::endpoint_url::{endpoint_example, parse_endpoint};
use mcp_vary_upstream::{Isolation, Processes, RetryPolicy};
use mcp_vary_wire::method_names::is_of_the_protocol;

use super::draft::{Kind, PartialServer};
use super::limits::{CONNECTIONS, MESSAGES, RESTART, STARTING};
use super::{auth, headers};
use crate::key_spec::ValueKind::{Other, Switch};
use crate::key_spec::{KeySpec, choice, keys, set, value};
use crate::reader::{Located, Reader};
use crate::schema_builder::SchemaBuilder;

/// The settings that every client supports.
pub(super) const COMMON: &[KeySpec<PartialServer>] = keys![
    /// the program, a path or a name on `PATH`
    "command" => Other(SchemaBuilder::program, |reader, field, draft| {
        draft.program = read_path(reader, field);
        if draft.program.as_deref() == Some("") {
            reader.report(field, "is empty", "write the program to start");
        }
    }),
    /// its arguments, a list
    "args" => Other(SchemaBuilder::strings, |reader, field, draft| {
        draft.args = reader.strings(field);
        check_paths(reader, field, &draft.args);
    }),
    /// environment variables that are added to those that it inherits
    "env" => value!(SchemaBuilder::named_strings, Reader::named_strings, |draft| draft.env),
    /// its working directory; by default that of Vary: where you start it, or `--directory`
    "cwd" => Other(SchemaBuilder::text, |reader, field, draft| {
        draft.cwd = read_path(reader, field).map(PathBuf::from);
    }),
    /// the endpoint
    "url" => Other(SchemaBuilder::url, read_url),
    /// sent with every request. `${claims.NAME}` is a [verified claim](../authentication.md#headers-from-claims) of the
    /// user who sends the request, and needs `auth` or `stdio-principal`. A table with `command` is a value that a
    /// program prints, such as a token
    "headers" => set!(headers::shape, headers::read, |draft| &mut draft.headers),
    /// `stdio` (or `local`, as Copilot writes it) with `command`, `http` with `url`; may be left out. `sse` with `url`:
    /// the transport of 2024-11-05, without trying streamable HTTP first
    "type" => choice!(KINDS, |draft| &mut draft.kind),
    /// leaves the server out; mistakes in its entry are ignored
    "disabled" = "off" => Switch(|draft| &mut draft.disabled),
];

/// All settings, in the order of the reference.
pub(super) const SETTINGS: &[&[KeySpec<PartialServer>]] = &[
    COMMON,
    STARTING,
    AT_URL,
    CONNECTIONS,
    SHARING,
    MESSAGES,
    LOSS,
];

/// How a server is reached at `url`.
const AT_URL: &[KeySpec<PartialServer>] = keys![
    /// the file of further authorities, in PEM, that are trusted for `url` beside those of the system
    "ca" => value!(SchemaBuilder::text, read_file, |draft| draft.config.ca),
    /// the file of the client certificate for `url`, followed by those of intermediate authorities, in PEM; needs
    /// `key`. Vary reads both files again when they change
    "certificate" => value!(SchemaBuilder::text, read_file, |draft| draft.certificate),
    /// the file of its private key, in PEM
    "key" => value!(SchemaBuilder::text, read_file, |draft| draft.key),
    /// how Vary authenticates at `url`: `login`, or a table with one [method](../../how-to/remote-servers.md). Without
    /// it and without `Authorization` in `headers`, Vary uses the login of the person who started it, unless the file
    /// has `auth` at its top
    "auth" => value!(auth::shape, auth::read, |draft| draft.auth),
];

/// How clients share a server, and what reaches it.
const SHARING: &[KeySpec<PartialServer>] = keys![
    /// `automatic`: clients with the same capabilities share a connection; with `auth`, each user has its own, unless
    /// it is one of 2026-07-28 over HTTP. `shared`: all clients share, even different users. `principal`: each user has
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
    "forward-extensions" = "[io.modelcontextprotocol/ui, io.modelcontextprotocol/tasks]" => value!(
        SchemaBuilder::strings, read_forwarded, |draft| draft.config.forwarded_extensions
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
];

/// What is done about a lost server.
const LOSS: &[KeySpec<PartialServer>] = keys![
    /// the pauses before Vary reconnects to a lost server
    "restart" => Other(|schema| schema.table("`restart`", &[RESTART]), |reader, field, draft| {
        reader.settings(field, &[RESTART], draft, "{first: 250ms, longest: 30s}");
        if draft.config.limits.backoff > draft.config.limits.max_backoff {
            let what = "has a first pause that is longer than the longest";
            reader.report(field, what, "raise `longest`");
        }
    }),
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
    for (item, argument) in field.items().iter().zip(arguments) {
        if argument.get(1..2) == Some(":") && argument.contains(char::is_control) {
            reader.report(item, CONTROL_CHARACTER, BACKSLASHES);
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
