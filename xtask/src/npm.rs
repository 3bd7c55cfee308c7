//! The npm packages of `tests/interop`: official clients, servers and the official suite.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::process;
use crate::workspace::Workspace;

/// The directory of `package.json`, its lockfile and the scripts.
pub(crate) const DIRECTORY: &str = "tests/interop";

/// Enough for some hundred megabytes over a slow connection.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// Installs exactly the packages of the lockfile, once; other callers wait until it is done.
///
/// # Errors
///
/// When npm is missing or fails.
pub(crate) fn installed(workspace: &Workspace) -> Result<(), String> {
    let install = || install_from(workspace, DIRECTORY);
    workspace.npm.get_or_init(install).clone()
}

/// Installs exactly the packages of the lockfile in `directory`, unless they are installed.
///
/// # Errors
///
/// When npm is missing or fails.
pub(crate) fn install_from(workspace: &Workspace, directory: &str) -> Result<(), String> {
    let lockfile = workspace.read(&format!("{directory}/package-lock.json"))?;
    // A copy of the lockfile that was installed last: npm has no cheap way to check that.
    let installed = workspace.path(&format!("{directory}/node_modules/.installed-lock.json"));
    if fs::read_to_string(&installed).is_ok_and(|before| before == lockfile) {
        return Ok(());
    }
    let log = workspace.scratch(&format!("npm-{}.log", directory.replace('/', "-")))?;
    let mut npm = process::command("npm");
    // No package needs its install script here, and third-party code should not run at install time.
    npm.args(["ci", "--ignore-scripts", "--no-progress"])
        .current_dir(workspace.path(directory));
    process::run(&mut npm, &log, LIMIT)?;
    fs::write(&installed, lockfile).map_err(|error| format!("{}: {error}", installed.display()))
}

/// `node` of the installed version, in the directory of the scripts.
pub(crate) fn node(workspace: &Workspace) -> Result<Command, String> {
    let mut node = process::command(bin(workspace).join("node"));
    with_packages(workspace, &mut node)?;
    Ok(node)
}

/// Makes the installed packages available to `command`: the programs on its path, the modules in its directory.
///
/// `npx` also finds them there, so that it does not query the registry. Node keeps what it compiled: the tests start
/// hundreds of processes with the same modules.
pub(crate) fn with_packages(workspace: &Workspace, command: &mut Command) -> Result<(), String> {
    command
        .current_dir(workspace.path(DIRECTORY))
        .env("PATH", path(workspace)?)
        .env("NODE_COMPILE_CACHE", workspace.path("target/xtask/node"))
        .env("npm_config_offline", "true");
    Ok(())
}

fn path(workspace: &Workspace) -> Result<OsString, String> {
    let before = env::var_os("PATH").unwrap_or_default();
    let all = [bin(workspace)]
        .into_iter()
        .chain(env::split_paths(&before));
    env::join_paths(all).map_err(|error| error.to_string())
}

/// The directory of the installed programs.
pub(crate) fn bin(workspace: &Workspace) -> PathBuf {
    workspace.path("tests/interop/node_modules/.bin")
}
