//! What remains in the gateway of clients that connect and disconnect in every way.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use faults::{Crowd, SoakPrograms};

use crate::cargo::cargo;
use crate::faults::write_table;
use crate::outcome::Outcome;
use crate::process;
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
pub(crate) fn soak(workspace: &Workspace, crowd: &Crowd, write: bool) -> Result<(), String> {
    let soaked = ran(workspace, crowd)?;
    println!("{}", soaked.table);
    if !soaked.failed.is_empty() {
        return Err(soaked.failed.join("\n"));
    }
    println!("nothing is left");
    match write {
        true => write_table(workspace, PAGE, &MARKS, &soaked.table),
        false => Ok(()),
    }
}

/// The same as a phase.
pub(crate) fn phase(workspace: &Workspace, clients: usize) -> Outcome {
    let crowd = Crowd {
        clients,
        only: String::new(),
    };
    match ran(workspace, &crowd) {
        Ok(soaked) => Outcome {
            passed: usize::from(soaked.failed.is_empty()),
            failures: soaked.failed,
        },
        Err(error) => Outcome::failure(error),
    }
}

fn ran(workspace: &Workspace, crowd: &Crowd) -> Result<faults::Soak, String> {
    let programs = SoakPrograms {
        vary: binary(workspace, "mcp-vary-cli", "vary")?,
        server: binary(workspace, "fixture-server", "fixture-server")?,
        tasks: binary(workspace, "faults", "task-server")?,
        scratch: workspace.scratch("soak")?,
    };
    faults::soak(&programs, crowd)
}

/// A binary of a package. Builds only that package, unless an earlier phase has built the workspace.
///
/// A package alone needs fewer features of its dependencies, so that cargo would build them a second time.
pub(crate) fn binary(workspace: &Workspace, package: &str, name: &str) -> Result<PathBuf, String> {
    if workspace.is_built() {
        return workspace.binary(name);
    }
    let log = workspace.scratch("soak.log")?;
    process::run(
        cargo(workspace).args(["build", "--package", package]),
        &log,
        LIMIT,
    )?;
    // All binaries end up beside this one, wherever the target directory is.
    let this = env::current_exe().map_err(|error| error.to_string())?;
    Ok(this.with_file_name(name))
}

/// Only for builds that hang: a build on a slow machine takes less.
const LIMIT: Duration = Duration::from_secs(30 * 60);

const PAGE: &str = "docs/internals/soak.md";
const MARKS: [&str; 2] = [
    "<!-- what `cargo xtask soak --write` prints begins here -->",
    "<!-- and ends here -->",
];
