//! The pages on the libraries: their programs compile as printed, and the commands of the tutorial work in the printed
//! order.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::outcome::Outcome;
use crate::page::{Block, blocks, texts};
use crate::workspace::Workspace;
use crate::{cargo, npm, process};

/// The page with the program.
const PAGE: &str = "docs/tutorial/library.md";

/// The page on a program that contains the gateway, which has its `Cargo.toml` and its `main.rs`.
const EMBED: &str = "docs/how-to/embed.md";

/// What the page promises of `main.rs`.
const MOST_LINES: usize = 30;

/// How the page names a checkout of Vary beside the project.
const CHECKOUT: &str = "../vary/";

/// Enough to compile the SDK on a slow machine.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// A command of the page, and what it prints.
#[derive(Debug, Eq, PartialEq)]
struct Step<'a> {
    command: &'a str,
    /// The block below the command, if the page shows its output.
    printed: Option<&'a str>,
}

/// Writes the project of the page into an empty directory, and runs the commands of the page there.
pub(crate) fn phase(workspace: &Workspace) -> Outcome {
    let prepared = || {
        npm::installed(workspace)?;
        let path = path(workspace)?;
        let page = workspace.read(PAGE)?;
        let project = project(workspace, &blocks(&page))?;
        Ok::<_, String>((page, project, path))
    };
    let (page, project, path) = match prepared() {
        Ok(prepared) => prepared,
        Err(error) => return Outcome::failure(error),
    };
    let blocks = blocks(&page);
    let steps = steps(&blocks);
    let mut checks = vec![("main.rs", is_short(&blocks))];
    for step in &steps {
        checks.push((step.command, run(workspace, &project, &path, step)));
    }
    checks.push((EMBED, embed(workspace)));
    if steps.len() < 4 {
        checks.push((PAGE, Err(format!("it has only {} commands", steps.len()))));
    }
    Outcome::of_all(&checks)
}

/// The directory of the project: the files of the page, the versions of the workspace, and its target directory.
fn project(workspace: &Workspace, blocks: &[Block<'_>]) -> Result<PathBuf, String> {
    let manifests: Vec<&str> = texts(blocks, "toml");
    let [manifest, patch] = manifests[..] else {
        return Err(format!(
            "{PAGE}: {} blocks of TOML instead of Cargo.toml and its `[patch.crates-io]`",
            manifests.len()
        ));
    };
    let program = texts(blocks, "rust").into_iter().next();
    let program = program.ok_or_else(|| format!("{PAGE}: no main.rs"))?;
    let directory = write(
        workspace,
        "forecast",
        &format!("{manifest}\n{patch}"),
        program,
    )?;
    // `npx` finds the Inspector there.
    let packages = workspace.path(npm::DIRECTORY).join("node_modules");
    let linked = std::os::unix::fs::symlink(packages, directory.join("node_modules"));
    linked.map_err(|error| format!("{}: {error}", directory.display()))?;
    Ok(directory)
}

/// Writes a project into an empty directory, with the checkout of this workspace in place of the page's.
fn write(
    workspace: &Workspace,
    name: &str,
    manifest: &str,
    program: &str,
) -> Result<PathBuf, String> {
    let directory = workspace.scratch(&format!("library/{name}"))?;
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    if directory.exists() {
        fs::remove_dir_all(&directory).map_err(failed)?;
    }
    fs::create_dir_all(directory.join("src")).map_err(failed)?;
    let checkout = workspace.path("").display().to_string();
    let manifest = manifest.replace(CHECKOUT, &checkout);
    fs::write(directory.join("Cargo.toml"), manifest).map_err(failed)?;
    fs::write(directory.join("src/main.rs"), program).map_err(failed)?;
    // The same versions, so that nothing is downloaded.
    fs::copy(workspace.path("Cargo.lock"), directory.join("Cargo.lock")).map_err(failed)?;
    std::os::unix::fs::symlink(target()?, directory.join("target")).map_err(failed)?;
    Ok(directory)
}

/// Compiles the program that contains the gateway, with the manifest of its page.
///
/// Machine code is not needed: a test of the gateway runs the program. All crates have other features here than in the
/// workspace, and would be built for this step alone.
fn embed(workspace: &Workspace) -> Result<(), String> {
    let page = workspace.read(EMBED)?;
    let blocks = blocks(&page);
    let program = texts(&blocks, "rust").into_iter().next();
    let (Some(program), [manifest]) = (program, &texts(&blocks, "toml")[..]) else {
        return Err(format!("{EMBED}: not one Cargo.toml and a main.rs"));
    };
    let project = write(workspace, "gateway", manifest, program)?;
    let mut cargo = process::command("cargo");
    cargo.args(["check", "--quiet"]).current_dir(&project);
    cargo
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_NET_OFFLINE", "true")
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    process::run(
        &mut cargo,
        &workspace.scratch("library/gateway.log")?,
        LIMIT,
    )
}

/// Runs one command of the page in the project, and compares what it prints with the page.
fn run(
    workspace: &Workspace,
    project: &Path,
    path: &OsString,
    step: &Step<'_>,
) -> Result<(), String> {
    let name: String = step
        .command
        .chars()
        .filter(|c| c.is_alphanumeric())
        .collect();
    let log = workspace.scratch(&format!("library/{name}.log"))?;
    let mut shell = process::command("sh");
    // Only what the command prints for other programs is on the page.
    let command = format!(
        "{} 2>'{}'",
        step.command,
        log.with_extension("stderr").display()
    );
    shell.args(["-c", &command]).current_dir(project);
    shell.env("PATH", path).env("COLUMNS", "100");
    shell
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_NET_OFFLINE", "true")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("npm_config_offline", "true");
    let ran = process::run(&mut shell, &log, LIMIT);
    ran.map_err(|error| format!("{error}{}", process::tail(&log.with_extension("stderr"))))?;
    let printed = fs::read_to_string(&log).map_err(|error| error.to_string())?;
    match step.printed {
        Some(shown) if !is_same(shown, &printed) => {
            Err(format!("{PAGE} shows\n{shown}\nbut it printed\n{printed}"))
        }
        _ => Ok(()),
    }
}

/// Whether the outputs are equal: as JSON if both are, else line by line.
fn is_same(shown: &str, printed: &str) -> bool {
    let json = |text: &str| serde_json::from_str::<Value>(text).ok();
    match (json(shown), json(printed)) {
        (Some(shown), Some(printed)) => shown == printed,
        _ => shown
            .lines()
            .map(str::trim_end)
            .eq(printed.trim_end().lines().map(str::trim_end)),
    }
}

/// `PATH` with the binary `vary` of the workspace and the pinned packages first.
fn path(workspace: &Workspace) -> Result<OsString, String> {
    let vary = cargo::binary(workspace, "vary")?;
    let packages = workspace.path(npm::DIRECTORY).join("node_modules/.bin");
    let before = env::var_os("PATH").unwrap_or_default();
    let first = vary.parent().map(Path::to_owned).into_iter();
    let all = first.chain([packages]).chain(env::split_paths(&before));
    env::join_paths(all).map_err(|error| error.to_string())
}

/// The target directory of the workspace.
fn target() -> Result<PathBuf, String> {
    let this = env::current_exe().map_err(|error| error.to_string())?;
    let target = this.parent().and_then(Path::parent);
    target
        .map(Path::to_owned)
        .ok_or_else(|| format!("{} is not in a target directory", this.display()))
}

fn is_short(blocks: &[Block<'_>]) -> Result<(), String> {
    let program = texts(blocks, "rust").into_iter().next();
    let lines = program.unwrap_or_default().lines().count();
    if lines <= MOST_LINES {
        Ok(())
    } else {
        Err(format!(
            "{lines} lines; the page promises at most {MOST_LINES}"
        ))
    }
}

/// The commands of the blocks of shell, each with the block below it if that is output.
fn steps<'a>(blocks: &[Block<'a>]) -> Vec<Step<'a>> {
    let mut steps = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        if block.language != "sh" {
            continue;
        }
        let below = blocks.get(at + 1);
        let output = below.filter(|below| ["json", "text"].contains(&below.language));
        let commands: Vec<&str> = block.text.lines().collect();
        let last = commands.len().saturating_sub(1);
        for (number, command) in commands.into_iter().enumerate() {
            // The project is there already.
            if !["cargo new", "cd "]
                .iter()
                .any(|start| command.starts_with(start))
            {
                let printed = output.filter(|_| number == last).map(|block| block.text);
                steps.push(Step { command, printed });
            }
        }
    }
    steps
}
