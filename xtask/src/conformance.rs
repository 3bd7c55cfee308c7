//! The official suite against the fixture, directly and through Vary, compared check by check.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde::Deserialize;

use crate::phases::Outcome;
use crate::server::Server;
use crate::workspace::Workspace;
use crate::{npm, process};

/// What is worse through Vary, and why that stays for now.
const EXPECTED: &str = "tests/conformance/expected-failures.yaml";

/// The target that the others are compared with; it is judged first.
const DIRECT: &str = "direct";

/// The others: Vary before a server of either era over HTTP, and before one on stdio.
const THROUGH: &[&str] = &["legacy", "modern", "stdio"];

const LIMIT: Duration = Duration::from_secs(10 * 60);

/// A version of the suite with what it is asked to run.
struct Suite {
    name: &'static str,
    script: &'static str,
    arguments: &'static [&'static str],
}

const SUITES: &[Suite] = &[
    Suite {
        name: "2025-11-25",
        script: "node_modules/@modelcontextprotocol/conformance/dist/index.js",
        arguments: &["--requirements", "2025-11-25"],
    },
    Suite {
        name: "2026-07-28",
        script: "node_modules/@modelcontextprotocol/conformance/dist/index.js",
        arguments: &["--requirements", "2026-07-28"],
    },
    Suite {
        name: "0.1.16",
        script: "node_modules/conformance-2025/dist/index.js",
        arguments: &["--suite", "all", "--spec-version", "2025-11-25"],
    },
];

/// A check of the suite that is expected to be worse through Vary.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// The targets in which it is worse; all of them when none is named.
    #[serde(default)]
    through: Vec<String>,
    suites: Vec<String>,
    scenario: String,
    checks: Vec<String>,
    reason: String,
}

/// Everything that is expected: target, suite and `scenario/check`.
type Expected = BTreeSet<(String, String, String)>;

/// One entry of a `checks.json`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    id: String,
    status: String,
    #[serde(default)]
    error_message: Option<String>,
}

/// How one check went; the suite may report it several times.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Tally {
    held: usize,
    broken: usize,
    messages: Vec<String>,
}

impl Tally {
    /// Whether `self` is worse than `direct`: a check that was only skipped is, too.
    fn is_worse_than(&self, direct: &Self) -> bool {
        self.held < direct.held || self.broken > direct.broken
    }
}

/// A server that the suites are run against.
struct Target {
    name: &'static str,
    /// The one that is asked.
    front: Server,
    /// What it needs behind it.
    _behind: Option<Server>,
}

impl Target {
    fn direct(workspace: &Workspace, fixture: &Path) -> Result<Self, String> {
        let front = fixture_server(workspace, DIRECT, fixture, "both")?;
        Ok(Self {
            name: DIRECT,
            front,
            _behind: None,
        })
    }

    fn over_http(
        workspace: &Workspace,
        era: &'static str,
        fixture: &Path,
        vary: &Path,
    ) -> Result<Self, String> {
        let behind = fixture_server(workspace, &format!("{era}-fixture"), fixture, era)?;
        let mut command = process::command(vary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--url", &behind.url]);
        Ok(Self {
            name: era,
            front: start(workspace, era, &mut command)?,
            _behind: Some(behind),
        })
    }

    fn on_stdio(workspace: &Workspace, fixture: &Path, vary: &Path) -> Result<Self, String> {
        let mut command = process::command(vary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--"]);
        command.arg(fixture).arg("--stdio");
        Ok(Self {
            name: "stdio",
            front: start(workspace, "stdio", &mut command)?,
            _behind: None,
        })
    }
}

fn fixture_server(
    workspace: &Workspace,
    name: &str,
    fixture: &Path,
    era: &str,
) -> Result<Server, String> {
    let mut command = process::command(fixture);
    command.args(["--http", "127.0.0.1:0", "--era", era]);
    start(workspace, name, &mut command)
}

fn start(workspace: &Workspace, name: &str, command: &mut Command) -> Result<Server, String> {
    Server::start(
        command,
        &workspace.scratch(&format!("conformance/{name}.log"))?,
    )
}

/// Tallies by suite and `scenario/check`.
type Results = BTreeMap<(String, String), Tally>;

/// The official suite, every version of it.
pub(crate) fn phase(workspace: &Workspace) -> Outcome {
    match compared(workspace) {
        Ok(outcome) => outcome,
        Err(error) => Outcome::failure(error),
    }
}

fn compared(workspace: &Workspace) -> Result<Outcome, String> {
    workspace.npm()?;
    let expected = expected(&workspace.read(EXPECTED)?)?;
    let targets = targets(workspace)?;
    // Each server is asked by one suite at a time, all servers at once.
    let results: Vec<Result<Results, String>> = thread::scope(|scope| {
        let running: Vec<_> = targets
            .iter()
            .map(|target| scope.spawn(|| all_suites(workspace, target)))
            .collect();
        let panicked = |_| Err("the run panicked, see above".to_owned());
        running
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(panicked))
            .collect()
    });
    let mut outcome = Outcome::default();
    let mut direct = Results::new();
    for (target, results) in targets.iter().zip(results) {
        let name = target.name;
        let results = results.map_err(|error| format!("{name}: {error}"))?;
        let found = if name == DIRECT {
            judged_alone(&results)
        } else {
            judged(name, &direct, &results, &expected)
        };
        println!("  {name:<12} {:>4} checks", results.len());
        outcome.add(&found);
        if name == DIRECT {
            outcome.add(&unknown(&results, &expected));
            direct = results;
        }
    }
    Ok(outcome)
}

/// The fixture by itself, and Vary before one of each era over HTTP and before one on stdio.
fn targets(workspace: &Workspace) -> Result<Vec<Target>, String> {
    let fixture = workspace.binary("fixture-server")?;
    let vary = workspace.binary("vary")?;
    let mut targets = vec![Target::direct(workspace, &fixture)?];
    for era in ["legacy", "modern"] {
        targets.push(Target::over_http(workspace, era, &fixture, &vary)?);
    }
    targets.push(Target::on_stdio(workspace, &fixture, &vary)?);
    Ok(targets)
}

fn all_suites(workspace: &Workspace, target: &Target) -> Result<Results, String> {
    let mut results = Results::new();
    for suite in SUITES {
        let name = format!("{}-{}", suite.name, target.name);
        let log = workspace.scratch(&format!("conformance/{name}.log"))?;
        let directory = log.with_extension("results");
        if directory.exists() {
            fs::remove_dir_all(&directory).map_err(|error| error.to_string())?;
        }
        let mut command = npm::node(workspace)?;
        let url = &target.front.url;
        command.arg(suite.script).args(["server", "--url", url]);
        command
            .args(suite.arguments)
            .arg("--output-dir")
            .arg(&directory);
        // It fails when one check does; what counts is the comparison.
        process::status(&mut command, &log, LIMIT)?;
        collect(suite.name, &directory, &mut results)?;
    }
    Ok(results)
}

/// Reads every `server-<scenario>-<time>/checks.json` below `directory`.
fn collect(suite: &str, directory: &Path, results: &mut Results) -> Result<(), String> {
    let entries = fs::read_dir(directory).map_err(|error| {
        format!(
            "the suite left no results in {}: {error}",
            directory.display()
        )
    })?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let file = path.join("checks.json");
        let text = fs::read_to_string(&file).map_err(|error| format!("{name}: {error}"))?;
        let checks: Vec<Check> =
            serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))?;
        for check in checks {
            let key = format!("{}/{}", scenario(&name), check.id);
            let tally = results.entry((suite.to_owned(), key)).or_default();
            match check.status.as_str() {
                "SUCCESS" => tally.held += 1,
                "FAILURE" | "WARNING" => {
                    tally.broken += 1;
                    tally.messages.extend(check.error_message);
                }
                // Told or skipped: neither held nor broken.
                _ => {}
            }
        }
    }
    Ok(())
}

/// The scenario in a directory's name, `server-<scenario>-2026-11-20T05-46-53-309Z`.
fn scenario(directory: &str) -> &str {
    const TIME: usize = "-2026-11-20T05-46-53-309Z".len();
    let name = directory.strip_prefix("server-").unwrap_or(directory);
    let end = name.len().saturating_sub(TIME);
    name.get(..end).unwrap_or(name)
}

/// The fixture itself must hold: otherwise nothing could get worse.
fn judged_alone(direct: &Results) -> Outcome {
    let mut outcome = Outcome::default();
    for ((suite, check), tally) in direct {
        if tally.broken == 0 {
            outcome.passed += 1;
        } else {
            outcome.add(&broken(DIRECT, suite, check, tally));
        }
    }
    outcome
}

/// What is worse than `direct` must be expected, what is expected must be worse.
fn judged(name: &str, direct: &Results, through: &Results, expected: &Expected) -> Outcome {
    let mut outcome = Outcome::default();
    for (key, before) in direct {
        let now = through.get(key).cloned().unwrap_or_default();
        let (suite, check) = key;
        let listed = expected.contains(&(name.to_owned(), suite.clone(), check.clone()));
        match (now.is_worse_than(before), listed) {
            (true, false) => outcome.add(&broken(name, suite, check, &now)),
            (false, true) => outcome.add(&Outcome::failure(format!(
                "{name}: {suite}: {check}: holds; remove it from {EXPECTED}"
            ))),
            (false, false) | (true, true) => outcome.passed += 1,
        }
    }
    outcome
}

/// What is expected of a check that does not exist.
fn unknown(direct: &Results, expected: &Expected) -> Outcome {
    let mut outcome = Outcome::default();
    for (target, suite, check) in expected {
        if !direct.contains_key(&(suite.clone(), check.clone())) {
            outcome.add(&Outcome::failure(format!(
                "{target}: {suite}: {check}: no such check; remove it from {EXPECTED}"
            )));
        }
    }
    outcome
}

fn broken(name: &str, suite: &str, check: &str, tally: &Tally) -> Outcome {
    let mut report = format!("{name}: {suite}: {check}: held {} times", tally.held);
    for message in &tally.messages {
        let _ = write!(report, "\n    {message}");
    }
    Outcome::failure(report)
}

/// The expected failures, one by one.
fn expected(text: &str) -> Result<Expected, String> {
    let entries: Vec<Entry> =
        serde_saphyr::from_str(text).map_err(|error| format!("{EXPECTED}: {error}"))?;
    let mut keys = Expected::new();
    for entry in &entries {
        if entry.reason.trim().is_empty() {
            return Err(format!("{EXPECTED}: {} has no reason", entry.scenario));
        }
        for key in spelled_out(entry) {
            if !keys.insert(key) {
                return Err(format!("{EXPECTED}: {} twice", entry.scenario));
            }
        }
    }
    Ok(keys)
}

fn spelled_out(entry: &Entry) -> Expected {
    let all: Vec<String> = THROUGH.iter().map(|&name| name.to_owned()).collect();
    let targets = if entry.through.is_empty() {
        &all
    } else {
        &entry.through
    };
    let mut keys = Expected::new();
    for target in targets {
        for suite in &entry.suites {
            for check in &entry.checks {
                let check = format!("{}/{check}", entry.scenario);
                keys.insert((target.clone(), suite.clone(), check));
            }
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(held: usize, broken: usize) -> Tally {
        Tally {
            held,
            broken,
            messages: Vec::new(),
        }
    }

    fn results(tally: Tally) -> Results {
        Results::from([(("s".to_owned(), "ping/ping".to_owned()), tally)])
    }

    #[track_caller]
    fn judges(through: Tally, expected: &[&str], failed: usize) {
        let expected = expected
            .iter()
            .map(|check| ("http".to_owned(), "s".to_owned(), (*check).to_owned()))
            .collect();
        let outcome = judged("http", &results(tally(2, 0)), &results(through), &expected);
        assert_eq!(outcome.failed, failed, "{}", outcome.report);
    }

    #[test]
    fn as_good_as_direct_is_good() {
        judges(tally(2, 0), &[], 0);
    }

    #[test]
    fn broken_and_skipped_are_both_worse() {
        judges(tally(1, 1), &[], 1);
        judges(tally(1, 0), &[], 1);
        judges(tally(1, 0), &["ping/ping"], 0);
    }

    #[test]
    fn an_expected_failure_that_holds_has_to_go() {
        judges(tally(2, 0), &["ping/ping"], 1);
    }

    #[test]
    fn an_expected_failure_of_nothing_has_to_go() {
        let expected =
            Expected::from([("http".to_owned(), "s".to_owned(), "pong/pong".to_owned())]);
        assert_eq!(unknown(&results(tally(2, 0)), &expected).failed, 1);
    }

    #[test]
    fn the_scenario_is_what_stands_before_the_time() {
        assert_eq!(
            scenario("server-tools-list-2026-11-20T05-46-53-309Z"),
            "tools-list"
        );
    }

    #[test]
    fn every_expected_failure_has_a_reason() {
        let text = "- suites: [2025-11-25]\n  scenario: ping\n  checks: [ping]\n  reason: ''\n";
        assert!(expected(text).unwrap_err().contains("has no reason"));
        assert!(expected("[]").unwrap().is_empty());
    }

    #[test]
    fn the_file_can_be_read() {
        let text = Workspace::here().read(EXPECTED).unwrap();
        assert!(expected(&text).is_ok());
    }
}
