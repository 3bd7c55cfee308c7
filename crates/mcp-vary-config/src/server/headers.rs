//! `headers` of a server: fixed values, values from the claims of its users, and values that a program prints.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use mcp_vary_upstream::header_command::HeaderCommandSettings;
use mcp_vary_upstream::{HeaderSource, HeaderTemplate, TemplatePart};
use serde_json::{Value, json};

use crate::document;
use crate::key_spec::ValueKind::{Duration as Span, Other};
use crate::key_spec::{KeySpec, keys};
use crate::reader::{Located, Reader};
use crate::schema_builder::{HEADER_NAME, SchemaBuilder};
use crate::variables::Part;

/// The headers by which HTTP and MCP themselves work.
const RESERVED: [&str; 14] = [
    "accept",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "last-event-id",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "keep-alive",
];

/// Where the value of a header comes from.
pub(super) enum PartialHeader {
    Configured(HeaderSource),
    Command(HeaderCommandSettings),
}

impl PartialHeader {
    /// What a header cannot have beside another one of its name.
    const fn exclusive(&self) -> Option<&'static str> {
        match self {
            Self::Configured(HeaderSource::Fixed(_)) => None,
            Self::Configured(HeaderSource::Claims(_)) => Some("claims"),
            Self::Command(_) => Some("a command"),
        }
    }
}

/// Reads the table.
pub(super) fn read(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
    headers: &mut Vec<(HeaderName, PartialHeader)>,
) {
    for entry in reader.table(field, "{NAME: value}").unwrap_or_default() {
        let member = field.member(entry);
        let Some((name, header)) = read_one(reader, &member, &entry.key) else {
            continue;
        };
        let mut others = headers.iter().filter(|(other, _)| *other == name);
        let exclusive = others.find_map(|(_, other)| other.exclusive().or(header.exclusive()));
        if let Some(exclusive) = exclusive {
            let what = format!("is given twice, and one of them has {exclusive}");
            let fix = "keep one of them: case does not matter in header names";
            reader.report(&member, what, fix);
            continue;
        }
        headers.push((name, header));
    }
}

fn read_one(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
    key: &str,
) -> Option<(HeaderName, PartialHeader)> {
    let is_command = matches!(field.node.value, document::Value::Table(_));
    let parts = if is_command {
        Vec::new()
    } else {
        reader.word_parts(field)?
    };
    let Ok(name) = HeaderName::try_from(key) else {
        let fix = "write it like `Authorization`";
        reader.report(field, "is not a header name", fix);
        return None;
    };
    let has_claim = parts.iter().any(|part| matches!(part, Part::Claim(_)));
    let header = if is_command {
        PartialHeader::Command(command(reader, field, &name)?)
    } else if has_claim {
        PartialHeader::Configured(HeaderSource::Claims(template(reader, field, &name, parts)?))
    } else {
        PartialHeader::Configured(HeaderSource::Fixed(fixed(reader, field, parts)?))
    };
    Some((name, header))
}

/// A value that a program prints.
fn command(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
    name: &HeaderName,
) -> Option<HeaderCommandSettings> {
    check_reserved(reader, field, name, "a command")?;
    let mut draft = HeaderCommandSettings {
        program: String::new(),
        args: Vec::new(),
        scheme: None,
        cache: Duration::from_secs(300),
        timeout: Duration::from_secs(30),
    };
    let example = "{command: [PROGRAM, ARGUMENT]}";
    reader.settings(field, &[COMMAND], &mut draft, example);
    let fix = "add `command: [...]`, a program and its arguments";
    reader.require(field, &[("command", fix)]);
    Some(draft)
}

/// The settings of a header with `command`.
const COMMAND: &[KeySpec<HeaderCommandSettings>] = keys![
    /// the program, a path or a name on `PATH`, and its arguments, a list; required. It runs where Vary was started,
    /// with its environment, and prints the value on one line; an exit code other than 0 is an error
    "command" => Other(SchemaBuilder::strings, |reader, field, command| {
        let mut texts = reader.strings(field).into_iter();
        command.program = texts.next().unwrap_or_default();
        command.args = texts.collect();
        let is_list = matches!(field.node.value, document::Value::List(_));
        if is_list && command.program.is_empty() {
            reader.report(field, "names no program", "write [PROGRAM, ARGUMENT]");
        }
    }),
    /// what is sent before the value, such as `Bearer` in `Authorization`
    "scheme" => Other(scheme_shape, |reader, field, command| {
        command.scheme = reader.word(field);
        let is_token = |scheme: &String| HeaderName::try_from(scheme).is_ok();
        if command.scheme.as_ref().is_some_and(|scheme| !is_token(scheme)) {
            reader.report(field, "is not an authentication scheme", "write it like `Bearer`");
        }
    }),
    /// how long Vary uses a value. If the server answers 401, the program runs again at once, at most every 10 seconds,
    /// and the request is repeated if it prints another value
    "cache" = "5m" => Span(|command| &mut command.cache),
    /// how long the program may run
    "timeout" = "30s" => Span(|command| &mut command.timeout),
];

fn scheme_shape(schema: &mut SchemaBuilder) -> Value {
    schema.pattern("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
}

/// The schema of `headers`.
pub(super) fn shape(schema: &mut SchemaBuilder) -> Value {
    let command = schema.table("a header with `command`", &[COMMAND]);
    let command = schema.with_required(command, &["command"]);
    let value = json!({"anyOf": [schema.word(), command]});
    schema.named(HEADER_NAME, &value)
}

/// A value without claims.
fn fixed(reader: &mut Reader<'_>, field: &Located<'_>, parts: Vec<Part>) -> Option<HeaderValue> {
    let texts = parts.into_iter().map(|part| match part {
        Part::Text(text) | Part::Claim(text) => text,
    });
    let value = HeaderValue::try_from(texts.collect::<String>());
    if value.is_err() {
        let fix = "look for line breaks and control characters";
        reader.report(field, "has characters that no header may have", fix);
    }
    value.ok()
}

/// Reports a header by which HTTP or MCP work: it cannot have `claims` or a command.
fn check_reserved(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
    name: &HeaderName,
    value: &str,
) -> Option<()> {
    let is_reserved = RESERVED.contains(&name.as_str()) || name.as_str().starts_with("mcp-");
    if is_reserved {
        let what = format!("is a header by which HTTP or MCP work, so it cannot have {value}");
        reader.report(field, what, "choose another name, such as `X-User`");
        return None;
    }
    Some(())
}

/// A value with claims.
fn template(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
    name: &HeaderName,
    parts: Vec<Part>,
) -> Option<HeaderTemplate> {
    check_reserved(reader, field, name, "claims")?;
    let has_scopes = |part: &Part| matches!(part, Part::Claim(name) if name == "scope");
    if parts.iter().any(has_scopes) {
        let what = "has the claim `scope`, which is a list; a header takes one value";
        reader.report(field, what, "choose another claim");
        return None;
    }
    let template_parts = parts.into_iter().map(|part| match part {
        Part::Text(text) => TemplatePart::Text(text.into()),
        Part::Claim(name) => TemplatePart::Claim(name.into()),
    });
    let template = HeaderTemplate::new(template_parts);
    if template.is_err() {
        let what = "has characters that are not sent beside claims";
        let fix = "write visible ASCII, with spaces only inside, of at most 8 KiB";
        reader.report(field, what, fix);
    }
    template.ok()
}
