//! What people type by mistake or wait for, and the line that helps them on.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::connect::Home;
use crate::program::{Run, Server, VARY, WEATHER, command, file, run, sky};
use crate::starting::started;
use crate::text::{assert_contains, assert_ends, assert_lacks};

/// A line for each mistake: the words that are typed, and what is said of them.
#[test]
fn each_mistake_has_the_name_that_was_meant() {
    let path = file(
        "messages.yaml",
        &sky("variants: {reviewer: {}, agent: {}}\n"),
    );
    let missing = path.replace("messages.yaml", "mesages.yaml");
    let folder = env!("CARGO_TARGET_TMPDIR");
    let no_file = format!(
        "{missing} cannot be read: there is no such file in {folder}; did you mean `{path}`?\n"
    );
    let no_folder = format!("{folder}/none/vary.yaml");
    let nowhere = format!("{no_folder} cannot be read: there is no directory {folder}/none\n");
    for (words, expected) in [
        (
            &["connect", "gemini"][..],
            "error: `gemini` is not the name of a client; did you mean `gemini-cli`?\n",
        ),
        (
            &["connect", "claude"],
            "error: `claude` is not the name of a client; did you mean `claude-code` or `claude-desktop`?\n",
        ),
        (
            &["serve", "--listen", "0", "--variant", "reviwer", &path],
            "error: --variant: there is no variant `reviwer`; did you mean `reviewer`?\n",
        ),
        (
            &["serve", "--listen", "0", "--variant", "other", &path],
            "error: --variant: there is no variant `other`; there are `reviewer`, `agent`\n",
        ),
        (
            &["serve", "--listen", "99999", &path],
            "error: `99999`: ports end at 65535; choose a smaller one with --listen\n",
        ),
        (
            &["serve", "--listen", "127.0.0.1:70000", &path],
            "error: `127.0.0.1:70000`: ports end at 65535; choose a smaller one with --listen\n",
        ),
        (
            &["serve", &path, "other.yaml"],
            &format!(
                "error: `{path}` and `other.yaml` are two targets, and `vary serve` takes one: `vary config import {path} \
                 other.yaml > vary.yaml` makes one file of the server lists of clients; put the `servers` of two configurations \
                 into one by hand\n"
            ),
        ),
        (&["serve", &missing], &format!("error: {no_file}")),
        (&["config", "check", &missing], &format!("error: {no_file}")),
        (&["serve", &no_folder], &format!("error: {nowhere}")),
    ] {
        run(words).prints(2, expected);
    }
}

#[test]
fn an_empty_log_level_is_one_that_is_not_set_and_a_wrong_one_has_the_name_of_its_variable() {
    for empty in ["", " "] {
        let mut list = command(&["config", "schema"]);
        Run::of(list.env("VARY_LOG", empty)).data(0);
    }
    let mut wrong = command(&["config", "schema"]);
    Run::of(wrong.env("VARY_LOG", "wran"))
        .refuses(&["error: VARY_LOG: `wran` is not a log level; write "]);
    run(&["--log", "wran", "config", "schema"])
        .refuses(&["error: --log: `wran` is not a log level; write "]);
}

#[test]
fn a_port_is_the_gateway_on_this_machine() {
    let server = Server::with_weather(&[]);
    let port = server.address.port().to_string();
    let same = |words: &[&str]| {
        let with = |target: &str| run(&[words, &[target]].concat()).data(0);
        assert_eq!(with(&port), with(&server.url()), "{words:?}");
    };
    same(&["inspect", "--summary"]);
    same(&["tools"]);
    same(&["call", "get_weather", "location=Bern"]);
}

#[test]
fn without_a_file_config_check_finds_the_one_that_serve_finds() {
    let home = Home::new("check-found");
    let check =
        |args: &[&str]| Run::of(&mut home.command_of(&[&["config", "check"], args].concat()));
    check(&[]).refuses(&[
        "this directory has neither ./vary.yaml nor ./.mcp.json; name a file as in `vary config check FILE`\n",
    ]);
    home.write("project/vary.yaml", &sky(""));
    assert_contains(&check(&["--offline"]).data(0), &["./vary.yaml: 1 server"]);
    check(&[]).refuses(&[
        "./vary.yaml was found, but not named, and starts servers; name it as in `vary config check ./vary.yaml`, or add --yes\n",
    ]);
    assert_contains(&check(&["--yes"]).data(0), &["./vary.yaml: 1 server", "OK"]);
}

#[test]
fn arguments_that_a_tool_does_not_take_are_named_below_the_answer_of_the_server() {
    for (arguments, tip) in [
        (
            "locatoin=Bern",
            "no argument `locatoin`; did you mean `location`? `location` is missing",
        ),
        ("{}", "`location` is missing"),
        (
            "{\"location\": 7}",
            "`location` is an integer, and has to be a string",
        ),
        (
            "{\"location\": \"Bern\", \"units\": \"K\"}",
            "no argument `units`; it takes `location`",
        ),
    ] {
        let called = run(&[&["call", "get_weather", arguments], &WEATHER[..]].concat());
        assert!(!called.stdout.is_empty(), "{called:?}");
        assert_eq!(called.stderr, format!("tip: {tip}\n"), "{}", called.stdout);
    }
    run(&[&["call", "get_weather", "location=Bern"], &WEATHER[..]].concat()).data(0);
}

/// The servers are ready in the same moment, when the flag is there.
#[cfg(unix)]
#[test]
fn servers_that_come_together_have_one_table_of_variants() {
    let flag = file("burst.flag", "");
    std::fs::remove_file(&flag).unwrap();
    let script = format!("while ! test -e {flag:?}; do sleep 0.1; done; exec {VARY:?} weather");
    let server = json!({"command": "sh", "args": ["-c", script]});
    let servers: serde_json::Map<_, _> = (0..8)
        .map(|number| (format!("s{number}"), server.clone()))
        .collect();
    let text = json!({"servers": servers, "start-wait": "100ms", "naming": "always"});
    let path = file("burst.json", &text.to_string());
    let mut server = Server::serve(&[&path]);
    server.says("Ctrl-C ends it");
    std::fs::write(&flag, "").unwrap();
    let said = server.says("read-only  16 tools");
    // What would come again comes at once.
    std::thread::sleep(Duration::from_secs(1));
    let (_, after) = server.end();
    let said = said + &after;
    assert_eq!(said.matches(" is ready after ").count(), 8, "{said}");
    let tables = said.matches("variants, each with an address").count();
    assert_eq!(tables, 1, "{said}");
}

/// What a server that does not start is waited for is said at 5 and at 20 seconds.
#[cfg(unix)]
#[test]
fn what_hangs_says_so() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new("hangs");
    let runner = home.write("npx", "#!/bin/sh\nexec sleep 1000\n");
    std::fs::set_permissions(&runner, std::fs::Permissions::from_mode(0o755)).unwrap();
    let text = json!({"servers": {
        "text": {"command": "sh", "args": ["-c", "echo hello; exec sleep 1000"]},
        "hang": {"command": "sleep", "args": ["1000"]},
        "get": {"command": runner, "args": ["-y", "server"]},
    }});
    let path = home.write("hangs.json", &text.to_string());
    let began = Instant::now();
    let mut child = command(&["inspect", path.to_str().unwrap()])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let lines: Vec<_> = lines.map(Result::unwrap).take(2).collect();
    assert!(began.elapsed() < Duration::from_secs(60));
    crate::program::signal("INT", child.id());
    child.wait().unwrap();
    let at_5 = "waiting for `text`, `hang`, `get` ... 5 s; last line of `text`: `hello` on standard output, which is for messages only; \
                `npx` downloads what is not on this machine yet: can its registry be reached?";
    assert_eq!(lines[0], at_5);
    let at_20 = at_5.replace(" 5 s", " 20 s")
        + "; nothing so far from `hang`, `get`: start it in a terminal to see why";
    assert_eq!(lines[1], at_20);
}

#[test]
fn a_directory_has_as_many_tools_everywhere() {
    let path = file(
        "messages-directory.yaml",
        &sky("variants: {directory: {schemas: on-demand}}\n"),
    );
    let mut server = Server::serve(&["--admin", "0", &path]);
    let said = server.said.clone() + &server.says("Ctrl-C ends it");
    let url = server.url();
    let listed = run(&["tools", "--json", &url]).json(0);
    let count = listed["tools"].as_array().unwrap().len();
    assert!(count > 2, "{listed}");
    let line = format!("  directory  {count} tools  {url}/v/directory\n");
    assert_contains(&said, &[&line]);
    let status = run(&["status", "--json", &server.address.port().to_string()]).json(0);
    let variant = &status["variants"][0];
    assert_eq!(
        (&variant["tools"], &variant["tokens"]),
        (&json!(count), &listed["tokens"])
    );
    let shown = run(&["status", &server.address.port().to_string()]).data(0);
    let row = format!(
        "\ndirectory  stable  {count:>5}  {:>6}\n",
        listed["tokens"].as_u64().unwrap()
    );
    assert_contains(&shown, &["\nvariant    status  tools  tokens\n", &row]);
}

/// Vary knows which file the gateway at an address serves.
#[cfg(unix)]
#[test]
fn connect_and_tools_know_the_file_of_a_gateway_that_runs() {
    let home = Home::new("known-file");
    let path = home.write("vary.yaml", &sky("variants: {standard: {}, agent: {overrides: {tools: {get_weather: {name: weather}}}}}\n"));
    let server = Server::serve(&[path.to_str().unwrap()]);
    let port = server.address.port().to_string();
    let state = concat!(env!("CARGO_TARGET_TMPDIR"), "/state");
    let entries = json!({"mcpServers": {"mine": {"command": VARY, "args": ["weather"]}}});
    home.write(".cursor/mcp.json", &entries.to_string());
    let connect = |args: &[&str]| {
        Run::of(
            home.command(&[&["cursor", &port, "--write"], args].concat())
                .env("XDG_STATE_HOME", state),
        )
    };
    let written = connect(&[]).exited(0);
    let twice = "`mine` starts the same command as a server that Vary serves: Cursor would have its tools twice\n";
    let stay = format!("they stay; to take them out: vary connect cursor {port} --write --move\n");
    assert_contains(&written.stderr, &[twice, &stay]);
    let moved = connect(&["--move"]).exited(0);
    assert_contains(&moved.stderr, &["took out `mine`\n"]);
    assert_lacks(&home.read(".cursor/mcp.json"), &["mine"]);
    let diff = run(&["tools", "--diff", &format!("{}/v/agent", server.url())]).exited(0);
    assert_contains(
        &diff.stdout,
        &[
            "variant agent",
            "name: [-get_weather-]{+weather+}\n",
            "\n...\n",
        ],
    );
    let real = std::fs::canonicalize(&path).unwrap();
    assert_eq!(
        diff.stderr,
        format!("comparing by {}, which is served there\n", real.display())
    );
    let unknown = Server::with_weather(&[]);
    run(&["tools", "--diff", &unknown.url()]).refuses(&[&format!(
        "--diff compares with the server's own tools, which {} does not show, and no gateway of yours serves a file there; name the \
         file: `vary tools --diff FILE`\n",
        unknown.url()
    )]);
}

/// To take servers out of the file that is served would take them from the gateway.
#[cfg(unix)]
#[test]
fn servers_of_a_client_are_not_taken_out_of_the_file_that_the_gateway_serves() {
    let home = Home::new("shared-file");
    let entries = json!({"mcpServers": {"sky": {"command": VARY, "args": ["weather"]}}});
    let path = home.write("project/.mcp.json", &entries.to_string());
    let server = Server::serve(&[path.to_str().unwrap()]);
    let port = server.address.port().to_string();
    let state = concat!(env!("CARGO_TARGET_TMPDIR"), "/state");
    let connect = |args: &[&str]| {
        Run::of(
            home.command(&[&["claude-code", &port, "--write"], args].concat())
                .env("XDG_STATE_HOME", state),
        )
    };
    let real = std::fs::canonicalize(&path).unwrap();
    let real = real.display();
    let instead = format!("serve another file instead: vary config import {real} > vary.yaml");
    assert_contains(
        &connect(&[]).exited(0).stderr,
        &[&format!(
            "Claude Code also reads {real}, which the gateway serves, so it lists those tools twice; {instead}, and type: vary connect \
         claude-code {port} --write --move\n"
        )],
    );
    connect(&["--move"]).refuses(&[&format!(
        "--move would take the servers out of {real}, which the gateway serves; {instead}\n"
    )]);
    assert_eq!(home.read("project/.mcp.json"), entries.to_string());
}

#[test]
fn where_nothing_answers_the_entry_is_printed_with_a_note() {
    let home = Home::new("unanswered");
    let printed = home.connect(&["cursor", "1"]).exited(0);
    assert_contains(&printed.stdout, &["http://127.0.0.1:1/mcp"]);
    assert_ends(
        &printed.stderr,
        "note: nothing answers at http://127.0.0.1:1/mcp now; `vary serve` starts the gateway\n",
    );
    let server = Server::with_weather(&[]);
    let printed = home.connect(&["cursor", &server.url()]).exited(0);
    assert_lacks(&printed.stderr, &["nothing answers"]);
}

/// The lines that a gateway prints until it serves, which runs as root or not.
#[cfg(unix)]
#[test]
fn servers_that_run_as_root_are_noted() {
    let path = file("root.yaml", &sky("start-wait: 30s\n"));
    let (_child, said) = started(&path);
    let is_root = std::fs::metadata("/proc/self")
        .is_ok_and(|it| std::os::unix::fs::MetadataExt::uid(&it) == 0);
    let note = "warning: servers run as root, as Vary does, and can read and change every file; start Vary as another user, as with `sudo -u NAME`.";
    let said: Vec<_> = said
        .take_while(|line| !line.starts_with("Ctrl-C"))
        .collect();
    assert_eq!(said.iter().any(|line| line == note), is_root, "{said:?}");
}
