//! Every check of clients, against a client that is right and against one with its fault.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt as _};
use mcp_vary_conformance::{
    Check, ClientCommand, Era, Extension, Finding, Format, Options, Outcome, Report, RunError,
    registry, run_client,
};

const CLIENT: &str = env!("CARGO_BIN_EXE_conformance-client");

/// The fault of a right client.
const NO_FAULT: &str = "";

/// How many clients are checked at the same time.
const CLIENTS: usize = 6;

#[derive(Clone, Copy, Debug)]
enum Transport {
    Http,
    Stdio,
}

fn client(transport: Transport, fault: &str) -> ClientCommand {
    match transport {
        Transport::Http => ClientCommand::http([CLIENT, fault]),
        Transport::Stdio => ClientCommand::stdio([CLIENT, fault], [CLIENT, "--relay"]),
    }
    .unwrap()
}

async fn run(transport: Transport, fault: &str, options: &Options) -> Report {
    let report = run_client(&client(transport, fault), options).await;
    report.unwrap()
}

async fn check(transport: Transport, fault: &str) -> Report {
    let options = Options::for_clients().run_limit(Duration::from_secs(240));
    run(transport, fault, &options).await
}

fn objections(report: &Report) -> BTreeSet<(Era, &'static str)> {
    let objections = report.findings().iter().filter(|it| it.is_objection());
    objections.map(|it| (it.era, it.check.id)).collect()
}

/// What the fault that is called like a check must lead to: the check's objection, in each of its eras.
fn expected(check: &Check) -> BTreeSet<(Era, &'static str)> {
    check.eras.iter().map(|era| (*era, check.id)).collect()
}

async fn a_right_client_passes_every_check(transport: Transport) {
    let report = check(transport, NO_FAULT).await;
    let text = report.render(Format::Plain);
    assert!(report.skipped_eras().is_empty(), "{text}");
    for check in registry::client_checks() {
        for era in check.eras {
            let passed = |finding: &Finding| {
                finding.check.id == check.id
                    && finding.era == *era
                    && finding.outcome == Outcome::Passed
            };
            let (id, has_passed) = (check.id, report.findings().iter().any(passed));
            assert!(has_passed, "{id} in {era}\n{text}");
        }
    }
}

async fn faults_are_found_by_their_checks_alone(transport: Transport) {
    let reports = stream::iter(registry::client_checks().map(async |found_by| {
        let report = check(transport, found_by.id).await;
        (found_by, report)
    }));
    let mut wrong = String::new();
    let mut reports = std::pin::pin!(reports.buffer_unordered(CLIENTS));
    while let Some((found_by, report)) = reports.next().await {
        if objections(&report) != expected(found_by) {
            let text = report.render(Format::Plain);
            wrong += &format!("fault {}:\n{text}\n", found_by.id);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[tokio::test]
async fn a_right_client_passes_every_check_over_http() {
    a_right_client_passes_every_check(Transport::Http).await;
}

#[tokio::test]
async fn a_right_client_passes_every_check_over_stdio() {
    a_right_client_passes_every_check(Transport::Stdio).await;
}

#[tokio::test]
async fn faults_of_clients_are_found_by_their_checks_alone_over_http() {
    faults_are_found_by_their_checks_alone(Transport::Http).await;
}

#[tokio::test]
async fn faults_of_clients_are_found_by_their_checks_alone_over_stdio() {
    faults_are_found_by_their_checks_alone(Transport::Stdio).await;
}

#[tokio::test]
async fn a_violation_shows_the_message_of_the_client() {
    let report = check(Transport::Http, "SV-8/client-selector-is-text").await;
    let mut findings = report.findings().iter();
    let finding = findings.find(|finding| finding.is_objection()).unwrap();
    assert!(!report.passes());
    let expected = Outcome::Violated("a selector is 7".to_owned());
    assert_eq!(finding.outcome, expected);
    let last = finding.exchanges.last().unwrap();
    let (sent, received) = (&last.sent, &last.received);
    let expected = r#""io.modelcontextprotocol/server-variant":7"#;
    assert!(sent.contains(expected), "{sent}");
    assert!(received.contains("Invalid server variant"), "{received}");
}

#[tokio::test]
async fn only_what_is_selected_is_reported() {
    let options = Options::for_clients().only(["SV-13"]).unwrap();
    let options = options.era(Era::Legacy);
    let report = run(Transport::Http, NO_FAULT, &options).await;
    let ids: Vec<&str> = report.findings().iter().map(|it| it.check.id).collect();
    let expected = ["cursors-are-opaque", "keeps-cursors-with-their-variant"];
    assert_eq!(ids, expected.map(|it| format!("SV-13/client-{it}")));
}

#[test]
fn checks_of_servers_cannot_be_selected_for_clients() {
    let selected = Options::for_clients().only(["SV-1/unique-ids"]);
    let error = selected.unwrap_err().to_string();
    let expected = "no check is called \"SV-1/unique-ids\"";
    assert!(error.starts_with(expected), "{error}");
    let selected = Options::default().only(["SV-19/client-retries-once"]);
    assert!(selected.is_err());
}

#[tokio::test]
async fn a_client_without_an_extension_fails_only_where_it_is_expected() {
    let fault = "EXT-2/client-extensions-are-a-map";
    let options = Options::for_clients().only(["CN-17"]).unwrap();
    let report = run(Transport::Http, fault, &options).await;
    let asked_for = "the client does not declare content negotiation, which this run asks for";
    let expected = Outcome::Violated(asked_for.to_owned());
    assert_eq!(report.findings()[0].outcome, expected);
    let options = Options::for_clients().expect(Extension::Variants);
    let report = run(Transport::Http, fault, &options).await;
    let text = report.render(Format::Plain);
    let expected =
        "the client neither declares server variants nor selects one, which this run asks for";
    assert!(text.contains(expected), "{text}");
}

#[tokio::test]
async fn a_client_that_does_not_connect_is_an_error_with_its_own_words() {
    let options = Options::for_clients();
    let error = run_client(&client(Transport::Http, "absent"), &options).await;
    let RunError::NoClient(reasons) = error.unwrap_err() else {
        panic!("another error");
    };
    for part in [
        "2025-11-25: it sent nothing; the client ended with exit status: 3",
        "its standard error ends with: the server is not known",
        "2026-07-28: it sent nothing",
    ] {
        assert!(reasons.contains(part), "{reasons}");
    }
}

#[tokio::test]
async fn a_client_that_cannot_be_started_is_an_error() {
    let command = ClientCommand::http(["no-such-program-of-anybody"]).unwrap();
    let error = run_client(&command, &Options::for_clients()).await;
    let error = error.unwrap_err().to_string();
    let expected = "the program `no-such-program-of-anybody` was not found";
    assert!(error.contains(expected), "{error}");
}

#[tokio::test]
async fn a_client_that_stays_or_never_stops_is_ended() {
    let options = Options::for_clients().only(["SV-13", "SV-1"]).unwrap();
    let options = options.request_limit(Duration::from_millis(300));
    for fault in ["staying", "endless"] {
        let started = Instant::now();
        let report = run(Transport::Http, fault, &options).await;
        assert!(report.passes(), "{}", report.render(Format::Plain));
        let elapsed = started.elapsed();
        assert!(elapsed < Duration::from_secs(30), "{fault}: {elapsed:?}");
    }
}

#[tokio::test]
async fn options_of_the_other_kind_are_refused() {
    let error = run_client(&client(Transport::Http, NO_FAULT), &Options::default()).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("`Options::for_clients()`"), "{error}");
}

#[test]
fn a_relay_connects_to_this_machine_only() {
    for address in ["192.0.2.1:80", "example.com:80", ""] {
        let error = mcp_vary_conformance::relay(address).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{address}");
    }
}
