//! Why a check does not pass.

use serde_json::Value;

use crate::json::brief;

/// The outcome of a test of a server.
pub(crate) type Verdict = Result<(), Objection>;

/// Why a check did not pass.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Objection {
    /// The server does not do what the sentence requires.
    Violation(String),
    /// The server has nothing that the check could test.
    NotApplicable(String),
    /// The server did not answer as MCP requires, or in time.
    NoAnswer(String),
    /// The server refused a request because there were too many.
    Limited,
}

impl Objection {
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Violation(text) | Self::NotApplicable(text) | Self::NoAnswer(text) => text,
            Self::Limited => "limited: the server refuses requests that come too often".to_owned(),
        }
    }
}

pub(crate) fn violation<T>(finding: impl Into<String>) -> Result<T, Objection> {
    Err(Objection::Violation(finding.into()))
}

pub(crate) fn not_applicable<T>(reason: impl Into<String>) -> Result<T, Objection> {
    Err(Objection::NotApplicable(reason.into()))
}

/// Returns a violation with a finding, as `format!` writes it, unless the condition is true.
macro_rules! ensure {
    ($condition:expr, $($finding:tt)+) => {
        if !$condition {
            return $crate::objection::violation(format!($($finding)+));
        }
    };
}
pub(crate) use ensure;

/// A violation with a finding that ends with `found`, unless the condition is true.
pub(crate) fn requires(condition: bool, finding: &str, found: &Value) -> Verdict {
    ensure!(condition, "{finding} {}", brief(found));
    Ok(())
}

/// The outcome of a test of a client.
pub(crate) type ClientVerdict = Result<(), ClientObjection>;

/// Why a check of a client did not pass, and the last event that shows it.
#[derive(Debug)]
pub(crate) struct ClientObjection {
    pub(crate) objection: Objection,
    pub(crate) last_event: Option<usize>,
}

impl From<Objection> for ClientObjection {
    fn from(objection: Objection) -> Self {
        Self {
            objection,
            last_event: None,
        }
    }
}
