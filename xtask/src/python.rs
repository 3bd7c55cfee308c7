//! The PyPI packages of `tests/interop`: the Python clients and the servers in Python.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::process;
use crate::workspace::Workspace;

const LIMIT: Duration = Duration::from_secs(10 * 60);

/// The environments and their requirements. Two versions of a package need two environments.
const ENVIRONMENTS: &[(&str, &str)] = &[
    ("python", "tests/interop/requirements.txt"),
    (FIRST, "tests/interop/requirements-1.txt"),
    (FASTMCP, "tests/interop/requirements-fastmcp.txt"),
];

/// The environment of the Python client 1.x.
pub(crate) const FIRST: &str = "python-1";

/// The environment of FastMCP 4, both its client and its server.
pub(crate) const FASTMCP: &str = "fastmcp";

/// Installs exactly the packages of each list of requirements into a separate environment, unless they are installed.
///
/// # Errors
///
/// When Python 3 or its pip is missing or fails.
pub(crate) fn install(workspace: &Workspace) -> Result<(), String> {
    ENVIRONMENTS
        .iter()
        .try_for_each(|(name, list)| install_into(workspace, name, list))
}

/// Installs exactly the packages of `list` into the environment `name`, unless they are installed.
///
/// # Errors
///
/// When Python 3 or its pip is missing or fails.
pub(crate) fn install_into(workspace: &Workspace, name: &str, list: &str) -> Result<(), String> {
    let requirements = workspace.read(list)?;
    let environment = workspace.scratch(name)?;
    let installed = environment.join("requirements.txt");
    if fs::read_to_string(&installed).is_ok_and(|before| before == requirements) {
        return Ok(());
    }
    // Without pip: on Debian, the module that would install it is in a separate package.
    let mut venv = process::command("python3");
    venv.args(["-m", "venv", "--clear", "--without-pip"])
        .arg(&environment);
    process::run(
        &mut venv,
        &workspace.scratch(&format!("{name}-venv.log"))?,
        LIMIT,
    )?;
    let mut pip = process::command("python3");
    pip.args(["-m", "pip", "--python"])
        .arg(environment.join("bin/python"))
        .args(["install", "--quiet", "--no-input", "--requirement"])
        .arg(workspace.path(list));
    process::run(
        &mut pip,
        &workspace.scratch(&format!("{name}-pip.log"))?,
        LIMIT,
    )?;
    fs::write(&installed, requirements).map_err(|error| format!("{}: {error}", installed.display()))
}

/// A program of an environment.
///
/// # Errors
///
/// When the directory above cannot be made.
pub(crate) fn program(
    workspace: &Workspace,
    environment: &str,
    name: &str,
) -> Result<PathBuf, String> {
    Ok(workspace.scratch(environment)?.join("bin").join(name))
}
