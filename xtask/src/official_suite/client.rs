//! Runs the suite's client scenarios with a client that passes them, directly and through Vary.

use std::collections::BTreeMap;

use super::judge::{Results, Tally};
use super::suite::{SUITES, Suite};
use super::target::Programs;
use crate::workspace::Workspace;
use crate::{npm, parallel};

/// The name of the servers behind Vary in the file of expected failures: each scenario has its own server.
pub(super) const SCENARIOS: &str = "scenarios";

/// The same with a client of the other era than the scenario's server.
pub(super) const MIXED: &str = "scenarios-mixed";

/// A check that is added to the suite's own: the client got the answers that it expects.
const CONTENT: &str = "the-client-is-content";

/// The scenarios that measure time, and the number of attempts: a busy machine may be too slow.
const TIMED: (&[&str], usize) = (&["sse-retry"], 3);

/// The number of concurrent scenarios. They mostly wait for programs to start and stop.
const AT_ONCE: usize = 2;

/// How the client reaches the server of a scenario.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Route {
    Direct,
    Through,
    /// Through Vary, in the other era.
    Mixed,
}

/// A scenario with a way.
struct Job<'a> {
    suite: &'a Suite,
    scenario: &'a str,
    route: Route,
}

/// The results of the scenarios, for each way.
///
/// # Errors
///
/// When the suite's scenarios differ from the known ones: a new one would be left out.
pub(super) fn run(
    workspace: &Workspace,
    programs: &Programs<'_>,
) -> Result<BTreeMap<Route, Results>, String> {
    for suite in SUITES.iter().filter(|suite| !suite.of_clients.is_empty()) {
        is_known(suite, &suite.listed(workspace)?)?;
    }
    let results = parallel::each(&jobs(), AT_ONCE, |job| {
        let results = job.run(workspace, programs)?;
        Ok::<_, String>((job.route, results))
    });
    let mut found = BTreeMap::new();
    for result in results {
        let (route, results) = result?;
        let of_route = found.entry(route).or_insert_with(Results::new);
        of_route.extend(results);
    }
    Ok(found)
}

fn is_known(suite: &Suite, listed: &[String]) -> Result<(), String> {
    let known = &suite.of_clients;
    if listed.iter().eq(known) {
        return Ok(());
    }
    Err(format!(
        "the suite's scenarios of clients for {} are {listed:?}, but {known:?} are known; teach \
         tests/interop/scenarios.mjs the others",
        suite.name
    ))
}

fn jobs() -> Vec<Job<'static>> {
    let scenarios = SUITES.iter().flat_map(|suite| {
        let scenarios = suite.of_clients.iter();
        scenarios.map(move |scenario| (suite, *scenario))
    });
    let jobs = scenarios.flat_map(|(suite, scenario)| {
        [Route::Direct, Route::Through, Route::Mixed].map(|route| Job {
            suite,
            scenario,
            route,
        })
    });
    jobs.collect()
}

impl Job<'_> {
    fn run(&self, workspace: &Workspace, programs: &Programs<'_>) -> Result<Results, String> {
        let (timed, most) = TIMED;
        let tries = if timed.contains(&self.scenario) {
            most
        } else {
            1
        };
        for _ in 1..tries {
            let results = self.once(workspace, programs)?;
            if !results.values().any(Tally::is_broken) {
                return Ok(results);
            }
        }
        self.once(workspace, programs)
    }

    fn once(&self, workspace: &Workspace, programs: &Programs<'_>) -> Result<Results, String> {
        let Self {
            suite,
            scenario,
            route,
        } = self;
        let name = format!("client-{scenario}-{route:?}").to_lowercase();
        let client = self.client(workspace, programs);
        let (mut results, status) = suite.client_scenario(workspace, scenario, &name, &client)?;
        let key = (suite.name.to_owned(), format!("{scenario}/{CONTENT}"));
        let log = format!("see target/xtask/conformance/{}-{name}.log", suite.name);
        let (status, message) = if status.success() {
            ("SUCCESS", None)
        } else {
            ("FAILURE", Some(log))
        };
        results.entry(key).or_default().count(status, message);
        Ok(results)
    }

    /// The command that starts the client. The suite passes it to a shell.
    fn client(&self, workspace: &Workspace, programs: &Programs<'_>) -> String {
        let script = workspace.path(npm::DIRECTORY).join("scenarios.mjs");
        let mut command = vec!["node".to_owned(), quoted(&script.to_string_lossy())];
        if self.route != Route::Direct {
            command.push("--vary".to_owned());
            command.push(quoted(&programs.vary.to_string_lossy()));
        }
        if self.route == Route::Mixed {
            command.extend(["--era", self.suite.other_era()].map(str::to_owned));
        }
        command.join(" ")
    }
}

/// Quotes `word` for a shell. The suite splits the command at spaces and joins it again, which turns several spaces
/// into one; the paths here have no such spaces.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
