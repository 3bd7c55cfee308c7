//! One line of the log.

use serde_json::Value;

/// The maximum length of a line in bytes, unless it has the text of arguments.
pub const MAX_LINE: usize = 7680;
/// What a line has at most in bytes, also with the text of arguments.
pub const MAX_LINE_WITH_ARGUMENTS: u64 = 1 << 20;

/// One line of the log, without its line break.
#[derive(Clone, Debug)]
pub struct Line {
    /// The time of the record (RFC 3339, UTC, microseconds).
    pub time: String,
    /// How severe it is.
    pub severity: Severity,
    /// The JSON.
    pub text: Vec<u8>,
}

/// The record that a line of a log ends with, also of another version; syslog writes something before it.
pub fn read_line(line: &[u8]) -> Option<Value> {
    let start = line.iter().position(|byte| *byte == b'{')?;
    let record: Value = serde_json::from_slice(line.get(start..)?).ok()?;
    let is_record = record["v"].is_u64() && record["time"].is_string();
    is_record.then_some(record)
}

/// How severe a record is (RFC 5424, section 6.2.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Severity {
    /// Records were lost.
    Warning,
    /// Something was refused, or the log started or stopped.
    Notice,
    /// Everything else.
    Informational,
}

impl Severity {
    /// The number that syslog gives it.
    pub const fn code(self) -> u8 {
        match self {
            Self::Warning => 4,
            Self::Notice => 5,
            Self::Informational => 6,
        }
    }
}
