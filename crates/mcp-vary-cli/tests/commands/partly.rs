//! Files of which a part cannot be used, and what is said of a configuration.

use serde_json::{Value, json};

use crate::program::{Server, VARY, file, run};

/// A client's file with entries that cannot be used, and one that can.
fn partly(name: &str) -> String {
    let text = json!({"mcpServers": {
        "unset": {"command": VARY, "args": ["weather"], "env": {"TOKEN": "${NO_SUCH_VARIABLE_HERE}"}},
        "old": {"type": "sse", "command": "x"},
        "typo": {"comand": "x"},
        "sky": {"command": VARY, "args": ["weather"]},
    }});
    file(name, &text.to_string()).to_str().unwrap().to_owned()
}

#[test]
fn a_bad_entry_of_a_clients_file_stops_that_server_only() {
    let path = partly("partly.json");
    let mut server = Server::start(&["serve", "--listen", "0", "--admin", "0", &path]);
    for part in [
        "in front of 1 server\n",
        "  sky    weather 2.0.0",
        "  unset  left out: its entry cannot be used",
        "`unset` is left out: ",
        "needs the variable `NO_SUCH_VARIABLE_HERE`",
        "`old` is left out: ",
        "has a `type` that does not go with `command`",
        "`mcpServers.typo.comand` is not a known key, and is ignored; did you mean `command`?\n",
    ] {
        assert!(server.said.contains(part), "{part}: {}", server.said);
    }
    let last = "`unset`, `old`, `typo` do not work; the reasons are above\n";
    assert!(server.says("do not work").ends_with(last));
    let status = run(&["status", "--json", &server.admin()]).data(1);
    let status: Value = serde_json::from_str(&status).unwrap();
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
    assert!(reason.contains("NO_SUCH_VARIABLE_HERE"), "{reason}");
}

#[test]
fn all_servers_can_be_required() {
    let path = partly("partly-required.json");
    let all = run(&["serve", "--listen", "0", &path, "--require-all"]);
    all.refuses(&["`unset`, `old`, `typo` cannot be used, and --require-all is given"]);
    // One that is named is required.
    let named = run(&["serve", "--listen", "0", &path, "--server", "unset"]);
    named.refuses(&["needs the variable `NO_SUCH_VARIABLE_HERE`"]);
    let checked = run(&["config", "check", &path]);
    assert_eq!(checked.code, Some(1), "{}", checked.stdout);
    assert!(
        checked.stdout.ends_with("\n3 problems\n"),
        "{}",
        checked.stdout
    );
    // Vary's own file is used as a whole or not at all.
    let text = format!(
        "servers: {{a: {{command: '${{NO_SUCH_VARIABLE_HERE}}'}}, sky: {{command: {VARY:?}, args: [weather]}}}}"
    );
    let path = file("partly-own.yaml", &text);
    let whole = run(&["serve", "--listen", "0", path.to_str().unwrap()]);
    whole.refuses(&["needs the variable `NO_SUCH_VARIABLE_HERE`"]);
}

#[track_caller]
fn checks(name: &str, text: &str, code: i32) -> String {
    let path = file(name, text);
    let checked = run(&["config", "check", path.to_str().unwrap()]);
    assert_eq!(
        checked.code,
        Some(code),
        "{}{}",
        checked.stdout,
        checked.stderr
    );
    checked.stdout
}

fn weather(settings: &str) -> String {
    format!("servers: {{sky: {{command: {VARY:?}, args: [weather]}}}}\n{settings}")
}

#[test]
fn a_check_refuses_what_serving_refuses_and_ends_with_a_verdict() {
    assert!(checks("verdict-fine.yaml", &weather("listen: 8800\n"), 0).ends_with("\nOK\n"));
    let open = weather("listen: 0.0.0.0:21040\n");
    let said = checks("verdict-listen.yaml", &open, 1);
    assert!(
        said.contains(
            "verdict-listen.yaml:2:9: `listen`: 0.0.0.0:21040 can be reached from other machines"
        ),
        "{said}"
    );
    let status = weather("admin: '10.0.0.1:21041'\n");
    let status = checks("verdict-admin.yaml", &status, 1);
    assert!(
        status.contains("verdict-admin.yaml:2:8: `admin`: "),
        "{status}"
    );
    assert!(said.ends_with("\n1 problem\n"), "{said}");
    let served = file("verdict-listen.yaml", &open);
    run(&["serve", served.to_str().unwrap()]).refuses(&["can be reached from other machines"]);
    let clients = json!({"mcpServers": {"sky": {"command": VARY, "args": ["weather"]}}, "variants": {"a": {}}});
    let said = checks("verdict-variants.json", &clients.to_string(), 1);
    assert!(
        said.contains("`variants` is ignored in the file of a client"),
        "{said}"
    );
    assert!(said.ends_with("\n1 problem\n"), "{said}");
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
    let mut server = Server::start(&["serve", "--listen", "0", path.to_str().unwrap()]);
    file("reload-says.yaml", &variants("forecast", "d"));
    let said = server.says("reloaded: ");
    let expected =
        "variants: 1 changed (brief), 1 as before; tools of brief: `weather` is now `forecast`\n";
    assert!(said.ends_with(expected), "{said}");
    file(
        "reload-says.yaml",
        &variants("forecast", "other").replace("[get_weather]", "[get_wether]"),
    );
    let said = server.says("warning: ");
    assert!(
        said.contains("variants: 1 changed (brief), 1 as before\n"),
        "{said}"
    );
    assert!(
        said.contains("reload-says.yaml:") && said.contains("get_wether"),
        "{said}"
    );
}
