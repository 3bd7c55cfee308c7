//! The scripted server as a program on standard input and output: `conformance-peer FAULT`.
//!
//! Besides the faults of the checks there are those of a process: [`SILENT`], [`NOISY`], [`ENDLESS`], [`DYING`] and
//! [`STUBBORN`].

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a scripted server for tests"
)]

#[path = "mod.rs"]
#[expect(dead_code, unused_imports, reason = "tests use the rest")]
mod peer;

use std::io::Write as _;
use std::process::{Command, ExitCode};

use serde_json::Value;

use peer::{DYING, ENDLESS, NOISY, Peer, SILENT, STUBBORN};

fn main() -> ExitCode {
    let fault = std::env::args().nth(1).unwrap_or_default();
    let mut session = None;
    let mut played = fault.clone();
    if fault == STUBBORN {
        start_child();
        // So that a report shows the standard error.
        played = "SV-9/unknown-variant-in-tools-list".to_owned();
    }
    let peer = Peer::new(Box::leak(played.into_boxed_str()));
    for line in std::io::stdin().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if message.get("method").is_none() {
            // What a client without capabilities answers to `ping`.
            assert_eq!(message["result"], serde_json::json!({}));
            continue;
        }
        if message.get("id").is_none() || fault == SILENT {
            continue;
        }
        match fault.as_str() {
            NOISY => println!("Welcome!\n[]\n"),
            ENDLESS => write("x".repeat(5 << 20).as_bytes()),
            DYING if message["method"] == "tools/list" => {
                eprintln!("the disk is full");
                return ExitCode::from(3);
            }
            _ => {}
        }
        let Some((answer, opened)) = peer.answer(&message, session.as_deref(), false) else {
            return ExitCode::FAILURE;
        };
        session = opened.or(session);
        // Calls are answered after something else.
        if message["method"] == "tools/call" {
            println!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{}}}}"#);
            println!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping"}}"#);
        }
        println!("{answer}");
    }
    if fault == STUBBORN {
        loop {
            std::thread::park();
        }
    }
    ExitCode::SUCCESS
}

fn write(bytes: &[u8]) {
    // The client may have closed the pipe.
    _ = std::io::stdout().write_all(bytes);
}

/// Starts a process that would stay, as package runners do, and prints its number and this one's.
#[expect(clippy::zombie_processes, reason = "it is left behind on purpose")]
fn start_child() {
    let child = Command::new("sleep").arg("600").spawn().unwrap();
    eprintln!("processes {} {}", std::process::id(), child.id());
}
