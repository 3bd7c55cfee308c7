//! The PyPI packages of `tests/interop`: the Python clients and the servers in Python.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::process;
use crate::workspace::Workspace;

const LIMIT: Duration = Duration::from_secs(10 * 60);

/// The environments and their requirements. Two versions of a package need two environments.
const ENVIRONMENTS: &[(&str, &str)] = &[
    ("python", "tests/interop/requirements.txt"),
    (FIRST, "tests/interop/requirements-1.txt"),
    (FASTMCP, FASTMCP_LIST),
];

/// The environment of `uv`, and its version.
const UV: (&str, &str) = ("uv", "tests/interop/requirements-uv.txt");

/// The environment of the Python client 1.x.
pub(crate) const FIRST: &str = "python-1";

/// The environment of FastMCP 4, both its client and its server.
pub(crate) const FASTMCP: &str = "fastmcp";

const FASTMCP_LIST: &str = "tests/interop/requirements-fastmcp.txt";

/// Installs exactly the packages of each list of requirements into a separate environment, once; other callers wait
/// until it is done.
///
/// # Errors
///
/// When Python 3 or its pip is missing or fails.
pub(crate) fn installed(workspace: &Workspace) -> Result<(), String> {
    let install = || {
        let mut environments = ENVIRONMENTS.iter();
        environments.try_for_each(|(name, list)| install_into(workspace, name, list))
    };
    workspace.python.get_or_init(install).clone()
}

/// Installs exactly the packages of `list` into the environment `name`, unless they are installed.
///
/// `uv` installs them in a twentieth of pip's time. It does not read pip's configuration, so pip tries again if it
/// cannot, for example because pip knows a mirror of PyPI.
///
/// # Errors
///
/// When Python 3 or its pip is missing or fails.
pub(crate) fn install_into(workspace: &Workspace, name: &str, list: &str) -> Result<(), String> {
    install_with(workspace, name, list, |environment| {
        let mut uv = process::command(installed_uv(workspace)?);
        uv.args(["pip", "install", "--quiet", "--no-config", "--python"])
            .arg(environment.join("bin/python"))
            .arg("--cache-dir")
            .arg(uv_cache(workspace)?)
            .arg("--requirement")
            .arg(workspace.path(list));
        let log = workspace.scratch(&format!("{name}-uv.log"))?;
        process::run(&mut uv, &log, LIMIT).or_else(|error| {
            pip(workspace, name, list, environment)
                .map_err(|again| format!("{error}\nand with pip: {again}"))
        })
    })
}

/// An interpreter that has FastMCP, which is installed if it is missing.
///
/// # Errors
///
/// When Python 3 or its pip is missing or fails.
pub(crate) fn fastmcp(workspace: &Workspace) -> Result<PathBuf, String> {
    install_into(workspace, FASTMCP, FASTMCP_LIST)?;
    program(workspace, FASTMCP, "python")
}

/// The program `uv`, which only pip can install. It is installed once; other callers wait until it is done.
///
/// # Errors
///
/// When Python 3 or its pip is missing or fails.
pub(crate) fn installed_uv(workspace: &Workspace) -> Result<PathBuf, String> {
    let install = || {
        let (name, list) = UV;
        install_with(workspace, name, list, |environment| {
            pip(workspace, name, list, environment)
        })?;
        program(workspace, name, "uv")
    };
    workspace.uv.get_or_init(install).clone()
}

/// What `uv` and `uvx` have downloaded. An environment has links to its files instead of copies.
///
/// # Errors
///
/// When the directory above cannot be made.
pub(crate) fn uv_cache(workspace: &Workspace) -> Result<PathBuf, String> {
    workspace.scratch("uv-cache")
}

/// Has `install` install the packages of `list` into a new environment, unless they are in the one that is there.
fn install_with(
    workspace: &Workspace,
    name: &str,
    list: &str,
    install: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<(), String> {
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
    install(&environment)?;
    fs::write(&installed, requirements).map_err(|error| format!("{}: {error}", installed.display()))
}

fn pip(workspace: &Workspace, name: &str, list: &str, environment: &Path) -> Result<(), String> {
    let mut pip = process::command("python3");
    pip.args(["-m", "pip", "--python"])
        .arg(environment.join("bin/python"))
        .args(["install", "--quiet", "--no-input", "--requirement"])
        .arg(workspace.path(list));
    let log = workspace.scratch(&format!("{name}-pip.log"))?;
    process::run(&mut pip, &log, LIMIT)
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
