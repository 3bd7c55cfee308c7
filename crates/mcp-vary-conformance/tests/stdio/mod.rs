//! The checks of a command: what a process may do, and that nothing of it is left.

use std::time::{Duration, Instant};

use mcp_vary_conformance::{Era, Options, Report, RunError, Target, run};

use crate::peer::{DYING, ENDLESS, NO_FAULT, NO_VARIANTS, NOISY, SILENT, STUBBORN};
use crate::{describe, expected, objections};

fn target(fault: &str) -> Target {
    Target::command([env!("CARGO_BIN_EXE_conformance-peer"), fault]).unwrap()
}

async fn check(fault: &str) -> Report {
    run(&target(fault), &Options::default()).await.unwrap()
}

#[tokio::test]
async fn a_right_command_has_no_objections() {
    for fault in [NO_FAULT, NO_VARIANTS, NOISY] {
        let report = check(fault).await;
        assert!(objections(&report).is_empty(), "{}", describe(&report));
        assert!(report.skipped_eras().is_empty());
    }
}

/// A fault of each file of checks; `cargo xtask test check` has all of them.
#[tokio::test]
async fn faults_of_a_command_are_found_by_their_checks_alone() {
    let mut wrong = String::new();
    for fault in [
        "EXT-5/bad-settings-are-survived",
        "CN-16/tools-do-not-depend-on-tags",
        "CN-9/agent-json-is-structured",
        "SV-1/unique-ids",
        "SV-4/text-or-array",
        "SV-8/selection-is-per-request",
        "SV-9/connection-survives",
        "SV-12/tools-of-another-variant",
        "SV-13/other-variant-is-refused",
        "TR-4/schema-means-structure",
    ] {
        let report = check(fault).await;
        if objections(&report) != expected(fault) {
            wrong += &format!("fault {fault}:\n{}", describe(&report));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[tokio::test]
async fn a_command_that_answers_nothing_ends_the_run_in_time() {
    let options = Options::default()
        .request_limit(Duration::from_millis(100))
        .start_limit(Duration::from_millis(200));
    let started = Instant::now();
    let error = run(&target(SILENT), &options)
        .await
        .unwrap_err()
        .to_string();
    // In both eras, said once.
    assert_eq!(error, "no response within 0.2 s");
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[cfg(unix)]
#[tokio::test]
async fn a_program_that_may_be_downloading_is_told_from_one_that_hangs() {
    let folder = std::env::temp_dir().join(format!("vary-runner-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let runner = folder.join("npx");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_conformance-peer"), &runner).unwrap();
    let target = Target::command([runner.to_str().unwrap(), SILENT]).unwrap();
    let options = Options::default().start_limit(Duration::from_millis(200));
    let options = options.request_limit(Duration::from_millis(100));
    let error = run(&target, &options).await.unwrap_err().to_string();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(
        error,
        "no response within 0.2 s; `npx` may still be downloading: run it once by itself, then check again"
    );
}

#[tokio::test]
async fn a_line_without_an_end_is_not_read() {
    let RunError::NoEra { reasons, .. } = run(&target(ENDLESS), &Options::default())
        .await
        .unwrap_err()
    else {
        panic!("another error");
    };
    let expected = "standard output cannot be read: a line is longer than 4194304 bytes";
    assert!(reasons.contains(expected), "{reasons}");
}

#[tokio::test]
async fn the_report_has_the_exit_status_and_standard_error_of_a_command_that_ends() {
    let options = Options::default().only(["EXT-4"]).unwrap().era(Era::Legacy);
    let report = run(&target(DYING), &options).await.unwrap();
    let finding = report.findings().first().unwrap();
    assert!(
        format!("{:?}", finding.outcome).contains("the process ended (exit status: 3)"),
        "{:?}",
        finding.outcome
    );
    assert_eq!(finding.stderr, "the disk is full");
    assert!(!report.passes());
}

#[tokio::test]
async fn a_command_that_is_not_there_is_an_error() {
    let target = Target::command(["no-such-program-of-anybody"]).unwrap();
    let error = run(&target, &Options::default())
        .await
        .unwrap_err()
        .to_string();
    let expected = "the program `no-such-program-of-anybody` was not found";
    assert!(error.contains(expected), "{error}");
}

/// The processes that a report's standard error names.
fn processes(report: &Report) -> Vec<String> {
    let lines = report
        .findings()
        .iter()
        .flat_map(|finding| finding.stderr.lines());
    let lines = lines.filter_map(|line| line.strip_prefix("processes "));
    let mut processes: Vec<String> = lines
        .flat_map(|line| line.split(' ').map(str::to_owned))
        .collect();
    processes.sort_unstable();
    processes.dedup();
    processes
}

/// A process that ignores that its input is closed, and that has started another one.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_stubborn_command_and_its_children_are_ended() {
    let options = Options::default().only(["SV-9"]).unwrap();
    let report = run(&target(STUBBORN), &options).await.unwrap();
    let processes = processes(&report);
    assert!(processes.len() >= 4, "{processes:?}");
    for process in processes {
        let deadline = Instant::now() + Duration::from_secs(10);
        while is_running(&process) {
            assert!(Instant::now() < deadline, "process {process} is left");
            // A killed process needs a moment to end.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[cfg(target_os = "linux")]
fn is_running(process: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat"));
    status.is_ok_and(|status| !status.contains(") Z "))
}
