//! What an audit log writes, and what it does when it cannot keep up.

use std::time::Duration;

use crate::text::Text;

/// How an audit log works.
///
/// # Examples
///
/// ```
/// use mcp_vary_audit::{ArgumentsDetail, AuditConfig, AuditKey};
///
/// let config = AuditConfig::new(|| 1_763_705_520_123_456, AuditKey::new([7; 32]), "5d0f");
/// assert_eq!(config.arguments, ArgumentsDetail::Digest);
/// // Nobody can read the key in a log.
/// assert_eq!(format!("{:?}", config.key), "AuditKey");
/// ```
#[derive(Clone, Debug)]
pub struct AuditConfig {
    /// Microseconds since 1970-01-01 UTC.
    pub now: fn() -> u64,
    /// The key of all digests.
    pub key: AuditKey,
    /// Identifies this run of the program. Sequence numbers begin at 1 with each run.
    pub run: Text,
    /// The name of this instance among several, if there are several.
    pub replica: Option<Text>,
    /// What is written of a principal.
    pub identity: IdentityDetail,
    /// What is written of the arguments of a call.
    pub arguments: ArgumentsDetail,
    /// How many records may wait to be written; at least 1.
    pub capacity: usize,
    /// How many bytes of arguments may wait to be digested or written. A record beyond it has no digest.
    pub arguments_capacity: usize,
    /// What happens when the queue is full.
    pub on_full: OnFull,
    /// After how long a write that has not returned counts as failed.
    pub write_timeout: Duration,
}

impl AuditConfig {
    /// A log that never delays a request, writes principals as ids, and digests of arguments.
    pub fn new(now: fn() -> u64, key: AuditKey, run: &str) -> Self {
        Self {
            now,
            key,
            run: Text::new(run),
            replica: None,
            identity: IdentityDetail::Id,
            arguments: ArgumentsDetail::Digest,
            capacity: 8192,
            arguments_capacity: 16 << 20,
            on_full: OnFull::Drop,
            write_timeout: Duration::from_secs(1),
        }
    }
}

/// What is written of a principal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum IdentityDetail {
    /// The id only, from which nobody learns a name.
    Id,
    /// Also the name that the operator gave.
    Name,
    /// Also issuer, subject, OAuth client and the name of the API key.
    Full,
}

/// What is written of the arguments of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ArgumentsDetail {
    /// Their length.
    Off,
    /// Their length and a keyed digest: equal arguments have equal digests, and nobody without the key can test a guess.
    Digest,
    /// Also their text, cut at this many bytes of a line.
    Full {
        /// The maximum length, in bytes, escapes included; at most 64 KiB.
        limit: usize,
    },
}

/// What happens when a record finds no room in the queue, or the sink does not work.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OnFull {
    /// The record is lost and counted. A record that the sink refuses is lost as well.
    Drop,
    /// The request waits this long for a free slot and a working sink, and is refused then. What the sink refuses is
    /// written again.
    Wait(Duration),
    /// The request is refused, also while the sink fails or hangs. What the sink refuses is written again.
    Refuse,
}

/// The key of the digests in an audit log.
///
/// Digests of two runs can be compared only if both have the same key.
#[derive(Clone)]
pub struct AuditKey(pub(crate) [u8; 32]);

impl AuditKey {
    /// A key of random bytes.
    pub const fn new(key: [u8; 32]) -> Self {
        Self(key)
    }
}

mcp_vary_base::debug_by_name!(AuditKey);
