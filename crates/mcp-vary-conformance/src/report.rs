//! What a run found, and how it is written.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::check::{Check, Level};
use crate::era::Era;
use crate::objection::{Objection, Verdict};
use crate::options::LONGEST_RUN;
use crate::scope::Scope;
use crate::survey::Survey;
use crate::traffic::Exchange;

mod junit;
mod plain;

/// How a report is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Format {
    /// Lines for a terminal. Control characters of the server are escaped.
    Plain,
    /// One JSON object.
    Json,
    /// XML as JUnit writes it. Warnings are not failures there: they are in `system-out`.
    Junit,
}

/// The result of one check in one era.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// The server does what the sentence requires.
    Passed,
    /// It does not; the text says what it does instead.
    Violated(String),
    /// The run expects something that the server does not have or does not show: nothing was tested.
    Missing(String),
    /// The server has nothing that the check could test, for this reason.
    NotApplicable(String),
    /// The server did not answer as MCP requires, or in time.
    Unanswered(String),
    /// The run ended before the check: nothing is known of the server.
    NotReached,
}

impl From<Verdict> for Outcome {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Ok(()) => Self::Passed,
            Err(Objection::Violation(finding)) => Self::Violated(finding),
            Err(Objection::NotApplicable(reason)) => Self::NotApplicable(reason),
            Err(Objection::NoAnswer(reason)) => Self::Unanswered(reason),
            Err(objection @ Objection::Limited) => {
                Self::NotApplicable(format!("not checked: {}", objection.into_text()))
            }
        }
    }
}

/// A check, and what it found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The check.
    pub check: &'static Check,
    /// The era in which it ran.
    pub era: Era,
    /// What it found.
    pub outcome: Outcome,
    /// The last messages, if it did not pass.
    pub exchanges: Vec<Exchange>,
    /// The last lines that the server wrote to standard error, if the check did not pass and the server is a command.
    pub stderr: String,
    /// How long it took.
    pub duration: Duration,
}

impl Finding {
    /// Whether the check did not pass: a violation, something that is missing, or no answer.
    pub fn is_objection(&self) -> bool {
        use Outcome::{Missing, Unanswered, Violated};
        matches!(self.outcome, Violated(_) | Missing(_) | Unanswered(_))
    }

    /// Whether the run fails by it: an objection to a MUST.
    pub fn is_failure(&self) -> bool {
        self.is_objection() && self.check.level == Level::Must
    }

    /// One word for the outcome, as reports have it.
    fn label(&self) -> &'static str {
        match (&self.outcome, self.check.level) {
            (Outcome::Passed, _) => "pass",
            (Outcome::NotApplicable(_), _) => "skip",
            (Outcome::NotReached, _) => "not-reached",
            (_, Level::Must) => "fail",
            (_, Level::Should) => "warn",
            (_, Level::May | Level::Decision) => "info",
        }
    }

    /// The finding or reason, in the server's words where it has some.
    fn text(&self) -> &str {
        match &self.outcome {
            Outcome::Passed => "",
            Outcome::NotReached => "the time limit of the run passed before",
            Outcome::Violated(text)
            | Outcome::Missing(text)
            | Outcome::NotApplicable(text)
            | Outcome::Unanswered(text) => text,
        }
    }

    /// What the author can do, if a test shows that something is wrong.
    fn advice(&self) -> &'static str {
        match self.outcome {
            Outcome::Missing(_) => "",
            _ => self.check.advice(),
        }
    }
}

/// Whether the check had its turn and something to test.
fn is_reached(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::NotReached | Outcome::NotApplicable(_))
}

/// What a run found, in the order of the checks.
#[derive(Clone, Debug)]
pub struct Report {
    target: String,
    findings: Vec<Finding>,
    skipped: Vec<(Era, String)>,
    /// How long the run took.
    pub(crate) time: Duration,
    /// Whether it is of a server that declares neither extension.
    declares_nothing: bool,
}

impl Report {
    pub(crate) fn new(target: String) -> Self {
        Self {
            target,
            findings: Vec::new(),
            skipped: Vec::new(),
            time: Duration::ZERO,
            declares_nothing: false,
        }
    }

    /// Records what a server declares in one more era.
    pub(crate) fn record_declarations(&mut self, survey: &Survey) {
        let declares =
            [Scope::Negotiation, Scope::DeclaredVariants].map(|scope| survey.is_in(scope));
        let is_first = self.findings.is_empty();
        self.declares_nothing = declares == [false, false] && (is_first || self.declares_nothing);
    }

    pub(crate) fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    pub(crate) fn skip_era(&mut self, era: Era, reason: String) {
        self.skipped.push((era, reason));
    }

    /// The findings, era by era.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The eras in which the server does not answer, with the reasons.
    pub fn skipped_eras(&self) -> &[(Era, String)] {
        &self.skipped
    }

    /// Whether all checks were reached, and no check of a MUST objects.
    pub fn passes(&self) -> bool {
        !self.fails() && self.not_reached() == 0
    }

    /// Whether a check of a MUST objects.
    pub fn fails(&self) -> bool {
        self.findings.iter().any(Finding::is_failure)
    }

    /// How many checks the run did not reach in time.
    pub fn not_reached(&self) -> usize {
        let is_late = |it: &&Finding| it.outcome == Outcome::NotReached;
        self.findings.iter().filter(is_late).count()
    }

    /// The seconds that all checks need, with a third more, if those that were reached are like the others; in tens.
    pub fn needed_seconds(&self) -> u64 {
        let reached = self
            .findings
            .iter()
            .filter(|finding| is_reached(&finding.outcome))
            .count();
        let all = u32::try_from(reached + self.not_reached()).unwrap_or(u32::MAX);
        let for_one =
            self.time.as_secs_f64() / f64::from(u32::try_from(reached.max(1)).unwrap_or(u32::MAX));
        let needed = Duration::from_secs_f64((for_one * f64::from(all) * 4.0 / 3.0).min(1e6));
        (needed.as_secs() / 10 * 10 + 10).clamp(60, LONGEST_RUN)
    }

    /// The report as text.
    pub fn render(&self, format: Format) -> String {
        match format {
            Format::Plain => plain::render(self),
            Format::Json => format!("{:#}\n", self.to_json()),
            Format::Junit => junit::render(self),
        }
    }

    fn to_json(&self) -> Value {
        let findings = self.findings.iter().map(finding_to_json);
        let skipped = self.skipped.iter();
        json!({
            "target": self.target,
            "passes": self.passes(),
            "verdict": self.verdict(),
            "counts": self.counts(),
            "skippedRevisions": skipped.map(|(era, reason)| json!({"revision": era.revision(), "reason": reason})).collect::<Vec<_>>(),
            "findings": findings.collect::<Vec<_>>(),
        })
    }

    /// One word for the whole run.
    fn verdict(&self) -> &'static str {
        let mut findings = self.findings.iter();
        let has_passed = findings.any(|finding| finding.outcome == Outcome::Passed);
        match (self.not_reached(), self.fails()) {
            (1.., _) => "not-finished",
            (_, true) => "fail",
            (_, false) if has_passed => "pass",
            (_, false) => "nothing-checked",
        }
    }

    /// How many findings there are of each label.
    fn counts(&self) -> BTreeMap<&'static str, usize> {
        let labels = ["pass", "fail", "warn", "info", "skip", "not-reached"];
        let count = |label| {
            self.findings
                .iter()
                .filter(|finding| finding.label() == label)
                .count()
        };
        labels
            .into_iter()
            .map(|label| (label, count(label)))
            .collect()
    }
}

fn finding_to_json(finding: &Finding) -> Value {
    let check = finding.check;
    let exchanges = finding.exchanges.iter();
    let exchanges =
        exchanges.map(|exchange| json!({"sent": exchange.sent, "received": exchange.received}));
    json!({
        "id": check.id,
        "revision": finding.era.revision(),
        "level": check.level.to_string(),
        "outcome": finding.label(),
        "finding": finding.text(),
        "sentence": check.sentence,
        "source": check.source,
        "does": check.does,
        "advice": finding.advice(),
        "milliseconds": u64::try_from(finding.duration.as_millis()).unwrap_or(u64::MAX),
        "traffic": exchanges.collect::<Vec<_>>(),
        "stderr": finding.stderr,
    })
}

/// `text` with everything escaped that a terminal or reader could take for something else: control characters, and signs
/// that change the direction of text.
fn visible(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    for letter in text.chars() {
        let is_direction = matches!(letter, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        if letter.is_control() || is_direction {
            _ = write!(visible, "{}", letter.escape_unicode());
        } else {
            visible.push(letter);
        }
    }
    visible
}

#[cfg(test)]
mod tests;
