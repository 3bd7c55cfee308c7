//! A gateway that is served by itself, in every way in which a client's file leads there, and gateways in a chain.

use std::net::TcpListener;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::connect::Home;
use crate::program::{INITIALIZE, Server, VARY, command, file, run};
use crate::text::{assert_contains, assert_ends, assert_lacks, assert_starts};

fn weather() -> Value {
    json!({"command": VARY, "args": ["weather"]})
}

/// An entry that starts Vary before the servers of a file.
fn vary(file: &str) -> Value {
    json!({"command": VARY, "args": ["serve", "--stdio", file]})
}

fn path(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    path.to_str().unwrap().to_owned()
}

fn write(name: &str, servers: &Value) {
    file(name, &json!({"mcpServers": servers}).to_string());
}

/// A free port. The system does not hand it out again so soon.
fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().port()
}

const SKY: [&str; 2] = ["sky_get_weather", "sky_get_forecast"];

/// Serves the file; only the weather server is listed, and it is said once what the other entry is.
#[track_caller]
fn leaves_itself_out(name: &str) {
    let server = Server::serve(&[&path(name)]);
    assert_eq!(server.tools(), SKY, "{}", server.said);
    let (code, stderr) = server.end_with_said();
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(
        stderr.matches("is this gateway itself").count(),
        1,
        "{stderr}"
    );
    let line = "  self  down: is this gateway itself, or leads back to it";
    assert_contains(&stderr, &[line]);
}

#[test]
fn an_entry_that_starts_the_gateway_itself_is_left_out() {
    let file = path("circle-command.json");
    write(
        "circle-command.json",
        &json!({"self": vary(&file), "sky": weather()}),
    );
    leaves_itself_out("circle-command.json");
}

#[test]
fn a_script_that_starts_the_gateway_itself_is_started_once() {
    let (file, starts) = (path("circle-script.json"), path("circle-script-starts"));
    let _ = std::fs::remove_file(&starts);
    let script = format!("echo started >> {starts}; {VARY} serve --stdio {file}");
    let entry = json!({"command": "sh", "args": ["-c", script]});
    write(
        "circle-script.json",
        &json!({"self": entry, "sky": weather()}),
    );
    leaves_itself_out("circle-script.json");
    let starts = std::fs::read_to_string(starts).unwrap();
    // Once more with the other handshake, where it ended at the first question.
    assert!(starts.lines().count() <= 2, "{starts}");
}

#[cfg(unix)]
#[test]
fn a_link_to_the_served_file_is_the_same_file() {
    let (file, link) = (path("circle-link.json"), path("circle-linked.json"));
    let _ = std::fs::remove_file(&link);
    write(
        "circle-link.json",
        &json!({"self": vary(&link), "sky": weather()}),
    );
    std::os::unix::fs::symlink(file, link).unwrap();
    leaves_itself_out("circle-link.json");
}

#[test]
fn the_refusal_is_one_line_that_says_what_to_do() {
    let file = path("circle-refusal.json");
    write("circle-refusal.json", &json!({"self": vary(&file)}));
    let served = run(&["serve", "--listen", "0", &file]);
    served.refuses(&["server `self` is this gateway itself", "take its entry out"]);
    let link = "vary-0123456789abcdef-0123456789abcdef";
    let chain = [link; 4].join(",");
    let mut deep = command(&["serve", "--stdio", "--", VARY, "weather"]);
    let deep = crate::program::Run::of(deep.env("VARY_CHAIN", chain)).exited(2);
    let line = "error: this gateway would serve itself: 5 are behind each other, and at most 4 may be; take Vary's own \
                entry out of the file that is served, or serve another file\n";
    assert_eq!(deep.stderr, line);
}

#[test]
fn the_gateways_own_address_is_left_out() {
    let port = free_port();
    let entry = json!({"type": "http", "url": format!("http://127.0.0.1:{port}/mcp")});
    write("circle-url.json", &json!({"self": entry, "sky": weather()}));
    let listen = port.to_string();
    let file = path("circle-url.json");
    let server = Server::start(&["serve", "--listen", &listen, &file]);
    // One server is left, whose tools have no prefix.
    assert_eq!(
        server.tools(),
        ["get_weather", "get_forecast"],
        "{}",
        server.said
    );
    let line = "`mcpServers.self` is Vary itself, and is not served; leave it in the file: the client uses it\n";
    assert_contains(&server.said, &[line]);
    // As a gateway sees it that is refused.
    let id = "0123456789abcdef";
    let via = format!(
        "Via: 1.1 vary-{id}-{id}, 1.1 vary-{id}-{id}, 1.1 vary-{id}-{id}, 1.1 vary-{id}-{id}\r\n"
    );
    let refused = server.post_with(INITIALIZE, &via);
    assert_starts(&refused, "HTTP/1.1 508 ");
    assert_contains(&refused, &[r#""code":-32600"#]);
    let via = format!("Via: 1.0 fred, 1.1 vary-{id}-{id}\r\n");
    let passed = server.post_with(INITIALIZE, &via).to_lowercase();
    assert_starts(&passed, "http/1.1 200 ");
    assert_contains(&passed, &["via: 1.1 vary-"]);
    assert_lacks(&server.post(INITIALIZE).to_lowercase(), &["via:"]);
}

/// Vary serves the file of a client, and `vary connect` writes the address of Vary to the same file.
#[test]
fn the_entry_that_connect_writes_to_the_served_file_changes_nothing() {
    let home = Home::new("circle-connect");
    let file = home.write(
        "project/.mcp.json",
        &json!({"mcpServers": {"sky": weather()}}).to_string(),
    );
    let served = file.to_str().unwrap();
    let mut server = Server::serve(&[served]);
    let connected = home
        .connect(&["claude-code", "--project", &server.url(), "--write"])
        .exited(0);
    assert_contains(
        &connected.stderr,
        &[
            "connected: 2 tools",
            "which the gateway serves, so it lists those tools twice; serve another file instead: vary config import ",
            &format!(
                "and type: vary connect claude-code {} --project --write --move\n",
                server.url()
            ),
        ],
    );
    let reloaded = server.says(" reloaded: ");
    assert_ends(&reloaded, "servers: 1 as before; variants: 4 as before\n");
    drop(server);
    let note = "`mcpServers.vary` is Vary itself, and is not served; leave it in the file: the client uses it\n";
    let again = Server::serve(&[served]);
    assert_contains(&again.said, &[note]);
    assert_eq!(
        again.tools(),
        ["get_weather", "get_forecast"],
        "{}",
        again.said
    );
    let checked = run(&["config", "check", served]).data(0);
    assert_contains(&checked, &[note]);
    assert_ends(&checked, "\nOK\n");
    let imported = run(&["config", "import", served]);
    let stdout = &imported.stdout;
    assert_contains(stdout, &["  sky:\n"]);
    assert_lacks(stdout, &["vary:"]);
    assert_contains(&imported.stderr, &[note]);
    assert_eq!(imported.code, Some(0));
}

/// A starts B, and B would start A again.
#[test]
fn a_circle_through_another_gateway_is_cut() {
    let (a, b) = (path("circle-a.json"), path("circle-b.json"));
    // Two of these start in a row, which a slow machine does not do within the usual wait.
    let servers = json!({"b": vary(&b), "sky": weather()});
    let text = json!({"servers": servers, "start-wait": "30s"});
    file("circle-a.json", &text.to_string());
    write("circle-b.json", &json!({"a": vary(&a), "sea": weather()}));
    let server = Server::serve(&[&a]);
    let names = ["b_sea_get_weather", "b_sea_get_forecast", SKY[0], SKY[1]];
    assert_eq!(server.tools(), names, "{}", server.said);
    // Where B has nothing else, there is nothing of it.
    write("circle-b.json", &json!({"a": vary(&a)}));
    let server = Server::serve(&[&a]);
    assert_eq!(server.tools(), SKY, "{}", server.said);
    let (_, said) = server.end_with_said();
    let line = "  b    down: is this gateway itself, or leads back to it";
    assert_contains(&said, &[line]);
}

/// Two gateways that reach each other by URL: the first refuses the connection of the second.
#[test]
fn a_circle_of_addresses_is_cut() {
    let (one, two) = (free_port(), free_port());
    let entry = |port: u16| json!({"type": "http", "url": format!("http://127.0.0.1:{port}/mcp")});
    write(
        "circle-one.json",
        &json!({"two": entry(two), "sky": weather()}),
    );
    write(
        "circle-two.json",
        &json!({"one": entry(one), "sea": weather()}),
    );
    let serve = |port: u16, name: &str| {
        Server::start(&["serve", "--listen", &port.to_string(), &path(name)])
    };
    let one = serve(one, "circle-one.json");
    let two = serve(two, "circle-two.json");
    for _ in 0..40 {
        for name in one.tools().iter().chain(&two.tools()) {
            assert_lacks(name, &["one_two", "two_one"]);
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// Different configurations behind each other, by either transport.
#[test]
fn a_chain_of_gateways_works() {
    let (near, far) = (path("chain-near.json"), path("chain-far.json"));
    write(
        "chain-far.json",
        &json!({"sky": weather(), "sea": weather()}),
    );
    write(
        "chain-near.json",
        &json!({"far": vary(&far), "land": weather()}),
    );
    let by_process = Server::serve(&[&near]);
    let url = json!({"type": "http", "url": by_process.url()});
    write("chain-url.json", &json!({"by": url, "x": weather()}));
    let by_url = Server::serve(&[&path("chain-url.json")]);
    let said = (&by_process.said, &by_url.said);
    assert!(
        by_process
            .tools()
            .contains(&"far_sky_get_weather".to_owned()),
        "{said:?}"
    );
    assert!(
        by_url
            .tools()
            .contains(&"by_far_sea_get_weather".to_owned()),
        "{said:?}"
    );
    let call = ["call", "by_far_sea_get_weather", r#"{"location":"Bern"}"#];
    let called = run(&[&call[..], &[&by_url.url()]].concat()).data(0);
    assert_contains(&called, &["Bern"]);
}
