//! What cannot be done says which and why, and ends with 2.

use std::net::TcpListener;

use crate::program::{VARY, file, run};

#[test]
fn a_program_that_is_not_there_is_named() {
    let why = [
        "program `no-such-program` was not found",
        "put its directory on `PATH`",
    ];
    run(&["serve", "--listen", "0", "--", "no-such-program"]).refuses(&why);
    run(&["inspect", "--", "no-such-program"]).refuses(&why);
    run(&["call", "x", "--", "no-such-program"]).refuses(&why);
}

#[cfg(unix)]
#[test]
fn a_program_that_ends_has_its_last_words() {
    let dies = ["--", "sh", "-c", "echo no licence >&2; exit 3"];
    run(&[&["inspect"], &dies[..]].concat())
        .refuses(&["ended (exit status: 3); its last words: no licence"]);
}

#[test]
fn a_url_that_cannot_be_reached_is_named() {
    // Nothing listens on the port of a listener that is gone.
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("http://{address}/mcp");
    let why = ["server `127.0.0.1` cannot be reached", "refused"];
    run(&["serve", "--listen", "0", "--url", &url]).refuses(&why);
    run(&["inspect", &url]).refuses(&why);
    run(&["call", "x", &url]).refuses(&why);
    run(&["inspect", "localhost:8800"]).refuses(&[
        "`localhost:8800` is not the URL",
        "http://127.0.0.1:8800/mcp",
    ]);
}

#[test]
fn a_port_that_is_taken_is_said_before_the_server_is_started() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let why = format!("{address} is in use; choose another with --listen");
    run(&["serve", "--listen", &address, "--", "no-such-program"]).refuses(&[&why]);
    run(&["demo", "--listen", &address]).refuses(&[&why]);
}

#[test]
fn an_address_that_others_can_reach_is_refused_with_the_reason() {
    run(&["serve", "--listen", "0.0.0.0:0", "--", VARY, "weather"]).refuses(&[
        "can be reached from other machines",
        "there is no authentication",
        "add `auth` to the configuration",
        "127.0.0.1:",
    ]);
    run(&["serve", "--listen", "nowhere", "--", VARY, "weather"])
        .refuses(&["`nowhere` is not an address", "HOST:PORT"]);
}

#[test]
fn arguments_that_are_no_json_are_named_with_their_position() {
    let url = "http://127.0.0.1:1/mcp";
    run(&["call", "x", r#"{"a": }"#, url])
        .refuses(&["the arguments are not a JSON object", "line 1 column 7"]);
    run(&["call", "x", "[1]", url])
        .refuses(&["the arguments are not a JSON object", "expected an object"]);
    run(&["call", "x", r#"{"a":1,"a":2}"#, url]).refuses(&[
        "the arguments are not a JSON object",
        "\"a\" is given twice",
    ]);
}

#[track_caller]
fn refuses_file(name: &str, text: &str, part: &str) {
    let path = file(name, text);
    run(&["serve", "--mcp-json", path.to_str().unwrap()]).refuses(&[name, part]);
}

#[test]
fn a_clients_file_with_a_mistake_is_named_with_its_key() {
    refuses_file(
        "broken.json",
        "{",
        "broken.json:1:1: is not JSON: EOF while parsing an object",
    );
    refuses_file(
        "other.json",
        r#"{"server": {}}"#,
        "other.json:1:2: `server` is not a known key; did you mean `servers`?",
    );
    refuses_file(
        "shape.json",
        r#"{"mcpServers": {"a": {"args": []}}}"#,
        "shape.json:1:22: `mcpServers.a` has neither `command` nor `url`",
    );
    run(&["serve", "--mcp-json", "no-such-file.json"])
        .refuses(&["no-such-file.json cannot be read"]);
}

#[test]
fn a_command_line_that_lacks_something_is_refused() {
    run(&["serve"]).refuses(&["--config <FILE>|--mcp-json <FILE>|--url <URL>|COMMAND"]);
    run(&["serve", "--server", "a", "--url", "http://x/"])
        .refuses(&["--config <FILE>|--mcp-json <FILE>"]);
    run(&["serve", "--config", "a", "--mcp-json", "b"]).refuses(&["cannot be used with"]);
    run(&["inspect", "--config", "a", "http://x/"]).refuses(&["cannot be used with"]);
    run(&["config", "check"]).refuses(&["<FILE>"]);
    run(&["serve", "--url", "http://x/", "--", "y"]).refuses(&["cannot be used with"]);
    run(&["inspect"]).refuses(&["URL"]);
    run(&["call", "x"]).refuses(&["a server is missing"]);
    run(&["inspect", "--hints", "compact", "http://127.0.0.1:1/"]).refuses(&["KEY=VALUE"]);
    run(&["inspect", "--header", "no colon", "http://127.0.0.1:1/"]).refuses(&["'Name: value'"]);
    run(&["--log", "=", "inspect", "http://127.0.0.1:1/"]).refuses(&["`=` is not a log level"]);
}
