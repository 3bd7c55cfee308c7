//! Whether other implementations of JSON Schema judge the arguments of calls as Vary does.

use std::fs;
use std::time::Duration;

use serde_json::json;

use crate::client_jobs::Job;
use crate::workspace::Workspace;
use crate::{cargo, process};

/// Vary judges some twenty thousand calls in that time.
const LIMIT: Duration = Duration::from_secs(5 * 60);

/// A job for each implementation, which judges the calls that `examples/verdicts.rs` of `mcp-vary-view` prints.
///
/// # Errors
///
/// When the calls cannot be printed.
pub(crate) fn jobs(workspace: &Workspace) -> Result<[Job; 2], String> {
    let mut verdicts = process::command(cargo::binary(workspace, "examples/verdicts")?);
    let printed = process::output(&mut verdicts, LIMIT)?;
    let calls = workspace.scratch("interop/verdicts.jsonl")?;
    fs::write(&calls, printed).map_err(|error| format!("{}: {error}", calls.display()))?;
    let job = |name: &str, script: &str| Job {
        name: format!("verdicts of {name}"),
        script: script.to_owned(),
        argument: json!({"calls": calls}),
    };
    Ok([job("ajv", "verdicts.mjs"), job("jsonschema", "verdicts.py")])
}
