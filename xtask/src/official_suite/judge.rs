//! Finds the results that are worse than others, and compares them with the expected ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Deserialize;

use crate::outcome::Outcome;

/// The checks that are worse through Vary, with the reasons.
pub(super) const EXPECTED: &str = "tests/conformance/expected-failures.yaml";

/// A suite and `scenario/check`.
pub(super) type Key = (String, String);

/// The results of one target, by check.
pub(super) type Results = BTreeMap<Key, Tally>;

/// The counted reports about one check: the suite may report it several times.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Tally {
    held: usize,
    broken: usize,
    messages: Vec<String>,
}

impl Tally {
    /// Adds one report.
    pub(super) fn count(&mut self, status: &str, message: Option<String>) {
        match status {
            "SUCCESS" => self.held += 1,
            // The suite counts a warning as a failure, and so do we.
            "FAILURE" | "WARNING" => {
                self.broken += 1;
                self.messages.extend(message);
            }
            // Informational or skipped: neither held nor broken.
            _ => {}
        }
    }

    /// Whether it broke at least once.
    pub(super) fn is_broken(&self) -> bool {
        self.broken > 0
    }

    /// Whether it held, and never broke.
    pub(super) fn holds(&self) -> bool {
        self.held > 0 && self.broken == 0
    }

    /// Whether `self` is worse than `direct`. A skipped check is worse than one that held.
    pub(super) fn is_worse_than(&self, direct: &Self) -> bool {
        self.held < direct.held || self.broken > direct.broken
    }
}

/// Checks of one scenario that are expected to be worse for the same reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) scenario: String,
    /// The targets behind Vary with which they are worse, under each of the suites.
    pub(super) through: Vec<String>,
    pub(super) suites: Vec<String>,
    pub(super) checks: Vec<String>,
    pub(super) reason: String,
}

/// The entries of the file of expected failures.
///
/// # Errors
///
/// When it cannot be read, or an entry gives no reason.
pub(super) fn entries(text: &str) -> Result<Vec<Entry>, String> {
    let entries: Vec<Entry> =
        serde_saphyr::from_str(text).map_err(|error| format!("{EXPECTED}: {error}"))?;
    match entries.iter().find(|entry| entry.reason.trim().is_empty()) {
        Some(entry) => Err(format!("{EXPECTED}: {} has no reason", entry.scenario)),
        None => Ok(entries),
    }
}

/// Checks that the entries name existing targets and suites; others would be ignored.
///
/// # Errors
///
/// When an entry names another one.
pub(super) fn well_named(
    entries: &[Entry],
    targets: &[&str],
    suites: &[&str],
) -> Result<(), String> {
    for entry in entries {
        let unknown = |names: &[String], known: &[&str]| {
            let mut names = names.iter();
            names.find(|name| !known.contains(&name.as_str())).cloned()
        };
        let wrong = unknown(&entry.through, targets).or_else(|| unknown(&entry.suites, suites));
        if let Some(name) = wrong {
            return Err(format!("{EXPECTED}: {}: what is `{name}`?", entry.scenario));
        }
    }
    Ok(())
}

/// The checks that are expected to be worse through `target`.
pub(super) fn expected(entries: &[Entry], target: &str) -> BTreeSet<Key> {
    let mut keys = BTreeSet::new();
    for entry in entries {
        if !entry.through.iter().any(|name| name == target) {
            continue;
        }
        for suite in &entry.suites {
            let named = |check| (suite.clone(), format!("{}/{check}", entry.scenario));
            keys.extend(entry.checks.iter().map(named));
        }
    }
    keys
}

/// Checks that the fixture itself breaks no check: otherwise, failures through Vary would not count as worse.
pub(super) fn single(name: &str, results: &Results) -> Outcome {
    compare(name, &Results::new(), results, &BTreeSet::new())
}

/// Whether all reports of `suite` about this check of this scenario say that it held.
pub(super) fn holds(results: &Results, suite: &str, (scenario, check): (&str, &str)) -> bool {
    let found = results.get(&(suite.to_owned(), format!("{scenario}/{check}")));
    found.is_some_and(Tally::holds)
}

/// Checks that all results worse than `direct` are expected, and that all expected ones are worse.
pub(super) fn compare(
    name: &str,
    direct: &Results,
    through: &Results,
    expected: &BTreeSet<Key>,
) -> Outcome {
    let mut outcome = Outcome::default();
    let keys: BTreeSet<&Key> = direct
        .keys()
        .chain(through.keys())
        .chain(expected)
        .collect();
    for key in keys {
        let worse = is_worse(key, direct, through);
        let (suite, check) = key;
        match (worse, expected.contains(key)) {
            (true, false) => outcome.fail(worsened(name, suite, check, through.get(key))),
            (false, true) => outcome.fail(format!(
                "{name}: {suite}: {check}: is no worse; remove it from {EXPECTED}"
            )),
            (false, false) | (true, true) => outcome.passed += 1,
        }
    }
    outcome
}

/// Whether the check is worse than without Vary.
pub(super) fn is_worse(key: &Key, direct: &Results, through: &Results) -> bool {
    let none = Tally::default();
    let now = through.get(key).unwrap_or(&none);
    now.is_worse_than(direct.get(key).unwrap_or(&none))
}

fn worsened(name: &str, suite: &str, check: &str, tally: Option<&Tally>) -> String {
    let none = Tally::default();
    let tally = tally.unwrap_or(&none);
    let mut report = format!("{name}: {suite}: {check}: held {} times", tally.held);
    for message in &tally.messages {
        let _ = write!(report, "\n    {message}");
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str =
        "- {scenario: ping, through: [http], suites: [s], checks: [ping], reason: rain}\n";

    fn results(held: usize, broken: usize) -> Results {
        let tally = Tally {
            held,
            broken,
            messages: Vec::new(),
        };
        Results::from([(("s".to_owned(), "ping/ping".to_owned()), tally)])
    }

    #[track_caller]
    fn judges(through: &Results, listed: &str, failed: usize) {
        let expected = expected(&entries(listed).unwrap(), "http");
        let outcome = compare("http", &results(2, 0), through, &expected);
        assert_eq!(outcome.failed(), failed, "{}", outcome.report());
    }

    #[test]
    fn as_good_as_direct_is_good() {
        judges(&results(2, 0), "[]", 0);
    }

    #[test]
    fn broken_skipped_and_missing_are_all_worse() {
        for through in [results(1, 1), results(1, 0), results(2, 1), Results::new()] {
            judges(&through, "[]", 1);
            judges(&through, ENTRY, 0);
        }
    }

    #[test]
    fn a_check_that_only_vary_breaks_is_worse() {
        let outcome = compare("http", &Results::new(), &results(0, 1), &BTreeSet::new());
        assert_eq!(outcome.failed(), 1);
    }

    #[test]
    fn an_expected_failure_that_holds_or_does_not_exist_has_to_go() {
        judges(&results(2, 0), ENTRY, 1);
        judges(&results(2, 0), &ENTRY.replace("[ping]", "[pong]"), 1);
    }

    #[test]
    fn what_is_expected_of_one_pair_is_not_of_another() {
        let one = entries(ENTRY).unwrap();
        assert_eq!(expected(&one, "http").len(), 1);
        assert_eq!(expected(&one, "stdio").len(), 0);
        let both = entries(&ENTRY.replace("[http]", "[http, stdio]")).unwrap();
        for name in ["http", "stdio"] {
            let good = compare(name, &results(2, 0), &results(2, 0), &expected(&both, name));
            assert!(
                good.report()
                    .contains(&format!("{name}: s: ping/ping: is no worse"))
            );
        }
    }

    #[test]
    fn a_check_holds_that_was_looked_at_and_never_broke() {
        let ping = ("ping", "ping");
        assert!(holds(&results(1, 0), "s", ping));
        for found in [results(1, 1), results(0, 0), Results::new()] {
            assert!(!holds(&found, "s", ping));
        }
        assert!(!holds(&results(1, 0), "t", ping));
    }

    #[test]
    fn every_expected_failure_has_a_reason() {
        let error = entries(&ENTRY.replace("rain", "''")).unwrap_err();
        assert!(error.contains("ping has no reason"));
    }

    #[test]
    fn targets_and_suites_that_nobody_runs_are_named() {
        let entries = entries(ENTRY).unwrap();
        assert_eq!(well_named(&entries, &["http"], &["s"]), Ok(()));
        assert!(
            well_named(&entries, &["stdio"], &["s"])
                .unwrap_err()
                .contains("`http`")
        );
        assert!(
            well_named(&entries, &["http"], &["t"])
                .unwrap_err()
                .contains("`s`")
        );
    }
}
