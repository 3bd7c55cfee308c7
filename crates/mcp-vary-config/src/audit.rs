//! `audit`: the audit log.

use std::net::SocketAddr;

use mcp_vary_audit::{ArgumentsDetail, IdentityDetail, OnFull, SyslogAddress};
use mcp_vary_gateway::settings::audit::{
    AuditSettings, AuditTarget, DEFAULT_ARGUMENTS, DEFAULT_WAIT,
};
use mcp_vary_gateway::settings::sealing_keys::SealingKey;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::reader::{Located, Reader};
use super::schema_builder::SchemaBuilder;
use super::sealing_keys::SHORTEST;
use crate::document::Value;
use crate::key_spec::{KeySpec, ValueKind};

/// An example of the table.
const EXAMPLE: &str = "{to: file audit.jsonl}";

/// The table while it is read.
#[derive(Default)]
struct PartialAudit {
    target: Option<AuditTarget>,
    identities: Option<IdentityDetail>,
    arguments: Option<ArgumentsDetail>,
    on_full: Option<OnFull>,
    key: Option<SealingKey>,
    replica: Option<String>,
}

/// Reads the table.
pub(super) fn read(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<AuditSettings> {
    let mut draft = PartialAudit::default();
    reader.settings(field, &[SETTINGS], &mut draft, EXAMPLE);
    let is_table = matches!(field.node.value, Value::Table(_));
    if is_table && !field.keys().contains(&"to") && !reader.was_meant(field, &["to"]) {
        let fix = "add `to: file PATH`, `to: stdout` or `to: syslog ADDRESS`";
        reader.report(field, "has no `to`", fix);
    }
    let mut settings = AuditSettings::new(draft.target?);
    settings.identities = draft.identities.unwrap_or(settings.identities);
    settings.arguments = draft.arguments.unwrap_or(settings.arguments);
    settings.on_full = draft.on_full.unwrap_or(settings.on_full);
    settings.key = draft.key;
    settings.replica = draft.replica;
    Some(settings)
}

/// Why a text is not the target of an audit log, and the fix.
#[derive(Debug, thiserror::Error)]
enum TargetError {
    #[error("it is none of the three; write `file PATH`, `stdout` or `syslog ADDRESS`")]
    Kind,
    #[error("the file has no name; write `file PATH`, such as `file /var/log/vary/audit.jsonl`")]
    Path,
    #[error(
        "the address is not one of a syslog daemon; write a socket such as `/dev/log`, or `udp://IP:PORT` or `tcp://IP:PORT`"
    )]
    Address,
}

fn parse_target(text: &str) -> Result<AuditTarget, TargetError> {
    let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
    let rest = rest.trim();
    match kind {
        "file" if rest.is_empty() => Err(TargetError::Path),
        "file" => Ok(AuditTarget::File(rest.into())),
        "stdout" if rest.is_empty() => Ok(AuditTarget::Stdout),
        "syslog" => parse_address(rest).map(AuditTarget::Syslog),
        _ => Err(TargetError::Kind),
    }
}

fn parse_address(text: &str) -> Result<SyslogAddress, TargetError> {
    let socket = |text: &str| text.parse::<SocketAddr>().map_err(|_| TargetError::Address);
    if let Some(address) = text.strip_prefix("udp://") {
        return socket(address).map(SyslogAddress::Udp);
    }
    if let Some(address) = text.strip_prefix("tcp://") {
        return socket(address).map(SyslogAddress::Tcp);
    }
    #[cfg(unix)]
    if text.starts_with('/') {
        return Ok(SyslogAddress::Socket(text.into()));
    }
    Err(TargetError::Address)
}

fn read_key(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<SealingKey> {
    let secret = reader.text(field)?;
    if secret.len() < SHORTEST {
        let what = format!("has less than {SHORTEST} characters");
        let fix = "set it to what `openssl rand -base64 32` prints, best in a variable";
        reader.report(field, what, fix);
        return None;
    }
    let digest = Sha256::new_with_prefix(b"vary audit key v1\0");
    let digest = digest.chain_update(secret.as_bytes()).finalize();
    Some(SealingKey(digest.into()))
}

const IDENTITIES: &[(&str, Option<IdentityDetail>)] = &[
    ("id", Some(IdentityDetail::Id)),
    ("full", Some(IdentityDetail::Full)),
];

const ARGUMENTS: &[(&str, Option<ArgumentsDetail>)] = &[
    ("off", Some(ArgumentsDetail::Off)),
    ("digest", Some(ArgumentsDetail::Digest)),
    (
        "full",
        Some(ArgumentsDetail::Full {
            limit: DEFAULT_ARGUMENTS,
        }),
    ),
];

const ON_FULL: &[(&str, Option<OnFull>)] = &[
    ("drop", Some(OnFull::Drop)),
    ("wait", Some(OnFull::Wait(DEFAULT_WAIT))),
    ("refuse", Some(OnFull::Refuse)),
];

/// The settings under `audit`.
const SETTINGS: &[KeySpec<PartialAudit>] = &[
    KeySpec {
        key: "to",
        about: "where the records go: `file PATH`; `stdout`, which cannot be used with `--stdio`; or `syslog ADDRESS` with a socket such as `/dev/log`, `udp://IP:PORT` or `tcp://IP:PORT`; required",
        default: "",
        takes: ValueKind::Other(
            |schema| schema.pattern(r"^(?:file .*\S.*|stdout\s*|syslog (?:/|udp://|tcp://).*)$"),
            |reader, field, draft| draft.target = reader.value(field, parse_target),
        ),
    },
    KeySpec {
        key: "identities",
        about: "what is written of principals. `id`: an id that reveals no name. `full`: also issuer, subject, OAuth client and the name of the key",
        default: "id",
        takes: ValueKind::Other(
            |schema| schema.choice(IDENTITIES),
            |reader, field, draft| reader.choice(field, IDENTITIES, &mut draft.identities),
        ),
    },
    KeySpec {
        key: "arguments",
        about: "what is written of the arguments of calls. `off`: their length. `digest`: also a keyed digest, which shows equal calls. `full`: also the first 16 KiB of their text, which can have secrets",
        default: "digest",
        takes: ValueKind::Other(
            |schema| schema.choice(ARGUMENTS),
            |reader, field, draft| reader.choice(field, ARGUMENTS, &mut draft.arguments),
        ),
    },
    KeySpec {
        key: "on-full",
        about: "when records arrive faster than they are written, or cannot be written. `drop`: some are lost, and counted in the log. `wait`: requests wait for up to a second, and are refused then. `refuse`: requests are refused before they do anything",
        default: "drop",
        takes: ValueKind::Other(
            |schema| schema.choice(ON_FULL),
            |reader, field, draft| reader.choice(field, ON_FULL, &mut draft.on_full),
        ),
    },
    KeySpec {
        key: "key",
        about: "a secret of at least 32 characters for the digests, so that those of several runs and instances can be compared. Without it each process draws its own",
        default: "",
        takes: ValueKind::Other(key_shape, |reader, field, draft| {
            draft.key = read_key(reader, field)
        }),
    },
    KeySpec {
        key: "replica",
        about: "the name of this instance among several, written into each record",
        default: "",
        takes: ValueKind::Scalar(|draft| &mut draft.replica),
    },
];

fn key_shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let variable = schema.variable();
    let text = schema.text();
    json!({"anyOf": [variable, {"allOf": [text, {"minLength": SHORTEST}]}]})
}

/// The schema of `audit`.
pub(super) fn shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let shape = schema.table(&[SETTINGS]);
    schema.with_required(shape, &["to"])
}

/// A digest of the `text` of a configuration file, for the audit log: `sha256:` and what `sha256sum` begins with.
///
/// # Examples
///
/// ```
/// // printf 'servers: {}' | sha256sum
/// assert_eq!(mcp_vary_config::digest("servers: {}"), "sha256:38b08601c73b41d8");
/// // Any change is another configuration, even one of a comment.
/// assert_ne!(mcp_vary_config::digest("servers: {} #"), mcp_vary_config::digest("servers: {}"));
/// ```
#[must_use]
pub fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let start = digest.iter().take(8);
    let hex: String = start.map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}
