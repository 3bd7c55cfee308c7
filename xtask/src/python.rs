//! The PyPI packages of `tests/interop`: the Python client and a server in Python.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::process;
use crate::workspace::Workspace;

const LIMIT: Duration = Duration::from_secs(10 * 60);

/// Installs exactly what `requirements.txt` says into an environment of its own, unless that has
/// been done.
///
/// # Errors
///
/// When Python 3 or its pip is missing or fails.
pub(crate) fn install(workspace: &Workspace) -> Result<(), String> {
    let requirements = workspace.read("tests/interop/requirements.txt")?;
    let environment = environment(workspace)?;
    let installed = environment.join("requirements.txt");
    if fs::read_to_string(&installed).is_ok_and(|before| before == requirements) {
        return Ok(());
    }
    // Without its own pip: Debian has the module that would install it in another package.
    let mut venv = process::command("python3");
    venv.args(["-m", "venv", "--clear", "--without-pip"])
        .arg(&environment);
    process::run(&mut venv, &workspace.scratch("venv.log")?, LIMIT)?;
    let mut pip = process::command("python3");
    pip.args(["-m", "pip", "--python"])
        .arg(environment.join("bin/python"))
        .args(["install", "--quiet", "--no-input", "--requirement"])
        .arg(workspace.path("tests/interop/requirements.txt"));
    process::run(&mut pip, &workspace.scratch("pip.log")?, LIMIT)?;
    fs::write(&installed, requirements).map_err(|error| format!("{}: {error}", installed.display()))
}

/// A program of the environment.
///
/// # Errors
///
/// When the directory above cannot be made.
pub(crate) fn program(workspace: &Workspace, name: &str) -> Result<PathBuf, String> {
    Ok(environment(workspace)?.join("bin").join(name))
}

fn environment(workspace: &Workspace) -> Result<PathBuf, String> {
    workspace.scratch("python")
}
