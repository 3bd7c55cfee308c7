//! Compares the two fields of a result.

use mcp_vary::json::{self, Members};
use mcp_vary::shape::ToolFacts;
use mcp_vary::visibility::{Finding, compare};

use crate::client::Answer;
use crate::failure::Failure;
use crate::print::sanitize;

/// What a client received, and the findings if the check was requested.
#[derive(Debug)]
pub(crate) struct Linted {
    pub(crate) answer: Answer,
    pub(crate) findings: Option<Vec<Finding>>,
}

/// The findings about `result`, from the tool that the server lists as `listed`.
pub(crate) fn findings(result: &str, listed: Option<&str>) -> Result<Vec<Finding>, Failure> {
    let tool = listed.map(ToolFacts::listed).unwrap_or_default();
    compare(result, tool)
        .map_err(|error| Failure::looked_at(format!("the result cannot be read: {error}")))
}

/// Whether its fields contradict each other.
pub(crate) fn contradicts(linted: &Linted) -> bool {
    let mut findings = linted.findings.iter().flatten();
    findings.any(Finding::is_contradiction)
}

/// The findings for each client; below a title if there are several clients.
pub(crate) fn report(titles: &[String], all: &[Linted]) -> String {
    let mut out = String::new();
    for (title, linted) in titles.iter().zip(all) {
        let Some(findings) = &linted.findings else {
            continue;
        };
        out.push_str("\nlint");
        if all.len() > 1 {
            out.push_str(&format!(" of {}", sanitize(title)));
        }
        if findings.is_empty() {
            out.push_str(": nothing found\n");
            continue;
        }
        out.push_str(":\n");
        for finding in findings {
            out.push_str(&format!(
                "- {}: {}\n",
                kind(finding),
                sanitize(&finding.to_string())
            ));
        }
    }
    out
}

/// A result with its findings.
pub(crate) fn json(result: &str, findings: &[Finding]) -> String {
    let finding = |finding: &Finding| {
        let mut members = Members::default();
        members.set("kind", json::string(kind(finding)));
        members.set("message", json::string(&finding.to_string()));
        members.to_json()
    };
    let findings: Vec<_> = findings.iter().map(finding).collect();
    format!(
        "{{\"result\":{result},\"findings\":[{}]}}",
        findings.join(",")
    )
}

/// One word for a finding.
pub(crate) fn kind(finding: &Finding) -> &'static str {
    match finding {
        Finding::Contradiction { .. } => "denied",
        Finding::Added { .. } => "added",
        Finding::Missing(_) => "missing",
        Finding::Larger { .. } => "larger",
        _ => "other",
    }
}
