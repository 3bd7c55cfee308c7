//! One line of the log.

/// The maximum length of a line in bytes, unless it has the text of arguments.
pub const MAX_LINE: usize = 7680;

/// One line of the log, without its line break.
#[derive(Clone, Debug)]
pub struct Line {
    time: String,
    severity: Severity,
    text: Vec<u8>,
}

impl Line {
    pub(crate) const fn new(time: String, severity: Severity, text: Vec<u8>) -> Self {
        Self {
            time,
            severity,
            text,
        }
    }

    /// The time of the record (RFC 3339, UTC, microseconds).
    pub fn time(&self) -> &str {
        &self.time
    }

    /// How severe it is.
    pub const fn severity(&self) -> Severity {
        self.severity
    }

    /// The JSON.
    pub fn text(&self) -> &[u8] {
        &self.text
    }
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
