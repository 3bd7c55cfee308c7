//! Runs the suite's scenarios about authorization with `vary call --login`.

use std::fmt::Write as _;

use serde::Deserialize;

use super::client::quoted;
use super::judge::Tally;
use super::suite::{SUITES, Suite};
use super::target::Programs;
use crate::outcome::Outcome;
use crate::workspace::Workspace;
use crate::{npm, parallel};

/// The extensions that Vary supports. The suite does not require them.
const EXTENSIONS: [&str; 2] = [
    "auth/client-credentials-basic",
    "auth/client-credentials-jwt",
];

/// The extensions that Vary does not support, and why.
const UNSUPPORTED: [(&str, &str); 4] = [
    (
        "auth/enterprise-managed-authorization",
        "exchanges the ID token of a person, and Vary stores access tokens alone",
    ),
    (
        "auth/dpop",
        "binds tokens to a key (DPoP), and Vary uses bearer tokens",
    ),
    ("auth/dpop-nonce", "likewise"),
    (
        "auth/wif-jwt-bearer",
        "presents a token that the platform of a workload issued; `headers` with `command` can do that",
    ),
];

/// The number of scenarios at once. They mostly wait for programs to start and stop.
const AT_ONCE: usize = 2;

/// The scenarios that a revision requires of clients, and the others.
#[derive(Deserialize)]
struct Requirements {
    client: Vec<String>,
    not_scored: Vec<Unscored>,
}

#[derive(Deserialize)]
struct Unscored {
    scenario: String,
}

/// A scenario of a suite.
struct Job<'a> {
    suite: &'a Suite,
    scenario: String,
}

/// The outcome, and the tables about it.
pub(super) struct LoginResults {
    pub(super) outcome: Outcome,
    pub(super) tables: String,
}

/// Runs the scenarios that the suite requires, and those of the supported extensions.
///
/// # Errors
///
/// When the suite has a scenario that is not known here.
pub(super) fn run(workspace: &Workspace, programs: &Programs<'_>) -> Result<LoginResults, String> {
    let mut jobs = Vec::new();
    for suite in SUITES.iter().filter(|suite| !suite.of_clients.is_empty()) {
        let scenarios = scenarios(&requirements(workspace, suite)?)?;
        jobs.extend(
            scenarios
                .into_iter()
                .map(|scenario| Job { suite, scenario }),
        );
    }
    let passed = parallel::each(&jobs, AT_ONCE, |job| job.run(workspace, programs));
    let mut outcome = Outcome::default();
    let mut rows = Vec::new();
    for (job, passed) in jobs.iter().zip(passed) {
        let passed = passed?;
        rows.push((job.suite.name, &*job.scenario, passed.is_ok()));
        match passed {
            Ok(()) => outcome.passed += 1,
            Err(why) => outcome.fail(format!("{}: {}: {why}", job.suite.name, job.scenario)),
        }
    }
    let tables = tables(&rows);
    Ok(LoginResults { outcome, tables })
}

fn requirements(workspace: &Workspace, suite: &Suite) -> Result<Requirements, String> {
    let package = "node_modules/@modelcontextprotocol/conformance/requirements";
    let path = format!("{}/{package}/{}.yaml", npm::DIRECTORY, suite.name);
    let text = workspace.read(&path)?;
    serde_saphyr::from_str(&text).map_err(|error| format!("{path}: {error}"))
}

/// The scenarios to run.
fn scenarios(requirements: &Requirements) -> Result<Vec<String>, String> {
    let is_about_login = |name: &&String| name.starts_with("auth/");
    let required = requirements.client.iter().filter(is_about_login).cloned();
    let unscored = requirements.not_scored.iter().map(|it| &it.scenario);
    for scenario in unscored.filter(is_about_login) {
        let is_unsupported = UNSUPPORTED.iter().any(|(name, _)| name == scenario);
        if !is_unsupported && !EXTENSIONS.contains(&&**scenario) {
            return Err(format!(
                "the suite has the scenario `{scenario}`, which is not known here"
            ));
        }
    }
    Ok(required.chain(EXTENSIONS.map(str::to_owned)).collect())
}

impl Job<'_> {
    /// Runs the scenario; the inner error says which checks it fails.
    fn run(
        &self,
        workspace: &Workspace,
        programs: &Programs<'_>,
    ) -> Result<Result<(), String>, String> {
        let script = workspace.path(npm::DIRECTORY).join("login-scenarios.mjs");
        let [script, vary] = [&script, &programs.vary].map(|path| quoted(&path.to_string_lossy()));
        let client = format!("node {script} {vary}");
        let name = self.scenario.replace('/', "-");
        let run = self
            .suite
            .client_scenario(workspace, &self.scenario, &name, &client);
        let (results, status) = run?;
        let broken = results.iter().filter(|(_, tally)| tally.is_broken());
        let broken: Vec<_> = broken.map(|((_, check), _)| check.as_str()).collect();
        let holds = |tally: &Tally| tally.holds();
        Ok(match (&broken[..], status.success()) {
            ([], true) if results.values().any(holds) => Ok(()),
            ([], _) => Err("the client failed, or nothing was checked".to_owned()),
            (broken, _) => Err(broken.join(", ")),
        })
    }
}

/// How many scenarios of each suite passed, then what is not supported.
fn tables(rows: &[(&str, &str, bool)]) -> String {
    let mut tables =
        "| suite | scenarios about authorization | passed |\n|---|---|--:|\n".to_owned();
    for suite in SUITES.iter() {
        for (kind, is_extension) in [("required", false), ("extensions", true)] {
            let is_counted = |row: &&&(&str, &str, bool)| {
                row.0 == suite.name && EXTENSIONS.contains(&row.1) == is_extension
            };
            let counted: Vec<_> = rows.iter().filter(|row| is_counted(&row)).collect();
            let passed = counted.iter().filter(|row| row.2).count();
            if !counted.is_empty() {
                let all = counted.len();
                let _ = writeln!(tables, "| {} | {all}, {kind} | {passed} |", suite.name);
            }
        }
    }
    tables.push_str("\n| extension | why Vary does not support it |\n|---|---|\n");
    for (scenario, why) in UNSUPPORTED {
        let _ = writeln!(tables, "| `{scenario}` | {why} |");
    }
    tables.push('\n');
    tables
}
