//! What was applied to a result, and the report for the client.

use crate::feature::{Features, Format, Verbosity};
use crate::json::{JsonError, Members, string};

/// The member of a result's `_meta` that reports what was applied; a result with it is never shaped again.
pub const META_APPLIED: &str = "vary/applied";

/// The result of shaping.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a result is changed or unchanged")]
pub enum Shaped {
    /// The server's result is sent byte for byte.
    Unchanged,
    /// `result` is sent instead.
    Changed {
        /// The `result` member as JSON text.
        result: String,
        /// What was applied.
        applied: Applied,
    },
}

/// What was applied to a result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Applied {
    /// The format of its content; `None` if a condition chose it, not a format.
    pub format: Option<Format>,
    /// The verbosity that a condition, an author or compaction applied, else `standard`; `None` if the client
    /// declared no verbosity.
    pub verbosity: Option<Verbosity>,
    /// Whether texts of the author are missing that say more than the value: [`Policy::whole`](super::Policy::whole)
    /// has them.
    pub omits_texts: bool,
}

impl Applied {
    pub(super) fn new(format: Option<Format>, features: &Features) -> Self {
        let declares_verbosity = features.values("verbosity").next().is_some();
        Self {
            format,
            verbosity: declares_verbosity.then_some(Verbosity::Standard),
            omits_texts: false,
        }
    }

    /// The same with `verbosity`, if there is one and the client declared one.
    pub(super) fn decided_by(mut self, verbosity: Option<Verbosity>) -> Self {
        if self.verbosity.is_some() {
            self.verbosity = verbosity.or(self.verbosity);
        }
        self
    }

    /// `meta` with the report.
    pub(super) fn report(self, mut meta: Members<'_>, requested: Report<'_>) -> String {
        let mut report = Members::default();
        if let Some(format) = self.format {
            report.set("format", string(format.as_str()));
        }
        if let Some(verbosity) = self.verbosity {
            report.set("verbosity", string(verbosity.as_str()));
        }
        if let Some(variant) = requested.variant {
            report.set("variant", string(variant));
        }
        if let Some(whole) = requested.whole.filter(|_| self.omits_texts) {
            report.set("whole", string(whole));
        }
        meta.set(META_APPLIED, report.to_json());
        meta.to_json()
    }
}

/// Requests a report of what was applied, for clients that declared the extension.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "callers name what is reported")]
pub struct Report<'a> {
    /// The active variant.
    pub variant: Option<&'a str>,
    /// Where the whole result can be read, if texts are missing.
    pub whole: Option<&'a str>,
}

/// The `_meta` of a result; empty if it has none.
pub(crate) fn meta<'m>(result: &'m Members<'_>) -> Result<Members<'m>, JsonError> {
    match result.get("_meta") {
        None | Some("null") => Ok(Members::default()),
        Some(meta) => Members::parse(meta),
    }
}
