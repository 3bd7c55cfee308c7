//! What was done to a result, and how the client is told.

use crate::feature::{Features, Format, Verbosity};
use crate::json::{JsonError, Members, string};

/// The member of a result's `_meta` that says what was applied; a result with it is never shaped.
pub const META_APPLIED: &str = "vary/applied";

/// What became of a result.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a result is sent as it was, or it is not"
)]
pub enum Shaped {
    /// The server's result goes out byte for byte.
    Unchanged,
    /// `result` goes out instead.
    Changed {
        /// The `result` member as JSON text.
        result: String,
        /// What was done.
        applied: Applied,
    },
}

/// What was done to a result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Applied {
    /// The form of its content; none where a condition chose it rather than a format.
    pub format: Option<Format>,
    /// How much of it there is: the verbosity that decided, by a condition, an author or compaction, else
    /// `standard`; none when the client declared no verbosity.
    pub verbosity: Option<Verbosity>,
}

impl Applied {
    pub(super) fn new(format: Option<Format>, features: &Features) -> Self {
        let declares_verbosity = features.values("verbosity").next().is_some();
        Self {
            format,
            verbosity: declares_verbosity.then_some(Verbosity::Standard),
        }
    }

    /// The same, where `verbosity` decided what is said; as it is where none did, or the client declared none.
    pub(super) fn decided_by(mut self, verbosity: Option<Verbosity>) -> Self {
        if self.verbosity.is_some() {
            self.verbosity = verbosity.or(self.verbosity);
        }
        self
    }

    /// `meta` with what was applied.
    pub(super) fn report(self, mut meta: Members<'_>, told: Report<'_>) -> String {
        let mut report = Members::default();
        if let Some(format) = self.format {
            report.set("format", string(format.as_str()));
        }
        if let Some(verbosity) = self.verbosity {
            report.set("verbosity", string(verbosity.as_str()));
        }
        if let Some(variant) = told.variant {
            report.set("variant", string(variant));
        }
        meta.set(META_APPLIED, report.to_json());
        meta.to_json()
    }
}

/// That a client is told what was applied, since it declared the extension.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "callers spell out what is told")]
pub struct Report<'a> {
    /// The active variant.
    pub variant: Option<&'a str>,
}

/// The `_meta` of a result; empty where it has none.
pub(crate) fn meta<'m>(result: &'m Members<'_>) -> Result<Members<'m>, JsonError> {
    match result.get("_meta") {
        None | Some("null") => Ok(Members::default()),
        Some(meta) => Members::parse(meta),
    }
}
