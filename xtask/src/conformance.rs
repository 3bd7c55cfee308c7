//! The official suite against the fixture, directly and through Vary.

mod judge;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde::Deserialize;

use judge::{EXPECTED, Results};

use crate::phases::Outcome;
use crate::server::Server;
use crate::workspace::Workspace;
use crate::{npm, process};

/// The target that the others are compared with; it is the first.
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
        name: "0.1.16",
        script: "node_modules/conformance-2025/dist/index.js",
        arguments: &["--suite", "all", "--spec-version", "2025-11-25"],
    },
    // The last one: it hangs up on calls, and what a server on stdio may still log about those keeps Vary
    // from telling whose the log messages of other clients' calls are.
    Suite {
        name: "2026-07-28",
        script: "node_modules/@modelcontextprotocol/conformance/dist/index.js",
        arguments: &["--requirements", "2026-07-28"],
    },
];

/// One entry of a `checks.json`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    id: String,
    status: String,
    #[serde(default)]
    error_message: Option<String>,
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

/// The official suite, every version of it.
pub(crate) fn phase(workspace: &Workspace) -> Outcome {
    match compared(workspace) {
        Ok(outcome) => outcome,
        Err(error) => Outcome::failure(error),
    }
}

fn compared(workspace: &Workspace) -> Result<Outcome, String> {
    workspace.npm()?;
    let entries = judge::entries(&workspace.read(EXPECTED)?)?;
    let suites: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
    judge::well_named(&entries, THROUGH, &suites)?;
    let targets = targets(workspace)?;
    let mut results = run_all(workspace, &targets)?.into_iter();
    let direct = results.next().unwrap_or_default();
    let mut outcome = judge::alone(DIRECT, &direct);
    println!("  {DIRECT:<8} {:>4} checks", direct.len());
    for (target, through) in targets[1..].iter().zip(results) {
        let expected = judge::expected(&entries, target.name);
        outcome.add(&judge::compared(target.name, &direct, &through, &expected));
        println!("  {:<8} {:>4} checks", target.name, through.len());
    }
    Ok(outcome)
}

/// The results of each target: each is asked by one suite at a time, all of them at once.
fn run_all(workspace: &Workspace, targets: &[Target]) -> Result<Vec<Results>, String> {
    thread::scope(|scope| {
        let running: Vec<_> = targets
            .iter()
            .map(|target| (target.name, scope.spawn(|| all_suites(workspace, target))))
            .collect();
        let ended = running.into_iter().map(|(name, thread)| {
            let panicked = |_| Err("the run panicked, see above".to_owned());
            let results = thread.join().unwrap_or_else(panicked);
            results.map_err(|error| format!("{name}: {error}"))
        });
        ended.collect()
    })
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
            tally.count(&check.status, check.error_message);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scenario_is_what_stands_before_the_time() {
        assert_eq!(
            scenario("server-tools-list-2026-11-20T05-46-53-309Z"),
            "tools-list"
        );
    }

    #[test]
    fn the_expected_failures_can_be_read() {
        let text = Workspace::here().read(EXPECTED).unwrap();
        let entries = judge::entries(&text).unwrap();
        let suites: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
        assert_eq!(judge::well_named(&entries, THROUGH, &suites), Ok(()));
    }
}
