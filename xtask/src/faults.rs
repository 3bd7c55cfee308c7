//! What clients receive when a server of the real gateway fails.

use faults::{Programs, Report};

use crate::cargo;
use crate::outcome::Outcome;
use crate::page::WrittenPage;
use crate::workspace::Workspace;

/// Every scenario with every kind of server, and a few restarts.
pub(crate) fn phase(workspace: &Workspace) -> Outcome {
    let report = run_scenarios(workspace, "", AT_ONCE);
    let outcome = report.map(|report| Outcome {
        passed: report.passed,
        failures: report.failed,
    });
    let mut outcome: Outcome = outcome.into();
    outcome.add(restarts(workspace, 2, 4));
    outcome
}

/// Fifty restarts under sixteen clients.
pub(crate) fn restarts_at_length(workspace: &Workspace) -> Outcome {
    restarts(workspace, 50, 16)
}

/// A server that loses its sessions `rounds` times under so many clients, in each way in which servers say so.
fn restarts(workspace: &Workspace, rounds: usize, clients: usize) -> Outcome {
    let outcome = cargo::binary_of(workspace, "mcp-vary-cli", "vary").and_then(|vary| {
        let config = workspace.scratch("faults/restarts.json")?;
        faults::restarts(&vary, &config, rounds, clients)
    });
    let outcome = outcome.map(|restarts| {
        println!("{}", restarts.table);
        Outcome {
            passed: restarts.passed,
            failures: restarts.failed,
        }
    });
    outcome.into()
}

/// Prints the outcome of the scenarios whose names contain `wanted`, one after the other, so that the times are exact.
/// With `write`, also updates the page.
pub(crate) fn faults(workspace: &Workspace, wanted: &str, write: bool) -> Result<(), String> {
    let report = run_scenarios(workspace, wanted, 1)?;
    let table = report.table();
    println!("{table}");
    if report.passed + report.failed.len() == 0 {
        return Err(format!("no scenario is called `{wanted}`"));
    }
    if !report.failed.is_empty() {
        return Err(report.failed.join("\n"));
    }
    println!("{} cases, all as they should be", report.passed);
    if write {
        PAGE.write(workspace, &table)?;
    }
    Ok(())
}

fn run_scenarios(workspace: &Workspace, wanted: &str, at_once: usize) -> Result<Report, String> {
    let programs = Programs {
        vary: cargo::binary(workspace, "vary")?,
        server: cargo::binary(workspace, "fault-server")?,
        scratch: workspace.scratch("faults/cases")?,
    };
    faults::run(&programs, wanted, at_once)
}

/// The phase checks verdicts, not times.
const AT_ONCE: usize = 12;

const PAGE: WrittenPage = WrittenPage {
    path: "docs/internals/faults.md",
    command: "faults",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_scenario() {
        let page = Workspace::here().read(PAGE.path).unwrap();
        for title in faults::titles() {
            assert!(
                page.contains(&format!("### {title}\n")),
                "{title}; run `cargo xtask faults --write`"
            );
        }
    }
}
