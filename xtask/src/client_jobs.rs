//! Runs the scripts of official clients, and counts the checks that they print.

use std::fs;
use std::num::NonZero;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::clients::{Came, Table};
use crate::fork_server::ForkServers;
use crate::outcome::Outcome;
use crate::workspace::Workspace;
use crate::{npm, parallel, process, python};

/// The time limit of a job: the Inspector starts a process for each of its requests.
const LIMIT: Duration = Duration::from_secs(10 * 60);

/// The SDKs whose clients run additional checks, and the eras that they speak.
pub(crate) const SDKS: &[(&str, &[&str])] = &[
    ("typescript-1", &["legacy"]),
    ("typescript-2", &["legacy", "modern"]),
    ("python", &["legacy", "modern"]),
];

/// The SDKs for checks between one client and one server, such as notifications, and the eras that they speak: those
/// above, a widely used one with legacy tasks, and FastMCP.
pub(crate) const NOTIFIED: &[(&str, &[&str])] = &[
    SDKS[0],
    SDKS[1],
    (python::FIRST, &["legacy"]),
    SDKS[2],
    (python::FASTMCP, &["legacy", "modern"]),
];

/// One client with one server, in one era and over one transport.
#[derive(Debug)]
pub(crate) struct Job {
    /// Its name in the table.
    pub(crate) name: String,
    /// The script that it runs, in the directory of the npm packages.
    pub(crate) script: String,
    /// The argument of the script.
    pub(crate) argument: Value,
}

/// One line of a script's output.
#[derive(Debug, Deserialize)]
struct Check {
    name: String,
    /// The server, if the table of clients has a row for the check.
    #[serde(default)]
    server: Option<String>,
    #[serde(flatten)]
    came: Came,
}

/// A job for each SDK, era and transport with this `argument`, run by the scripts that are named after `what`.
pub(crate) fn of_sdks(what: &str, sdks: &[(&str, &[&str])], argument: &Value) -> Vec<Job> {
    let mut jobs = Vec::new();
    for transport in ["http", "stdio"] {
        for (name, eras) in sdks {
            let kind = match *name {
                "python" | python::FIRST | python::FASTMCP => "py",
                _ => "mjs",
            };
            for era in *eras {
                let mut argument = argument.clone();
                argument["way"] = json!(transport);
                argument["era"] = json!(era);
                argument["client"] = json!(name);
                jobs.push(Job {
                    name: format!("{what} {transport} {name} {era}"),
                    script: format!("{what}.{kind}"),
                    argument,
                });
            }
        }
    }
    jobs
}

/// Runs the jobs, several at once, and prints each when it is done. Scripts in Python run in `forks`, if there are any.
pub(crate) fn run_all(workspace: &Workspace, jobs: &[Job], forks: Option<&ForkServers>) -> Outcome {
    let (mut outcome, table) = run_each(workspace, jobs, forks);
    outcome.add(table.held_against_the_document(workspace).into());
    outcome
}

/// The same without comparing what clients lack with the document about it, which needs all jobs.
pub(crate) fn run_each(
    workspace: &Workspace,
    jobs: &[Job],
    forks: Option<&ForkServers>,
) -> (Outcome, Table) {
    let results = parallel::each(jobs, at_once(), |job| {
        let started = Instant::now();
        let result = run(workspace, job, forks);
        let took = started.elapsed().as_secs_f64();
        println!("  {took:>5.1} s  {}", row(&job.name, &result.0));
        result
    });
    let mut outcome = Outcome::default();
    let mut table = Table::default();
    for (job, (result, checks)) in jobs.iter().zip(results) {
        outcome.add(result);
        for Check { name, server, came } in &checks {
            table.note(&job.name, (name, server.as_deref()), came);
        }
    }
    (outcome, table)
}

/// The number of concurrent jobs: a job needs half a second to six seconds of a core to start its programs, and waits for
/// their answers for longer than that.
fn at_once() -> usize {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    (3 * cores).clamp(6, 12)
}

fn row(name: &str, done: &Outcome) -> String {
    let parts: Vec<&str> = name.split(' ').collect();
    let verdict = done.verdict();
    let passed = done.passed;
    let of = passed + done.failed();
    match parts[..] {
        [server, transport, client, era] => {
            format!(
                "{server:<10}  {transport:<5}  {client:<12}  {era:<6}  {passed:>2} of {of:>2}  {verdict}"
            )
        }
        _ => format!("{name}  {passed} of {of}  {verdict}"),
    }
}

/// Runs one job; its checks are the lines it prints.
fn run(workspace: &Workspace, job: &Job, forks: Option<&ForkServers>) -> (Outcome, Vec<Check>) {
    let name = &job.name;
    let (text, end) = match output(workspace, job, forks) {
        Ok(ended) => ended,
        Err(error) => return (Outcome::failure(format!("{name}: {error}")), Vec::new()),
    };
    let checks: Vec<Check> = text.lines().filter_map(parse_check).collect();
    let mut outcome = Outcome::default();
    for check in &checks {
        match &check.came {
            Came::To { ok: true, .. } => outcome.passed += 1,
            Came::To { ok: false, detail } => {
                let server = check.server.as_deref().unwrap_or("it");
                let what = &check.name;
                outcome.fail(format!("{name}: {what}, with {server}: {detail}"));
            }
            Came::Lacks { .. } => {}
        }
    }
    if let Err(error) = end {
        outcome.fail(format!("{name}: {error}"));
    }
    if outcome.passed + outcome.failed() == 0 {
        outcome.fail(format!("{name}: not one check ran"));
    }
    (outcome, checks)
}

/// The script's output, and whether it succeeded.
fn output(
    workspace: &Workspace,
    job: &Job,
    forks: Option<&ForkServers>,
) -> Result<(String, Result<(), String>), String> {
    let log = workspace.scratch(&format!("interop/{}.log", job.name.replace(' ', "-")))?;
    let mut command = command(workspace, job, forks)?;
    command.arg(job.argument.to_string());
    let end = process::run(&mut command, &log, LIMIT);
    let text = fs::read_to_string(&log).map_err(|error| error.to_string())?;
    Ok((text, end))
}

/// The command that runs the script.
fn command(
    workspace: &Workspace,
    job: &Job,
    forks: Option<&ForkServers>,
) -> Result<Command, String> {
    let script = workspace.path(npm::DIRECTORY).join(&job.script);
    if job.script.ends_with(".mjs") {
        let mut node = npm::node(workspace)?;
        node.arg(script);
        return Ok(node);
    }
    let environment = job.argument["client"].as_str().unwrap_or("python");
    let script = script.display().to_string();
    let command = match forks {
        Some(forks) => forks.command(workspace, environment, &script)?,
        None => {
            let python = python::program(workspace, environment, "python")?;
            vec![python.display().to_string(), script]
        }
    };
    let mut python = process::command(&command[0]);
    npm::with_packages(workspace, python.args(&command[1..]))?;
    Ok(python)
}

/// Parses a line that is a check. Servers and SDKs may write other lines to the same log.
fn parse_check(line: &str) -> Option<Check> {
    let mut values = serde_json::Deserializer::from_str(line).into_iter();
    values.next()?.ok()
}
