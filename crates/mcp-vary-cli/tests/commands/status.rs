//! `vary serve --admin` and `vary status`

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::connect::Home;
use crate::program::{
    INITIALIZE, Run, Server, VARY, WEATHER, command, file, get, run, signal, sky,
};
use crate::text::{assert_contains, assert_ends, assert_lacks, assert_starts};

/// A configuration with a variant that goes some time, and one that should have gone.
pub(crate) fn deprecating(name: &str, top: &str) -> String {
    let text = sky(&format!("listen: 0
{top}
variants:
  standard: {{}}
  o1: {{description: d, deprecation: {{message: m, replacement: standard, removal-date: 9999-12-31}}}}
  o0: {{description: d, deprecation: {{message: m, removal-date: 2000-01-31}}}}
"));
    file(name, &text)
}

/// The address that a program said it answers its operator at.
#[track_caller]
fn admin(server: &Server) -> String {
    server.admin()
}

/// A client asks for the tools of a variant.
#[track_caller]
fn lists(server: &Server, variant: &str, client: &str) {
    let meta = serde_json::json!({
        "io.modelcontextprotocol/server-variant": variant,
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": client, "version": "7"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let list = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
    let head = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n";
    let answer = server.post_with(&list.to_string(), head);
    assert_contains(&answer, &["get_weather"]);
}

/// SV-25: who uses what is deprecated is warned about, counted, and shown by a running gateway.
#[cfg(unix)]
#[test]
fn a_running_gateway_says_how_it_stands() {
    let path = deprecating("status.yaml", "admin: 0");
    let server = Server::start(&["serve", &path]);
    let address = admin(&server);
    for _ in 0..2 {
        lists(&server, "o1", "old\u{1b}bot");
    }
    let shown = run(&["status", &address]).data(0);
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "sky up ",
        "o1 deprecated 2 603 use `standard` instead · ",
        "o0 deprecated 2 603 removal is ",
    ] {
        assert!(words.contains(part), "{part}: {shown}");
    }
    let (_, uses) = shown.split_once("deprecated use of").unwrap();
    insta::assert_snapshot!(format!("deprecated use of{uses}"), @r#"
    deprecated use of  by       version  requests
    o1                 old�bot  7               2
    "#);
    let json = run(&["status", "--json", &address]).json(0);
    assert_eq!(json["deprecatedUse"][0]["requests"], 2);
    assert_eq!(json["servers"][0]["tools"], 2);
    let (code, rest) = server.end();
    assert_eq!(code, Some(0), "{rest}");
    assert_eq!(
        rest.matches("a deprecated variant was used").count(),
        1,
        "{rest}"
    );
}

/// What a variant saves is counted by client and by day, and the days stay for the next gateway at the address.
#[cfg(unix)]
#[test]
fn the_tokens_that_were_saved_are_shown_also_after_a_restart() {
    let state = std::env::temp_dir().join(format!("vary-saved-{}", std::process::id()));
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let clients = free.local_addr().unwrap().to_string();
    drop(free);
    let variants = "variants:\n  standard: {}\n  compact: {}\n  few: {tools: [get_weather]}\n";
    let text = sky(&format!("listen: {clients}\n{variants}"));
    let path = file("status-saved.yaml", &text);
    let server = Server::with_state(&state, &["serve", &path]);
    lists(&server, "standard", "large");
    lists(&server, "few", "few");
    for _ in 0..2 {
        lists(&server, "compact", "small");
    }
    let savings = |json: &Value| json["savings"].clone();
    let first = savings(&Run::with_state(&state, &["status", "--json"]).json(0));
    let small = &first["clients"][0];
    assert_eq!(small["client"], "small");
    assert!(
        small["with"].as_u64() < small["without"].as_u64(),
        "{small}"
    );
    // A selection of tools alone saves nothing: the client may have had no others.
    for other in [1, 2].map(|at| &first["clients"][at]) {
        assert_eq!(other["without"], other["with"], "{other}");
    }
    let total = &first["total"];
    let saved = total["without"].as_u64().unwrap() - total["with"].as_u64().unwrap();
    assert_eq!(first["days"].as_object().unwrap().len(), 1);
    let shown = Run::with_state(&state, &["status"]).data(0);
    let line = format!("tokens saved: {saved} since the start, {saved} in the last 30 days\n");
    assert_contains(&shown, &[&line]);
    assert_eq!(server.end().0, Some(0));
    let again = Server::with_state(&state, &["serve", &path]);
    let second = savings(&Run::with_state(&state, &["status", "--json"]).json(0));
    assert_eq!(second["days"], first["days"]);
    assert_eq!(second["clients"], serde_json::json!([]));
    drop(again);
    std::fs::remove_dir_all(&state).unwrap();
}

#[test]
fn a_server_that_is_down_has_the_cause_without_its_address() {
    let path = file(
        "status-down.json",
        r#"{"mcpServers": {"gone": {"url": "http://127.0.0.1:1/private/mcp"}}}"#,
    );
    let server = Server::serve(&["--admin", "0", &path]);
    let shown = run(&["status", &admin(&server)]).data(1);
    let expected = "  server `gone` cannot be reached: connection refused; the log of `vary serve` says more; ";
    assert_contains(&shown, &[expected]);
    // The first line has the gateway's own.
    let (known, others) = shown.split_once('\n').unwrap();
    assert_starts(known, &server.url());
    assert_ends(known, "status-down.json");
    assert!(!others.contains("127.0.0.1"), "{shown}");
}

#[test]
fn a_program_that_ended_has_its_last_lines_without_secrets() {
    let script = "for n in 1 2 3 4 5; do echo step $n >&2; done; printf 'with %s \\033[2J\\n' $API_KEY >&2; exit 3";
    let old = serde_json::json!({"command": "sh", "args": ["-c", script], "env": {"API_KEY": "correct-horse"}});
    let weather = serde_json::json!({"command": VARY, "args": ["weather"]});
    let servers = serde_json::json!({"mcpServers": {"old": old, "weather": weather}});
    let path = file("status-stderr.json", &servers.to_string());
    let server = Server::serve(&["--admin", "0", &path]);
    let ask = || run(&["status", "--json", &admin(&server)]).json(1);
    let until = Instant::now() + Duration::from_secs(20);
    let mut status = ask();
    while status["servers"][0]["state"] != "down" {
        assert!(Instant::now() < until, "the server is not down: {status}");
        std::thread::sleep(Duration::from_millis(50));
        status = ask();
    }
    let expected = [
        "step 2",
        "step 3",
        "step 4",
        "step 5",
        "with *** \\u{1b}[2J",
    ];
    assert_eq!(status["servers"][0]["stderr"], serde_json::json!(expected));
    let shown = run(&["status", &admin(&server)]).data(1);
    assert_contains(&shown, &["\n  stderr: step 5\n"]);
    assert_lacks(&shown, &["correct-horse", "step 1"]);
}

/// SV-25: who uses what is deprecated is shown beside the days that are left, for what clients are not told of, too.
#[test]
fn an_inspected_gateway_says_who_uses_what_is_deprecated() {
    let many =
        "variants:\n  o3: {description: d}\n  o4: {description: d}\n  o5: {description: d}\n";
    let path = deprecating("inspect-used.yaml", "admin: 0");
    let text = std::fs::read_to_string(path).unwrap();
    let path = file("inspect-used.yaml", &text.replace("variants:\n", many));
    let server = Server::start(&["serve", &path]);
    let (address, url) = (admin(&server), server.url());
    lists(&server, "o0", "old bot");
    let shown = run(&["inspect", "--admin", &address, &url]).data(0);
    let (variants, uses) = shown.split_once("\ndeprecated use of").unwrap();
    assert!(
        variants.contains("o0        deprecated · not advertised\n"),
        "{shown}"
    );
    assert!(variants.contains("removal is "), "{shown}");
    assert!(!variants.contains("and more"), "{shown}");
    insta::assert_snapshot!(format!("deprecated use of{uses}"), @r"
    deprecated use of  by       version  requests
    o0                 old bot  7               1
    ");
    let json = run(&["inspect", "--json", "--admin", &address, &url]).json(0);
    let mut uses = json["deprecatedUse"].as_array().unwrap().iter();
    assert!(
        uses.any(|used| used["variant"] == "o0" && used["client"]["name"] == "old bot"),
        "{json}"
    );
    run(&["inspect", "--admin", "1", &url]).refuses(&["no status from 127.0.0.1:1: "]);
}

/// A gateway on standard streams answers its operator, too.
#[test]
fn where_no_gateway_answers_is_said() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    // Other tests run gateways of this user.
    let other_user = |address: &str| {
        let mut other = command(&["status", address]);
        Run::of(other.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR")))
    };
    other_user(&port).refuses(&[
        &format!("no status from 127.0.0.1:{port}: connection refused; "),
        "`vary serve FILE` starts one; that of another user is reached by the address of its `--admin`\n",
    ]);
    let server = Server::with_weather(&[]);
    // The gateway of another user: this one's is found by the address for clients, too.
    other_user(&server.address.to_string())
        .refuses(&[
            "it answers 404 Not Found: this is the address for clients of a running Vary, or another program; the operator's \
             address has another port, which `vary serve` prints; then: vary status ADDRESS\n",
        ]);
    run(&["status", "here"]).refuses(&["`here` is not an address; write HOST:PORT"]);
    run(&["status", "99999"]).refuses(&["99999: ports end at 65535\n"]);
    let admin = ["--listen", "0", "--admin", "0.0.0.0:0"];
    let served = run(&[&["serve"], &admin[..], &WEATHER].concat());
    served.refuses(&["can be reached from other machines"]);
}

/// The address of a gateway that answers one request for its status with a megabyte.
fn large_status() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut head = BufReader::new(client.try_clone().unwrap()).lines();
        assert!(head.any(|line| line.unwrap().is_empty()));
        let padding = "x".repeat(1 << 20);
        let body = serde_json::json!({"servers": [], "experiments": [], "padding": padding});
        let (body, length) = (body.to_string(), body.to_string().len());
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        // A client that gives up early fails the test by its exit code.
        let _ = client.write_all(format!("{head}{body}").as_bytes());
    });
    address
}

#[test]
fn a_status_of_any_size_is_read_to_its_end() {
    let json = run(&["status", "--json", &large_status()]).json(0);
    assert_eq!(json["padding"].as_str().unwrap().len(), 1 << 20);
    run(&["experiment", "--json", &large_status()]).data(0);
}

#[cfg(unix)]
#[test]
fn a_status_that_is_watched_is_shown_until_a_signal() {
    let path = deprecating("status-watch.yaml", "admin: 0");
    let server = Server::start(&["serve", &path]);
    let address = admin(&server);
    let mut watch = command(&["status", "--watch=1", "--json", &address])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut is_up = || {
        let status: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(status["servers"][0]["state"], "up");
    };
    is_up();
    is_up();
    // A gateway that is started again is found again.
    server.end();
    let mut notices = BufReader::new(watch.stderr.take().unwrap()).lines();
    let notice = notices.next().unwrap().unwrap();
    assert_contains(
        &notice,
        &[
            "no status from ",
            "connection refused",
            "; Ctrl-C ends the wait for it",
        ],
    );
    let _again = Server::start(&["serve", "--admin", &address, &path]);
    is_up();
    signal("INT", watch.id());
    assert_eq!(watch.wait().unwrap().code(), Some(0));
    run(&["status", "--watch=0", "1"]).refuses(&["0 is not in 1..=3600"]);
}

/// What is watched are the values that a scrape has at that moment.
#[cfg(unix)]
#[test]
fn a_status_that_is_watched_shows_the_numbers_of_the_metrics() {
    let server = Server::with_weather(&["--admin", "0", "--probes", "0"]);
    let metrics = server.printed("metrics: http://");
    let metrics = metrics.strip_suffix("/metrics").unwrap();
    for _ in 0..3 {
        server.post(INITIALIZE);
    }
    let mut watch = command(&["status", "--watch=1", &admin(&server)])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let rows = lines
        .map(Result::unwrap)
        .skip_while(|line| !line.starts_with("metric "))
        .skip(1)
        .take(11);
    let mut rows: Vec<(String, String)> = rows
        .map(|row| {
            let (name, value) = row.split_once(' ').unwrap();
            (name.to_owned(), value.trim().to_owned())
        })
        .collect();
    signal("INT", watch.id());
    assert_eq!(watch.wait().unwrap().code(), Some(0));
    assert!(
        rows.contains(&("vary_sessions".to_owned(), "3".to_owned())),
        "{rows:?}"
    );
    assert!(rows.contains(&("vary_result_store_bytes".to_owned(), "0".to_owned())));
    // The connection that asks is a task, too.
    rows.retain(|(name, _)| name != "vary_tasks");
    let scraped = get(metrics, "/metrics");
    for (name, value) in rows {
        // Some are shown with their limit.
        let now = value.split_once('/').map_or(&*value, |(now, _)| now);
        let line = format!("\n{name} {now}.0\n");
        assert_contains(&scraped, &[&line]);
    }
}

/// SV-22: a rule under `clients` can be tried without the client that it is for, and the status shows what came of it.
#[test]
fn another_client_is_tried_by_its_name_and_shown_with_its_variant() {
    let text = sky("admin: 0
listen: 0
clients: [{name: 'cursor*', version: '2*', variant: brief}]
variants:
  standard: {}
  brief: {description: d, tools: [get_weather], hints: {contextSize: compact}}
");
    let path = file("status-clients.yaml", &text);
    let named = ["--client-name", "cursor-vscode", "--client-version", "2.1"];
    let note = "note: cursor-vscode gets brief: `clients[0]` gives `brief`\n";
    run(&[&["tools"], &named[..], &[&path]].concat()).prints(0, note);
    let hinted = [
        "inspect",
        "--client-name",
        "x",
        "--hints",
        "contextSize=compact",
        &path,
    ];
    let none = "no rule of `clients` that has a variant matches, and `variant` is not set";
    let note = format!(
        "note: x gets brief: {none}; `brief` ranks first, by the client's hints if it has any\n"
    );
    run(&hinted).prints(0, &note);
    let shown = |args: &[&str]| run(args).exited(0).stdout;
    for target in [path.clone(), Server::start(&["serve", &path]).url()] {
        let tools = shown(&[&["tools"], &named[..], &[&target]].concat());
        assert_starts(&tools, "variant brief: 1 tool, ");
        let tools = shown(&["tools", "--client-name", "cursor-vscode", &target]);
        assert_starts(&tools, "variant standard: 2 tools, ");
        let inspected = shown(&[&["inspect", "--json"], &named[..], &[&target]].concat());
        let inspected: Value = serde_json::from_str(&inspected).unwrap();
        assert_eq!(inspected["variants"][0]["id"], "brief");
    }
    let server = Server::start(&["serve", &path]);
    let call = ["call", "get_weather", "location=Bern"];
    shown(&[&call[..], &named, &[&server.url()]].concat());
    let status = shown(&["status", &admin(&server)]);
    let rows = status.lines().map(|line| line.split_whitespace().collect());
    let rows: Vec<Vec<_>> = rows.collect();
    let heading = [
        "client", "version", "variant", "reason", "requests", "calls",
    ];
    assert!(rows.contains(&heading.into()), "{status}");
    let row = rows
        .iter()
        .find(|row| row.first() == Some(&"cursor-vscode"));
    let row = row.unwrap_or_else(|| panic!("{status}"));
    assert_eq!(
        row[1..5],
        ["2.1", "brief", "rule", "clients[0]"],
        "{status}"
    );
    assert_eq!(row[6], "1", "{status}");
    let version = run(&["tools", "--client-version", "2", &path]).exited(2);
    assert_contains(&version.stderr, &["--client-name <NAME>"]);
}

/// Calls, errors and their times are beside each server.
#[test]
fn a_running_gateway_shows_the_calls_of_each_server() {
    let server = Server::with_weather(&["--admin", "0"]);
    for location in ["location=Bern", "wrong=1", "location=Bern"] {
        let _ = run(&["call", "get_weather", location, &server.url()]);
    }
    let shown = run(&["status", &admin(&server)]).data(0);
    let row = shown
        .lines()
        .skip_while(|line| !line.starts_with("server "));
    let rows = row.map(|line| line.split_whitespace().collect::<Vec<_>>());
    let rows: Vec<_> = rows.take(2).collect();
    let (heading, row) = (&rows[0], rows[1].join(" "));
    assert!(
        heading.ends_with(&["calls", "errors", "p50", "p95"]),
        "{shown}"
    );
    assert!(row.starts_with("vary up "), "{shown}");
    assert!(row.contains(" 2 3 1 ") && row.ends_with(" ms"), "{shown}");
    let json = run(&["status", "--json", &admin(&server)]).json(0);
    let calls = &json["servers"][0]["calls"];
    assert_eq!((&calls["count"], &calls["errors"]), (&3.into(), &1.into()));
    assert!(calls["p50"].as_f64().unwrap() <= calls["p95"].as_f64().unwrap());
}

/// Other commands find a gateway by its socket in the state directory.
#[cfg(unix)]
#[test]
fn a_gateway_that_status_cannot_find_says_so_at_its_start() {
    let home = Home::new("unfound");
    let args = [&["serve", "--listen", "0"][..], &WEATHER].concat();
    let without = |more: &[&str]| {
        let mut command = home.command_of(&[&args[..3], more, &args[3..]].concat());
        for name in ["HOME", "XDG_STATE_HOME"] {
            command.env_remove(name);
        }
        command
    };
    let warning = "warning: `vary status` and `vary open` will not find this gateway: ";
    let mut server = Server::of(&mut without(&[]));
    let unset = format!("{warning}HOME is not set; set it, or add `--admin 8801`\n");
    assert_contains(&server.said, &[&unset]);
    assert_lacks(&server.says("Ctrl-C ends it"), &["vary open"]);
    let file = home.write("file", "");
    let server = Server::of(without(&[]).env("XDG_STATE_HOME", &file));
    let shown = file.display();
    let denied = format!("{warning}its socket cannot be created in {shown}/vary/gateways: ");
    assert_contains(&server.said, &[&denied]);
    let server = Server::of(&mut without(&["--admin", "0"]));
    assert_lacks(&server.said, &["will not find"]);
}
