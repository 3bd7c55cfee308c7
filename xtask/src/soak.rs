//! What remains in the gateway of clients that connect and disconnect in every way.

use faults::{SoakOptions, SoakPrograms};

use crate::cargo::binary_of;
use crate::outcome::Outcome;
use crate::page::WrittenPage;
use crate::workspace::Workspace;

/// The number of clients before a release.
pub(crate) const CLIENTS: usize = 10_000;
/// The number of clients in every test run: enough for each way once.
pub(crate) const SOME: usize = 450;

/// Prints the state before and after. With `write`, also updates the page.
///
/// # Errors
///
/// When something remains, or a client receives a wrong answer.
pub(crate) fn soak(
    workspace: &Workspace,
    options: &SoakOptions,
    write: bool,
) -> Result<(), String> {
    let soaked = run(workspace, options)?;
    println!("{}", soaked.table);
    if !soaked.failed.is_empty() {
        return Err(soaked.failed.join("\n"));
    }
    println!("nothing is left");
    if write {
        PAGE.write(workspace, &soaked.table)
    } else {
        Ok(())
    }
}

/// The same as a phase.
pub(crate) fn phase(workspace: &Workspace, clients: usize) -> Outcome {
    let options = SoakOptions {
        clients,
        only: String::new(),
    };
    let outcome = run(workspace, &options).map(|soaked| Outcome {
        passed: usize::from(soaked.failed.is_empty()),
        failures: soaked.failed,
    });
    outcome.into()
}

fn run(workspace: &Workspace, options: &SoakOptions) -> Result<faults::Soak, String> {
    let programs = SoakPrograms {
        vary: binary_of(workspace, "mcp-vary-cli", "vary")?,
        server: binary_of(workspace, "fixture-server", "fixture-server")?,
        tasks: binary_of(workspace, "faults", "task-server")?,
        scratch: workspace.scratch("soak")?,
    };
    faults::soak(&programs, options)
}

const PAGE: WrittenPage = WrittenPage {
    path: "docs/internals/soak.md",
    command: "soak",
};
