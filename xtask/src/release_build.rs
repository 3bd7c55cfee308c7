//! Vary as releases have it: built twice, the second time with a profile of the first one.
//!
//! Code that requests run is inlined and stays together; the rest, which is most of the program, is compiled for size.
//! `docs/decisions/0054-releases-with-a-profile.md` has the figures.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::workspace::Workspace;
use crate::{cargo, process};

/// Only for builds that hang: link-time optimisation takes minutes on small machines.
const LIMIT: Duration = Duration::from_secs(90 * 60);

/// Options that make code smaller that did not run: into it nothing is inlined that is longer than a call. So is the code that
/// has run least, a thousandth of all that was executed, such as that of a start. A profile knows 99, 99.9 and 99.99 %, and no share between.
const SMALLER: [&str; 3] = [
    "-Cllvm-args=-inline-cold-callsite-threshold=0",
    "-Cllvm-args=-inlinecold-threshold=0",
    "-Cllvm-args=-profile-summary-cutoff-cold=999000",
];

/// Parts of the names of rows whose requests the first build is not sent.
const LEFT_OUT: [&str; 6] = [
    // A store is another program, which need not be where releases are built.
    "store",
    // These run the same code as the others. With them, more of it would count as hot, and the program would grow.
    "many ",
    "two workers",
    // Few run these, and their code would make the program too large, and each call slower.
    "call with traces",
    "call with the page",
    "call with an access token",
];

/// Builds the program below `target`, and returns it. Where the measurement does not run, which needs Linux, it is built once.
///
/// # Errors
///
/// When something does not compile or run, or the tool that merges profiles is missing.
pub(crate) fn vary(workspace: &Workspace, target: &Path) -> Result<PathBuf, String> {
    if !cfg!(target_os = "linux") {
        return compile(workspace, target, &[]);
    }
    let tool = merging_tool(workspace)?;
    let profiles = target.join("profiles");
    let failed = |error| format!("{}: {error}", profiles.display());
    if profiles.exists() {
        fs::remove_dir_all(&profiles).map_err(failed)?;
    }
    fs::create_dir_all(&profiles).map_err(failed)?;

    println!("building vary with instrumentation, the first of two builds ...");
    let flag = format!("-Cprofile-generate={}", profiles.display());
    let built = compile(workspace, target, &[&flag])?;
    let instrumented = target.join("vary-instrumented");
    fs::copy(built, &instrumented).map_err(failed)?;
    println!("running it ...");
    send_requests(workspace, target, &instrumented)?;

    // Not in the folder of what it merges: the tool takes each file there as a profile.
    let merged = target.join("merged.profdata");
    let mut merge = process::command(tool);
    let output = merge.args(["merge", "--output"]).arg(&merged);
    let log = workspace.scratch("release-merge.log")?;
    process::run(output.arg(&profiles), &log, LIMIT)?;

    println!("building vary with its profile, the second of two builds ...");
    let flag = format!("-Cprofile-use={}", merged.display());
    compile(
        workspace,
        target,
        &[&[flag.as_str()], SMALLER.as_slice()].concat(),
    )
}

/// Sends the program requests of each row of the measurement, for a short time.
fn send_requests(workspace: &Workspace, target: &Path, program: &Path) -> Result<(), String> {
    let mut run = cargo::cargo(workspace);
    run.env("CARGO_TARGET_DIR", target)
        .args(["run", "--locked", "--release", "--package", "vary-bench"])
        .args(["--", "run", "--check", "--quick"])
        .args(LEFT_OUT.iter().flat_map(|row| ["--without", row]))
        .arg("--vary")
        .arg(program)
        .arg("--scratch")
        .arg(target.join("run"));
    process::run(&mut run, &workspace.scratch("release-run.log")?, LIMIT)
}

/// Builds the program with these options of the compiler, too.
fn compile(workspace: &Workspace, target: &Path, options: &[&str]) -> Result<PathBuf, String> {
    let triple = ask_compiler(workspace, "host-tuple")?;
    let mut command = cargo::cargo(workspace);
    // With a target that is named, build scripts and macros do not get the option.
    command
        .env("CARGO_BUILD_TARGET", &triple)
        // The paths in options may have spaces.
        .env("CARGO_ENCODED_RUSTFLAGS", options.join("\u{1f}"))
        .env("CARGO_TARGET_DIR", target);
    cargo::build_for_release(&mut command, "mcp-vary-cli", "vary");
    process::run(
        &mut command,
        &workspace.scratch("release-build.log")?,
        LIMIT,
    )?;
    Ok(target.join(&triple).join(cargo::RELEASES).join("vary"))
}

/// `llvm-profdata` of the compiler's own LLVM.
fn merging_tool(workspace: &Workspace) -> Result<PathBuf, String> {
    let libraries = ask_compiler(workspace, "target-libdir")?;
    let tool = Path::new(&libraries)
        .with_file_name("bin")
        .join("llvm-profdata");
    if tool.is_file() {
        return Ok(tool);
    }
    Err(format!(
        "{} is missing, which reads what a run of vary says about its code; type: rustup component add llvm-tools",
        tool.display()
    ))
}

/// What the compiler prints of itself.
fn ask_compiler(workspace: &Workspace, what: &str) -> Result<String, String> {
    let mut print = process::command(Path::new(env!("CARGO")).with_file_name("rustc"));
    print
        .current_dir(workspace.path(""))
        .args(["--print", what]);
    let printed = process::output(&mut print, LIMIT)?;
    Ok(printed.trim().to_owned())
}
