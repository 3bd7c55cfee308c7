//! Files with entries that cannot be used, and what `config check` and a reload report of a configuration.

use serde_json::json;

use crate::program::{Server, VARY, file, run, sky};
use crate::text::{assert_contains, assert_ends};

/// A client's file with entries that cannot be used, and one that can.
fn with_unusable_entries(name: &str) -> String {
    let text = json!({"mcpServers": {
        "unset": {"command": VARY, "args": ["weather"], "env": {"TOKEN": "${NO_SUCH_VARIABLE_HERE}"}},
        "old": {"type": "sse", "command": "x"},
        "typo": {"comand": "x"},
        "sky": {"command": VARY, "args": ["weather"]},
    }});
    file(name, &text.to_string())
}

#[test]
fn a_bad_entry_of_a_clients_file_stops_that_server_only() {
    let path = with_unusable_entries("unusable.json");
    let mut server = Server::serve(&["--admin", "0", &path]);
    assert_contains(
        &server.said,
        &[
            "in front of 1 server\n",
            "  sky    weather 2.0.0",
            "  unset  left out: its entry cannot be used",
            "`unset` is left out: ",
            "needs the variable `NO_SUCH_VARIABLE_HERE`",
            "`old` is left out: ",
            "has a `type` that does not go with `command`",
            "`mcpServers.typo.comand` is not a known key, and is ignored; did you mean `command`?\n",
        ],
    );
    let last = "`unset`, `old`, `typo` do not work; the reasons are above\n";
    assert!(server.says("do not work").ends_with(last));
    let status = run(&["status", "--json", &server.admin()]).json(1);
    let states = status["servers"].as_array().unwrap().iter();
    let states: Vec<_> = states
        .map(|it| (it["name"].as_str().unwrap(), it["state"].as_str().unwrap()))
        .collect();
    let invalid = |name| (name, "invalid");
    assert_eq!(
        states,
        [
            ("sky", "up"),
            invalid("unset"),
            invalid("old"),
            invalid("typo")
        ]
    );
    let reason = status["servers"][1]["reason"].as_str().unwrap();
    assert_contains(reason, &["NO_SUCH_VARIABLE_HERE"]);
}

#[test]
fn all_servers_can_be_required() {
    let path = with_unusable_entries("unusable-required.json");
    let all = run(&["serve", "--listen", "0", &path, "--require-all"]);
    all.refuses(&["`unset`, `old`, `typo` cannot be used, and --require-all is given"]);
    // One that is named is required.
    let named = run(&["serve", "--listen", "0", &path, "--server", "unset"]);
    named.refuses(&["needs the variable `NO_SUCH_VARIABLE_HERE`"]);
    let checked = run(&["config", "check", &path]).exited(1);
    assert_ends(&checked.stdout, "\n3 problems\n");
    // Vary's own file is used as a whole or not at all.
    let text = format!(
        "servers: {{a: {{command: '${{NO_SUCH_VARIABLE_HERE}}'}}, sky: {{command: {VARY:?}, args: [weather]}}}}"
    );
    let path = file("unusable-own.yaml", &text);
    let whole = run(&["serve", "--listen", "0", &path]);
    whole.refuses(&["needs the variable `NO_SUCH_VARIABLE_HERE`"]);
}

#[track_caller]
fn checks(name: &str, text: &str, code: i32) -> String {
    let path = file(name, text);
    let checked = run(&["config", "check", &path]).exited(code);
    checked.stdout
}

fn weather(settings: &str) -> String {
    sky(settings)
}

#[test]
fn a_check_refuses_what_serving_refuses_and_ends_with_a_verdict() {
    let said = checks("verdict-fine.yaml", &weather("listen: 8800\n"), 0);
    assert_ends(&said, "\nOK\n");
    let open = weather("listen: 0.0.0.0:21040\n");
    let said = checks("verdict-listen.yaml", &open, 1);
    let expected =
        "verdict-listen.yaml:2:9: `listen`: 0.0.0.0:21040 can be reached from other machines";
    assert_contains(&said, &[expected]);
    let status = weather("admin: '10.0.0.1:21041'\n");
    let status = checks("verdict-admin.yaml", &status, 1);
    assert_contains(&status, &["verdict-admin.yaml:2:8: `admin`: "]);
    assert_ends(&said, "\n1 problem\n");
    let served = file("verdict-listen.yaml", &open);
    run(&["serve", &served]).refuses(&["can be reached from other machines"]);
    let clients = json!({"mcpServers": {"sky": {"command": VARY, "args": ["weather"]}}, "variants": {"a": {}}});
    let said = checks("verdict-variants.json", &clients.to_string(), 1);
    assert_contains(&said, &["`variants` is ignored in the file of a client"]);
    assert_ends(&said, "\n1 problem\n");
}

#[test]
fn a_check_shows_what_the_variants_cost() {
    let variants = "variants:\n  standard: {}\n  brief: {description: d, tools: [get_weather]}\n";
    let said = checks("check-costs.yaml", &weather(variants), 0);
    let (_, table) = said.split_once("\n\nvariant").unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|row| row.split_whitespace().collect())
        .collect();
    assert_eq!((rows[1][0], rows[1][1]), ("standard", "2"));
    assert_eq!((rows[2][0], rows[2][1]), ("brief", "1"));
    let tokens = |row: usize| rows[row][2].parse::<usize>().unwrap();
    assert!(tokens(2) > 0 && tokens(2) < tokens(1), "{said}");
}

#[test]
fn a_word_that_is_no_log_level_is_refused() {
    let mut inspect = crate::program::command(&["--log", "wran", "inspect", "--", VARY, "weather"]);
    crate::program::Run::of(&mut inspect).refuses(&[
        "`wran` is not a log level; write error, warn, info, debug, trace, off, or TARGET=LEVEL",
    ]);
    let mut inspect = crate::program::command(&["inspect", "--", VARY, "weather"]);
    let inspect = inspect.env("VARY_LOG", "warn,mcp_vary_upstream::stderr=noisy");
    crate::program::Run::of(inspect).refuses(&["is not a log level"]);
}

#[test]
fn a_reload_says_which_variant_and_which_tool_is_another() {
    let variants = |name: &str, description: &str| {
        weather(&format!(
            "variants:\n  standard: {{}}\n  brief:\n    description: {description}\n    tools: [get_weather]\n    overrides: {{tools: {{get_weather: {{name: {name}}}}}}}\n"
        ))
    };
    let path = file("reload-says.yaml", &variants("weather", "d"));
    let mut server = Server::serve(&[&path]);
    file("reload-says.yaml", &variants("forecast", "d"));
    let said = server.says("reloaded: ");
    let expected =
        "variants: 1 changed (brief), 1 as before; tools of brief: `weather` is now `forecast`\n";
    assert_ends(&said, expected);
    file(
        "reload-says.yaml",
        &variants("forecast", "other").replace("[get_weather]", "[get_wether]"),
    );
    let said = server.says("warning: ");
    assert_contains(
        &said,
        &[
            "variants: 1 changed (brief), 1 as before\n",
            "reload-says.yaml:",
            "get_wether",
        ],
    );
}
