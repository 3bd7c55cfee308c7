//! The releases of the official suite, and the commands that run them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;

use super::judge::Results;
use crate::workspace::Workspace;
use crate::{npm, process};

const LIMIT: Duration = Duration::from_secs(10 * 60);

/// A release of the suite, and the revision that its client speaks.
#[derive(Deserialize)]
pub(super) struct Suite {
    pub(super) name: &'static str,
    /// The script, among the npm packages.
    script: &'static str,
    /// The arguments that select the scenarios of servers.
    server_args: Vec<&'static str>,
    revision: &'static str,
    /// Its scenarios of clients, except those about authorization; none where they are those of the release before.
    pub(super) of_clients: Vec<&'static str>,
}

/// The releases in the order in which they run.
///
/// That of 2026-07-28 runs last: it abandons calls. As long as a server on stdio may still log about these, Vary cannot
/// attribute log messages to the calls of other clients.
pub(super) static SUITES: LazyLock<Vec<Suite>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("suites.json")).expect("the file is a list of suites")
});

/// Whether the suite's own client declares both extensions.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Declares {
    Nothing,
    Both,
}

impl Suite {
    /// The era that its revision does not belong to.
    pub(super) fn other_era(&self) -> &'static str {
        match self.revision {
            "2026-07-28" => "legacy",
            _ => "modern",
        }
    }

    fn command(&self, workspace: &Workspace, declares: Declares) -> Result<Command, String> {
        let mut command = npm::node(workspace)?;
        if declares == Declares::Both {
            command.args(["--import", "./declare.mjs"]);
        }
        command.arg(self.script);
        Ok(command)
    }

    /// Runs all scenarios of servers against the one at `url`; `name` is the name of the log.
    pub(super) fn server(
        &self,
        workspace: &Workspace,
        name: &str,
        url: &str,
        declares: Declares,
    ) -> Result<Results, String> {
        let mut command = self.command(workspace, declares)?;
        command
            .args(["server", "--url", url])
            .args(&self.server_args);
        // The command fails if one check does; only the comparison counts.
        self.run(workspace, name, command)
            .map(|(results, _)| results)
    }

    /// Runs one scenario of servers.
    pub(super) fn server_scenario(
        &self,
        workspace: &Workspace,
        scenario: &str,
        name: &str,
        url: &str,
        declares: Declares,
    ) -> Result<Results, String> {
        let mut command = self.command(workspace, declares)?;
        command.args(["server", "--url", url, "--scenario", scenario]);
        command.args(["--spec-version", self.revision]);
        if scenario.starts_with("sep-") {
            // Extensions belong to no revision.
            command.arg("--force");
        }
        self.run(workspace, name, command)
            .map(|(results, _)| results)
    }

    /// Runs one scenario of clients; the suite appends its server's URL to the command `client`. Also returns how the
    /// command ended, because only that shows whether the client succeeded: the checks are the server's.
    pub(super) fn client_scenario(
        &self,
        workspace: &Workspace,
        scenario: &str,
        name: &str,
        client: &str,
    ) -> Result<(Results, ExitStatus), String> {
        let mut command = self.command(workspace, Declares::Nothing)?;
        command.args(["client", "--command", client, "--scenario", scenario]);
        // Extensions belong to no revision.
        command.args(["--spec-version", self.revision, "--force"]);
        // The suite's timeout would only end the shell. The client has a shorter one.
        command.args(["--timeout", "120000"]);
        self.run(workspace, name, command)
    }

    /// The scenarios of clients that the suite lists, except those about authorization.
    pub(super) fn listed(&self, workspace: &Workspace) -> Result<Vec<String>, String> {
        let mut command = self.command(workspace, Declares::Nothing)?;
        command.args(["list", "--client", "--spec-version", self.revision]);
        let text = process::output(&mut command, LIMIT)?;
        Ok(scenarios(&text).map(str::to_owned).collect())
    }

    fn run(
        &self,
        workspace: &Workspace,
        name: &str,
        mut command: Command,
    ) -> Result<(Results, ExitStatus), String> {
        let log = workspace.scratch(&format!("conformance/{}-{name}.log", self.name))?;
        let directory = log.with_extension("results");
        if directory.exists() {
            fs::remove_dir_all(&directory).map_err(|error| error.to_string())?;
        }
        command.arg("--output-dir").arg(&directory);
        let status = process::status(&mut command, &log, LIMIT)?;
        Ok((self.collect(&directory)?, status))
    }

    /// Reads every `<scenario>-<time>/checks.json` below `directory`, or below its folder of scenarios about authorization.
    fn collect(&self, directory: &Path) -> Result<Results, String> {
        let nested = directory.join("auth");
        let directory = if nested.exists() { &nested } else { directory };
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
        let mut results = Results::new();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let file = path.join("checks.json");
            let text = fs::read_to_string(&file).map_err(|error| format!("{name}: {error}"))?;
            let checks: Vec<Check> =
                serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))?;
            for check in checks {
                let key = (
                    self.name.to_owned(),
                    format!("{}/{}", scenario(&name), check.id),
                );
                let tally = results.entry(key).or_default();
                tally.count(&check.status, check.error_message);
            }
        }
        Ok(results)
    }
}

/// One entry of a `checks.json`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    id: String,
    status: String,
    #[serde(default)]
    error_message: Option<String>,
}

/// The scenario in a directory's name, `server-<scenario>-2026-11-20T05-46-53-309Z`, or without `server-`.
fn scenario(directory: &str) -> &str {
    const TIME: usize = "-2026-11-20T05-46-53-309Z".len();
    let name = directory.strip_prefix("server-").unwrap_or(directory);
    let end = name.len().saturating_sub(TIME);
    name.get(..end).unwrap_or(name)
}

/// The names in lines `  - <scenario> [<revisions>]`.
fn scenarios(listed: &str) -> impl Iterator<Item = &str> {
    let lines = listed.lines().filter_map(|line| line.strip_prefix("  - "));
    let names = lines.filter_map(|line| line.split(' ').next());
    names.filter(|name| !name.starts_with("auth/"))
}
