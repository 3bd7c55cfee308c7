//! `cargo xtask bench`: the shipped build of Vary, compared with its limits and its peers.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Parser;

use crate::workspace::Workspace;
use crate::{cargo, npm, process, python, release_build};

/// Measure the cost of a request, and compare it with the lower limit and with peers
///
/// Builds the shipped `vary` and the programs that it is compared with, runs them on this machine in turn, checks every
/// answer, and compares the figures with the bars. docs/internals/performance.md explains the rows.
#[derive(Debug, Parser)]
#[command(after_help = "Options of the measurement:\n  \
    --only TEXT       rows whose name holds this; may be repeated\n  \
    --without TEXT    no rows whose name holds this, as `store`, for which `redis-server` is started\n  \
    --rows            say which rows there are\n  \
    --rounds N        how often each program is asked [default: 5]\n  \
    --seconds S       how long it is asked each time [default: 1]\n  \
    --quick           one short round: whether everything runs, not what it costs\n  \
    --check           a few requests each, without a clock: whether every answer is right; with --quick, as many as that\n  \
    --json FILE       also write the numbers of every round there\n  \
    --chart FILE      also draw what calls and lists cost there, as SVG")]
pub(crate) struct Bench {
    /// `mcp-proxy` of crates.io [default: the one in target/peers or on the PATH]
    #[arg(long, value_name = "FILE")]
    mcp_proxy: Option<PathBuf>,
    /// A Python interpreter with FastMCP, whose proxy is measured [default: one that is installed into target/xtask]
    #[arg(long, value_name = "PYTHON")]
    fastmcp: Option<PathBuf>,
    /// `supergateway` of npm [default: the one of benches/peers, which is installed]
    #[arg(long, value_name = "FILE")]
    supergateway: Option<PathBuf>,
    /// Only the overhead of the library over a handler of rmcp; without options it runs after the rows
    #[arg(long)]
    library: bool,
    /// Only the search over tools and the check of arguments; without options they run last
    #[arg(long, conflicts_with = "library")]
    directory: bool,
    /// Only compare this build of `vary` with the shipped one, in ten pairs of six rows; fails if a row became slower
    #[arg(long, value_name = "BINARY", conflicts_with_all = ["library", "directory"])]
    against: Option<PathBuf>,
    /// Options of the measurement
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<String>,
}

/// Builds and measures.
///
/// # Errors
///
/// When something does not build or run, an answer is wrong, or a bar is missed. The measurement has already printed
/// which.
pub(crate) fn bench(workspace: &Workspace, bench: &Bench) -> Result<(), String> {
    if bench.library {
        return library(workspace);
    }
    if bench.directory {
        return directory(workspace);
    }
    let before = bench.against.as_ref().map(|binary| {
        let found = binary.canonicalize();
        found.map_err(|error| format!("--against {}: {error}", binary.display()))
    });
    let before = before.transpose()?;
    let programs = build(workspace, "vary-bench", "vary-bench")?;
    let vary = release_build::vary(workspace, &workspace.path("target/dist-build"))?;
    let mut command = process::command(programs);
    command.arg("run").arg("--vary").arg(vary);
    command.arg("--scratch").arg(workspace.path("target/bench"));
    if let Some(peer) = peer(workspace, bench) {
        command.arg("--mcp-proxy").arg(peer);
    }
    if let Some(before) = &before {
        command.arg("--against").arg(before);
    } else {
        let named = [&bench.fastmcp, &bench.supergateway];
        for (flag, peer) in packaged_peers(workspace, named) {
            command.arg(flag).arg(peer);
        }
    }
    let gateway = measure(command.args(&bench.options));
    // The options apply only to the gateway's rows.
    if before.is_some() || !bench.options.is_empty() {
        return gateway;
    }
    let others = [library(workspace), directory(workspace)];
    others.into_iter().fold(gateway, Result::and)
}

/// Measures the overhead of the library over a handler of rmcp.
fn library(workspace: &Workspace) -> Result<(), String> {
    in_process(workspace, "mcp-vary-rmcp", "overhead")
}

/// Measures the search over tools, and the check of arguments.
fn directory(workspace: &Workspace) -> Result<(), String> {
    let search = in_process(workspace, "mcp-vary-search", "search");
    search.and(in_process(workspace, "mcp-vary-view", "check"))
}

/// Runs a measurement of functions, which compares its rows with their bars.
fn in_process(workspace: &Workspace, package: &str, bench: &str) -> Result<(), String> {
    let mut command = cargo::cargo(workspace);
    measure(command.args([
        "bench",
        "--profile",
        cargo::RELEASES,
        "--package",
        package,
        "--bench",
        bench,
    ]))
}

fn measure(command: &mut Command) -> Result<(), String> {
    let ended = command.status();
    match ended.map_err(|error| error.to_string())? {
        ended if ended.success() => Ok(()),
        ended => Err(format!("the measurement ended with {ended}")),
    }
}

/// Builds one package alone, so that other packages do not enable features of its dependencies.
fn build(workspace: &Workspace, package: &str, binary: &str) -> Result<PathBuf, String> {
    println!("building {binary} ...");
    let log = workspace.scratch(&format!("bench-{binary}.log"))?;
    let mut command = cargo::cargo(workspace);
    cargo::build_for_release(&mut command, package, binary);
    process::run(&mut command, &log, LIMIT)?;
    // This program is in the folder of another profile of the same target directory, wherever that is.
    let this = env::current_exe().map_err(|error| error.to_string())?;
    let profile = this.parent().unwrap_or(&this);
    Ok(profile.with_file_name(cargo::RELEASES).join(binary))
}

/// Only for builds that hang: link-time optimisation takes minutes on small machines.
const LIMIT: Duration = Duration::from_secs(60 * 60);

/// The peer that the command line names, or an installed one.
fn peer(workspace: &Workspace, bench: &Bench) -> Option<PathBuf> {
    let installed = workspace.path("target/peers/bin/mcp-proxy");
    let candidates = [installed, PathBuf::from("mcp-proxy")];
    let named = bench.mcp_proxy.clone();
    named.or_else(|| {
        candidates
            .into_iter()
            .find(|program| is_of_crates_io(program))
    })
}

/// The peers of PyPI and npm: those that the command line names, or that can be installed.
fn packaged_peers(
    workspace: &Workspace,
    [fastmcp, supergateway]: [&Option<PathBuf>; 2],
) -> Vec<(&'static str, PathBuf)> {
    let fastmcp = fastmcp
        .clone()
        .map_or_else(|| python::fastmcp(workspace), Ok);
    let installed = || {
        npm::install_from(workspace, PEERS)?;
        Ok(workspace.path(PEERS).join("node_modules/.bin/supergateway"))
    };
    let supergateway = supergateway.clone().map_or_else(installed, Ok);
    let peers = [("--fastmcp", fastmcp), ("--supergateway", supergateway)];
    let measured = peers.into_iter().filter_map(|(flag, peer)| {
        let peer = peer.inspect_err(|why| println!("measured without {}: {why}", &flag[2..]));
        Some((flag, peer.ok()?))
    });
    measured.collect()
}

/// The directory of the peers of npm, with their lockfile.
const PEERS: &str = "benches/peers";

/// Whether `program` is the one of crates.io: npm and PyPI have others of the same name.
fn is_of_crates_io(program: &Path) -> bool {
    let help = Command::new(program).arg("--help").output();
    help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("--from-mcp-json"))
}
