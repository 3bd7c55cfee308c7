//! Servers that hang while they start, beside one that is ready at once.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::{INITIALIZE, Server, VARY, command, file, run};

/// A client's file with a server that hangs for ever, then one that is ready at once.
fn hanging(name: &str) -> String {
    let text = json!({"mcpServers": {
        "hang": {"command": "sleep", "args": ["1000"]},
        "sky": {"command": VARY, "args": ["weather"]},
    }});
    file(name, &text.to_string()).to_str().unwrap().to_owned()
}

/// How long some clients wait for the first answer; enough for a slow machine, and less than what a hanging server took.
const PATIENCE: Duration = Duration::from_secs(10);

const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

#[test]
fn a_server_that_hangs_holds_up_no_client_over_http() {
    let file = hanging("hang-http.json");
    let began = Instant::now();
    let server = Server::start(&["serve", "--listen", "0", "--admin", "0", "--config", &file]);
    let answer = server.post(INITIALIZE);
    assert!(
        answer.contains(r#""tools":{"listChanged":true}"#),
        "{answer}"
    );
    let head = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n";
    let list = server.post_with(LIST, head);
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    assert!(list.contains("sky_get_weather"), "{list}");
    assert!(
        server.said.contains("hang  still starting"),
        "{}",
        server.said
    );
}

#[test]
fn a_server_that_hangs_holds_up_no_client_on_standard_streams() {
    let file = hanging("hang-stdio.json");
    let began = Instant::now();
    let mut child = command(&["serve", "--stdio", "--config", &file])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{INITIALIZE}\n{LIST}").unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let answers = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let answers: Vec<_> = answers.take(2).collect();
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    let tools = &answers[1]["result"]["tools"];
    assert_eq!(tools[0]["name"], "sky_get_weather", "{answers:?}");
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// A process that is killed, whatever the test finds.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A gateway with a status, and the lines that it writes to standard error.
fn started(file: &str) -> (Killed, impl Iterator<Item = String> + use<>) {
    let mut child = command(&["serve", "--listen", "0", "--admin", "0", "--config", file])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    (Killed(child), lines.map(Result::unwrap))
}

#[test]
fn the_status_is_there_while_servers_start() {
    let text = "servers: {hang: {command: sleep, args: ['1000']}}\nstart-wait: 1h\n";
    let file = file("hang-status.yaml", text);
    let file = file.to_str().unwrap();
    let (_child, mut said) = started(file);
    let first = said.next().unwrap();
    assert!(
        first.starts_with("starting `hang` at http://127.0.0.1:"),
        "{first}"
    );
    let address = said.find_map(|line| Some(line.strip_prefix("status: vary status ")?.to_owned()));
    let shown = run(&["status", &address.unwrap()]).data(1);
    assert!(shown.contains("hang    starting"), "{shown}");
}

#[test]
fn a_call_waits_only_for_the_server_that_it_needs() {
    let file = hanging("hang-call.json");
    let began = Instant::now();
    let call = [
        "call",
        "sky_get_weather",
        r#"{"location":"Bern"}"#,
        "--config",
        &file,
    ];
    let said = run(&call).data(0);
    assert!(said.contains("Bern"), "{said}");
    assert!(
        began.elapsed() < Duration::from_secs(40),
        "{:?}",
        began.elapsed()
    );
}

#[cfg(unix)]
#[test]
fn an_interrupted_start_says_who_was_ready() {
    let text = format!(
        "servers:\n  sky: {{command: {VARY:?}, args: [weather]}}\n  hang: {{command: sleep, args: ['1000']}}\nstart-wait: 1h\n"
    );
    let file = file("hang-interrupted.yaml", &text);
    let file = file.to_str().unwrap();
    let (mut child, mut said) = started(file);
    let address = said.find_map(|line| Some(line.strip_prefix("status: vary status ")?.to_owned()));
    let address = address.unwrap();
    let is_up = || run(&["status", &address]).stdout.contains("sky     up");
    assert!((0..200).any(|_| is_up()));
    crate::program::signal("INT", child.0.id());
    let last = said.last().unwrap();
    assert_eq!(
        last,
        "error: interrupted before `hang` was ready; ready: `sky`"
    );
    assert_eq!(child.0.wait().unwrap().code(), Some(2));
}
