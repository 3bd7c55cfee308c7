//! The phases that are one cargo command.

use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::outcome::Outcome;
use crate::process;
use crate::workspace::Workspace;

/// Only for commands that hang: a clean build on two slow cores takes less.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// The feature with which the fuzz targets are compiled.
pub(crate) const FUZZ_TARGETS: &str = "mcp-vary-fuzz/targets";

/// Formatting.
pub(crate) fn format(workspace: &Workspace) -> Outcome {
    phase(workspace, "format", &["fmt", "--all", "--check"], [])
}

/// The lints, and whether the fuzz targets compile.
///
/// The targets are checked here so that what they use is compiled once for both: a command of their own would give it other
/// features.
pub(crate) fn clippy(workspace: &Workspace) -> Outcome {
    let arguments = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--features",
        FUZZ_TARGETS,
        "--",
        "-D",
        "warnings",
    ];
    // Only linking needs the C++ of libFuzzer. With another file in its place, it is not compiled.
    let in_place_of_libfuzzer = workspace.path("fuzz/Cargo.toml").into();
    let variables = [("CUSTOM_LIBFUZZER_PATH", in_place_of_libfuzzer)];
    phase(workspace, "clippy", &arguments, variables)
}

/// Has `command` build one program as releases have it: in the profile `dist`, without symbols, and with functions of the
/// same machine code kept once.
///
/// Cargo forgets the `strip` of a profile for a package that has settings of its own in it, so the compiler gets it here. The
/// level of optimisation of the program's own package, which is for size, would hold for the optimisation of everything as a
/// whole, and calls and lists would cost a sixth more: so it is the usual one here.
pub(crate) fn build_for_release(command: &mut Command, package: &str, binary: &str) {
    command.args(["rustc", "--locked", "--profile", RELEASES]);
    command.args(["--package", package, "--bin", binary]);
    command.args(["--", "-C", "strip=symbols", "-C", "opt-level=3"]);
    // The linker of this platform is LLVM's; others need not know the option.
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        command.args(["-C", "link-arg=-Wl,--icf=all"]);
    }
}

/// The profile of releases in the root `Cargo.toml`.
pub(crate) const RELEASES: &str = "dist";

/// The reference.
///
/// Crates that others use are read as clippy has compiled them. With other variables than these of `cargo clippy -- -D
/// warnings`, cargo would compile them again.
pub(crate) fn doc(workspace: &Workspace) -> Outcome {
    let driver = Path::new(env!("CARGO")).with_file_name("clippy-driver");
    let lints = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";
    let variables = [
        ("RUSTC_WORKSPACE_WRAPPER", driver.into()),
        ("CLIPPY_ARGS", lints.into()),
        ("RUSTDOCFLAGS", "-D warnings".into()),
    ];
    let arguments = ["doc", "--workspace", "--no-deps"];
    phase(workspace, "doc", &arguments, variables)
}

/// Every target of the workspace.
pub(crate) fn build(workspace: &Workspace) -> Outcome {
    Outcome::of(built(workspace))
}

/// Compiles every target, once; other callers wait until it is done.
///
/// All at once, so that the binaries share one set of features with the tests and nothing is compiled twice.
///
/// # Errors
///
/// When something does not compile; the message ends with cargo's last lines.
pub(crate) fn built(workspace: &Workspace) -> Result<(), String> {
    let compile = || {
        let log = workspace.scratch("build.log")?;
        let arguments = ["build", "--workspace", "--all-targets"];
        compiled(cargo(workspace).args(arguments), &log)
    };
    workspace.built.get_or_init(compile).clone()
}

/// A binary of the workspace, built.
///
/// # Errors
///
/// When something does not compile.
pub(crate) fn binary(workspace: &Workspace, name: &str) -> Result<PathBuf, String> {
    built(workspace)?;
    beside_this(name)
}

/// A binary of `package`. Builds only that package, unless an earlier phase has built the workspace.
///
/// A package alone needs fewer features of its dependencies, so that cargo would build them a second time.
///
/// # Errors
///
/// When it does not compile.
pub(crate) fn binary_of(
    workspace: &Workspace,
    package: &str,
    name: &str,
) -> Result<PathBuf, String> {
    if !matches!(workspace.built.get(), Some(Ok(()))) {
        let log = workspace.scratch(&format!("build-{package}.log"))?;
        let arguments = ["build", "--package", package, "--bins"];
        compiled(cargo(workspace).args(arguments), &log)?;
    }
    beside_this(name)
}

/// All binaries are beside this one, wherever the target directory is.
fn beside_this(name: &str) -> Result<PathBuf, String> {
    let this = env::current_exe().map_err(|error| error.to_string())?;
    Ok(this.with_file_name(name))
}

/// `cargo` in the workspace.
///
/// Incremental compilation is off: its data for every test binary is several times as large as the binaries, and a full
/// run does not reuse it.
pub(crate) fn cargo(workspace: &Workspace) -> Command {
    let mut command = process::command(env!("CARGO"));
    command
        .current_dir(workspace.path(""))
        .env("CARGO_INCREMENTAL", "0");
    command
}

/// The same with incremental compilation, for what is compiled again after every change.
/// `CARGO_INCREMENTAL=0` switches it off, where everything is compiled anyway.
pub(crate) fn incremental(workspace: &Workspace) -> Command {
    let mut command = cargo(workspace);
    let incremental = env::var_os("CARGO_INCREMENTAL").unwrap_or_else(|| "1".into());
    command.env("CARGO_INCREMENTAL", incremental);
    command
}

/// Runs a command of cargo that compiles.
///
/// # Errors
///
/// When it fails; the message begins with the compiler's first errors and ends with cargo's last lines.
pub(crate) fn compiled(command: &mut Command, log: &Path) -> Result<(), String> {
    process::run(command, log, LIMIT).map_err(|error| with_first_errors(&error, log))
}

fn phase<const N: usize>(
    workspace: &Workspace,
    name: &str,
    arguments: &[&str],
    variables: [(&str, OsString); N],
) -> Outcome {
    let result = workspace.scratch(&format!("{name}.log")).and_then(|log| {
        let mut command = cargo(workspace);
        command.args(arguments).envs(variables);
        compiled(&mut command, &log)
    });
    Outcome::of(result)
}

/// `error` behind the first errors of the compiler in `log`, which the end of a log may lack.
fn with_first_errors(error: &str, log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let mut first = String::new();
    let errors = lines.iter().enumerate();
    let errors = errors.filter(|(_, line)| line.starts_with("error"));
    for (at, error) in errors.take(FIRST_ERRORS) {
        let place = lines.get(at + 1).copied().unwrap_or_default();
        let place = place.trim_start().strip_prefix("--> ").unwrap_or_default();
        let _ = writeln!(first, "{place} {error}");
    }
    format!("{}{error}", first.trim_start())
}

/// As many as a screen shows together with the end of the log.
const FIRST_ERRORS: usize = 5;
