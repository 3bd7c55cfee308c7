//! Servers that hang while they start, beside one that is ready at once.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::{INITIALIZE, Server, VARY, command, file, run, sky};
use crate::text::{assert_contains, assert_ends, assert_lacks, assert_starts};

/// A client's file with a server that hangs for ever, then one that is ready at once.
fn hanging(name: &str) -> String {
    let text = json!({"mcpServers": {
        "hang": {"command": "sleep", "args": ["1000"]},
        "sky": {"command": VARY, "args": ["weather"]},
    }});
    file(name, &text.to_string())
}

/// How long some clients wait for the first answer; enough for a slow machine, and less than what a hanging server took.
const PATIENCE: Duration = Duration::from_secs(10);

const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

#[test]
fn a_server_that_hangs_holds_up_no_client_over_http() {
    let file = hanging("hang-http.json");
    let began = Instant::now();
    let server = Server::serve(&["--admin", "0", &file]);
    let answer = server.post(INITIALIZE);
    assert_contains(&answer, &[r#""tools":{"listChanged":true}"#]);
    let head = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n";
    let list = server.post_with(LIST, head);
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    assert_contains(&list, &["sky_get_weather"]);
    let expected = "hang  still starting; clients get its tools when it is ready";
    assert_contains(&server.said, &[expected]);
}

#[test]
fn a_server_that_hangs_holds_up_no_client_on_standard_streams() {
    let file = hanging("hang-stdio.json");
    let began = Instant::now();
    let mut child = command(&["serve", "--stdio", &file])
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

/// The scripts of servers.
const SCRIPTS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../mcp-vary-gateway/tests/servers"
);

#[test]
fn a_program_that_takes_a_port_is_started_once_for_the_client_on_standard_streams() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    let script = format!("{SCRIPTS}/exclusive.py");
    let mut child = command(&["serve", "--stdio", "--", "python3", &script, &port])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let capabilities = json!({"roots": {}, "elicitation": {}, "sampling": {}});
    let info = json!({"name": "c", "version": "1"});
    let begin =
        json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info});
    let messages = [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": begin}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "state"}}),
    ];
    let mut input = child.stdin.take().unwrap();
    for message in messages {
        writeln!(input, "{message}").unwrap();
    }
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut answers = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let answer = answers.find(|it| it["id"] == 1 && it.get("method").is_none());
    assert_eq!(answer.unwrap()["result"]["client"], capabilities);
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// What answers `body` within the time that some clients wait.
fn answer_in_time(server: &Server, body: &Value, headers: &str) -> Option<String> {
    let body = body.to_string();
    let mut socket = std::net::TcpStream::connect(server.address).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(2900)))
        .unwrap();
    write!(
        socket,
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    )
    .unwrap();
    let mut response = String::new();
    socket.read_to_string(&mut response).ok()?;
    Some(response)
}

/// The process that its capabilities need takes 8 s again.
#[test]
fn a_client_that_waits_three_seconds_connects_beside_a_server_that_needs_eight() {
    let server = |name: &str, seconds: u32| {
        format!(
            "  {name}: {{command: python3, args: [{SCRIPTS}/who.py, /dev/null, '{seconds}', '0']}}\n"
        )
    };
    let servers = [
        server("slow", 8),
        server("a", 0),
        server("b", 0),
        server("c", 0),
    ];
    let file = file(
        "three-seconds.yaml",
        &format!("servers:\n{}", servers.concat()),
    );
    let server = Server::serve(&[&file]);
    let capabilities = json!({"extensions": {"io.modelcontextprotocol/ui": {}}});
    let info = json!({"name": "c", "version": "1"});
    let begin =
        json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info});
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": begin});
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    let discover =
        json!({"jsonrpc": "2.0", "id": 0, "method": "server/discover", "params": {"_meta": meta}});
    let head = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: server/discover\r\n";
    // At the start, and when the servers are up, so that there are lists to wait for.
    for _ in 0..2 {
        for (message, headers) in [(&initialize, ""), (&discover, head)] {
            // A slow machine may need a second try.
            let answer = (0..5).find_map(|_| answer_in_time(&server, message, headers));
            assert_contains(
                &answer.unwrap_or_default(),
                &["HTTP/1.1 200", r#""capabilities":"#],
            );
        }
        while !server.tools().contains(&"slow_who".to_owned()) {
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// A process that is killed, whatever the test finds.
pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A gateway with a status, and the lines that it writes to standard error.
pub(crate) fn started(file: &str) -> (Killed, impl Iterator<Item = String> + use<>) {
    let mut child = command(&["serve", "--listen", "0", "--admin", "0", file])
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
    let (_child, mut said) = started(&file);
    let first = said.next().unwrap();
    assert_starts(&first, "starting `hang` at http://127.0.0.1:");
    let address = said.find_map(|line| Some(line.strip_prefix("status: vary status ")?.to_owned()));
    let shown = run(&["status", &address.unwrap()]).data(1);
    assert_contains(&shown, &["hang    starting"]);
}

#[test]
fn a_call_waits_only_for_the_server_that_it_needs() {
    let file = hanging("hang-call.json");
    let began = Instant::now();
    let call = ["call", "sky_get_weather", r#"{"location":"Bern"}"#, &file];
    let said = run(&call).data(0);
    assert_contains(&said, &["Bern"]);
    assert!(
        began.elapsed() < Duration::from_secs(40),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn a_misspelt_tool_is_named_although_another_server_is_starting() {
    let text = format!(
        "servers:\n  sky: {{command: {VARY:?}, args: [weather]}}\n  hang: {{command: sleep, args: ['1000']}}\nstart-wait: 100ms\n"
    );
    let path = file("hang-misspelt.yaml", &text);
    let server = Server::serve(&[&path]);
    // It is ready when the first call has been answered.
    while !server.tools().contains(&"sky_get_weather".to_owned()) {}
    let called = run(&["call", "sky_get_wether", &server.url()]).exited(1);
    assert_contains(&called.stdout, &["server `hang` is still starting"]);
    assert_eq!(
        called.stderr,
        "tip: if you meant `sky_get_weather`, that is listed already\n"
    );
}

#[cfg(unix)]
#[test]
fn an_interrupted_start_says_who_was_ready() {
    let text = format!(
        "servers:\n  sky: {{command: {VARY:?}, args: [weather]}}\n  hang: {{command: sleep, args: ['1000']}}\nstart-wait: 1h\n"
    );
    let file = file("hang-interrupted.yaml", &text);
    let (mut child, mut said) = started(&file);
    let address = said.find_map(|line| Some(line.strip_prefix("status: vary status ")?.to_owned()));
    let address = address.unwrap();
    let is_up = || run(&["status", &address]).stdout.contains("sky     up");
    assert!((0..200).any(|_| is_up()));
    crate::program::signal("INT", child.0.id());
    let last: Vec<_> = said.collect();
    let (last, before) = last.split_last().unwrap();
    assert_eq!(
        last,
        "error: interrupted before `hang` was ready; ready: `sky`"
    );
    // Nothing of the start outlives it.
    let late = before.iter().find(|line| line.contains("still running"));
    assert_eq!(late, None);
    assert_eq!(child.0.wait().unwrap().code(), Some(2));
}

#[test]
fn the_address_is_printed_at_once_and_each_server_when_it_is_ready() {
    let text = format!(
        "servers:\n  hang: {{command: sleep, args: ['1000']}}\n  sky: {{command: {VARY:?}, args: [weather]}}\nstart-wait: 1h\n"
    );
    let file = file("hang-lines.yaml", &text);
    let mut child = command(&["serve", "--listen", "0", &file])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap);
    let first = lines.next().unwrap();
    assert_starts(&first, "starting 2 servers at http://127.0.0.1:");
    // The wait for the servers lasts an hour: what can be read was printed before its end.
    let ready = lines.find(|line| line.starts_with("ready: ")).unwrap();
    assert_starts(&ready, "ready: `sky` after ");
    assert_ends(&ready, "s (1 of 2)");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_addresses_of_all_variants_are_printed_with_their_tools() {
    let text = sky("variants: {standard: {}, one: {tools: [get_weather]}}\n");
    let path = file("start-variants.yaml", &text);
    let mut server = Server::serve(&[&path]);
    let said = server.says("Ctrl-C ends it");
    let url = server.url();
    let expected = format!(
        "variants, each with an address for clients that cannot choose:\n\
         \x20 standard  2 tools  {url}/v/standard\n\
         \x20 one       1 tool   {url}/v/one\n"
    );
    assert_contains(&said, &[&expected]);
    assert_lacks(&said, &["uses at most"]);
}

/// Figures that are not final are printed as such, and again when the last server is ready.
#[cfg(unix)]
#[test]
fn while_servers_start_the_numbers_of_tools_are_not_final() {
    let flag = file("start-late.flag", "");
    std::fs::remove_file(&flag).unwrap();
    let slow = format!("while ! test -e {flag:?}; do sleep 0.1; done; exec {VARY:?} weather");
    let text = json!({
        "servers": {
            "sky": {"command": VARY, "args": ["weather"]},
            "slow": {"command": "sh", "args": ["-c", slow]},
        },
        "variants": {"standard": {}, "late": {"tools": ["slow_*"]}},
        "start-wait": "6s",
    });
    let path = file("start-late.json", &text.to_string());
    let mut server = Server::serve(&[&path]);
    let said = server.says("Ctrl-C ends it");
    let url = server.url();
    let home = crate::connect::Home::new("slow-one");
    let connected = home.connect(&["cursor", &url, "--write"]).stderr;
    let expected = "connected: 2 tools so far, `sky_get_weather` for one; `slow` is still starting, and Cursor gets its \
         tools when it is ready\n";
    assert_contains(&connected, &[expected]);
    let note = "note: `slow` is still starting, so the list of tools is not complete\n";
    for command in ["tools", "inspect"] {
        let listed = run(&[command, &url]).stderr;
        assert!(listed.contains(note), "{command}: {listed}");
    }
    assert_contains(
        &said,
        &[
            "  standard  2 tools so far  http",
            "  late      starting        http",
        ],
    );
    assert_lacks(&said, &["0 tools"]);
    std::fs::write(&flag, "").unwrap();
    let said = server.says("/v/late");
    assert_contains(
        &said,
        &[
            "`slow` is ready after ",
            "  standard  4 tools  http",
            "  late      2 tools  http",
        ],
    );
}

#[cfg(unix)]
#[test]
fn a_server_that_is_down_is_named_wherever_its_tools_are_missing() {
    let down = "hang: {command: sh, args: ['-c', 'exit 3']}";
    let sky = format!("sky: {{command: {VARY:?}, args: [weather]}}");
    let home = crate::connect::Home::new("down-one");
    for (name, servers, count) in [
        ("one-down.yaml", format!("{{{sky}, {down}}}"), "2 tools"),
        ("all-down.yaml", format!("{{{down}}}"), "0 tools"),
    ] {
        let path = file(name, &format!("servers: {servers}\n"));
        let server = Server::serve(&[&path]);
        let url = server.url();
        for command in ["tools", "inspect"] {
            let listed = run(&[command, &url]);
            let note = "note: `hang` is down, so the list of tools is not complete; `vary status` says why\n";
            assert!(listed.stderr.contains(note), "{command}: {}", listed.stderr);
        }
        assert_contains(&run(&["tools", &url]).stdout, &[count]);
        let connected = home.connect(&["cursor", &url, "--write"]);
        let (code, said) = match count {
            "2 tools" => (0, "2 tools, `sky_get_weather` for one; `hang` is down"),
            _ => (1, "lists no tools: `hang` is down; `vary status` says why"),
        };
        assert_eq!(connected.code, Some(code), "{}", connected.stderr);
        assert_contains(&connected.stderr, &[said]);
        home.connect(&["cursor", "--remove"]);
    }
}

/// A configuration whose server `sky` does something else until the returned file, `FLAG`, exists.
#[cfg(unix)]
fn until_there(name: &str, otherwise: &str, top: &str) -> (String, String) {
    let flag = file(&format!("{name}.flag"), "");
    std::fs::remove_file(&flag).unwrap();
    let otherwise = otherwise.replace("FLAG", &flag);
    let script = format!("test -e {flag:?} || {otherwise}; exec {VARY:?} weather");
    let server = json!({"command": "sh", "args": ["-c", script]});
    let text = format!("servers: {{sky: {server}}}\n{top}\n");
    (file(name, &text), flag)
}

#[cfg(unix)]
#[test]
fn the_only_server_may_be_down_at_the_start_unless_all_are_required() {
    let (path, flag) = until_there("start-down.yaml", "{ echo no luck >&2; exit 3; }", "");
    let required = run(&["serve", "--listen", "0", "--require-all", &path]);
    required.refuses(&["server `sky` ended (exit status: 3); last stderr lines: no luck"]);
    let two = file(
        "start-two-down.yaml",
        "servers: {a: {command: no-a}, b: {command: no-b}}",
    );
    for command in [
        &["serve", "--listen", "0", "--require-all", &two][..],
        &["tools", &two],
    ] {
        run(command).refuses(&[
            "error: 2 servers are down\nserver `a`: the program `no-a` was not found; install it",
            "\nserver `b`: the program `no-b` was not found",
        ]);
    }
    let mut server = Server::serve(&[&path]);
    let down =
        "`sky` is down, and Vary keeps trying: ended (exit status: 3); last stderr lines: no luck";
    assert_contains(&server.said, &[down]);
    std::fs::write(&flag, "").unwrap();
    let said = server.says("`sky` is ready after ");
    assert_contains(&said, &[", 2 tools"]);
    let command = ["serve", "--listen", "0", "--", "no-such-program"];
    run(&command).refuses(&["the program `no-such-program` was not found"]);
}

/// Package runners download first.
#[cfg(unix)]
#[test]
fn a_server_that_needs_six_seconds_is_inspected() {
    let slow = format!("sleep 6; exec {VARY:?} weather");
    let shown = run(&["inspect", "--summary", "--", "sh", "-c", &slow]);
    assert_eq!(
        (shown.code, &*shown.stderr),
        (Some(0), "waiting for `sh` ... 5 s\n")
    );
    assert_contains(&shown.stdout, &["standard"]);
}

#[cfg(unix)]
#[test]
fn a_client_is_connected_once_the_servers_list_their_tools() {
    let wait = "while ! test -e FLAG; do sleep 0.1; done";
    let (path, flag) = until_there("start-connect.yaml", wait, "start-wait: 100ms");
    let server = Server::serve(&[&path]);
    let home = crate::connect::Home::new("while-starting");
    let mut connect = home.command(&["claude-code", &server.url(), "--write"]);
    let mut child = Killed(connect.stderr(Stdio::piped()).spawn().unwrap());
    let lines = BufReader::new(child.0.stderr.take().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap);
    let waits = "waiting for `sky` ... 5 s, 60 at most";
    assert!(lines.any(|line| line == waits));
    std::fs::write(&flag, "").unwrap();
    let connected = lines.next().unwrap();
    assert_eq!(connected, "connected: 2 tools, `get_weather` for one");
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
}

#[cfg(unix)]
#[test]
fn a_server_that_hangs_is_reported_with_its_last_line() {
    let script = "echo downloading 3 of 9 >&2; exec sleep 1000";
    let mut inspect = command(&["inspect", "--", "sh", "-c", script]);
    let mut child = Killed(inspect.stderr(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(child.0.stderr.take().unwrap()).lines();
    assert_eq!(
        lines.next().unwrap().unwrap(),
        "waiting for `sh` ... 5 s; its last line: downloading 3 of 9"
    );
}

/// A server that lists `$0` tools.
#[cfg(unix)]
const MANY_TOOLS: &str = r#"tools=; at=0
    while test $at -lt "$0"; do tools="$tools,{\"name\":\"tool_$at\",\"inputSchema\":{\"type\":\"object\"}}"; at=$((at + 1)); done
    while read -r line; do
        id=$(printf '%s' "$line" | sed -n 's/.*"id":\([^,}]*\).*/\1/p')
        case $line in
            *'"initialize"'*) say='"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}';;
            *tools/list*) say="\"result\":{\"tools\":[${tools#,}]}";;
            *) say='"error":{"code":-32601,"message":"Method not found"}';;
        esac
        test -z "$id" || printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$say"
    done"#;

/// Clients forward all of these definitions, so `sent to the client` would repeat the sum.
#[cfg(unix)]
#[test]
fn a_list_that_is_forwarded_whole_is_counted_once() {
    let shown = run(&["inspect", "--summary", "--", "sh", "-c", MANY_TOOLS, "2"]).data(0);
    assert_contains(&shown, &["\na model reads "]);
    assert_lacks(&shown, &["sent to the client"]);
}

#[cfg(unix)]
#[test]
fn a_tool_whose_name_models_refuse_is_noted() {
    let script = MANY_TOOLS.replace("tool_", "prévoir ");
    let advice = "they take at most 64 ASCII letters, digits, `_` and `-`; give the tool another `name` in `overrides` of a \
                  variant\n";
    let text = json!({"servers": {"many": {"command": "sh", "args": ["-c", script.replace("${", "$${"), "1"]}}});
    let path = file("start-names.json", &text.to_string());
    let checked = run(&["config", "check", &path]);
    let note = format!("start-names.json: many models refuse the names `prévoir 0`: {advice}");
    assert_ends(&checked.stderr, &note);
    assert_eq!(checked.code, Some(0));
}

#[cfg(unix)]
#[test]
fn a_list_that_is_too_long_for_a_client_is_noted_with_the_variant_that_fits() {
    let text = json!({
        "servers": {"many": {"command": "sh", "args": ["-c", MANY_TOOLS.replace("${", "$${"), "41"]}},
        "variants": {"standard": {}, "few": {"tools": ["tool_1*"]}},
    });
    let path = file("start-limits.json", &text.to_string());
    let mut server = Server::serve(&[&path]);
    let said = server.says("Ctrl-C ends it");
    let expected = format!(
        "note: Cursor uses at most 40 tools, and `standard` has 41; connect it to {}/v/few (11 tools)\n",
        server.url()
    );
    assert_contains(&said, &[&expected]);
    assert_lacks(&said, &["VS Code"]);
    let connected =
        crate::connect::Home::new("limits").connect(&["cursor", &server.url(), "--write"]);
    let expected = "connected: 41 tools, `tool_0` for one\n\
                    note: Cursor uses at most 40 of them: repeat the command with `--variant NAME`, of a variant with fewer `tools`\n";
    assert_contains(&connected.stderr, &[expected]);
}

/// A server with an extension, which it declares after `$0` seconds.
const LEDGER: &str = r#"sleep "$0"
    while read -r line; do
        id=$(printf '%s' "$line" | sed -n 's/.*"id":\([^,}]*\).*/\1/p')
        case $line in
            *'"initialize"'*) say='"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"extensions":{"com.example/ledger":{}}},"serverInfo":{"name":"ledger","version":"1"}}';;
            *'"tools/list"'*) say='"result":{"tools":[]}';;
            *) say='"error":{"code":-32601,"message":"Method not found"}';;
        esac
        test -z "$id" || printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$say"
    done"#;

/// EXT-8: an extension that two servers declare is named with the key that decides, also when the second one comes late.
#[test]
fn an_extension_of_two_servers_is_named_whenever_they_come() {
    let note = "note: clients are not offered the extension `com.example/ledger`, since several servers could answer it: \
                `one`, `two`. Choose one, such as `extensions: {com.example/ledger: one}`";
    let configuration = |name: &str, seconds: &str| {
        let server = |seconds: &str| json!({"command": "sh", "args": ["-c", LEDGER, seconds]});
        let servers = json!({"one": server("0"), "two": server(seconds)});
        file(
            name,
            &json!({"servers": servers, "start-wait": "1s"}).to_string(),
        )
    };
    let checked = run(&["config", "check", &configuration("ledgers.json", "0")]).data(0);
    assert_contains(&checked, &[note]);
    let (_child, mut said) = started(&configuration("late-ledger.json", "4"));
    let line = said.find(|line| line.contains("com.example/ledger"));
    assert_contains(&line.unwrap(), &[note]);
}
