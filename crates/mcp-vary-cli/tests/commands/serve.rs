//! `vary serve`

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{INITIALIZE, Server, VARY, command, file, run, signal, sky};
use crate::text::{assert_contains, assert_lacks, assert_starts};

#[cfg(unix)]
#[test]
fn serving_says_where_answers_and_ends_with_its_children() {
    let pid = file("pid-of-the-child", "");
    let script = r#"echo $$ > "$1"; exec "$0" weather"#;
    let args = [
        "serve", "--listen", "0", "--", "sh", "-c", script, VARY, &pid,
    ];
    let server = Server::start(&args);
    let expected = "in front of weather 2.0.0, revision 2026-07-28, 2 tools";
    assert_contains(&server.said, &[expected]);
    let response = server.post(INITIALIZE);
    assert_starts(&response, "HTTP/1.1 200 OK");
    assert_contains(&response, &[r#""availableVariants":[{"id":"standard""#]);
    let child = std::fs::read_to_string(pid).unwrap();
    let alive = || {
        std::process::Command::new("kill")
            .args(["-0", child.trim()])
            .stderr(Stdio::null())
            .status()
            .unwrap()
    };
    assert!(alive().success());
    let (code, rest) = server.end();
    assert_eq!(code, Some(0), "{rest}");
    assert_contains(&rest, &["vary inspect http://127.0.0.1:"]);
    assert!(!alive().success());
}

/// Whoever serves stays, and the server is started again.
#[cfg(unix)]
#[test]
fn a_server_that_was_killed_is_started_again() {
    let pid = file("pid-of-the-server-behind", "");
    let script = r#"echo $$ > "$1"; exec "$0" weather"#;
    let behind = ["sh", "-c", script, VARY, &pid];
    let server = Server::start(&[&["serve", "--listen", "0", "--"], &behind[..]].concat());
    let first = std::fs::read_to_string(&pid).unwrap();
    signal("KILL", first.trim().parse().unwrap());
    let url = server.url();
    let call = ["call", "get_weather", r#"{"location":"Bern"}"#, &url];
    // Until the server is back, each call says at once that it is not there.
    let mut tries = (0..200).map(|_| run(&call));
    let answered = tries.find(|tried| tried.code == Some(0)).unwrap();
    assert_contains(&answered.stdout, &["Bern"]);
    assert_ne!(std::fs::read_to_string(&pid).unwrap(), first);
    let (code, rest) = server.end();
    assert_eq!(code, Some(0), "{rest}");
    let lost = rest.lines().find(|line| line.contains("server lost"));
    let lost = lost.unwrap_or_else(|| panic!("{rest}"));
    assert!(!lost.contains("server `"), "its name is a field: {lost}");
}

#[test]
fn both_extensions_can_be_left_out() {
    let response = Server::with_weather(&["--no-variants", "--no-negotiation"]).post(INITIALIZE);
    assert_contains(&response, &["serverInfo"]);
    assert_lacks(&response, &["extensions"]);
}

#[test]
fn the_default_variant_can_be_chosen() {
    let response = Server::with_weather(&["--variant", "compact"]).post(INITIALIZE);
    let (_, offered) = response.split_once("availableVariants").unwrap();
    assert_starts(offered, r#"":[{"id":"compact""#);
}

#[test]
fn one_client_is_served_on_the_standard_streams() {
    let mut child = command(&[
        "serve",
        "--stdio",
        "--variant",
        "compact",
        "--",
        VARY,
        "weather",
    ])
    .stdin(Stdio::piped())
    .stdout(Stdio::piped())
    .stderr(Stdio::null())
    .spawn()
    .unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{INITIALIZE}").unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let answer: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(answer["result"]["serverInfo"]["name"], "weather");
    let offered = &answer["result"]["capabilities"]["extensions"]["io.modelcontextprotocol/server-variants"]
        ["availableVariants"];
    assert_eq!(offered[0]["id"], "compact");
    drop(input);
    assert!(lines.next().is_none());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_server_of_a_clients_file_is_served() {
    let entry =
        serde_json::json!({"command": VARY, "args": ["${WORD:-weather}"], "env": {"A": "b"}});
    let text =
        serde_json::json!({"mcpServers": {"sky": entry, "sea": {"command": "no-such-program"}}});
    let path = file("two-servers.json", &text.to_string());
    let server = Server::serve(&[&path, "--server", "sky"]);
    assert_contains(&server.said, &["in front of weather"]);
    let text = serde_json::json!({"mcpServers": {"far": {"type": "http", "url": server.url()}}});
    let path = file("one-server.json", &text.to_string());
    let far = Server::serve(&[&path]);
    assert_contains(&far.said, &["in front of weather"]);
}

/// What a server writes to standard error is no message of the gateway.
#[cfg(unix)]
#[test]
fn what_servers_write_to_standard_error_is_shown_at_the_level_debug() {
    let script = r#"echo noise >&2; exec "$0" weather"#;
    let serve = ["serve", "--listen", "0", "--", "sh", "-c", script, VARY];
    for (log, is_shown) in [
        (&[][..], false),
        (&["--log", "info"], false),
        (&["--log", "debug"], true),
    ] {
        let server = Server::start(&[log, &serve].concat());
        let (code, said) = server.end_with_said();
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(said.contains("noise"), is_shown, "{log:?}: {said}");
    }
}

/// What waits for a server that does not answer is given up at the second signal.
#[cfg(unix)]
#[test]
fn the_second_signal_ends_a_client_of_the_standard_streams_at_once() {
    let script = r#"while read -r line; do case $line in *tools/call*) ;; *) printf '%s\n' "$line"; esac; done | "$0" weather"#;
    let mut child = command(&["serve", "--stdio", "--", "sh", "-c", script, VARY])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    writeln!(input, "{INITIALIZE}").unwrap();
    lines.next().unwrap().unwrap();
    writeln!(input, "{CALL}\n{PING}").unwrap();
    let pong = lines.next().unwrap().unwrap();
    assert_contains(&pong, &[r#""id":3"#]);
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    signal("TERM", child.id());
    assert!(said.any(|line| line.unwrap().starts_with("shutting down (Ctrl-C again")));
    signal("TERM", child.id());
    assert!(said.any(|line| line.unwrap().starts_with("stopped at once")));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// A drain that only begins is given up, too.
#[cfg(unix)]
#[test]
fn the_second_signal_ends_a_gateway_at_once() {
    let text = sky("listen: 0\nlimits: {drain-delay: 60s}\n");
    let configuration = file("second-signal.yaml", &text);
    let mut server = Server::start(&["serve", &configuration]);
    signal("TERM", server.child.id());
    server.says("shutting down (Ctrl-C again");
    assert_starts(&server.post(INITIALIZE), "HTTP/1.1 200 OK");
    let second = Instant::now();
    let (code, text) = server.end();
    assert_eq!(code, Some(0), "{text}");
    assert_contains(&text, &["stopped at once"]);
    assert!(second.elapsed() < Duration::from_secs(30));
}

#[cfg(unix)]
#[test]
fn the_weather_server_ends_when_it_is_asked_to() {
    for name in ["TERM", "INT"] {
        let mut child = command(&["weather"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        writeln!(input, "{INITIALIZE}").unwrap();
        lines.next().unwrap().unwrap();
        signal(name, child.id());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{name}");
    }
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_weather","arguments":{"location":"Bern"}}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#;
