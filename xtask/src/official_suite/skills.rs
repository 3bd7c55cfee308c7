//! Runs the suite's scenarios about skills with Vary in front of one server that has some, and of three.
//!
//! The suite skips them where no server declares the extension, as in its other runs.

use std::fs;

use serde_json::{Map, json};

use super::judge::{self, Results};
use super::suite::{Declares, SUITES};
use super::target::Programs;
use crate::npm;
use crate::outcome::Outcome;
use crate::workspace::Workspace;

const SERVERS: [&str; 3] = ["one", "two", "three"];

/// The scenarios, each with a check that a run without skills skips.
const SCENARIOS: [(&str, &str); 3] = [
    (
        "sep-2640-skills-enumeration",
        "sep-2640-skills-get-implemented",
    ),
    ("sep-2640-skills-manifest", "sep-2640-skillmd-mimetype"),
    (
        "sep-2640-skills-directory",
        "sep-2640-directory-read-method-registered",
    ),
];

/// Checks that no scenario breaks, and that none is skipped.
pub(super) fn run(workspace: &Workspace, programs: &Programs<'_>) -> Result<Outcome, String> {
    let node = npm::bin(workspace).join("node").display().to_string();
    let script = workspace.path("tests/interop/skills-server.mjs");
    let mut outcome = Outcome::default();
    for count in [1, SERVERS.len()] {
        let name = format!("skills-{count}");
        let servers = SERVERS.iter().take(count).map(|server| {
            let entry = json!({"command": node, "args": [script.display().to_string(), server]});
            ((*server).to_owned(), entry)
        });
        let config = workspace.scratch(&format!("conformance/{name}.yaml"))?;
        let text = json!({"servers": servers.collect::<Map<_, _>>()}).to_string();
        fs::write(&config, text).map_err(|error| format!("{}: {error}", config.display()))?;
        let vary = programs.configured(&name, &config)?;
        for suite in SUITES.iter().filter(|suite| !suite.of_clients.is_empty()) {
            let mut results = Results::new();
            for (scenario, _) in SCENARIOS {
                let log = format!("{name}-{scenario}");
                let url = &vary.url;
                let found =
                    suite.server_scenario(workspace, scenario, &log, url, Declares::Both)?;
                results.extend(found);
            }
            outcome.add(judge::single(&name, &results));
            for check in SCENARIOS {
                if !judge::holds(&results, suite.name, check) {
                    outcome.fail(format!("{name}: {}: {} was skipped", suite.name, check.0));
                }
            }
        }
    }
    Ok(outcome)
}
