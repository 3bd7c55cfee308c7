//! Checks that the runs can detect failures.

use std::fs;

use super::judge::{self, Results};
use super::suite::{Declares, SUITES};
use super::target::Programs;
use crate::outcome::Outcome;
use crate::workspace::Workspace;

/// The check that fails for a server that does not validate `Host`.
pub(super) const HOST: (&str, &str) = (
    "dns-rebinding-protection",
    "localhost-host-rebinding-rejected",
);

/// A scenario that every server passes, unless it refuses the client.
const ANY: (&str, &str) = ("tools-call-simple-text", "tools-call-simple-text");

/// Checks that the suite fails the fixture without validation of `Host`, as it is used behind Vary.
pub(super) fn careless(workspace: &Workspace, programs: &Programs<'_>) -> Result<Outcome, String> {
    let server = programs.careless("careless-fixture", "both")?;
    let mut outcome = Outcome::default();
    for suite in SUITES.iter() {
        let name = "careless-fixture";
        let (url, nothing) = (&server.url, Declares::Nothing);
        let results = suite.server_scenario(workspace, HOST.0, name, url, nothing)?;
        outcome.add(check(!judge::holds(&results, suite.name, HOST), || {
            format!(
                "{name}: {}: the fixture checks `Host` with --any-host, too",
                suite.name
            )
        }));
    }
    Ok(outcome)
}

/// Checks with each suite that Vary refuses a foreign `Host`, which the servers behind it would accept.
pub(super) fn refuses_foreign_hosts(name: &str, results: &Results) -> Outcome {
    let mut outcome = Outcome::default();
    for suite in SUITES.iter() {
        outcome.add(check(judge::holds(results, suite.name, HOST), || {
            format!("{name}: {}: Vary answers whatever `Host` says", suite.name)
        }));
    }
    outcome
}

/// Checks that the suites' declarations reach Vary: with a Vary that requires both extensions, a suite passes only if
/// it declares them.
pub(super) fn declared(workspace: &Workspace, programs: &Programs<'_>) -> Result<Outcome, String> {
    let server = programs.careless("requiring-fixture", "both")?;
    let config = workspace.scratch("conformance/requiring.yaml")?;
    let text = format!(
        "servers: {{fixture: {{url: '{}'}}}}\nrequire: [{}]\n",
        server.url,
        EXTENSIONS.join(", ")
    );
    fs::write(&config, text).map_err(|error| format!("{}: {error}", config.display()))?;
    let vary = programs.configured("requiring", &config)?;
    let mut outcome = Outcome::default();
    for suite in SUITES.iter() {
        for (declares, name) in [
            (Declares::Both, "declaring"),
            (Declares::Nothing, "declaring-nothing"),
        ] {
            let results = suite.server_scenario(workspace, ANY.0, name, &vary.url, declares)?;
            let is_answered = judge::holds(&results, suite.name, ANY);
            outcome.add(check(is_answered == (declares == Declares::Both), || {
                format!(
                    "{name}: {}: answered by a Vary that requires both extensions: {is_answered}",
                    suite.name
                )
            }));
        }
    }
    Ok(outcome)
}

fn check(holds: bool, otherwise: impl FnOnce() -> String) -> Outcome {
    Outcome::of(if holds { Ok(()) } else { Err(otherwise()) })
}

const EXTENSIONS: [&str; 2] = [
    "io.modelcontextprotocol/content-negotiation",
    "io.modelcontextprotocol/server-variants",
];
