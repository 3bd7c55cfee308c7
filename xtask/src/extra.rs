//! The long phases before a release: `cargo xtask test-extra`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::cargo::cargo;
use crate::outcome::Outcome;
use crate::phases::ABOUT;
use crate::replicas::Store;
use crate::workspace::Workspace;
use crate::{directory_clients, faults, interop, official_suite, process, rust_tests, soak};

/// Enough for 3500 mutants of ten seconds each on one core.
const LIMIT: Duration = Duration::from_secs(24 * 60 * 60);

/// Tests that take longer than all others together, by a part of their names. Mutants that survive without them are
/// tried again with them.
const SLOW: &str = include_str!("rust_tests/slow.txt");

/// The crate that is mutated.
const MUTATED: &str = "mcp-vary";

const MUTATED_SOURCES: &str = "crates/mcp-vary/src";

/// The crates with a stable API.
const PROMISED: &[&str] = &["mcp-vary", "mcp-vary-rmcp"];

/// A phase: its name, and its function.
type Extra = (&'static str, fn(&Workspace, &Options) -> Outcome);

/// All phases, in the order in which they run. `phases.yaml` has what each finds out.
const EXTRAS: &[Extra] = &[
    ("semver", semver),
    ("properties", |workspace, _| rust_tests::ignored(workspace)),
    ("mutants", mutants),
    ("soak", |workspace, _| soak::phase(workspace, soak::CLIENTS)),
    ("restarts", |workspace, _| {
        faults::restarts_at_length(workspace)
    }),
    ("replicas", |workspace, _| of_replicas(workspace)),
    ("directory", |workspace, _| {
        directory_clients::phase(workspace)
    }),
];

/// The options of the phases on the command line.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Mutate only files that match, such as `crates/mcp-vary/src/rank.rs`
    #[arg(long, value_name = "GLOB")]
    file: Vec<String>,
    /// Mutate only what differs from a revision, such as `main`
    #[arg(long, value_name = "REVISION")]
    since: Option<String>,
    /// How many mutants to try at once
    #[arg(long, default_value_t = 1)]
    jobs: u32,
}

fn of_replicas(workspace: &Workspace) -> Outcome {
    let mut outcome: Outcome = Store::start(workspace)
        .and_then(|store| {
            let mut outcome = official_suite::through_replicas(workspace, &store)?;
            outcome.add(interop::through_replicas(workspace, &store)?);
            Ok(outcome)
        })
        .into();
    outcome.add(rust_tests::replicas_at_length(workspace));
    outcome
}

/// The names that `cargo xtask test-extra` accepts.
pub(crate) fn names() -> Vec<&'static str> {
    EXTRAS.iter().map(|(name, _)| *name).collect()
}

/// Describes the phases, one per line.
pub(crate) fn help() -> String {
    let lines = EXTRAS
        .iter()
        .map(|(name, _)| format!("  {name:<10} {}\n", ABOUT.extra[*name]));
    std::iter::once("Phases:\n".to_owned())
        .chain(lines)
        .collect()
}

/// Runs the phases in `wanted`; all if it is empty.
///
/// # Errors
///
/// When a phase fails.
pub(crate) fn run(
    workspace: &Workspace,
    wanted: &[String],
    options: &Options,
) -> Result<(), String> {
    let mut failed = Vec::new();
    for (name, run) in EXTRAS {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| wanted == name) {
            continue;
        }
        println!("{name}: {}", ABOUT.extra[*name]);
        let outcome = run(workspace, options);
        let verdict = outcome.verdict();
        let (passed, not) = (outcome.passed, outcome.failed());
        println!("  {passed} passed, {not} failed: {verdict}");
        print!("{}", outcome.report());
        failed.extend((outcome.failed() > 0).then_some(*name));
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("failed: {}", failed.join(", ")))
    }
}

/// Tries every mutant that is not excluded for a stated reason.
fn mutants(workspace: &Workspace, options: &Options) -> Outcome {
    let found = check_installed(workspace, "mutants", "27.1.0")
        .and_then(|()| try_mutants(workspace, options));
    found.unwrap_or_else(Outcome::failure)
}

/// Runs two rounds. The second tries the mutants that survived the first again, with the slow tests.
fn try_mutants(workspace: &Workspace, options: &Options) -> Result<Outcome, String> {
    let scratch = workspace.scratch("mutants")?;
    fs::create_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
    let mut arguments: Vec<OsString> = vec!["--output".into(), scratch.clone().into()];
    arguments.extend(["--jobs".into(), options.jobs.to_string().into()]);
    for file in &options.file {
        arguments.extend(["--file".into(), file.into()]);
    }
    if let Some(revision) = &options.since {
        let diff = difference(workspace, revision, &scratch)?;
        arguments.extend(["--in-diff".into(), diff.into()]);
    }
    let skipped = SLOW.lines().flat_map(|name| ["--skip", name]);
    let quick = ["--", "--lib", "--tests", "--"].into_iter().chain(skipped);
    let quick = round(workspace, &scratch, &arguments, quick)?;
    if quick.failed() == 0 {
        return Ok(quick);
    }
    let mut thorough = round(workspace, &scratch, &arguments, ["--iterate"])?;
    thorough.passed += quick.passed;
    Ok(thorough)
}

/// Writes the difference of the mutated sources from `revision` to a file, and returns its path.
fn difference(workspace: &Workspace, revision: &str, scratch: &Path) -> Result<PathBuf, String> {
    let diff = workspace.git(&["diff", revision, "--", MUTATED_SOURCES])?;
    if diff.is_empty() {
        return Err(format!(
            "{MUTATED_SOURCES} is as in {revision}: there is nothing to mutate"
        ));
    }
    let written = scratch.join("since.diff");
    fs::write(&written, diff).map_err(|error| format!("{}: {error}", written.display()))?;
    Ok(written)
}

/// Tries mutants once, with `arguments` and then `more` of them.
fn round<'a>(
    workspace: &Workspace,
    scratch: &Path,
    arguments: &[OsString],
    more: impl IntoIterator<Item = &'a str>,
) -> Result<Outcome, String> {
    let mut command = cargo(workspace);
    command.args(["mutants", "--package", MUTATED, "--no-shuffle"]);
    // Mutants need no debug information.
    command
        .args(arguments)
        .args(more)
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    let log = scratch.join("log");
    let status = process::status(&mut command, &log, LIMIT)?;
    let of = |kind: &str| {
        let list = fs::read_to_string(scratch.join(format!("mutants.out/{kind}.txt")));
        list.unwrap_or_default()
    };
    count(&of("caught"), &of("missed"), &of("timeout")).ok_or_else(|| {
        let tail = process::tail(&log);
        format!("cargo mutants: {status}, and not one mutant was tried\n{tail}")
    })
}

/// Counts the mutants in the three lists, one per line. A mutant that times out counts as caught.
fn count(caught: &str, missed: &str, timeout: &str) -> Option<Outcome> {
    let passed = caught.lines().count() + timeout.lines().count();
    let failures: Vec<String> = missed.lines().map(str::to_owned).collect();
    (passed + failures.len() > 0).then_some(Outcome { passed, failures })
}

/// Compares the API of the libraries with their latest release. Succeeds if nothing is released yet.
fn semver(workspace: &Workspace, _options: &Options) -> Outcome {
    match baseline(workspace) {
        Ok(Some(tag)) => check_installed(workspace, "semver-checks", "0.51.0")
            .map_or_else(Outcome::failure, |()| compare(workspace, &tag)),
        Ok(None) => {
            println!("  nothing is released yet: there is no tag `v*` to compare with");
            Outcome::default()
        }
        Err(error) => Outcome::failure(error),
    }
}

fn compare(workspace: &Workspace, tag: &str) -> Outcome {
    let checks: Vec<_> = PROMISED
        .iter()
        .map(|name| {
            let result = workspace
                .scratch(&format!("semver-{name}.log"))
                .and_then(|log| {
                    let mut command = cargo(workspace);
                    command.args(["semver-checks", "--package", name, "--baseline-rev", tag]);
                    process::run(&mut command, &log, LIMIT)
                });
            (*name, result)
        })
        .collect();
    Outcome::of_all(&checks)
}

/// The tag of the latest release.
fn baseline(workspace: &Workspace) -> Result<Option<String>, String> {
    let tags = workspace.git(&["tag", "--list", "v*", "--sort=-version:refname"])?;
    Ok(tags.lines().next().map(str::to_owned))
}

/// Whether `cargo {subcommand}` is installed.
fn check_installed(workspace: &Workspace, subcommand: &str, version: &str) -> Result<(), String> {
    let mut command = cargo(workspace);
    command.args([subcommand, "--version"]);
    process::output(quiet(&mut command), Duration::from_secs(60))
        .map(drop)
        .map_err(|_| {
            let program = format!("cargo-{subcommand}");
            format!("{program} is not here; `cargo install --locked {program}@{version}` installs what this was written for")
        })
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stderr(std::process::Stdio::null())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slow_test_is_there() {
        let mut tests = String::new();
        let crates = ["mcp-vary", "mcp-vary-json", "mcp-vary-view"];
        let tests_of = |name| Workspace::here().path(&format!("crates/{name}/tests"));
        let mut folders: Vec<_> = crates.map(tests_of).into();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    tests += &fs::read_to_string(path).unwrap_or_default();
                }
            }
        }
        for name in SLOW.lines() {
            assert!(tests.contains(&format!("fn {name}")), "{name}");
        }
    }

    #[test]
    fn every_mutant_that_may_live_has_its_reason() {
        let text = Workspace::here().read(".cargo/mutants.toml").unwrap();
        let (_, list) = text.split_once("exclude_re = [\n").expect("the list");
        let (list, _) = list.split_once("\n]").unwrap_or_default();
        let mut reason = false;
        for line in list.lines().map(str::trim) {
            let is_comment = line.starts_with('#');
            assert!(
                is_comment || line.is_empty() || reason,
                "no reason above {line}"
            );
            reason = is_comment && line.len() > 10;
        }
    }
}
