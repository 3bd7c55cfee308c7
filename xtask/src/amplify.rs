//! How much memory small messages can make the gateway use.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use faults::{Amplified, AmplifyPrograms};
use serde_json::json;

use crate::cargo::binary_of;
use crate::debian;
use crate::outcome::Outcome;
use crate::page::WrittenPage;
use crate::workspace::Workspace;

/// Prints the memory that each case uses, with the binary `vary` if given. With `write`, also updates the page.
///
/// # Errors
///
/// When a case uses more than three times its bound.
pub(crate) fn amplify(
    workspace: &Workspace,
    vary: Option<PathBuf>,
    only: &str,
    write: bool,
) -> Result<(), String> {
    let amplified = measure(workspace, vary, (only, LONG), false)?;
    println!("{}", amplified.table);
    if !amplified.failed.is_empty() {
        return Err(amplified.failed.join("\n"));
    }
    println!("{} cases, all within their bounds", amplified.passed);
    if write {
        PAGE.write(workspace, &amplified.table)
    } else {
        Ok(())
    }
}

/// Measures the `vary` of an earlier commit, and records its figures for the table's column "before".
///
/// # Errors
///
/// When it cannot be measured.
pub(crate) fn record(
    workspace: &Workspace,
    vary: PathBuf,
    only: &str,
    commit: &str,
) -> Result<(), String> {
    let amplified = measure(workspace, Some(vary), (only, RECORDED), false)?;
    println!("{}", amplified.table);
    let mut grown = before(workspace)?;
    grown.extend(amplified.grown);
    let figures = json!({"commit": commit, "grown": grown});
    let text = serde_json::to_string_pretty(&figures).map_err(|error| error.to_string())?;
    fs::write(workspace.path(BEFORE), text + "\n")
        .map_err(|error| format!("{BEFORE} could not be written: {error}"))
}

/// The memory that each case used in the recorded build.
fn before(workspace: &Workspace) -> Result<BTreeMap<String, String>, String> {
    #[derive(serde::Deserialize)]
    struct Recorded {
        grown: BTreeMap<String, String>,
    }
    let text = workspace.read(BEFORE)?;
    let recorded: Recorded =
        serde_json::from_str(&text).map_err(|error| format!("{BEFORE}: {error}"))?;
    Ok(recorded.grown)
}

/// A smaller measurement, as a phase.
pub(crate) fn phase(workspace: &Workspace) -> Outcome {
    let outcome = measure(workspace, None, ("", LONG), true).map(|amplified| Outcome {
        passed: amplified.passed,
        failures: amplified.failed,
    });
    outcome.into()
}

fn measure(
    workspace: &Workspace,
    vary: Option<PathBuf>,
    (only, time): (&str, Duration),
    is_reduced: bool,
) -> Result<Amplified, String> {
    debian::install(workspace)?;
    let vary = vary.map_or_else(|| binary_of(workspace, "mcp-vary-cli", "vary"), Ok)?;
    faults::amplify(&AmplifyPrograms {
        vary,
        scratch: workspace.scratch("amplify")?,
        is_reduced,
        only: only.to_owned(),
        before: before(workspace)?,
        time,
    })
}

/// Longer than a case takes on a busy machine.
const LONG: Duration = Duration::from_secs(600);
/// The time limit of a case in an earlier build.
const RECORDED: Duration = Duration::from_secs(60);
/// The figures of an earlier build, and its commit.
const BEFORE: &str = "tests/faults/amplify-before.json";
const PAGE: WrittenPage = WrittenPage {
    path: "docs/internals/bounds.md",
    command: "amplify",
};
