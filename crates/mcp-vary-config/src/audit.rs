//! `audit`: the audit log.

use std::net::SocketAddr;

use mcp_vary_audit::{ArgumentsDetail, IdentityDetail, OnFull, SyslogAddress};
use mcp_vary_settings::audit::{AuditSettings, AuditTarget, DEFAULT_ARGUMENTS, DEFAULT_WAIT};
use sha2::{Digest as _, Sha256};

use serde_json::Value as Json;

use super::document::Node;
use super::file_variants::to_json;
use super::reader::{Located, Reader};
use super::schema_builder::SchemaBuilder;
use super::sealing_keys;
use crate::key_spec::ValueKind::{Other, Scalar};
use crate::key_spec::{KeySpec, choice, keys};

/// An example of the table.
const EXAMPLE: &str = "{to: file audit.jsonl}";

/// Reads the table.
pub(super) fn read(reader: &mut Reader<'_>, field: &Located<'_>) -> AuditSettings {
    let mut audit = AuditSettings::new(AuditTarget::Stdout);
    reader.settings(field, &[SETTINGS], &mut audit, EXAMPLE);
    let fix = "add `to: file PATH`, `to: stdout` or `to: syslog ADDRESS`";
    reader.require(field, &[("to", fix)]);
    audit
}

/// Why a text is not the target of an audit log, and the fix.
#[derive(Debug, thiserror::Error)]
enum TargetError {
    #[error("write {0}")]
    Kind(String),
    #[error("the file has no name; write `file PATH`, such as `file /var/log/vary/audit.jsonl`")]
    Path,
    #[error(
        "the address is not one of a syslog daemon; write a socket such as `/dev/log`, or `udp://IP:PORT` or `tcp://IP:PORT`"
    )]
    Address,
}

fn parse_target(text: &str) -> Result<AuditTarget, TargetError> {
    let (kind, after) = text.split_once(' ').unwrap_or((text, ""));
    let target = after.trim();
    match kind {
        "file" if target.is_empty() => Err(TargetError::Path),
        "file" => Ok(AuditTarget::File(target.into())),
        "stdout" if target.is_empty() => Ok(AuditTarget::Stdout),
        "syslog" => parse_address(target).map(AuditTarget::Syslog),
        _ if text.contains(['/', '.']) && after.is_empty() => {
            Err(TargetError::Kind(format!("`to: file {text}`")))
        }
        _ => Err(TargetError::Kind(
            "`file PATH`, `stdout` or `syslog ADDRESS`".to_owned(),
        )),
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

const IDENTITIES: &[(&str, IdentityDetail)] = &[
    ("id", IdentityDetail::Id),
    ("name", IdentityDetail::Name),
    ("full", IdentityDetail::Full),
];

const ARGUMENTS: &[(&str, ArgumentsDetail)] = &[
    ("off", ArgumentsDetail::Off),
    ("digest", ArgumentsDetail::Digest),
    (
        "full",
        ArgumentsDetail::Full {
            limit: DEFAULT_ARGUMENTS,
        },
    ),
];

const ON_FULL: &[(&str, OnFull)] = &[
    ("drop", OnFull::Drop),
    ("wait", OnFull::Wait(DEFAULT_WAIT)),
    ("refuse", OnFull::Refuse),
];

/// The settings under `audit`.
const SETTINGS: &[KeySpec<AuditSettings>] = keys![
    /// where the records go: `file PATH`; `stdout`, not with `--stdio`; or `syslog ADDRESS` with a socket such as
    /// `/dev/log`, `udp://IP:PORT` or `tcp://IP:PORT`; required
    "to" => Other(
        |schema| schema.pattern(r"^(?:file .*\S.*|stdout\s*|syslog (?:/|udp://|tcp://).*)$"),
        |reader, field, audit| reader.parse(field, parse_target, &mut audit.target),
    ),
    /// `id`: an id of each principal that reveals no name. `name`: also the name that you gave, of the key, of the
    /// certificate or by `name-claim` of the issuer. `full`: also issuer, subject and OAuth client
    "identities" = "name" => choice!(IDENTITIES, |audit| &mut audit.identities),
    /// what is recorded of arguments. `off`: their length. `digest`: also a keyed digest, which shows equal calls.
    /// `full`: also the first 16 KiB of their text, which can have secrets
    "arguments" = "digest" => choice!(ARGUMENTS, |audit| &mut audit.arguments),
    /// when records [cannot be written](../audit.md#where-it-goes) as fast as they arrive. `drop`: some are lost and
    /// counted. `wait`: requests wait for up to a second, then are refused. `refuse`: requests are refused before they
    /// do anything
    "on-full" = "drop" => choice!(ON_FULL, |audit| &mut audit.on_full),
    /// a secret of at least 32 characters for the digests, to compare those of several runs and replicas. By default
    /// each process has its own
    "key" => Other(sealing_keys::key_shape, |reader, field, audit| {
        audit.key = sealing_keys::read_key(reader, field, b"vary audit key v1\0")
    }),
    /// the name of this instance among several, written into each record
    "replica" => Scalar(|audit| &mut audit.replica),
];

/// The schema of `audit`.
pub(super) fn shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let shape = schema.table("`audit`", &[SETTINGS]);
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
pub fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let start = digest.iter().take(8);
    let hex: String = start.map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// The same of a whole file without what differs between replicas, so that those with one configuration have one digest. The
/// format and comments do not matter.
pub(crate) fn common_digest(root: &Node) -> String {
    let mut common = to_json(root);
    for path in OF_ONE_REPLICA {
        let table = path
            .0
            .iter()
            .try_fold(&mut common, |it, key| it.get_mut(key));
        if let Some(table) = table.and_then(Json::as_object_mut) {
            table.remove(path.1);
        }
    }
    digest(&common.to_string())
}

/// Keys whose values differ between replicas: the tables around each, and its name.
const OF_ONE_REPLICA: [(&[&str], &str); 7] = [
    (&[], "listen"),
    (&[], "admin"),
    (&[], "admin-token"),
    (&[], "probes"),
    (&[], "log"),
    (&["audit"], "replica"),
    (&["audit"], "to"),
];

#[cfg(test)]
mod tests {
    use crate::Source;
    use mcp_vary_base::environment::Environment;

    fn common(text: &str) -> String {
        let file = Source::new("vary.yaml", text).read(&|_| None).unwrap();
        let config = file.into_config(Environment::new(|| 0, |bytes| bytes.fill(7)));
        config.common_digest.unwrap().to_string()
    }

    #[test]
    fn replicas_with_their_own_addresses_and_names_have_a_common_digest() {
        let servers = "servers: {a: {command: x}}\n";
        let expected = common(servers);
        for (text, is_same) in [
            ("listen: 127.0.0.1:1234", true),
            ("# one of three\nprobes: 127.0.0.1:1235", true),
            (
                "listen: 127.0.0.1:1\nadmin: 127.0.0.1:2\nlog: {level: debug}",
                true,
            ),
            ("page-size: 7", false),
            ("limits: {connections: 7}", false),
        ] {
            assert_eq!(
                common(&format!("{servers}{text}")) == expected,
                is_same,
                "{text}"
            );
        }
        let audit = |settings| common(&format!("{servers}audit: {{{settings}}}"));
        let first = audit("to: file /a, replica: vary-1");
        assert_eq!(first, audit("to: file /b, replica: vary-2"));
        assert_ne!(first, audit("to: file /a, on-full: refuse"));
    }
}
