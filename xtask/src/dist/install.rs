//! Installs each file into an empty place, and runs `vary demo --once` there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{LIMIT, SUMS};
use crate::outcome::Outcome;
use crate::process;
use crate::workspace::Workspace;

/// Installs all files of `out`, one for each installer, and checks the digests. A missing installer is a failure.
pub(super) fn all(workspace: &Workspace, out: &Path, names: &[String]) -> Outcome {
    let mut checks = Vec::new();
    for installer in INSTALLERS {
        if LINUX.contains(&installer.0) && !cfg!(target_os = "linux") {
            continue;
        }
        checks.push((installer.0, one(workspace, out, names, installer)));
    }
    checks.push((SUMS, sums(out)));
    Outcome::of_all(&checks)
}

/// Installs the file for this installer into an empty place, runs it there, and removes the place.
fn one(
    workspace: &Workspace,
    out: &Path,
    names: &[String],
    (ending, tool, install): (&str, &str, Install),
) -> Result<(), String> {
    let name = names.iter().find(|name| name.ends_with(ending));
    let name = name.ok_or("no such file was packed")?;
    if !is_installed(tool) {
        return Err(format!(
            "{name} cannot be installed: `{tool}` is not on PATH"
        ));
    }
    let place = workspace.scratch(&format!("installed/{}", ending.trim_start_matches('.')))?;
    super::empty(&place)?;
    let ran = install(&out.join(name), &place).and_then(|program| demo(program, &place));
    let removed = fs::remove_dir_all(&place);
    ran.map_err(|error| format!("{name}: {error}"))?;
    removed.map_err(|error| format!("cannot remove {}: {error}", place.display()))
}

/// Runs the demo with the installed program.
fn demo(mut program: Command, place: &Path) -> Result<(), String> {
    run(program.args(["demo", "--once"]), place)?;
    let log = log(place);
    let printed = fs::read_to_string(&log).map_err(|error| error.to_string())?;
    if printed.contains(DEMO) {
        Ok(())
    } else {
        Err(format!(
            "`vary demo --once` printed\n{}",
            process::tail(&log)
        ))
    }
}

/// What the demo prints when its clients got their results.
const DEMO: &str = "The same call, get_weather";

/// The endings of files that are packed on Linux only.
const LINUX: [&str; 2] = [".deb", ".tar"];

/// Installs a file into a directory, and returns the installed program.
type Install = fn(&Path, &Path) -> Result<Command, String>;

/// The ending of a file, the program that installs it, and how.
const INSTALLERS: [(&str, &str, Install); 5] = [
    (".tar.gz", "tar", archive),
    (".tgz", "npm", npm),
    (".whl", "python3", wheel),
    (".deb", "dpkg", debian),
    (".tar", "unshare", image),
];

fn archive(file: &Path, place: &Path) -> Result<Command, String> {
    let mut tar = process::command("tar");
    tar.arg("-xzf").arg(file).arg("-C").arg(place);
    run(&mut tar, place)?;
    let directory = file
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let directory = directory.trim_end_matches(".tar.gz");
    Ok(isolated(place.join(directory).join("vary"), place))
}

fn npm(file: &Path, place: &Path) -> Result<Command, String> {
    let mut npm = process::command("npm");
    npm.args([
        "install",
        "--offline",
        "--no-audit",
        "--no-fund",
        "--prefix",
    ])
    .arg(place)
    // Else a copy of the file remains in the home directory.
    .arg("--cache")
    .arg(place.join("cache"))
    .arg(file);
    run(npm.current_dir(place), place)?;
    let mut program = isolated(place.join("node_modules/.bin/vary"), place);
    // Node has to be found.
    program.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    Ok(program)
}

fn wheel(file: &Path, place: &Path) -> Result<Command, String> {
    let mut venv = process::command("python3");
    venv.args(["-m", "venv", "--without-pip"]).arg(place);
    run(&mut venv, place)?;
    let mut pip = process::command("python3");
    pip.args(["-m", "pip", "--python"])
        .arg(place.join("bin/python"));
    pip.args(["install", "--quiet", "--no-input", "--no-index"])
        .arg(file);
    run(&mut pip, place)?;
    Ok(isolated(place.join("bin/vary"), place))
}

fn debian(file: &Path, place: &Path) -> Result<Command, String> {
    // A root directory in which no package is installed, so that `Depends` cannot be met.
    for directory in [
        "var/lib/dpkg/info",
        "var/lib/dpkg/updates",
        "var/lib/dpkg/triggers",
    ] {
        fs::create_dir_all(place.join(directory)).map_err(|error| error.to_string())?;
    }
    fs::write(place.join("var/lib/dpkg/status"), "").map_err(|error| error.to_string())?;
    let mut dpkg = process::command("dpkg");
    dpkg.arg(format!("--root={}", place.display()));
    dpkg.args([
        "--force-not-root",
        "--force-depends",
        "--force-bad-path",
        "--log=/dev/null",
        "--install",
    ])
    .arg(file);
    run(&mut dpkg, place)?;
    for file in [
        "share/man/man1/vary-serve.1.gz",
        "lib/systemd/system/vary.service",
    ] {
        if !place.join("usr").join(file).is_file() {
            return Err(format!("/usr/{file} is missing"));
        }
    }
    Ok(isolated(place.join("usr/bin/vary"), place))
}

/// Runs the image with nothing else in sight, and no file that it could write to. A name is resolved inside first.
fn image(file: &Path, place: &Path) -> Result<Command, String> {
    let (root, program) = unpacked(file, place)?;
    // A runtime writes this file.
    fs::write(root.join("etc/hosts"), "127.0.0.1 server.test\n")
        .map_err(|error| error.to_string())?;
    let inside = || {
        let mut unshare = process::command("unshare");
        unshare.args([
            "--map-root-user",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
        ]);
        unshare.arg(format!("--mount-proc={}", root.join("proc").display()));
        unshare
            .args(["sh", "-c", READ_ONLY])
            .arg(&root)
            .arg(&program);
        unshare
    };
    // Nothing listens there, so only a name that is not resolved gives another error.
    let resolved = run(
        inside().args(["inspect", "http://server.test:1/mcp"]),
        place,
    );
    match resolved {
        Err(error) if error.contains("refused") => Ok(inside()),
        Err(error) => Err(format!(
            "a name in /etc/hosts is not resolved inside: {error}"
        )),
        Ok(()) => Err("`vary inspect` finds a server where there is none".to_owned()),
    }
}

/// Mounts its name as a root directory that cannot be written to, and runs its arguments there.
const READ_ONLY: &str = r#"mount --rbind "$0" "$0" && mount -o remount,bind,ro "$0" && ! touch "$0/etc/x" 2>&- && exec chroot "$0" "$@""#;

/// Unpacks the layer as a runtime does, and returns the root directory and the program in it.
fn unpacked(file: &Path, place: &Path) -> Result<(PathBuf, String), String> {
    let layout = place.join("layout");
    let root = place.join("root");
    for directory in [&layout, &root.join("proc"), &root.join("etc")] {
        fs::create_dir_all(directory).map_err(|error| error.to_string())?;
    }
    let mut tar = process::command("tar");
    run(tar.arg("-xf").arg(file).arg("-C").arg(&layout), place)?;
    let read = |name: &str| -> Result<serde_json::Value, String> {
        let text =
            fs::read_to_string(layout.join(name)).map_err(|error| format!("{name}: {error}"))?;
        serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))
    };
    let blob = |descriptor: &serde_json::Value| {
        let digest = descriptor["digest"].as_str().unwrap_or_default();
        format!("blobs/{}", digest.replace(':', "/"))
    };
    let manifest = read(&blob(&read("index.json")?["manifests"][0]))?;
    let config = read(&blob(&manifest["config"]))?;
    let user = config["config"]["User"].as_str().unwrap_or_default();
    if user.starts_with('0') || !user.starts_with(|first: char| first.is_ascii_digit()) {
        return Err(format!(
            "the image runs as `{user}`, and not as a user with a number"
        ));
    }
    let program = config["config"]["Entrypoint"][0]
        .as_str()
        .ok_or("the image has no entry point")?;
    let mut tar = process::command("tar");
    tar.arg("-xzf")
        .arg(layout.join(blob(&manifest["layers"][0])))
        .arg("-C")
        .arg(&root);
    run(&mut tar, place)?;
    let program = program.to_owned();
    Ok((root, program))
}

/// Runs a command; if it fails, the error has what it printed.
fn run(command: &mut Command, place: &Path) -> Result<(), String> {
    process::run(command, &log(place), LIMIT)
}

/// The log beside a place, which remains.
fn log(place: &Path) -> PathBuf {
    let mut log = place.as_os_str().to_owned();
    log.push(".log");
    log.into()
}

/// A program with an empty environment.
fn isolated(program: PathBuf, place: &Path) -> Command {
    let mut command = process::command(program);
    command.env_clear().env("HOME", place).current_dir(place);
    command
}

fn is_installed(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(tool).is_file())
}

/// Checks the digests as a user does.
fn sums(out: &Path) -> Result<(), String> {
    let tool = if is_installed("sha256sum") {
        "sha256sum"
    } else {
        "shasum"
    };
    let mut check = process::command(tool);
    check.args(["-c", SUMS]).current_dir(out);
    process::output(&mut check, LIMIT).map(drop)
}
