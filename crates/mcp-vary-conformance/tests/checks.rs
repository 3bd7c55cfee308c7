//! Every check, against a server that is right and against one with its fault.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod peer;
mod stdio;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use mcp_vary_conformance::{
    Check, Era, Extension, Finding, Format, Options, Outcome, Report, RunError, Target, registry,
    run,
};

use peer::{COHORTS, LIMITED, NO_EXTENSIONS, NO_FAULT, NO_VARIANTS, UNANNOTATED};

async fn check(fault: &'static str) -> Report {
    let target = peer::start(fault).await;
    let target = if fault.starts_with("SV-20/") || fault == NO_FAULT {
        target.with_header("x-principal", "guest").unwrap()
    } else {
        target
    };
    let target = target.with_other_header("x-principal", "admin").unwrap();
    run(&target, &options(fault)).await.unwrap()
}

/// The options with which the fault can be found: only who asks for it gets the check of servers without variants.
fn options(fault: &str) -> Options {
    match fault {
        REFUSAL => Options::default().only([REFUSAL]).unwrap(),
        _ => Options::default(),
    }
}

const REFUSAL: &str = "SV-10/unsupported-selector";

fn objecting(report: &Report) -> impl Iterator<Item = &Finding> {
    let findings = report.findings().iter();
    findings.filter(|finding| finding.is_objection())
}

fn objections(report: &Report) -> BTreeSet<(Era, &'static str)> {
    let findings = objecting(report);
    findings.map(|it| (it.era, it.check.id)).collect()
}

fn describe(report: &Report) -> String {
    let describe = |it: &Finding| format!("{} {}: {:?}\n", it.era, it.check.id, it.outcome);
    objecting(report).map(describe).collect()
}

#[tokio::test]
async fn a_right_server_has_no_objections() {
    for fault in [NO_FAULT, NO_VARIANTS, NO_EXTENSIONS, COHORTS, LIMITED] {
        let report = check(fault).await;
        assert!(objections(&report).is_empty(), "{}", describe(&report));
        assert!(report.skipped_eras().is_empty());
        assert!(report.passes());
    }
}

#[tokio::test]
async fn every_check_passes_somewhere_in_each_of_its_eras() {
    let refusing = peer::start(NO_VARIANTS).await;
    let plain = peer::start(NO_FAULT).await;
    let reports = [
        check(NO_FAULT).await,
        check(NO_EXTENSIONS).await,
        check(LIMITED).await,
        run(&plain, &Options::default()).await.unwrap(),
        run(&refusing, &options(REFUSAL)).await.unwrap(),
    ];
    let findings = || reports.iter().flat_map(Report::findings);
    for check in registry::checks() {
        for era in check.eras {
            let passed = |finding: &Finding| {
                finding.check.id == check.id
                    && finding.era == *era
                    && finding.outcome == Outcome::Passed
            };
            assert!(findings().any(passed), "{} in {era}", check.id);
        }
    }
}

/// What the fault that is called like a check must lead to: the check's objection, in each of its eras.
fn expected(fault: &str) -> BTreeSet<(Era, &'static str)> {
    let found_by = registry::checks().find(|check| check.id == fault).unwrap();
    let eras = found_by.eras.iter();
    eras.map(|era| (*era, found_by.id)).collect()
}

/// Asserts that the fault of each check of an area is found by it, in each of its eras, and by no other.
async fn are_found_by_their_checks_alone(area: &str) {
    let mut wrong = String::new();
    for found_by in registry::checks().filter(|check| check.id.starts_with(area)) {
        let report = check(found_by.id).await;
        if objections(&report) != expected(found_by.id) {
            wrong += &format!("fault {}:\n{}", found_by.id, describe(&report));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[tokio::test]
async fn faults_of_declarations_are_found_by_their_checks_alone() {
    are_found_by_their_checks_alone("EXT-").await;
}

#[tokio::test]
async fn faults_of_negotiation_are_found_by_their_checks_alone() {
    are_found_by_their_checks_alone("CN-").await;
}

#[tokio::test]
async fn faults_of_variants_are_found_by_their_checks_alone() {
    are_found_by_their_checks_alone("SV-").await;
}

#[tokio::test]
async fn faults_of_results_are_found_by_their_checks_alone() {
    are_found_by_their_checks_alone("TR-").await;
}

fn outcome<'a>(report: &'a Report, id: &str) -> &'a Outcome {
    let mut findings = report.findings().iter();
    &findings.find(|it| it.check.id == id).unwrap().outcome
}

#[tokio::test]
async fn what_is_declared_in_experimental_is_checked_like_anything_else() {
    let report = check("EXT-2/declared-in-extensions").await;
    for id in ["SV-5/hints-rank", "CN-9/agent-json-is-structured"] {
        assert_eq!(outcome(&report, id), &Outcome::Passed, "{id}");
    }
}

#[tokio::test]
async fn a_request_that_a_limit_refused_is_not_checked() {
    let report = check(LIMITED).await;
    let limited = "not checked: limited: the server refuses requests that come too often";
    let found = outcome(&report, "SV-13/other-variant-is-refused");
    assert_eq!(found, &Outcome::NotApplicable(limited.to_owned()));
}

#[tokio::test]
async fn a_tool_that_the_run_names_is_called_whatever_it_declares() {
    let target = peer::start(UNANNOTATED).await;
    let expecting = Options::default().expect(Extension::Negotiation);
    let report = run(&target, &expecting).await.unwrap();
    let expected = "no result was checked, which this run expects: no tool with `readOnlyHint: true` answers a call; name one by `--tool NAME`, with `--arguments JSON`";
    let found = outcome(&report, "CN-9/agent-json-is-structured");
    assert_eq!(found, &Outcome::Missing(expected.to_owned()));
    for arguments in [None, Some("{\"city\": \"test\"}")] {
        let options = expecting.clone().tool("weather", arguments).unwrap();
        let report = run(&target, &options).await.unwrap();
        assert!(objections(&report).is_empty(), "{}", describe(&report));
        let found = outcome(&report, "CN-9/agent-json-is-structured");
        assert_eq!(found, &Outcome::Passed);
    }
}

#[tokio::test]
async fn a_named_tool_that_cannot_be_called_is_an_error() {
    let target = peer::start(NO_FAULT).await;
    let options = Options::default().tool("wether", None).unwrap();
    let error = run(&target, &options).await.unwrap_err().to_string();
    let expected = "the server lists no tool `wether`; it lists [\"delete\",\"weather\",\"forecast\",\"debug\"]";
    assert_eq!(error, expected);
    let error = Options::default().tool("weather", Some("[1]")).unwrap_err();
    let expected = "the arguments of the tool `weather` are not a JSON object; write them as `{\"city\": \"Bern\"}`";
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn a_server_without_extensions_passes_what_is_general_and_the_report_says_so() {
    let target = peer::start(NO_EXTENSIONS).await;
    let report = run(&target, &Options::default()).await.unwrap();
    let text = report.render(Format::Plain);
    let expected =
        format!("{target} passes; it declares neither extension; only 14 general checks apply\n");
    assert_eq!(text.split_inclusive('\n').next(), Some(&*expected));
}

#[tokio::test]
async fn nothing_else_is_checked_of_a_server_that_requires_hints() {
    let report = check("SV-4/hints-are-optional").await;
    let reason = "the server refuses clients without hints".to_owned();
    let found = outcome(&report, "CN-9/agent-json-is-structured");
    assert_eq!(found, &Outcome::NotApplicable(reason));
    assert!(report.skipped_eras().is_empty() && report.fails());
}

#[tokio::test]
async fn a_finding_has_nothing_that_the_server_did_not_send() {
    let report = check("CN-7/no-features-are-the-default").await;
    let Outcome::Violated(found) = outcome(&report, "CN-7/no-features-are-the-default") else {
        panic!("no objection");
    };
    assert!(
        found.contains("**Bern**: 8") && !found.contains("null"),
        "{found}"
    );
}

#[tokio::test]
async fn a_violation_shows_what_was_sent_and_received() {
    let report = check("SV-9/unknown-variant-in-tools-list").await;
    let last = objecting(&report).next().unwrap().exchanges.last().unwrap();
    let (sent, received) = (&last.sent, &last.received);
    assert!(sent.contains("mcp-vary-conformance-unknown"), "{sent}");
    assert!(received.starts_with("HTTP 200 "), "{received}");
    assert!(received.contains("Unknown variant"), "{received}");
}

#[tokio::test]
async fn only_what_is_selected_runs() {
    let target = peer::start(NO_FAULT).await;
    let options = Options::default().only(["SV-13", "SV-1/unique-ids"]);
    let options = options.unwrap().era(Era::Modern);
    let report = run(&target, &options).await.unwrap();
    let is_selected = |check: &Check| check.matches("SV-13") || check.id == "SV-1/unique-ids";
    let is_right = |it: &Finding| is_selected(it.check) && it.era == Era::Modern;
    assert!(report.findings().iter().all(is_right));
    assert!(report.findings().len() > 2);
}

#[test]
fn a_selector_that_matches_nothing_is_an_error() {
    let error = Options::default().only(["SV-99"]).unwrap_err();
    let expected = "no check is called \"SV-99\"";
    assert!(error.to_string().starts_with(expected), "{error}");
}

#[tokio::test]
async fn a_server_that_answers_nothing_ends_the_run_in_time() {
    let target = peer::silent().await;
    let options = Options::default().request_limit(Duration::from_millis(50));
    let started = Instant::now();
    let RunError::NoEra { reasons, .. } = run(&target, &options).await.unwrap_err() else {
        panic!("another error");
    };
    // In both eras, said once.
    assert_eq!(reasons, "no response within 0.05 s");
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn checks_that_the_time_limit_left_out_neither_pass_nor_fail() {
    let target = peer::start(NO_FAULT).await;
    let options = Options::default().run_limit(Duration::from_millis(60));
    let options = options.era(Era::Modern);
    match run(&target, &options).await {
        Ok(report) => {
            assert!(!report.passes() && !report.fails());
            let last = report.findings().last().unwrap();
            assert_eq!(last.outcome, Outcome::NotReached);
            let (text, json) = (report.render(Format::Plain), report.render(Format::Json));
            let late = report.not_reached();
            assert!(
                text.contains(&format!("not finished: {late} check")),
                "{text}"
            );
            assert!(
                text.contains("not reached in time, 0 failed; at this pace"),
                "{text}"
            );
            assert!(
                text.contains(", 0 failed,") && !text.contains("\nfail "),
                "{text}"
            );
            assert!(json.contains(&format!("\"not-reached\": {late}")), "{json}");
            let junit = report.render(Format::Junit);
            assert!(junit.contains("failures=\"0\" errors=\"0\""), "{junit}");
        }
        // The survey was not over.
        Err(error) => {
            let error = error.to_string();
            assert!(error.contains("give it more time"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error() {
    let target = Target::http("http://127.0.0.1:1/mcp").unwrap();
    let error = run(&target, &Options::default()).await.unwrap_err();
    let error = error.to_string();
    let is_named = error.contains("Connection refused") || error.contains("connect");
    assert!(is_named, "{error}");
}
