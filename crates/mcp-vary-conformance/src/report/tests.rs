use std::time::Duration;

use super::*;
use crate::registry;

fn report(id: &str, outcome: Outcome) -> Report {
    let mut report = Report::new("http://127.0.0.1:1/mcp".to_owned());
    report.add(Finding {
        check: registry::checks().find(|check| check.id == id).unwrap(),
        era: Era::Modern,
        outcome,
        exchanges: vec![Exchange::new("{\"a\":1}", "HTTP 200 \u{1b}[2J <&>\u{202e}")],
        stderr: "started\u{7}".to_owned(),
        duration: Duration::from_millis(7),
    });
    report
}

#[test]
fn only_a_must_fails_a_run() {
    let violated = |id| report(id, Outcome::Violated("x".to_owned())).passes();
    assert!(!violated("SV-1/unique-ids"));
    assert!(violated("SV-3/few-variants"));
    assert!(violated("CN-9/bare-structure"));
}

#[test]
fn an_unanswered_must_fails_a_run() {
    assert!(!report("SV-1/unique-ids", Outcome::Unanswered("x".to_owned())).passes());
}

/// The server failed nothing; the run was too short.
#[test]
fn a_run_that_ended_early_is_not_finished_and_shows_what_failed_before() {
    let late = Outcome::NotReached;
    let mut early = report("SV-1/unique-ids", late.clone());
    assert!(!early.passes() && !early.fails());
    let first = |report: &Report| {
        report
            .render(Format::Plain)
            .lines()
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        first(&early),
        "http://127.0.0.1:1/mcp: not finished: 1 check not reached in time, 0 failed; at this pace all need about 60 s: give it \
         `--time-limit 60`"
    );
    // One of three in 55 s, and a third of the whole more: 220 s.
    early.time = Duration::from_secs(55);
    for (id, outcome) in [
        ("SV-1/ids-are-text", Outcome::Violated("x".to_owned())),
        ("SV-9/requested-variant", late),
    ] {
        early.findings.extend(report(id, outcome).findings);
    }
    assert!(
        first(&early).ends_with(
            ": 2 checks not reached in time, 1 failed; at this pace all need about 230 s: give it `--time-limit 230`"
        ),
        "{}",
        first(&early)
    );
    early.declares_nothing = true;
    let expected = "; it declares neither extension; 3 general checks apply, 1 was reached";
    assert!(first(&early).ends_with(expected), "{}", first(&early));
}

#[test]
fn a_finding_shows_the_sentence_and_the_traffic() {
    let text = report(
        "SV-1/unique-ids",
        Outcome::Violated("repeated: \"a\"".to_owned()),
    );
    let text = text.render(Format::Plain);
    let (head, traffic) = text.split_once("  > ").unwrap();
    assert_eq!(
        head,
        "http://127.0.0.1:1/mcp does not pass: 1 failed\n\
         2026-07-28: 0 passed, 1 failed, 0 warnings, 0 notes, 0 not applicable\n\n\
         fail SV-1/unique-ids (MUST; 2026-07-28)\n\
         \x20 found:    repeated: \"a\"\n\
         \x20 required: Each variant's `id` MUST be unique within `availableVariants`.\n\
         \x20           SEP-2053, New Types\n\
         \x20 checked:  Reads the offered variants: no `id` is there twice.\n\
         \x20 to do:    Give each variant an `id` that no other has, a `description`, and if you like `hints` (strings), \
         `status` and `deprecationInfo`.\n"
    );
    assert!(traffic.starts_with("{\"a\":1}\n  < HTTP 200 "), "{traffic}");
    let expected = "  stderr:   started\\u{7}\n";
    assert!(traffic.ends_with(expected), "{traffic}");
}

#[test]
fn what_differs_in_nothing_but_its_check_is_shown_once() {
    let mut report = report("SV-1/unique-ids", Outcome::Passed);
    for (id, era) in [
        ("SV-9/requested-variant", Era::Legacy),
        ("SV-9/requested-variant", Era::Modern),
        ("SV-1/ids-are-text", Era::Modern),
    ] {
        report.add(Finding {
            check: registry::checks().find(|check| check.id == id).unwrap(),
            era,
            outcome: Outcome::Unanswered("the time limit passed".to_owned()),
            exchanges: Vec::new(),
            stderr: String::new(),
            duration: Duration::ZERO,
        });
    }
    let text = report.render(Format::Plain);
    assert!(
        text.ends_with(
            "\nfail SV-9/requested-variant (MUST; 2025-11-25, 2026-07-28)\n\
             fail SV-1/ids-are-text (MUST; 2026-07-28)\n\
             \x20 found:    the time limit passed\n"
        ),
        "{text}"
    );
}

#[test]
fn advice_is_shown_once() {
    let mut report = report("SV-1/unique-ids", Outcome::Violated("x".to_owned()));
    let other = self::report("SV-1/ids-are-text", Outcome::Violated("y".to_owned()));
    report.findings.extend(other.findings);
    let text = report.render(Format::Plain);
    assert_eq!(
        text.matches("  to do:    Give each variant an `id`")
            .count(),
        1
    );
    assert!(text.contains("  to do:    see SV-1/unique-ids\n"), "{text}");
}

#[test]
fn there_is_no_advice_where_nothing_was_tested() {
    let missing = Outcome::Missing("no result was checked".to_owned());
    let report = report("CN-9/agent-json-is-structured", missing);
    assert!(report.fails());
    let text = report.render(Format::Plain);
    assert!(
        text.ends_with("\n  found:    no result was checked\n"),
        "{text}"
    );
    let json: Value = serde_json::from_str(&report.render(Format::Json)).unwrap();
    assert_eq!(json["findings"][0]["advice"], "");
    let junit = report.render(Format::Junit);
    assert!(
        junit.contains("failures=\"1\"") && !junit.contains("to do"),
        "{junit}"
    );
}

#[test]
fn json_has_a_verdict_also_where_nothing_was_checked() {
    for (outcome, verdict) in [
        (Outcome::Passed, "pass"),
        (Outcome::Violated("x".to_owned()), "fail"),
        (Outcome::NotReached, "not-finished"),
        (Outcome::NotApplicable("x".to_owned()), "nothing-checked"),
    ] {
        let json = report("SV-1/unique-ids", outcome).render(Format::Json);
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["verdict"], verdict);
        assert!(json["passes"].is_boolean());
    }
}

#[test]
fn a_run_without_any_passed_check_is_not_called_a_pass() {
    let text = report("SV-1/unique-ids", Outcome::NotApplicable("none".to_owned()));
    let text = text.render(Format::Plain);
    let expected = "http://127.0.0.1:1/mcp: nothing could be checked\n";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.ends_with("\nnot applicable\n    1 none\n"), "{text}");
}

#[test]
fn a_server_cannot_write_to_the_terminal() {
    for outcome in [
        Outcome::Violated("\u{1b}[31m\r\u{9b}".to_owned()),
        Outcome::NotApplicable("\u{7}".to_owned()),
    ] {
        let text = report("SV-1/unique-ids", outcome).render(Format::Plain);
        let is_harmless =
            |letter: char| letter == '\n' || !(letter.is_control() || letter == '\u{202e}');
        assert!(text.chars().all(is_harmless), "{text:?}");
    }
}

#[test]
fn a_server_cannot_write_elements() {
    let finding = "</failure><x a=\"1\">\u{0}\u{ffff}&amp;".to_owned();
    let xml = report("SV-1/unique-ids", Outcome::Violated(finding)).render(Format::Junit);
    assert!(
        xml.contains(
            "message=\"&lt;/failure&gt;&lt;x a=&quot;1&quot;&gt;\u{fffd}\u{fffd}&amp;amp;\""
        ),
        "{xml}"
    );
    let expected = "failures=\"1\" errors=\"0\" skipped=\"0\"";
    assert!(xml.contains(expected), "{xml}");
    assert!(!xml.contains('\u{1b}'), "{xml}");
}

#[test]
fn warnings_are_no_failures_in_junit() {
    let xml = report("SV-3/few-variants", Outcome::Violated("9".to_owned())).render(Format::Junit);
    assert!(xml.contains("failures=\"0\""), "{xml}");
    assert!(xml.contains("<system-out>SHOULD: 9\n"), "{xml}");
}

#[test]
fn json_has_what_plain_has() {
    let json = report("SV-1/unique-ids", Outcome::Violated("x".to_owned())).render(Format::Json);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["passes"], false);
    assert_eq!(json["counts"]["fail"], 1);
    assert_eq!(json["findings"][0]["id"], "SV-1/unique-ids");
    assert_eq!(json["findings"][0]["level"], "MUST");
    assert_eq!(json["findings"][0]["traffic"][0]["sent"], "{\"a\":1}");
}
