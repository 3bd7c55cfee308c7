//! The result of one phase.

use std::fmt::Write as _;

/// The result of a phase.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct Outcome {
    /// The number of passed checks.
    pub(crate) passed: usize,
    /// A text for each failed check, which starts with the check's name.
    pub(crate) failures: Vec<String>,
}

impl Outcome {
    /// A phase that is one check.
    pub(crate) fn of(result: Result<(), String>) -> Self {
        match result {
            Ok(()) => Self {
                passed: 1,
                ..Self::default()
            },
            Err(report) => Self::failure(report),
        }
    }

    /// A phase that failed as a whole, because of `report`.
    pub(crate) fn failure(report: impl Into<String>) -> Self {
        Self {
            passed: 0,
            failures: vec![report.into()],
        }
    }

    /// A phase of several checks, each with its name and its error, if any.
    pub(crate) fn of_all<T: AsRef<str>>(checks: &[(T, Result<(), String>)]) -> Self {
        let mut outcome = Self::default();
        for (name, result) in checks {
            match result {
                Ok(()) => outcome.passed += 1,
                Err(error) => outcome.fail(format!("{}: {error}", name.as_ref())),
            }
        }
        outcome
    }

    /// Adds a failed check.
    pub(crate) fn fail(&mut self, failure: impl Into<String>) {
        self.failures.push(failure.into());
    }

    /// Adds the result of another part of the same phase.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failures.extend(other.failures);
    }

    /// The number of failed checks.
    pub(crate) fn failed(&self) -> usize {
        self.failures.len()
    }

    /// One word for the terminal.
    pub(crate) fn verdict(&self) -> &'static str {
        if self.failures.is_empty() {
            "ok"
        } else {
            "FAILED"
        }
    }

    /// The text for the terminal: all failures, each from the start of a line; empty if there are none.
    pub(crate) fn report(&self) -> String {
        let mut report = String::new();
        for failure in &self.failures {
            let _ = writeln!(report, "{}", failure.trim_end());
        }
        report
    }
}

impl From<Result<Self, String>> for Outcome {
    fn from(result: Result<Self, String>) -> Self {
        result.unwrap_or_else(Self::failure)
    }
}

/// An error with all `findings`, one per line, if there are any.
pub(crate) fn no_findings(findings: &[String]) -> Result<(), String> {
    if findings.is_empty() {
        Ok(())
    } else {
        Err(format!("\n    {}", findings.join("\n    ")))
    }
}
