//! The page with the results of the suite.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::client::{MIXED, SCENARIOS};
use super::judge::{Entry, Results};
use super::suite::SUITES;
use crate::page::WrittenPage;

pub(super) const PAGE: WrittenPage = WrittenPage {
    path: "docs/internals/conformance.md",
    command: "conformance",
};

/// The result of one suite for one server behind Vary.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Pair {
    suite: String,
    behind: &'static str,
    checks: usize,
    worse: usize,
}

/// The result of each suite for Vary in front of `behind`.
pub(super) fn pairs(behind: &'static str, direct: &Results, through: &Results) -> Vec<Pair> {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for ((suite, check), tally) in direct {
        let count = counts.entry(suite).or_default();
        count.0 += 1;
        let now = through.get(&(suite.clone(), check.clone()));
        count.1 += usize::from(now.cloned().unwrap_or_default().is_worse_than(tally));
    }
    let pairs = counts.into_iter().map(|(suite, (checks, worse))| Pair {
        suite: suite.to_owned(),
        behind,
        checks,
        worse,
    });
    pairs.collect()
}

/// A row for each pair in the order of the suites, then the checks that are worse, with the reasons.
pub(super) fn table(pairs: &[Pair], entries: &[Entry]) -> String {
    let mut table =
        "| suite | behind Vary | checks | worse than without it |\n|---|---|--:|--:|\n".to_owned();
    for suite in SUITES.iter() {
        for pair in pairs.iter().filter(|pair| pair.suite == suite.name) {
            let Pair {
                checks,
                worse,
                suite,
                ..
            } = pair;
            let behind = shown(pair.behind);
            let _ = writeln!(table, "| {suite} | {behind} | {checks} | {worse} |");
        }
    }
    table.push_str("\n| scenario | suites | behind Vary | checks | why |\n|---|---|---|--:|---|\n");
    for entry in entries {
        let behind: Vec<_> = entry.through.iter().map(|name| shown(name)).collect();
        let _ = writeln!(
            table,
            "| `{}` | {} | {} | {} | {} |",
            entry.scenario,
            entry.suites.join(", "),
            behind.join("; "),
            entry.checks.len(),
            entry.reason
        );
    }
    table.push('\n');
    table
}

/// A name such as `legacy-http` in plain English.
fn shown(behind: &str) -> String {
    match (behind, behind.split_once('-')) {
        (SCENARIOS, _) => "the suite's own servers".to_owned(),
        (MIXED, _) => "the suite's own servers, client of the other era".to_owned(),
        (_, Some((era, "http"))) => format!("{era}, HTTP"),
        (_, Some((era, transport))) => format!("{era}, {transport}"),
        (_, None) => behind.to_owned(),
    }
}
