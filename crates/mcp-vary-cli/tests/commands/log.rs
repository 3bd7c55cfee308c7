//! The log of `vary serve`: one line for each request, as text or JSON.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::program::{Server, VARY, command, file, run, signal, sky};
use crate::text::{assert_contains, assert_lacks, assert_starts};

/// A call of a modern client that calls itself `name`.
fn call(name: &str) -> (String, &'static str) {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": name, "version": "7"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let arguments = json!({"location": "Bern"});
    let params = json!({"name": "get_weather", "arguments": arguments, "_meta": meta});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let head =
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: get_weather\r\n";
    (call.to_string(), head)
}

/// Whether a text begins with a time as in RFC 3339, in UTC.
fn begins_with_time(line: &str) -> bool {
    let shape = |c: char| if c.is_ascii_digit() { '0' } else { c };
    let time: String = line.chars().take(27).map(shape).collect();
    time == "0000-00-00T00:00:00.000000Z"
}

#[test]
fn a_call_is_one_line_at_the_level_info_and_none_at_warn() {
    for (level, lines) in [("info", 1), ("warn", 0)] {
        let server = Server::with_weather(&["--log", level]);
        let (body, head) = call("bot");
        let answer = server.post_with(&body, head);
        assert_starts(&answer, "HTTP/1.1 200 OK");
        let (code, stderr) = server.end();
        assert_eq!(code, Some(0), "{stderr}");
        let about = stderr
            .lines()
            .filter(|line| line.contains("request finished"));
        let about: Vec<_> = about.collect();
        assert_eq!(about.len(), lines, "{stderr}");
        for line in about {
            assert!(begins_with_time(line), "{line}");
            for part in [
                r#"  INFO request finished method="tools/call" client="bot/7" variant="standard" server="vary" tool="get_weather" ms="#,
                " waited_ms=",
                " upstream_ms=",
                r#" outcome="ok" bytes_in="#,
                " bytes_out=",
                " id=",
            ] {
                assert!(line.contains(part), "{part} in {line}");
            }
            assert_lacks(line, &["Bern"]);
        }
    }
}

#[test]
fn with_the_format_json_each_line_is_an_object() {
    let serve = [
        "serve",
        "--listen",
        "0",
        "--log",
        "info",
        "--log-format",
        "json",
    ];
    let mut child = command(&[&serve[..], &["--", VARY, "weather"]].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut events = Vec::new();
    let address = loop {
        let mut line = String::new();
        assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "{events:?}");
        let line = object(&line);
        let message = line["message"].as_str().unwrap();
        let address = message.strip_prefix("serving at ").map(str::to_owned);
        events.push(line);
        if let Some(address) = address {
            break address;
        }
    };
    let _called = run(&["call", "get_weather", "location=Bern", &address]).exited(0);
    signal("TERM", child.id());
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{rest}");
    events.extend(rest.lines().map(object));
    let mut about = events
        .iter()
        .filter(|line| line["message"] == "request finished");
    let line = about.find(|line| line["method"] == "tools/call").unwrap();
    let texts = ["target", "variant", "server", "tool", "outcome"];
    let texts = texts.map(|name| line[name].as_str().unwrap());
    let expected = [
        "mcp_vary_gateway::requests",
        "standard",
        "vary",
        "get_weather",
        "ok",
    ];
    assert_eq!(texts, expected);
    assert!(
        line["client"].as_str().unwrap().starts_with("vary/"),
        "{line}"
    );
    assert!(line["ms"].as_f64().unwrap() > 0.0, "{line}");
    for name in ["bytes_in", "bytes_out"] {
        assert!(line[name].as_u64().unwrap() > 50, "{line}");
    }
    assert_lacks(&line.to_string(), &["Bern"]);
}

/// A line of the log.
#[track_caller]
fn object(line: &str) -> Value {
    let object: Value =
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    assert!(
        begins_with_time(object["timestamp"].as_str().unwrap()),
        "{line}"
    );
    let levels = ["ERROR", "WARN", "INFO"];
    assert!(
        levels.contains(&object["level"].as_str().unwrap()),
        "{line}"
    );
    object
}

/// A file with a server and `log`.
fn configured(name: &str, log: &str) -> String {
    let text = sky(&format!("log: {log}\n"));
    file(name, &text)
}

/// What a server that is called once writes to standard error.
fn said_about_a_call(args: &[&str]) -> String {
    let server = Server::start(&[&["serve", "--listen", "0"], args].concat());
    let (body, head) = call("bot");
    server.post_with(&body, head);
    let (code, stderr) = server.end_with_said();
    assert_eq!(code, Some(0), "{stderr}");
    stderr
}

#[test]
fn the_level_is_that_of_the_file_unless_the_command_line_has_one() {
    let path = configured(
        "log-level.yaml",
        "{level: 'warn,mcp_vary_gateway::requests=info'}",
    );
    for (args, has_line) in [
        (&[][..], true),
        (&["--log", "warn"], false),
        (&["-v"], true),
    ] {
        let stderr = said_about_a_call(&[args, &[&path]].concat());
        assert_eq!(
            stderr.contains("request finished"),
            has_line,
            "{args:?} {stderr}"
        );
    }
}

#[test]
fn the_format_is_that_of_the_file_unless_the_command_line_has_one() {
    let path = configured("log-format.yaml", "{format: json}");
    let mut child = command(&["serve", "--listen", "0", &path])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut first).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let message = object(&first)["message"].to_string();
    assert_contains(&message, &["starting `sky` at "]);
    let stderr = said_about_a_call(&["--log-format", "plain", &path]);
    assert_starts(&stderr, "starting `sky` at ");
}

#[test]
fn a_level_that_does_not_exist_is_refused_at_its_place() {
    let path = configured("log-wrong.yaml", "{level: wran}");
    run(&["serve", &path]).refuses(&[
        "log-wrong.yaml:2:14: `log.level` ",
        "`wran` is not a log level; write error, warn, info, debug, trace, off, or TARGET=LEVEL",
    ]);
}

/// Errors that end the command have the same form.
#[test]
fn with_the_format_json_the_last_error_is_an_object() {
    let args = [
        "serve",
        "--listen",
        "0",
        "--log-format",
        "json",
        "--",
        "no-such-program",
    ];
    let failed = run(&args);
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(2), ""));
    let lines: Vec<_> = failed.stderr.lines().map(object).collect();
    let last = lines.last().unwrap();
    assert_eq!(last["level"], "ERROR", "{last}");
    let message = last["message"].as_str().unwrap();
    assert_contains(message, &["`no-such-program` was not found"]);
    run(&["serve", "--log-format", "xml", "--", VARY, "weather"]).refuses(&["plain, json"]);
}
