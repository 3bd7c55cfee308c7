//! The phase that runs all Rust tests: several test binaries at once, and the doctests beside them.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::cargo::{self, cargo, compiled};
use crate::outcome::Outcome;
use crate::workspace::Workspace;
use crate::{changed, debian, parallel, process};

/// Only for tests that hang: every test has its own limits. The longest of the ignored ones, a property with thousands
/// of cases, takes more than four minutes of one core, and ten times as long on a machine with much other work.
const LIMIT: Duration = Duration::from_secs(60 * 60);

/// Runs and counts all Rust tests.
pub(crate) fn phase(workspace: &Workspace) -> Outcome {
    let jobs = jobs(&|| cargo(workspace), workspace);
    jobs.map(|jobs| run_all(workspace, &jobs)).into()
}

/// Runs and counts the Rust tests of the changed packages and of those that use them, without doctests, and without the
/// [`LONG`] ones.
///
/// Cargo compiles what changed. Compiling only these packages would need other features, and so all dependencies again.
pub(crate) fn changed(workspace: &Workspace) -> Outcome {
    let jobs = jobs_of_changed(workspace);
    jobs.map(|jobs| run_all(workspace, &jobs)).into()
}

fn jobs_of_changed(workspace: &Workspace) -> Result<Vec<Job>, String> {
    let affected = changed::packages(workspace)?;
    if affected.changed.is_empty() {
        return Ok(Vec::new());
    }
    check_long_tests(workspace)?;
    let is_affected = |binary: &TestBinary| {
        let mut folders = affected.changed.iter().chain(&affected.users);
        folders.any(|folder| workspace.path(folder) == binary.package)
    };
    let jobs = jobs(&|| cargo::incremental(workspace), workspace)?.into_iter();
    let jobs = jobs.filter_map(|job| match job {
        Job::Binary(binary) if is_affected(&binary) => Some(Job::ShortTests(binary)),
        _ => None,
    });
    Ok(jobs.collect())
}

/// The tests that take more than five seconds. The names of others must not contain these.
const LONG: &str = include_str!("rust_tests/long.txt");

/// Whether each of the [`LONG`] tests exists.
fn check_long_tests(workspace: &Workspace) -> Result<(), String> {
    let pattern = format!(r"fn ({})\(", LONG.lines().collect::<Vec<_>>().join("|"));
    let found = workspace.git(&["grep", "-hoE", &pattern, "--", "*.rs"])?;
    let missing = |name: &&str| !found.contains(&format!("fn {name}("));
    match LONG.lines().find(missing) {
        None => Ok(()),
        Some(name) => Err(format!(
            "there is no test `{name}`: remove it from xtask/src/rust_tests/long.txt, or rename it there"
        )),
    }
}

/// Runs and counts the ignored Rust tests, which take too long for every change, but those of replicas.
pub(crate) fn ignored(workspace: &Workspace) -> Outcome {
    run(workspace, &Job::Ignored).into()
}

/// Runs and counts the short tests of replicas, one after the other: they measure time.
pub(crate) fn replicas(workspace: &Workspace) -> Outcome {
    run_replicas(workspace, Job::Replicas)
}

/// The same with the tests that take minutes.
pub(crate) fn replicas_at_length(workspace: &Workspace) -> Outcome {
    run_replicas(workspace, Job::ReplicasAtLength)
}

fn run_replicas(workspace: &Workspace, job: fn(TestBinary) -> Job) -> Outcome {
    tests_of_replicas(workspace)
        .and_then(|binary| {
            let mut outcome = run(workspace, &job(binary))?;
            if outcome.passed == 0 && outcome.failed() == 0 {
                outcome.fail(format!("{COMMANDS} has no test under `replicas::`"));
            }
            Ok(outcome)
        })
        .into()
}

fn tests_of_replicas(workspace: &Workspace) -> Result<TestBinary, String> {
    let jobs = jobs(&|| cargo(workspace), workspace)?.into_iter();
    let mut binaries = jobs.filter_map(|job| match job {
        Job::Binary(binary) if binary.name == COMMANDS => Some(binary),
        _ => None,
    });
    let binary = binaries.next();
    binary.ok_or_else(|| format!("cargo has built no tests `{COMMANDS}`"))
}

/// What runs as one process.
#[derive(Debug)]
enum Job {
    Binary(TestBinary),
    /// The tests of a binary that are not [`LONG`].
    ShortTests(TestBinary),
    /// The short tests of replicas in a binary.
    Replicas(TestBinary),
    /// All tests of replicas in a binary.
    ReplicasAtLength(TestBinary),
    Doctests,
    /// The ignored tests of all binaries, but those of replicas.
    Ignored,
}

/// A compiled file of tests, and the package in whose folder it runs.
#[derive(Debug, Eq, PartialEq)]
struct TestBinary {
    /// The package and the target.
    name: String,
    program: PathBuf,
    package: PathBuf,
}

/// The arguments for the tests of replicas.
const OF_REPLICAS: [&str; 4] = ["replicas::", "--ignored", "--test-threads", "1"];

impl TestBinary {
    /// Runs it as cargo does.
    fn command(&self) -> Command {
        let mut command = process::command(&self.program);
        command
            .current_dir(&self.package)
            .env("CARGO", env!("CARGO"))
            .env("CARGO_MANIFEST_DIR", &self.package);
        command
    }
}

impl Job {
    fn name(&self) -> &str {
        match self {
            Self::Binary(binary)
            | Self::ShortTests(binary)
            | Self::Replicas(binary)
            | Self::ReplicasAtLength(binary) => &binary.name,
            Self::Doctests => "doctests",
            Self::Ignored => "ignored tests",
        }
    }

    fn command(&self, workspace: &Workspace) -> Command {
        match self {
            Self::Binary(binary) => binary.command(),
            Self::ShortTests(binary) => {
                let mut command = binary.command();
                command.args(LONG.lines().flat_map(|name| ["--skip", name]));
                command
            }
            Self::Replicas(binary) => {
                let mut command = binary.command();
                command.args(OF_REPLICAS).args(["--skip", "::at_length::"]);
                command
            }
            Self::ReplicasAtLength(binary) => {
                let mut command = binary.command();
                command.args(OF_REPLICAS);
                command
            }
            Self::Doctests => {
                let mut command = cargo(workspace);
                command.args(["test", "--workspace", "--doc", "--no-fail-fast"]);
                command
            }
            Self::Ignored => {
                let mut command = cargo(workspace);
                // Without the doctests: examples that are not compiled are ignored, too.
                let all = ["test", "--workspace", "--tests", "--no-fail-fast"];
                command.args(all).args(["--", "--ignored"]);
                // They have a phase of their own, in which they run alone.
                // The other tests start that one as a process.
                command.args(["--skip", "replicas::", "--skip", "kills::child"]);
                command
            }
        }
    }
}

/// The doctests, which are compiled one package after another, then all test binaries, those that take the longest first.
fn jobs(cargo: &dyn Fn() -> Command, workspace: &Workspace) -> Result<Vec<Job>, String> {
    debian::install(workspace)?;
    let compile = ["test", "--workspace", "--no-run"];
    let log = workspace.scratch("tests-build.log")?;
    compiled(cargo().args(compile), &log)?;
    let mut list = cargo();
    list.args(compile)
        .args(["--message-format", "json"])
        .stderr(Stdio::null());
    let list = process::output(&mut list, LIMIT)?;
    let mut binaries = binaries(&list);
    let size = |binary: &TestBinary| fs::metadata(&binary.program).map_or(0, |found| found.len());
    sort_longest_first(&mut binaries, size)?;
    let binaries = binaries.into_iter().map(Job::Binary);
    Ok([Job::Doctests].into_iter().chain(binaries).collect())
}

/// The test binary of the commands, which has the tests of replicas.
const COMMANDS: &str = "mcp-vary-cli commands";

/// The test binaries that take the longest, longest first. Each would run alone at the end if it started late, since
/// not all of them are large.
const LONGEST: &[&str] = &[
    COMMANDS,
    "mcp-vary-gateway access",
    "mcp-vary-conformance checks",
];

/// Sorts [`LONGEST`] to the start. The others follow, the largest first: it tends to take the longest.
fn sort_longest_first(
    binaries: &mut [TestBinary],
    size: impl Fn(&TestBinary) -> u64,
) -> Result<(), String> {
    for name in LONGEST {
        if !binaries.iter().any(|binary| binary.name == *name) {
            return Err(format!(
                "there is no test binary `{name}`: remove it from `LONGEST` in xtask/src/rust_tests.rs, or rename it there"
            ));
        }
    }
    binaries.sort_by_key(|binary| {
        let place = LONGEST.iter().position(|name| *name == binary.name);
        (place.unwrap_or(LONGEST.len()), Reverse(size(binary)))
    });
    Ok(())
}

/// The test binaries in cargo's messages.
fn binaries(messages: &str) -> Vec<TestBinary> {
    #[derive(Deserialize)]
    struct Artifact {
        manifest_path: PathBuf,
        target: Target,
        profile: Profile,
        executable: Option<PathBuf>,
    }
    #[derive(Deserialize)]
    struct Target {
        name: String,
    }
    #[derive(Deserialize)]
    struct Profile {
        test: bool,
    }
    let artifacts = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Artifact>(line).ok())
        .filter(|artifact| artifact.profile.test);
    artifacts
        .filter_map(|artifact| {
            let package = artifact.manifest_path.parent()?;
            let folder = package.file_name()?.to_string_lossy();
            Some(TestBinary {
                name: format!("{folder} {}", artifact.target.name),
                program: artifact.executable?,
                package: package.to_owned(),
            })
        })
        .collect()
}

/// Runs the jobs, several at once, and prints each when it is done.
fn run_all(workspace: &Workspace, jobs: &[Job]) -> Outcome {
    let outcomes = parallel::each(jobs, AT_ONCE, |job| {
        let started = Instant::now();
        let outcome = Outcome::from(run(workspace, job));
        let verdict = outcome.verdict();
        let took = started.elapsed().as_secs_f64();
        let (name, passed) = (job.name(), outcome.passed);
        println!("  {took:>5.1} s  {name}  {passed} passed  {verdict}");
        outcome
    });
    let mut all = Outcome::default();
    outcomes.into_iter().for_each(|outcome| all.add(outcome));
    all
}

/// Most tests wait for a server or a clock for most of their time, and every binary ends with a few long ones.
const AT_ONCE: usize = 3;

/// Runs one job; its checks are the tests in its output.
fn run(workspace: &Workspace, job: &Job) -> Result<Outcome, String> {
    let name = job.name();
    let log = workspace.scratch(&format!("tests/{}.log", name.replace(' ', "-")))?;
    let mut command = job.command(workspace);
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    command.env("RUST_TEST_THREADS", (4 * cores).to_string());
    let status = process::status(&mut command, &log, LIMIT)?;
    let text = fs::read(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    let mut outcome = read_log(name, &String::from_utf8_lossy(&text));
    if !status.success() && outcome.failed() == 0 {
        outcome.fail(ended(name, &status.to_string(), &log));
    }
    Ok(outcome)
}

/// A process of tests that ended without naming a failed test.
fn ended(name: &str, status: &str, log: &Path) -> String {
    format!("{name}: {status}\n{}", process::tail(log))
}

/// The passed tests in the output of test binaries, and the output of each failed one.
fn read_log(name: &str, log: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let mut failure: Option<String> = None;
    for line in log.lines() {
        if let Some(test) = failed_test(line) {
            outcome.failures.extend(failure.take());
            failure = Some(format!("{name}: {test}: "));
        } else if line == "failures:" {
            outcome.failures.extend(failure.take());
        } else if let Some(text) = failure.as_mut().filter(|_| !line.is_empty()) {
            let _ = if text.ends_with(": ") {
                write!(text, "{line}")
            } else {
                write!(text, "\n    {line}")
            };
        } else if line.starts_with("test result:") {
            outcome.passed += number_before(line, " passed");
        }
    }
    outcome.failures.extend(failure);
    outcome
}

/// The test of a line such as `---- tests::it_holds stdout ----`.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

fn number_before(line: &str, word: &str) -> usize {
    line.split(word)
        .next()
        .and_then(|start| start.rsplit(' ').next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}
