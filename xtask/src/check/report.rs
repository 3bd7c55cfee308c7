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

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"{"skippedRevisions": [], "findings": [
        {"id": "A-1/a", "revision": "2025-11-25", "outcome": "pass", "finding": ""},
        {"id": "A-1/b", "revision": "2025-11-25", "outcome": "info", "finding": "it rains"},
        {"id": "A-1/c", "revision": "2025-11-25", "outcome": "skip", "finding": "none"}]}"#;

    #[test]
    fn a_note_is_an_objection_too() {
        let report = Report::parse(REPORT).unwrap();
        let expected = "\n    info A-1/b in 2025-11-25: it rains".to_owned();
        assert_eq!(report.has_only(&[]), Err(expected));
        assert_eq!(report.has_only(&["A-1/b"]), Ok(()));
        let error = report.has_only(&["A-1/b", "A-1/a"]).unwrap_err();
        assert_eq!(error, "\n    A-1/a does not object any more; remove it");
    }

    #[test]
    fn a_fault_is_found_by_its_check_alone() {
        let report = Report::parse(REPORT).unwrap();
        assert_eq!(report.is_found_by("A-1/b"), Ok(()));
        assert!(
            report
                .is_found_by("A-1/c")
                .unwrap_err()
                .contains("skip A-1/c")
        );
        assert_eq!(
            report.is_found_by("A-2/x"),
            Err("the check did not run".to_owned())
        );
    }

    #[test]
    fn an_era_that_was_not_checked_is_not_clean() {
        let text = r#"{"skippedRevisions": [{"revision": "2026-07-28", "reason": "refused"}], "findings": []}"#;
        let error = Report::parse(text).unwrap().has_only(&[]).unwrap_err();
        assert_eq!(error, "2026-07-28 was not checked: refused");
    }
}
