//! The programs, started as processes.

use std::process::Stdio;

use library_examples::connect_to;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::support::{offered, plain};

const WEATHER: &str = env!("CARGO_BIN_EXE_weather-negotiated");
const PHASES: &str = env!("CARGO_BIN_EXE_phases");

/// Each server, and the variants that it offers to a client without hints.
const SERVERS: [(&str, &[&str]); 7] = [
    (WEATHER, &[]),
    (env!("CARGO_BIN_EXE_mapping"), &[]),
    (
        env!("CARGO_BIN_EXE_model-optimised"),
        &["claude-optimized", "gpt-optimized", "local-friendly"],
    ),
    (
        env!("CARGO_BIN_EXE_research"),
        &["synthesis", "deep-research", "quick-lookup"],
    ),
    (
        env!("CARGO_BIN_EXE_toolsets"),
        &["code-review", "project-management", "security-readonly"],
    ),
    (
        env!("CARGO_BIN_EXE_trading"),
        &["v2-stable", "v3-preview", "v1-legacy"],
    ),
    (
        PHASES,
        &["agent-plan", "agent-execute", "agent-debug", "compact"],
    ),
];

/// Starts a server on a free port; it is stopped when the first value is dropped.
async fn on_http(program: &str) -> (Child, String) {
    let mut command = Command::new(program);
    command.args(["--http", "127.0.0.1:0"]).kill_on_drop(true);
    let mut server = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let url = lines.next_line().await.unwrap();
    (server, url.expect("the URL"))
}

/// The output of a program.
async fn printed(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().await;
    let output = output.unwrap();
    assert!(output.status.success(), "{program}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// SV-2: the offers are in `initialize`, and in `server/discover`.
#[tokio::test]
async fn every_server_serves_on_stdio_and_on_http_in_both_eras() {
    for (program, expected) in SERVERS {
        let (_server, url) = on_http(program).await;
        let stdio = vec![program.to_owned(), "--stdio".to_owned()];
        // Without a server argument this program does something else.
        let bare = (program != PHASES).then(|| vec![program.to_owned()]);
        for place in bare.into_iter().chain([stdio, vec![url]]) {
            for legacy in [true, false] {
                let reached = connect_to(plain(), &place, legacy).await.unwrap();
                let offered = offered(&reached.client);
                assert_eq!(offered, expected, "{place:?}, legacy: {legacy}");
            }
        }
    }
}

#[tokio::test]
async fn the_weather_client_starts_its_server_or_finds_it() {
    let (_server, url) = on_http(WEATHER).await;
    for place in [WEATHER, &url] {
        for arguments in [&[place][..], &["--legacy", place]] {
            let said = printed(env!("CARGO_BIN_EXE_weather-client"), arguments).await;
            assert!(said.starts_with(r#"{"location":"Bern","#), "{said}");
        }
    }
}

#[tokio::test]
async fn the_agent_goes_through_its_phases_alone() {
    let said = printed(PHASES, &[]).await;
    assert_eq!(said.lines().count(), 3, "{said}");
}
