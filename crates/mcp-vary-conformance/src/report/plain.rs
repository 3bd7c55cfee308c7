//! A report for a terminal.

use std::fmt::Write as _;

use super::{Finding, Report, visible};

pub(super) fn render(report: &Report) -> String {
    let mut text = format!("{}\n", visible(&report.target));
    for (era, reason) in &report.skipped {
        _ = writeln!(text, "\n{era}: not checked: {}", visible(reason));
    }
    let mut era = None;
    for finding in &report.findings {
        if era != Some(finding.era) {
            era = Some(finding.era);
            _ = writeln!(text, "\n{}", finding.era);
        }
        write_finding(&mut text, finding);
    }
    let counts = report.counts();
    let counts: Vec<String> = counts
        .iter()
        .map(|(word, count)| format!("{count} {word}"))
        .collect();
    let verdict = if report.passes() {
        "passes"
    } else {
        "does not pass"
    };
    _ = writeln!(text, "\n{verdict}: {}", counts.join(", "));
    text
}

fn write_finding(text: &mut String, finding: &Finding) {
    let check = finding.check;
    _ = writeln!(
        text,
        "  {} {:6} {}",
        finding.word(),
        check.level(),
        check.id()
    );
    if !finding.text().is_empty() {
        _ = writeln!(text, "         {}", visible(finding.text()));
    }
    if !finding.is_objection() {
        return;
    }
    _ = writeln!(text, "         {}: {}", check.source(), check.sentence());
    _ = writeln!(text, "         checked: {}", check.does());
    for exchange in &finding.exchanges {
        _ = writeln!(text, "         > {}", visible(&exchange.sent));
        _ = writeln!(text, "         < {}", visible(&exchange.received));
    }
}
