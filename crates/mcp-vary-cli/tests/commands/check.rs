//! `vary check`: the targets, the formats, and the exit codes. With `--client`: our own clients.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::program::{Run, Server, VARY, WEATHER, file, run, with_weather};
use crate::text::{assert_contains, assert_lacks, assert_starts};

/// A gateway on standard input and output, in front of the weather server.
const GATEWAY: [&str; 6] = ["--", VARY, "serve", "--stdio", "--", VARY];

/// A call whose results have data.
const BERN: [&str; 4] = [
    "--tool",
    "get_weather",
    "--arguments",
    r#"{"location": "Bern"}"#,
];

/// The findings of a report as JSON.
#[track_caller]
fn findings(run: Run, code: i32) -> Vec<Value> {
    let report: Value = serde_json::from_str(&run.data(code)).unwrap();
    assert_eq!(report["passes"], code == 0);
    report["findings"].as_array().unwrap().clone()
}

#[track_caller]
fn passes_with_variants(args: &[&str]) {
    // The machine may be busy.
    let patient = ["check", "--time-limit", "240"];
    let expected = ["--expect", "variants,negotiation"];
    let text = run(&[&patient[..], &expected, &BERN, args].concat()).data(0);
    assert_contains(&text, &[" passes\n", "2025-11-25: ", "2026-07-28: "]);
    assert_lacks(&text, &["not checked", "\nwarn "]);
}

#[test]
fn the_gateway_passes_as_a_url_a_command_and_a_configuration() {
    let server = Server::start(&[&["serve", "--listen", "0"][..], &WEATHER].concat());
    passes_with_variants(&[&server.url()]);
    passes_with_variants(&[&GATEWAY[..], &["weather"]].concat());
    let config =
        format!(r#"{{"servers": {{"weather": {{"command": {VARY:?}, "args": ["weather"]}}}}}}"#);
    let config = file("check.json", &config);
    passes_with_variants(&[&config]);
}

#[test]
fn a_server_that_knows_no_extension_passes_unless_it_is_expected_to() {
    let text = with_weather(&["check"]).data(0);
    let first = text.lines().next().unwrap();
    assert!(
        first.contains(" weather passes; it declares neither extension; only "),
        "{text}"
    );
    assert!(first.ends_with(" general checks apply"), "{text}");
    let part = " the server does not declare content negotiation\n";
    assert_contains(&text, &[part]);
    let text = with_weather(&["check", "--expect", "negotiation"]).data(1);
    let line =
        "found:    the server does not declare content negotiation, which this run asks for\n";
    assert_contains(&text, &[line]);
    let text = with_weather(&["check", "--only", "SV-10", "--revision", "2025-11-25"]).data(1);
    let expected = "\nfail SV-10/unsupported-selector (MUST; 2025-11-25)\n";
    assert_contains(&text, &[expected]);
}

#[test]
fn one_check_runs_in_one_revision() {
    let args = [
        "check",
        "--only",
        "SV-1/unique-ids",
        "--revision",
        "2026-07-28",
        "--format",
        "json",
    ];
    let findings = findings(run(&[&args[..], &GATEWAY, &["weather"]].concat()), 0);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0]["id"], "SV-1/unique-ids");
    assert_eq!(findings[0]["revision"], "2026-07-28");
    assert_eq!(findings[0]["outcome"], "pass");
}

#[test]
fn the_formats_have_what_failed() {
    let failing = |format| with_weather(&["check", "--only", "SV-10", "--format", format]);
    let findings = findings(failing("json"), 1);
    assert_eq!(findings.len(), 2);
    assert_eq!(findings[0]["outcome"], "fail");
    let sent = findings[0]["traffic"].as_array().unwrap().last().unwrap()["sent"].as_str();
    assert_contains(sent.unwrap(), &["server-variant"]);
    let xml = failing("junit").data(1);
    assert_starts(&xml, "<?xml ");
    assert_contains(&xml, &[r#"tests="1" failures="1""#]);
}

#[test]
fn the_checks_are_listed() {
    let all = run(&["check", "--list"]).data(0);
    assert!(all.lines().count() > 80, "{all}");
    let selected = run(&["check", "--list", "--only", "SV-10"]).data(0);
    assert_eq!(
        selected,
        "SV-10/unsupported-selector  MUST  Reads a list with a selector from a server that declares no variants.\n"
    );
}

#[test]
fn what_cannot_be_checked_is_exit_code_2() {
    run(&["check", "--only", "SV-99", "http://127.0.0.1:1/mcp"])
        .refuses(&["no check is called \"SV-99\"", "vary check --list"]);
    run(&["check", "127.0.0.1:8800"]).refuses(&["write it like http://127.0.0.1:8800/mcp"]);
    run(&["check", "--header", "none", "http://127.0.0.1:1/mcp"])
        .refuses(&["write it as 'Name: value'"]);
    run(&["check", "--header", "a: b", "--", VARY, "weather"]).refuses(&["--header"]);
    run(&["check", "http://127.0.0.1:1/mcp"])
        .refuses(&["http://127.0.0.1:1/mcp: connection refused; start the server"]);
    let headers = ["check", "--other-header", "a: b", "--", VARY, "weather"];
    run(&headers).refuses(&["--other-header needs a URL; only requests to a URL have headers"]);
    run(&["check", "--", "no-such-program-of-anybody"])
        .refuses(&["the program `no-such-program-of-anybody` was not found; install it"]);
    let repeats = "it repeats what it is sent, as `cat` does";
    run(&["check", "--", "cat"]).refuses(&[repeats]);
    run(&["inspect", "--", "cat"]).refuses(&[repeats]);
    run(&["check", "--", "sh", "-c", "echo it rains >&2; exit 3"])
        .refuses(&["exit status: 3", "its standard error ends with: it rains"]);
}

/// The address of a server that has only the transport of 2024-11-05: answers are events of the one stream.
fn older_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/sse", listener.local_addr().unwrap());
    let events = Arc::new(Mutex::new(None));
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let (mut socket, events) = (socket.unwrap(), Arc::clone(&events));
            std::thread::spawn(move || {
                let mut text = String::new();
                let mut bytes = [0; 8192];
                while !text.starts_with("GET ") && !text.ends_with('}') {
                    let count = socket.read(&mut bytes).unwrap();
                    text.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
                }
                let close = "Content-Length: 0\r\nConnection: close\r\n\r\n";
                if text.starts_with("GET ") {
                    let stream = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: endpoint\ndata: /messages\n\n";
                    socket.write_all(stream.as_bytes()).unwrap();
                    *events.lock().unwrap() = Some(socket);
                } else if text.starts_with("POST /sse ") {
                    let _ = write!(socket, "HTTP/1.1 405 Method Not Allowed\r\n{close}");
                } else {
                    let _ = write!(socket, "HTTP/1.1 202 Accepted\r\n{close}");
                    let (_, body) = text.split_once("\r\n\r\n").unwrap();
                    let request: Value = serde_json::from_str(body).unwrap();
                    let result = json!({
                        "protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"},
                    });
                    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
                    if let Some(stream) = events
                        .lock()
                        .unwrap()
                        .as_mut()
                        .filter(|_| !request["id"].is_null())
                    {
                        let _ = write!(stream, "event: message\ndata: {answer}\n\n");
                    }
                }
            });
        }
    });
    url
}

#[test]
fn a_server_of_the_older_transport_cannot_be_checked() {
    run(&["check", &older_server()]).refuses(&[
        "error: the server has only the transport of 2024-11-05 (SSE), which `vary check` does not speak; `vary inspect` \
         and `vary serve` do\n",
    ]);
}

#[test]
fn a_tool_that_cannot_be_called_is_exit_code_2() {
    for (options, error) in [
        (
            &["--tool", "snow"][..],
            "the server lists no tool `snow`; it lists ",
        ),
        (
            &["--tool", "get_weather", "--arguments", "[1]"],
            "the arguments of the tool `get_weather` are not a JSON object",
        ),
        (
            &["--tool", "a", "--tool", "b", "--arguments", "{}"],
            "--arguments is there 1 times for 2 times --tool",
        ),
        (
            &[
                "--tool",
                "get_weather",
                "--arguments",
                r#"{"location": "nowhere"}"#,
            ],
            "the tool `get_weather` answered the result ",
        ),
    ] {
        with_weather(&[&["check"], options].concat()).refuses(&[error]);
    }
    let client = ["check", "--client", "--tool", "a", "--", VARY, "tools"];
    run(&client).refuses(&["--tool names a tool of a server"]);
}

/// The report of `vary check --client` over HTTP, of a client that gets the URL as its last argument.
#[track_caller]
fn client_passes(options: &[&str], client: &[&str]) -> String {
    // The machine may be busy.
    let patient = ["check", "--client", "--time-limit", "240"];
    let text = run(&[&patient[..], options, &["--"], client].concat()).data(0);
    assert_contains(&text, &[" passes\n", "2025-11-25: ", "2026-07-28: "]);
    assert_lacks(&text, &["not checked"]);
    text
}

#[test]
fn our_own_commands_pass_as_clients_over_http_and_stdio() {
    let text = client_passes(&[], &[VARY, "tools"]);
    assert_lacks(&text, &["\nwarn "]);
    let text = client_passes(&["--stdio"], &[VARY, "tools", "--"]);
    assert_lacks(&text, &["\nwarn "]);
}

#[cfg(unix)]
#[test]
fn a_call_as_an_agent_passes_as_a_client_that_negotiates() {
    let call = format!("exec {VARY} call add_numbers a=5 b=3 --features agent,format=json \"$1\"");
    let text = client_passes(&["--expect", "negotiation"], &["sh", "-c", &call, "sh"]);
    assert_lacks(&text, &["the client does not declare content"]);
}

/// The gateway lists what its servers have, and sends them the selector that its configuration names.
#[cfg(unix)]
#[test]
fn the_gateway_passes_as_the_client_of_its_servers() {
    let path = file("check-client.yaml", "");
    let gateway = format!(
        "f={path}.$$; printf 'servers: {{mock: {{url: \"%s\", variant: compact}}}}' \"$1\" > $f; {VARY} tools $f; \
         code=$?; rm $f; exit $code"
    );
    client_passes(&["--expect", "variants"], &["sh", "-c", &gateway, "sh"]);
}

#[test]
fn a_client_that_does_not_connect_is_exit_code_2() {
    run(&["check", "--client", "--", VARY, "--version"]).refuses(&[
        "it sent nothing; the client ended with",
        "the command has to connect to the URL that is its last argument",
    ]);
    run(&["check", "--client"]).refuses(&["vary check --client -- python3 client.py"]);
    run(&["check", "--stdio", "--", VARY, "tools"]).refuses(&["--client"]);
    run(&["check", "--client", "--only", "SV-1/unique-ids", "--", VARY])
        .refuses(&["no check is called", "vary check --client --list"]);
    run(&["check", "--relay", "192.0.2.1:1"]).refuses(&["--relay: not a loopback address"]);
}

#[test]
fn the_checks_of_clients_are_listed() {
    let listed = run(&["check", "--client", "--list", "--only", "SV-16"]).data(0);
    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert_starts(&listed, "SV-16/client-lists-again ");
}
