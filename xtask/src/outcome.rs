//! The result of one phase.

use std::fmt::Write as _;

/// The result of a phase.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct Outcome {
    /// The number of passed checks.
    pub(crate) passed: usize,
    /// The number of failed checks.
    pub(crate) failed: usize,
    /// The text for the terminal, possibly empty.
    pub(crate) report: String,
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
            failed: 1,
            report: report.into(),
            ..Self::default()
        }
    }

    /// A phase of several checks, each with its name and its error, if any.
    pub(crate) fn of_all<T: AsRef<str>>(checks: &[(T, Result<(), String>)]) -> Self {
        let mut outcome = Self::default();
        for (name, result) in checks {
            match result {
                Ok(()) => outcome.passed += 1,
                Err(error) => {
                    outcome.failed += 1;
                    let _ = writeln!(outcome.report, "{}: {error}", name.as_ref());
                }
            }
        }
        outcome
    }

    /// Adds the result of another part of the same phase.
    pub(crate) fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        if !other.report.is_empty() {
            let _ = writeln!(self.report, "{}", other.report.trim_end());
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_check_of_many_is_named() {
        let outcome = Outcome::of_all(&[("a", Ok(())), ("b", Err("it rains".to_owned()))]);
        assert_eq!((outcome.passed, outcome.failed), (1, 1));
        assert_eq!(outcome.report, "b: it rains\n");
    }
}
