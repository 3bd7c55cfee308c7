//! A report for a terminal: the verdict, then what did not pass, worst first.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::{Finding, Outcome, Report, visible};
use crate::check::Level;
use crate::era::Era;
use crate::json::cut;

/// The most exchanges that are shown of a finding, and the most characters of a message. JSON has more.
const EXCHANGES: usize = 3;
const MESSAGE: usize = 1_000;

/// The most lines of findings without a look at their traffic, before the rest is counted.
const NAMES: usize = 12;

pub(super) fn render(report: &Report) -> String {
    let mut text = verdict(report);
    for (era, reason) in &report.skipped {
        _ = writeln!(text, "{era}: not checked: {}", visible(reason));
    }
    for (era, counts) in counts(report) {
        _ = writeln!(text, "{era}: {counts}");
    }
    let mut advice = BTreeMap::new();
    for label in ["fail", "warn", "info"] {
        for group in groups(report, label) {
            text.push('\n');
            write_group(&mut text, label, &group, &mut advice);
        }
    }
    write_skipped(&mut text, report);
    text
}

/// The first line.
fn verdict(report: &Report) -> String {
    let target = visible(&report.target);
    let counts = report.counts();
    let count = |label| counts.get(label).copied().unwrap_or_default();
    let declares = if report.declares_nothing {
        declared_nothing(report)
    } else {
        String::new()
    };
    match report.verdict() {
        "not-finished" => {
            let late = report.not_reached();
            let failed = count("fail");
            let checks = if late == 1 { "check" } else { "checks" };
            let seconds = report.needed_seconds();
            format!(
                "{target}: not finished: {late} {checks} not reached in time, {failed} failed; at this pace all need about \
                 {seconds} s: give it `--time-limit {seconds}`{declares}\n"
            )
        }
        "nothing-checked" => format!("{target}: nothing could be checked{declares}\n"),
        "pass" => format!("{target} passes{declares}\n"),
        _ => format!(
            "{target} does not pass: {} failed{declares}\n",
            count("fail")
        ),
    }
}

/// That the server declares neither extension, and how many checks apply to it all the same.
fn declared_nothing(report: &Report) -> String {
    let reached = count_checks(report, super::is_reached);
    if report.not_reached() == 0 {
        return format!("; it declares neither extension; only {reached} general checks apply");
    }
    let applies = |outcome: &Outcome| super::is_reached(outcome) || *outcome == Outcome::NotReached;
    let all = count_checks(report, applies);
    let were = if reached == 1 { "was" } else { "were" };
    format!("; it declares neither extension; {all} general checks apply, {reached} {were} reached")
}

/// The number of checks with a finding whose outcome counts.
fn count_checks(report: &Report, is_counted: impl Fn(&Outcome) -> bool) -> usize {
    let findings = report.findings.iter();
    let counted = findings.filter(|finding| is_counted(&finding.outcome));
    let checks: BTreeSet<&str> = counted.map(|finding| finding.check.id).collect();
    checks.len()
}

/// The number of findings of each label, for each era that was checked.
fn counts(report: &Report) -> Vec<(Era, String)> {
    let mut eras: Vec<(Era, String)> = Vec::new();
    for era in [Era::Legacy, Era::Modern] {
        let findings = || report.findings.iter().filter(|finding| finding.era == era);
        if findings().next().is_none() {
            continue;
        }
        let labels = [
            ("pass", "passed"),
            ("fail", "failed"),
            ("warn", "warnings"),
            ("info", "notes"),
            ("skip", "not applicable"),
            ("not-reached", "not reached"),
        ];
        let parts = labels.into_iter().filter_map(|(label, shown)| {
            let has_label = |finding: &&Finding| finding.label() == label;
            let count = findings().filter(has_label).count();
            (count > 0 || label != "not-reached").then(|| format!("{count} {shown}"))
        });
        eras.push((era, parts.collect::<Vec<_>>().join(", ")));
    }
    eras
}

/// Findings that are shown as one: those of the same check in both eras, and those that differ in nothing but their check.
type Group<'a> = Vec<&'a Finding>;

fn groups<'a>(report: &'a Report, label: &str) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    let has_label = |finding: &&Finding| finding.label() == label;
    for finding in report.findings.iter().filter(has_label) {
        let belongs = |group: &&mut Group<'a>| {
            group.iter().any(|other| {
                let is_same_check = other.check.id == finding.check.id;
                // Without traffic, only the reason says something: the run was over, or the subject is missing.
                let has_traffic = !(other.exchanges.is_empty() && finding.exchanges.is_empty());
                other.text() == finding.text() && (is_same_check || !has_traffic)
            })
        };
        match groups.iter_mut().find(belongs) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    groups
}

/// What was advised, with the check that showed it.
type Advised = BTreeMap<&'static str, &'static str>;

fn write_group(text: &mut String, label: &str, group: &[&Finding], advised: &mut Advised) {
    let Some(finding) = group.first() else {
        return;
    };
    let mut names: Vec<(&str, Vec<String>)> = Vec::new();
    for finding in group {
        let era = finding.era.to_string();
        match names.iter_mut().find(|(id, _)| *id == finding.check.id) {
            Some((_, eras)) => eras.push(era),
            None => names.push((finding.check.id, vec![era])),
        }
    }
    let level = finding.check.level;
    for (id, eras) in names.iter().take(NAMES) {
        _ = writeln!(text, "{label} {id} ({level}; {})", eras.join(", "));
    }
    if names.len() > NAMES {
        _ = writeln!(text, "{label} {} more checks", names.len() - NAMES);
    }
    _ = writeln!(text, "  found:    {}", visible(finding.text()));
    if names.len() == 1 && !matches!(finding.outcome, Outcome::Missing(_)) {
        write_details(text, finding, advised);
    }
}

fn write_details(text: &mut String, finding: &Finding, advised: &mut Advised) {
    let check = finding.check;
    let title = match check.level {
        Level::Decision => "decision:",
        _ => "required:",
    };
    _ = writeln!(text, "  {title} {}", check.sentence);
    _ = writeln!(text, "            {}", check.source);
    _ = writeln!(text, "  checked:  {}", check.does);
    let advice = finding.advice();
    let shown = *advised.entry(advice).or_insert(check.id);
    if shown == check.id {
        _ = writeln!(text, "  to do:    {advice}");
    } else {
        _ = writeln!(text, "  to do:    see {shown}");
    }
    let left_out = finding.exchanges.len().saturating_sub(EXCHANGES);
    if left_out > 0 {
        _ = writeln!(
            text,
            "  traffic:  the last {EXCHANGES} exchanges; --format json has more"
        );
    }
    for exchange in finding.exchanges.iter().skip(left_out) {
        _ = writeln!(text, "  > {}", visible(&cut(&exchange.sent, MESSAGE)));
        _ = writeln!(text, "  < {}", visible(&cut(&exchange.received, MESSAGE)));
    }
    for line in finding.stderr.lines() {
        _ = writeln!(text, "  stderr:   {}", visible(line));
    }
}

/// How many checks did not apply, by reason.
fn write_skipped(text: &mut String, report: &Report) {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in &report.findings {
        if let Outcome::NotApplicable(reason) = &finding.outcome {
            *reasons.entry(reason).or_default() += 1;
        }
    }
    if !reasons.is_empty() {
        text.push_str("\nnot applicable\n");
    }
    for (reason, count) in reasons {
        _ = writeln!(text, "  {count:3} {}", visible(reason));
    }
}
