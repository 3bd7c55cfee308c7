//! The phases that are one cargo command.

use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::outcome::Outcome;
use crate::process;
use crate::workspace::Workspace;

/// Only for commands that hang: a clean build on two slow cores takes less.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// Formatting.
pub(crate) fn format(workspace: &Workspace) -> Outcome {
    phase(workspace, "format", &["fmt", "--all", "--check"], None)
}

/// The lints.
pub(crate) fn clippy(workspace: &Workspace) -> Outcome {
    let arguments = &[
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    phase(workspace, "clippy", arguments, None)
}

/// The reference.
pub(crate) fn doc(workspace: &Workspace) -> Outcome {
    let arguments = &["doc", "--workspace", "--no-deps"];
    phase(
        workspace,
        "doc",
        arguments,
        Some(("RUSTDOCFLAGS", "-D warnings")),
    )
}

/// Compiles the fuzz targets. They are a separate workspace, which no other phase checks.
///
/// Its lock file is not updated, so that the phase fails if a new dependency is missing there.
pub(crate) fn fuzz(workspace: &Workspace) -> Outcome {
    let manifest = "fuzz/Cargo.toml";
    let arguments = [
        "check",
        "--locked",
        "--manifest-path",
        manifest,
        "--target-dir",
        "target",
    ];
    let mut outcome = phase(workspace, "fuzz", &arguments, None);
    if outcome.failed > 0 {
        let why = format!("if the lock file is old: cargo check --manifest-path {manifest}");
        outcome.report = format!("{}\n{why}", outcome.report.trim_end());
    }
    outcome
}

/// Every target of the workspace.
pub(crate) fn build(workspace: &Workspace) -> Outcome {
    Outcome::of(workspace.built())
}

/// Compiles every target at once, so that the binaries share one set of features with the tests
/// and nothing is compiled twice.
///
/// # Errors
///
/// When something does not compile; the message ends with cargo's last lines.
pub(crate) fn compile(workspace: &Workspace) -> Result<(), String> {
    let log = workspace.scratch("build.log")?;
    let arguments = ["build", "--workspace", "--all-targets"];
    process::run(cargo(workspace).args(arguments), &log, LIMIT)
}

/// Compiles the binaries of one package.
///
/// # Errors
///
/// When something does not compile; the message ends with cargo's last lines.
pub(crate) fn compile_package(workspace: &Workspace, package: &str) -> Result<(), String> {
    let log = workspace.scratch(&format!("build-{package}.log"))?;
    let arguments = ["build", "--package", package, "--bins"];
    process::run(cargo(workspace).args(arguments), &log, LIMIT)
}

/// Runs and counts all Rust tests.
pub(crate) fn tests(workspace: &Workspace) -> Outcome {
    // A failing test must not keep the other crates' tests from running.
    let arguments = &["test", "--workspace", "--no-fail-fast"];
    // Most tests wait for a server or a clock for most of their time.
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = (4 * cores).to_string();
    let variable = Some(("RUST_TEST_THREADS", threads.as_str()));
    let mut outcome = phase(workspace, "tests", arguments, variable);
    let Ok(log) = workspace.scratch("tests.log") else {
        return outcome;
    };
    let (passed, failed) = counted(&log);
    outcome.passed = passed;
    outcome.failed = failed.max(outcome.failed);
    outcome
}

/// `cargo` in the workspace.
///
/// Incremental compilation is off: its data for every test binary is several times as large as the binaries, and a full
/// run does not reuse it.
pub(crate) fn cargo(workspace: &Workspace) -> Command {
    let mut command = process::command(env!("CARGO"));
    command
        .current_dir(workspace.path(""))
        .env("CARGO_INCREMENTAL", "0");
    command
}

fn phase(
    workspace: &Workspace,
    name: &str,
    arguments: &[&str],
    variable: Option<(&str, &str)>,
) -> Outcome {
    let result = workspace.scratch(&format!("{name}.log")).and_then(|log| {
        let mut command = cargo(workspace);
        command.args(arguments).envs(variable);
        process::run(&mut command, &log, LIMIT)
    });
    Outcome::of(result)
}

/// The sums over all `test result:` lines of a log.
fn counted(log: &Path) -> (usize, usize) {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut sums = (0, 0);
    for line in text.lines().filter(|line| line.starts_with("test result:")) {
        sums.0 += number_before(line, " passed");
        sums.1 += number_before(line, " failed");
    }
    sums
}

fn number_before(line: &str, word: &str) -> usize {
    line.split(word)
        .next()
        .and_then(|start| start.rsplit(' ').next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_stand_before_their_words() {
        let line =
            "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(number_before(line, " passed"), 12);
        assert_eq!(number_before(line, " failed"), 3);
        assert_eq!(number_before(line, " grilled"), 0);
    }
}
