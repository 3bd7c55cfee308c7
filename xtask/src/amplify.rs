//! What small messages can make the gateway hold.

use std::path::PathBuf;

use faults::{Amplified, AmplifyPrograms};

use crate::faults::write_table;
use crate::phases::Outcome;
use crate::soak::binary;
use crate::workspace::Workspace;

/// Prints what each case takes, with another binary where one is named; with `write`, into the page, too.
///
/// # Errors
///
/// When a case takes more than three times its bound.
pub(crate) fn amplify(
    workspace: &Workspace,
    vary: Option<PathBuf>,
    only: &str,
    write: bool,
) -> Result<(), String> {
    let amplified = ran(workspace, vary, only, false)?;
    println!("{}", amplified.table);
    if !amplified.failed.is_empty() {
        return Err(amplified.failed.join("\n"));
    }
    println!("{} cases, all within their bounds", amplified.passed);
    match write {
        true => write_table(workspace, PAGE, &MARKS, &amplified.table),
        false => Ok(()),
    }
}

/// The same in small, as a phase.
pub(crate) fn phase(workspace: &Workspace) -> Outcome {
    match ran(workspace, None, "", true) {
        Ok(amplified) => Outcome {
            passed: amplified.passed,
            failed: amplified.failed.len(),
            report: amplified.failed.join("\n"),
        },
        Err(error) => Outcome::failure(error),
    }
}

fn ran(
    workspace: &Workspace,
    vary: Option<PathBuf>,
    only: &str,
    is_reduced: bool,
) -> Result<Amplified, String> {
    let vary = vary.map_or_else(|| binary(workspace, "mcp-vary-cli", "vary"), Ok)?;
    faults::amplify(&AmplifyPrograms {
        vary,
        scratch: workspace.scratch("amplify")?,
        is_reduced,
        only: only.to_owned(),
    })
}

const PAGE: &str = "docs/bounds.md";
const MARKS: [&str; 2] = [
    "<!-- what `cargo xtask amplify --write` prints begins here -->",
    "<!-- and ends here -->",
];
