//! The operator's page of a gateway, which a real browser opens.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::cargo::binary_of;
use crate::outcome::Outcome;
use crate::process::{self, tail};
use crate::server::{self, Server};
use crate::workspace::Workspace;
use crate::{debian, npm};

/// The directory of the scripts, of their packages and of the gateway's configuration.
const DIRECTORY: &str = "tests/page";

/// Only for browsers that hang.
const LIMIT: Duration = Duration::from_secs(10 * 60);

/// Drives the page of a gateway. Its screenshots stay in the folder of the run.
pub(crate) fn phase(workspace: &Workspace) -> Outcome {
    driven(workspace).into()
}

fn driven(workspace: &Workspace) -> Result<Outcome, String> {
    debian::install(workspace)?;
    npm::install_from(workspace, DIRECTORY)?;
    let vary = binary_of(workspace, "mcp-vary-cli", "vary")?;
    let log = workspace.scratch("page/vary.log")?;
    let state = log.with_file_name("state");
    let start = |file: &str, log: &Path| {
        let mut command = server::serve(&vary);
        command
            .args([file, "--admin", "127.0.0.1:0"])
            .args(["--probes", "127.0.0.1:0"])
            .current_dir(workspace.path(DIRECTORY))
            .env("XDG_STATE_HOME", &state);
        Server::start(&mut command, log)
    };
    let mut server = start("gateway.yaml", &log)?;
    let admin = server.printed("status: vary status ")?;
    let mut prefixed = start("prefixed.yaml", &log.with_file_name("prefixed.log"))?;
    let prefixed_admin = prefixed.printed("status: vary status ")?;
    let checks = log.with_file_name("checks.jsonl");
    let mut drive = process::command("node");
    drive
        .arg("drive.mjs")
        .arg(address(&vary, &state, &admin)?)
        .arg(log.with_file_name("screenshots"))
        .arg(&server.url)
        .arg(server.printed("metrics: ")?)
        .arg(address(&vary, &state, &prefixed_admin)?)
        .current_dir(workspace.path(DIRECTORY));
    let status = process::status(&mut drive, &checks, LIMIT)?;
    let outcome = outcome(&fs::read_to_string(&checks).unwrap_or_default());
    if status.success() == outcome.failures.is_empty() && outcome.passed > 0 {
        return Ok(outcome);
    }
    Err(format!(
        "the browser's script ended with {status}\n{}",
        tail(&checks)
    ))
}

/// The address of the page, with a code, of the gateway whose operator connects to `admin`.
fn address(vary: &PathBuf, state: &Path, admin: &str) -> Result<String, String> {
    let mut open = process::command(vary);
    open.args(["open", admin, "--print"])
        .env("XDG_STATE_HOME", state);
    let address = process::output(&mut open, LIMIT)?;
    Ok(address.trim().to_owned())
}

/// The checks in the lines of JSON that the script printed.
fn outcome(lines: &str) -> Outcome {
    let checks = lines.lines();
    let checks = checks.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let checks = checks.map(|check| {
        let text = |member: &str| check[member].as_str().unwrap_or_default().to_owned();
        let result = if check["ok"] == true {
            Ok(())
        } else {
            Err(text("detail"))
        };
        (text("title"), result)
    });
    Outcome::of_all(&checks.collect::<Vec<_>>())
}
