use std::time::Duration;

use super::*;
use crate::registry;

fn report(id: &str, outcome: Outcome) -> Report {
    let mut report = Report::new("http://127.0.0.1:1/mcp".to_owned());
    report.add(Finding {
        check: registry::checks().find(|check| check.id() == id).unwrap(),
        era: Era::Modern,
        outcome,
        exchanges: vec![Exchange::new("{\"a\":1}", "HTTP 200 \u{1b}[2J <&>\u{202e}")],
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

#[test]
fn a_finding_shows_the_sentence_and_the_traffic() {
    let text = report(
        "SV-1/unique-ids",
        Outcome::Violated("repeated: \"a\"".to_owned()),
    );
    let text = text.render(Format::Plain);
    assert!(
        text.contains("fail MUST   SV-1/unique-ids\n         repeated: \"a\"\n"),
        "{text}"
    );
    assert!(
        text.contains("MUST be unique within `availableVariants`"),
        "{text}"
    );
    assert!(text.contains("> {\"a\":1}"), "{text}");
    assert!(
        text.ends_with("does not pass: 1 fail, 0 info, 0 pass, 0 skip, 0 warn\n"),
        "{text}"
    );
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
    assert!(
        xml.contains("failures=\"1\" errors=\"0\" skipped=\"0\""),
        "{xml}"
    );
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
