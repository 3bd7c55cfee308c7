//! An MCP server that fails on command: `fault-server DIRECTORY [--http ADDRESS]`.
//!
//! The directory holds its script; there it notes its process, its starts and each call it gets. It speaks
//! the protocol by hand, since no SDK would let it do what the scenarios ask for.

mod act;
mod http;
mod log;
mod stdio;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use faults::script::{CHILDREN, PROCESSES, STARTS, Script, Start};
use tokio::net::TcpListener;

use crate::act::Server;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().unwrap_or_default());
    let remaining: Vec<String> = arguments.collect();
    let served = match &remaining[..] {
        [idle] if idle == "--idle" => std::future::pending().await,
        [] => serve(directory, None).await,
        [http, address] if http == "--http" => serve(directory, Some(address)).await,
        _ => Err("usage: fault-server DIRECTORY [--http ADDRESS]".to_owned()),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(directory: PathBuf, address: Option<&String>) -> Result<(), String> {
    log::append(&directory, PROCESSES, &std::process::id().to_string())?;
    let script = Script::read(&directory)?;
    let started = log::append(&directory, STARTS, "started")?;
    let start = match script.starts {
        Some(starts) if started > starts => Start::Serve,
        _ => script.start,
    };
    if script.starts_child {
        start_child(&directory)?;
    }
    if script.stubborn {
        ignore_requests_to_end()?;
    }
    if start == Start::Exit {
        return Err("fault-server: the database is locked".to_owned());
    }
    let server = Arc::new(Server {
        script,
        start,
        directory,
    });
    match address {
        None => stdio::serve(&server).await,
        Some(address) => {
            let listener = listen(address).await?;
            let local = listener.local_addr().map_err(|error| error.to_string())?;
            let _ = writeln!(io::stdout(), "http://{local}/mcp");
            http::serve(&server, &listener).await
        }
    }
}

/// A listener on `address`; the one before may not have gone yet.
async fn listen(address: &str) -> Result<TcpListener, String> {
    let mut tries = 0;
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            Err(error) if tries == BINDS => return Err(format!("{address}: {error}")),
            Err(_) => tries += 1,
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

const BINDS: u32 = 250;

/// Starts a process that does nothing and would stay.
fn start_child(directory: &std::path::Path) -> Result<(), String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let child = Command::new(this)
        .arg(directory)
        .arg("--idle")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    log::append(directory, CHILDREN, &child.id().to_string()).map(drop)
}

fn ignore_requests_to_end() -> Result<(), String> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut requested = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
    tokio::spawn(async move { while requested.recv().await.is_some() {} });
    Ok(())
}
