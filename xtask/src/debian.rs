//! Programs of Debian that tests start: one in `PATH` is used, else its package is installed. Also a library of theirs.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::process;
use crate::workspace::Workspace;

/// Each program, and the package that has it.
const PROGRAMS: [(&str, &str); 10] = [
    ("prometheus", "prometheus"),
    ("promtool", "prometheus"),
    ("dbus-run-session", "dbus-daemon"),
    ("haproxy", "haproxy"),
    ("nginx", "nginx"),
    ("redis-server", "redis-server"),
    ("gnome-keyring-daemon", "gnome-keyring"),
    ("systemd-analyze", "systemd"),
    ("openssl", "openssl"),
    ("libnss3.so", "libnss3"), // of the browser, which comes from npm
];

/// Where libraries are.
const LIBRARIES: [&str; 4] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
];

/// Updates the lists of packages, and installs those in its arguments.
const INSTALL: &str = "apt-get update && apt-get install -y --no-install-recommends \"$@\"";

/// For a slow mirror.
const LIMIT: Duration = Duration::from_secs(600);

/// Installs what is missing, at once: tests that did so themselves would wait for each other's lock, and fail.
///
/// # Errors
///
/// What is still missing, and what to type.
pub(crate) fn install(workspace: &Workspace) -> Result<(), String> {
    let packages = missing();
    if packages.is_empty() {
        return Ok(());
    }
    let log = workspace.scratch("apt-get.log")?;
    let mut install = process::command("sh");
    install
        .args(["-c", INSTALL, "sh"])
        .args(&packages)
        .env("DEBIAN_FRONTEND", "noninteractive");
    let cause = match process::run(&mut install, &log, LIMIT) {
        Ok(()) => String::new(),
        Err(error) => format!("\n{error}"),
    };
    match missing().as_slice() {
        [] => Ok(()),
        still => Err(format!(
            "tests use programs that are missing; on Debian, type as root: apt-get update && apt-get install -y {}{cause}",
            still.join(" ")
        )),
    }
}

/// The packages of the programs that are not in `PATH`, each once.
fn missing() -> Vec<&'static str> {
    let path = env::var_os("PATH").unwrap_or_default();
    let libraries = LIBRARIES.iter().map(PathBuf::from);
    let folders: Vec<_> = env::split_paths(&path).chain(libraries).collect();
    let has = |folder: &Path, program: &str| folder.join(program).is_file();
    let mut packages: Vec<_> = PROGRAMS
        .iter()
        .filter(|(program, _)| !folders.iter().any(|folder| has(folder, program)))
        .map(|(_, package)| *package)
        .collect();
    packages.dedup();
    packages
}
