//! The report of `vary check --format json`.

use serde::Deserialize;

use crate::outcome::no_findings;

/// As much of a report as the phase compares.
#[derive(Debug, Deserialize)]
pub(super) struct Report {
    #[serde(rename = "skippedRevisions")]
    skipped_revisions: Vec<SkippedRevision>,
    findings: Vec<Finding>,
}

#[derive(Debug, Deserialize)]
struct SkippedRevision {
    revision: String,
    reason: String,
}

#[derive(Debug, Deserialize)]
struct Finding {
    id: String,
    revision: String,
    outcome: String,
    finding: String,
}

impl Finding {
    fn is_objection(&self) -> bool {
        matches!(self.outcome.as_str(), "fail" | "warn" | "info")
    }

    fn describe(&self) -> String {
        let Self {
            id,
            revision,
            outcome,
            finding,
        } = self;
        format!("{outcome} {id} in {revision}: {finding}")
    }
}

impl Report {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("{error} in {text}"))
    }

    /// Whether both eras were checked, and no check objects but those in `known`, which do: not even one that only informs.
    pub(super) fn has_only(&self, known: &[&str]) -> Result<(), String> {
        if let Some(SkippedRevision { revision, reason }) = self.skipped_revisions.first() {
            return Err(format!("{revision} was not checked: {reason}"));
        }
        let objections = || self.findings.iter().filter(|it| it.is_objection());
        let unknown = objections().filter(|it| !known.contains(&&*it.id));
        let fixed = known
            .iter()
            .filter(|id| objections().all(|it| it.id != **id));
        let fixed = fixed.map(|id| format!("{id} does not object any more; remove it"));
        let found: Vec<String> = unknown.map(Finding::describe).chain(fixed).collect();
        no_findings(&found)
    }

    /// Whether the check `id` has this outcome in an era.
    pub(super) fn has(&self, outcome: &str, id: &str) -> Result<(), String> {
        let mut findings = self.findings.iter();
        if findings.any(|it| it.id == id && it.outcome == outcome) {
            return Ok(());
        }
        let others = self.findings.iter().filter(|it| it.is_objection());
        let others: Vec<String> = others.map(Finding::describe).collect();
        Err(format!("no {outcome} {id}, but{}", others.join("\n    ")))
    }

    /// Whether the check `id` objects in each era in which it exists, and no other check does.
    pub(super) fn is_found_by(&self, id: &str) -> Result<(), String> {
        if !self.findings.iter().any(|it| it.id == id) {
            return Err("the check did not run".to_owned());
        }
        let wrong = self.findings.iter();
        let wrong = wrong.filter(|it| it.is_objection() != (it.id == id));
        let found: Vec<String> = wrong.map(Finding::describe).collect();
        no_findings(&found)
    }
}
