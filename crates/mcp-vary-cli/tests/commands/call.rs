//! `vary call`

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::program::{Server, VARY, command, file, run, signal, with_weather};
use crate::text::{assert_contains, assert_ends, assert_lacks};

const BERN: &str = r#"{"location":"Bern"}"#;

/// CN-9, CN-12: the same value as JSON and as prose.
#[test]
fn several_clients_are_shown_side_by_side() {
    let args = [
        "call",
        "get_weather",
        BERN,
        "--features",
        "agent,format=json",
        "--features",
        "format=text",
    ];
    insta::assert_snapshot!(with_weather(&args).data(0), @r#"
    agent, format=json                                 format=text
    content 0 tokens                                   content 48 tokens
    structuredContent 45 tokens                        a model reads 48 tokens (107 %)
    a model reads 45 tokens (100 %)
    ─────────────────────────────────────────────────  ─────────────────────────────────────────────────
    content: []                                        content:
                                                       location: Bern
    structuredContent:                                 temperature_c: 8
    {                                                  humidity_percent: 72
      "location": "Bern",                              precipitation_probability: 0.3
      "temperature_c": 8,                              wind_speed_kmh: 15
      "humidity_percent": 72,                          uv_index: 2
      "precipitation_probability": 0.3,                forecast_summary: Warming trend expected Thursday
      "wind_speed_kmh": 15,
      "uv_index": 2,
      "forecast_summary": "Warming trend expected
        Thursday"
    }
    "#);
}

/// The client gets the exit status, and who runs the command also what the server wrote last.
#[cfg(unix)]
#[test]
fn the_last_output_of_a_server_that_ends_in_a_call_is_shown() {
    let path = file("call-ends.yaml", &ending_in_a_call());
    let called = run(&["call", "look", &path]).exited(1);
    assert_contains(&called.stdout, &["server `s` ended (exit status: 3)"]);
    let note = "note: server `s` ended (exit status: 3); last stderr lines: no licence\n";
    assert_contains(&called.stderr, &[note]);
}

/// A configuration with a server that lists `look`, and ends when it is called.
#[cfg(unix)]
fn ending_in_a_call() -> String {
    let script = r#"
        while read -r line; do
          id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
          case $line in
            *server/discover*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
            *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' "$id" ;;
            *tools/list*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"look","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
            *tools/call*) echo no licence >&2; exit 3 ;;
          esac
        done"#;
    let server = serde_json::json!({"command": "/bin/sh", "args": ["-c", script]});
    serde_json::json!({"servers": {"s": server}}).to_string()
}

/// CN-7, CN-9, CN-10
#[test]
fn json_is_what_came_a_line_per_client() {
    let args = [
        "call",
        "get_weather",
        BERN,
        "--json",
        "--features",
        "agent,format=json",
        "--features",
        "human,format=markdown",
    ];
    let data = with_weather(&args).data(0);
    let [agent, person] = data.lines().collect::<Vec<_>>()[..] else {
        panic!("not two lines: {data}");
    };
    let agent: Value = serde_json::from_str(agent).unwrap();
    assert_eq!(agent["content"], serde_json::json!([]));
    assert_eq!(agent["structuredContent"]["temperature_c"], 8);
    let person: Value = serde_json::from_str(person).unwrap();
    let expected = "**location**: Bern";
    assert_contains(person["content"][0]["text"].as_str().unwrap(), &[expected]);
    assert_eq!(person.get("structuredContent"), None);
}

#[test]
fn a_url_may_stand_where_arguments_may() {
    let server = Server::with_weather(&[]);
    let with = run(&[
        "call",
        "get_weather",
        BERN,
        "--features",
        "human",
        &server.url(),
    ])
    .data(0);
    assert_contains(&with, &["- **location**: Bern"]);
    let without = run(&["call", "get_weather", &server.url()]).exited(1);
    assert_contains(&without.stdout, &["`location` is missing"]);
}

#[test]
fn a_tool_that_fails_is_shown_and_fails() {
    let shown = with_weather(&["call", "get_weather", r#"{"location":"Atlantis"}"#]).data(1);
    assert_contains(&shown, &["isError: true", "known cities are Bern"]);
}

#[test]
fn an_unknown_tool_is_shown_and_fails() {
    let tip = "tip: `get_tides` is not listed; `vary tools TARGET` shows what is\n";
    let called = with_weather(&["call", "get_tides"]);
    called.prints(1, tip);
    let shown = called.stdout;
    assert_contains(&shown, &["\nerror\n", "Unknown tool: get_tides (-32602)\n"]);
    let json = with_weather(&["call", "get_tides", "--json"]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["error"]["code"], -32602);
}

/// SV-9
#[test]
fn an_unknown_variant_is_refused_with_those_there_are() {
    with_weather(&["call", "get_weather", BERN, "--variant", "tiny"])
        .refuses(&["error: there is no variant `tiny`; choose one of `standard`, "]);
}

/// CN-1: what has no effect is said, and the server ignores it.
#[test]
fn features_without_effect_are_said() {
    let run = with_weather(&["call", "get_weather", BERN, "--features", "format==json"]).exited(0);
    let expected = "warning: of --features, this has no effect: `format==json`";
    assert_contains(&run.stderr, &[expected]);
    assert_contains(&run.stdout, &["structuredContent:"]);
}

/// What the clients before it got is shown when a later one fails.
#[cfg(unix)]
#[test]
fn a_client_that_fails_takes_nothing_from_those_before_it() {
    let starts = file("starts-of-a-server", "");
    let script = r#"echo >> "$1"; test $(wc -l < "$1") -lt 3 || exit 3; exec "$0" serve --stdio -- "$0" weather"#;
    let run = run(&[
        "call",
        "get_weather",
        BERN,
        "--json",
        "--features",
        "agent",
        "--features",
        "human",
        "--",
        "sh",
        "-c",
        script,
        VARY,
        &starts,
    ])
    .exited(2);
    assert_contains(&run.stderr, &["exit status: 3"]);
    assert_contains(&run.stdout, &["Bern"]);
    assert_eq!(run.stdout.lines().count(), 1);
}

/// What a call waits for is printed at 5 and at 20 seconds.
#[cfg(unix)]
#[test]
fn a_call_that_hangs_is_reported() {
    let script = r#"while read -r line; do case $line in *tools/call*) ;; *) printf '%s\n' "$line"; esac; done | "$0" weather"#;
    let args = ["call", "get_weather", BERN, "--", "sh", "-c", script, VARY];
    let mut child = command(&args)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stderr.take().unwrap()).lines();
    let begin = "waiting for the answer of `get_weather` ... ";
    let mut waits = said
        .map(Result::unwrap)
        .filter(|line| line.starts_with(begin));
    assert_lacks(&waits.next().unwrap(), &["has not answered"]);
    let late = "` has not answered yet (Ctrl-C gives up)";
    assert_ends(&waits.next().unwrap(), late);
    signal("INT", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

/// The server may still do what it does at its end.
#[cfg(unix)]
#[test]
fn an_interrupted_call_lets_the_server_end_by_itself() {
    let left = file("left-after-a-signal", "");
    let script = r#"while read -r line; do case $line in *tools/call*) echo called >&2;; *) printf '%s\n' "$line"; esac; done | "$0" weather; echo left > "$1""#;
    let mut child = command(&[
        "--log",
        "mcp_vary_upstream::stderr=debug",
        "call",
        "get_weather",
        BERN,
        "--",
        "sh",
        "-c",
        script,
        VARY,
        &left,
    ])
    .stdout(Stdio::null())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().contains("called")));
    signal("INT", child.id());
    assert!(said.any(|line| line.unwrap().contains("interrupted")));
    assert_eq!(child.wait().unwrap().code(), Some(2));
    assert_eq!(std::fs::read_to_string(left).unwrap(), "left\n");
}

/// However early the signal comes.
#[cfg(unix)]
#[test]
fn a_server_that_is_still_starting_ends_by_itself() {
    let script = r#"echo began >&2; cat >/dev/null; echo left >"$0""#;
    let commands = [
        &["inspect"][..],
        &["call", "x"],
        &["serve", "--stdio"],
        &["serve", "--listen", "127.0.0.1:0"],
    ];
    for (at, args) in commands.into_iter().enumerate() {
        let left = file(&format!("left-while-starting-{at}"), "");
        let log = ["--log", "mcp_vary_upstream::stderr=debug"];
        let server = ["--", "sh", "-c", script, &left];
        let mut child = command(&[&log[..], args, &server].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(said.any(|line| line.unwrap().contains("began")), "{args:?}");
        signal("INT", child.id());
        let interrupted = said.any(|line| line.unwrap().contains("interrupted"));
        assert!(interrupted, "{args:?}");
        assert_eq!(child.wait().unwrap().code(), Some(2), "{args:?}");
        assert_eq!(std::fs::read_to_string(left).unwrap(), "left\n", "{args:?}");
    }
}

#[test]
fn a_variant_of_a_server_without_variants_is_refused() {
    let server = [
        "--",
        VARY,
        "serve",
        "--stdio",
        "--no-variants",
        "--",
        VARY,
        "weather",
    ];
    for command in [&["inspect"][..], &["call", "get_weather", BERN]] {
        let run = run(&[command, &["--variant", "compact"], &server].concat());
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
        assert_contains(&run.stderr, &["the server offers no variants"]);
    }
}

/// The call is made all the same: of the list, it needs hints about the arguments alone.
#[cfg(unix)]
#[test]
fn a_list_without_an_end_is_noticed() {
    let asked = file("asked-for-lists", "");
    let script = r#"echo start >> "$0"
    while read -r line; do
        id=$(printf '%s' "$line" | sed -n 's/.*"id":\([^,}]*\).*/\1/p')
        case $line in
            *'"initialize"'*) say='"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/content-negotiation":{"version":"1.0"}}},"serverInfo":{"name":"x","version":"1"}}';;
            *tools/list*) echo list >> "$0"; say='"result":{"tools":[],"nextCursor":"again"}';;
            *tools/call*) say='"result":{"content":[{"type":"text","text":"done"}]}';;
            *) say='"error":{"code":-32601,"message":"Method not found"}';;
        esac
        test -z "$id" || printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$say"
    done"#;
    let server = ["--", "sh", "-c", script, &asked];
    let inspected = run(&[&["inspect"][..], &server].concat()).exited(1);
    assert_contains(&inspected.stderr, &["the same cursor twice"]);
    let called = run(&[&["call", "x"][..], &server].concat()).exited(0);
    assert_contains(&called.stdout, &["done"]);
    let asked = std::fs::read_to_string(asked).unwrap();
    assert_ends(&asked, "start\nlist\nlist\n");
}

/// What drives a terminal is escaped; a program that reads the JSON gets it all the same.
#[test]
fn json_does_not_drive_the_terminal() {
    // The error names the tool, as the server got it.
    let tool = "x\u{9b}2J\u{202e}\u{feff}";
    let called = with_weather(&["call", tool, "{}", "--json"]);
    assert_lacks(&called.stderr, &[tool]);
    let shown = called.stdout;
    assert_contains(&shown, &[r"x\u009b2J\u202e\ufeff"]);
    assert_lacks(&shown, &[tool]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_contains(&shown.to_string(), &[tool]);
}
