//! A report as JUnit writes it, for systems that run tests.

use std::fmt::Write as _;

use super::{Finding, Outcome, Report, visible};
use crate::era::Era;

pub(super) fn render(report: &Report) -> String {
    let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n".to_owned();
    for era in [Era::Legacy, Era::Modern] {
        let findings: Vec<&Finding> = report
            .findings
            .iter()
            .filter(|finding| finding.era == era)
            .collect();
        if !findings.is_empty() {
            write_suite(&mut xml, &report.target, era, &findings);
        }
    }
    xml.push_str("</testsuites>\n");
    xml
}

fn write_suite(xml: &mut String, target: &str, era: Era, findings: &[&Finding]) {
    let count = |element| {
        findings
            .iter()
            .filter(|finding| self::element(finding) == Some(element))
            .count()
    };
    _ = writeln!(
        xml,
        "  <testsuite name=\"{} {era}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">",
        escape(target),
        findings.len(),
        count("failure"),
        count("error"),
        count("skipped"),
    );
    for finding in findings {
        write_case(xml, finding);
    }
    xml.push_str("  </testsuite>\n");
}

/// The element that says why a test did not pass. Warnings and notes have none: they do not fail a build.
fn element(finding: &Finding) -> Option<&'static str> {
    match &finding.outcome {
        Outcome::NotApplicable(_) | Outcome::NotReached => Some("skipped"),
        Outcome::Violated(_) | Outcome::Missing(_) if finding.is_failure() => Some("failure"),
        Outcome::Unanswered(_) if finding.is_failure() => Some("error"),
        _ => None,
    }
}

fn write_case(xml: &mut String, finding: &Finding) {
    let check = finding.check;
    let seconds = finding.duration.as_secs_f64();
    _ = write!(
        xml,
        "    <testcase classname=\"{}\" name=\"{}\" time=\"{seconds:.3}\">",
        finding.era,
        escape(check.id),
    );
    let message = escape(finding.text());
    let level = check.level;
    match element(finding) {
        Some("skipped") => _ = write!(xml, "<skipped message=\"{message}\"/>"),
        Some(element) => {
            let details = escape(&details(finding));
            _ = write!(
                xml,
                "<{element} type=\"{level}\" message=\"{message}\">{details}</{element}>"
            );
        }
        None if finding.is_objection() => {
            let details = escape(&details(finding));
            _ = write!(
                xml,
                "<system-out>{level}: {message}\n{details}</system-out>"
            );
        }
        None => {}
    }
    xml.push_str("</testcase>\n");
}

fn details(finding: &Finding) -> String {
    let check = finding.check;
    let mut text = format!("{}: {}\n", check.source, check.sentence);
    _ = writeln!(text, "checked: {}", check.does);
    if !finding.advice().is_empty() {
        _ = writeln!(text, "to do: {}", finding.advice());
    }
    for exchange in &finding.exchanges {
        _ = writeln!(
            text,
            "> {}\n< {}",
            visible(&exchange.sent),
            visible(&exchange.received)
        );
    }
    for line in finding.stderr.lines() {
        _ = writeln!(text, "stderr: {}", visible(line));
    }
    text
}

/// `text` as character data or the value of an attribute. Line breaks stay: only our own text has them, as what comes from
/// the server is made visible first or stands in one line of a message.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(letter),
            // XML 1.0 has no way to write these.
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ => escaped.push(letter),
        }
    }
    escaped
}
