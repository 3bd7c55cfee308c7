//! What people type by mistake or wait for, and the line that helps them on.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
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
    let no_file =
        format!("{missing} cannot be read: no such file in {folder}; did you mean `{path}`?\n");
    let no_folder = format!("{folder}/none/vary.yaml");
    let nowhere =
        format!("{no_folder} cannot be read: the directory {folder}/none does not exist\n");
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
            "error: --variant: there is no variant `other`; choose one of `reviewer`, `agent`\n",
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
                "error: `vary serve` takes one target, and `{path}` and `other.yaml` are two; copy the servers of `other.yaml` into \
                 `servers` of `{path}`, which has `variants`, then: vary serve {path}\n"
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
fn each_mistake_about_a_tool_has_what_to_write() {
    let path = file("messages-call.yaml", &sky(""));
    for (words, expected) in [
        (
            &["call", &path, "get_weather", "location=Bern"][..],
            &*format!("error: the tool comes first: vary call get_weather location=Bern {path}\n"),
        ),
        (
            &["call", &path],
            &format!(
                "error: `{path}` is a target, and the tool is missing: `vary call TOOL {path}`; `vary tools {path}` lists the tools\n"
            ),
        ),
        (
            &["call", "8800"],
            "error: `8800` is a target, and the tool is missing: `vary call TOOL 8800`; `vary tools 8800` lists the tools\n",
        ),
        (
            &["call", "get_weather", "--location", "New York", &path],
            "error: `vary call` has no option `--location`; arguments of the tool have no dashes: write 'location=New York'\n",
        ),
        (
            &["call", "get_weather", &path, "--id=1"],
            "error: `vary call` has no option `--id`; arguments of the tool have no dashes: write id=1\n",
        ),
        (
            &["tools", "--diff", "1"],
            "error: server `127.0.0.1` cannot be reached: http://127.0.0.1:1/mcp: connection refused; start the server, or correct \
             host and port\n",
        ),
    ] {
        run(words).prints(2, expected);
    }
}

#[test]
fn a_value_in_the_wrong_place_has_the_place_where_it_belongs() {
    let variant = "variants: {a: {overrides: {get_wether: {name: x}}}}\n";
    for (text, expected) in [
        (
            "servers: {a: {command: [python3, server.py]}}\n".to_owned(),
            ":1:24: `servers.a.command` is a list; write the program alone, as in `command: python3`, and the others into `args`, as \
             in `args: [server.py]`\n",
        ),
        (
            sky(variant),
            "`variants.a.overrides.get_wether` is not a known key; overrides of tools are under `tools`: write `tools: {get_wether: \
             ...}`\n",
        ),
        (
            sky("variants: {a: {overrides: {tool: {}}}}\n"),
            "`variants.a.overrides.tool` is not a known key; did you mean `tools`?\n",
        ),
    ] {
        let path = file("messages-place.yaml", &text);
        run(&["serve", &path]).refuses(&[expected]);
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
        "./vary.yaml starts servers, so it must be named: vary config check ./vary.yaml (or add --yes)\n",
    ]);
    assert_contains(&check(&["--yes"]).data(0), &["./vary.yaml: 1 server", "OK"]);
}

#[test]
fn arguments_that_a_tool_does_not_take_are_named_below_the_answer_of_the_server() {
    for case in [
        "locatoin=Bern => no argument `locatoin`; did you mean `location`? `location` is missing",
        "{} => `location` is missing",
        "{\"location\": 7} => `location` is an integer, and has to be a string",
        "{\"location\": \"Bern\", \"units\": \"K\"} => no argument `units`; it takes `location`",
    ] {
        let (arguments, tip) = case.split_once(" => ").unwrap();
        let called = run(&[&["call", "get_weather", arguments], &WEATHER[..]].concat());
        assert!(!called.stdout.is_empty(), "{called:?}");
        let warning = "warning: sent, although the arguments do not fit the tool";
        assert_eq!(
            called.stderr,
            format!("{warning}: {tip}\n"),
            "{}",
            called.stdout
        );
    }
    run(&[&["call", "get_weather", "location=Bern"], &WEATHER[..]].concat()).data(0);
}

/// A gateway whose eight servers are ready in the same moment, when the flag is there, and what creates it.
#[cfg(unix)]
fn burst(name: &str, start_wait: &str) -> (String, impl Fn() + use<>) {
    let flag = file(&format!("{name}.flag"), "");
    std::fs::remove_file(&flag).unwrap();
    let script = format!("while ! test -e {flag:?}; do sleep 0.1; done; exec {VARY:?} weather");
    let server = json!({"command": "sh", "args": ["-c", script]});
    let servers: serde_json::Map<_, _> = (0..8)
        .map(|number| (format!("s{number}"), server.clone()))
        .collect();
    let text = json!({"servers": servers, "start-wait": start_wait, "naming": "always"});
    let path = file(&format!("{name}.json"), &text.to_string());
    (path, move || std::fs::write(&flag, "").unwrap())
}

#[cfg(unix)]
#[test]
fn servers_that_come_together_share_lines_and_tables_of_variants() {
    let (path, begin) = burst("burst", "100ms");
    let mut server = Server::serve(&[&path]);
    server.says("Ctrl-C ends it");
    begin();
    let said = server.says("read-only  16 tools");
    // What would come again comes soon.
    std::thread::sleep(Duration::from_secs(2));
    let (_, after) = server.end();
    let said = said + &after;
    let lines = said.matches(" ready after ").count();
    let tables = said.matches("variants, each with an address").count();
    // One of each, unless the machine is so busy that they do not come together; a table may wait for the next line.
    assert!((1..=3).contains(&lines), "{said}");
    assert!((1..=lines).contains(&tables), "{said}");
}

#[cfg(unix)]
#[test]
fn servers_that_come_together_at_the_start_have_few_lines() {
    let (path, begin) = burst("burst-at-start", "1h");
    begin();
    let (_child, said) = started(&path);
    let said = said.take_while(|line| !line.starts_with("serving at "));
    let ready: Vec<_> = said.filter(|line| line.starts_with("ready: ")).collect();
    assert!(ready.len() < 8, "{ready:?}");
    assert_ends(ready.last().unwrap(), "s (8 of 8)");
}

/// What a server that does not start is waited for is said at 5 and at 20 seconds.
#[cfg(unix)]
#[test]
fn what_hangs_says_so() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new("hangs");
    let runner = home.write("npx", "#!/bin/sh\nexec sleep 1000\n");
    std::fs::set_permissions(&runner, std::fs::Permissions::from_mode(0o755)).unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = json!({"servers": {
        "text": {"command": "sh", "args": ["-c", "echo hello; exec sleep 1000"]},
        "hang": {"command": "sleep", "args": ["1000"]},
        "get": {"command": runner, "args": ["-y", "server"]},
        "far": {"url": format!("http://{}/mcp", silent.local_addr().unwrap())},
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
    let at_5 = "waiting for `text`, `hang`, `get`, `far` ... 5 s; last line of `text`: `hello` on standard output, which is for messages only; \
                `npx` downloads what is not on this machine yet";
    assert_eq!(lines[0], at_5);
    let (waiting, _) = at_5.split_once("; `npx`").unwrap();
    let at_20 = waiting.replace(" 5 s", " 20 s")
        + "; nothing so far from `hang`: start it in a terminal to see why; nothing so far from `get`: can npm's registry be reached? \
           (npm ping); nothing so far from `far`: does an MCP server listen at its URL?";
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
    run(&["tools", "--diff", &unknown.url()]).refuses(&[
        "--diff compares with the server's own tools, which a gateway does not show, and no gateway of yours serves a file there; \
         name the file, `vary tools --diff FILE`, or the command, `vary tools --diff -- COMMAND`\n",
    ]);
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
    let instead = format!(
        "serve another file instead: vary config import {real} > vary.yaml, then vary serve vary.yaml --listen PORT"
    );
    assert_contains(
        &connect(&[]).exited(0).stderr,
        &[&format!(
            "Claude Code also reads {real}, which the gateway serves, so it lists those tools twice; {instead}, and type: vary connect \
         claude-code {port} --write --move\n"
        )],
    );
    connect(&["--move"]).refuses(&[&format!(
        "--move would take the servers out of {real}, which the gateway serves; {instead}, and repeat this\n"
    )]);
    assert_eq!(home.read("project/.mcp.json"), entries.to_string());
}

/// The gateways of this user alone are known.
#[cfg(unix)]
#[test]
fn where_nothing_answers_the_gateway_that_runs_is_named() {
    let home = Home::new("unanswered");
    let state = home.path("state");
    let connect = |args: &[&str]| Run::of(home.command(args).env("XDG_STATE_HOME", &state));
    let nothing = |fix: &str| {
        let why = format!("nothing answers at http://127.0.0.1:1/mcp; {fix}\n");
        let printed = connect(&["cursor", "1"]).exited(0);
        assert_contains(&printed.stdout, &["http://127.0.0.1:1/mcp"]);
        assert_ends(&printed.stderr, &format!("note: {why}"));
        let written = connect(&["cursor", "1", "--write"]).exited(1).stderr;
        let undo = "to undo it: vary connect cursor --remove\n";
        assert_ends(&written, &format!("mcp.json is written, but {why}{undo}"));
    };
    nothing("start the gateway with: vary serve FILE --listen 1");
    let mut serve = command(&["serve", "--listen", "0", "--", VARY, "weather"]);
    let serve = serve.env("XDG_STATE_HOME", &state).stderr(Stdio::piped());
    let mut child = crate::starting::Killed(serve.spawn().unwrap());
    let lines = BufReader::new(child.0.stderr.take().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap);
    let url = lines.find_map(|line| Some(line.strip_prefix("serving at ")?.to_owned()));
    let url = url.unwrap();
    nothing(&format!(
        "your gateway runs at {url}; to connect that: vary connect cursor {url} --write"
    ));
    let printed = connect(&["cursor", "1", "--project"]).exited(0).stderr;
    assert_ends(
        &printed,
        &format!(": vary connect cursor {url} --project --write\n"),
    );
    let printed = connect(&["cursor", &url]).exited(0);
    assert_lacks(&printed.stderr, &["nothing answers"]);
}

/// Where Vary runs without a home directory, nothing is said that does not help there.
#[cfg(unix)]
#[test]
fn without_a_home_directory_what_is_missing_is_named() {
    let home = Home::new("homeless");
    let without = |args: &[&str]| {
        let mut command = home.command_of(args);
        for name in ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"] {
            command.env_remove(name);
        }
        command
    };
    let refuses = |args: &[&str], why: &str| Run::of(&mut without(args)).refuses(&[why]);
    let fix = "is not known; set it to your home directory";
    refuses(
        &["connect", "claude-desktop"],
        &format!("`HOME` is not set, so the file of Claude Desktop {fix}\n"),
    );
    let project = ", or write the entry into the project with --project\n";
    refuses(
        &["connect", "cursor"],
        &format!("`HOME` is not set, so the file of Cursor {fix}{project}"),
    );
    for command in ["status", "reload", "open"] {
        refuses(
            &[command],
            "`HOME` is not set, so your running gateways cannot be found: set it (`export HOME=/srv/NAME`), or name the address \
             of `--admin`\n",
        );
    }
    let mut command = without(&["connect", "cursor", "--write"]);
    Run::of(command.env("HOME", "/none/ann")).refuses(&[&format!(
        "error: `HOME` is /none/ann, which does not exist; set it to your home directory{project}"
    )]);
}

/// npm names the error of the network, and Docker that it does not run.
#[cfg(unix)]
#[test]
fn a_registry_that_cannot_be_reached_is_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new("registry");
    let script =
        "#!/bin/sh\necho npm error code $1 >&2\necho npm error syscall connect >&2\nexit 1\n";
    let runner = home.write("npx", script);
    std::fs::set_permissions(&runner, std::fs::Permissions::from_mode(0o755)).unwrap();
    let fails = |code: &str| run(&["inspect", "--", runner.to_str().unwrap(), code]).exited(2);
    for code in ["ECONNREFUSED", "ENOTFOUND", "ETIMEDOUT"] {
        let expected = format!(
            "ended (exit status: 1); `npx` cannot reach the registry ({code}): check the network and `npm config get registry`, or \
             install the package beforehand; last stderr lines: npm error code {code}"
        );
        assert_contains(&fails(code).stderr, &[&expected]);
    }
    let missing = fails("E404").stderr;
    let expected = "ended (exit status: 1); npm has no such package (E404): check its name, or log in to npm if it is private; last \
                    stderr lines: npm error code E404";
    assert_contains(&missing, &[expected]);
    assert_lacks(&missing, &["registry"]);
    let daemon = "Cannot connect to the Docker daemon at unix:///run/docker.sock.";
    let script = format!("#!/bin/sh\necho '{daemon}' >&2\nexit 125\n");
    let docker = home.write("docker", &script);
    std::fs::set_permissions(&docker, std::fs::Permissions::from_mode(0o755)).unwrap();
    let expected = format!(
        "ended (exit status: 125); Docker is not running: start it, as with `sudo systemctl start docker`; last stderr lines: \
         {daemon}"
    );
    run(&["inspect", "--", docker.to_str().unwrap()]).refuses(&[&expected]);
}

/// One readable line, however much comes.
#[cfg(unix)]
#[test]
fn text_on_standard_output_is_warned_of_once() {
    let script = format!("echo a; echo b; echo c; exec {VARY:?} weather");
    let mut server = Server::serve(&["--", "sh", "-c", &script]);
    let said = server.said.clone() + &server.says("Ctrl-C ends it");
    assert_contains(
        &said,
        &[
            "WARN the server prints text that is not a message, which is skipped: standard output is for messages only, so make the server \
         write its logs to standard error server=sh output=\"a\" ",
        ],
    );
    assert_eq!(said.matches("which is skipped").count(), 1, "{said}");
}

/// The lines that a gateway prints until it serves, which runs as root or not.
#[cfg(unix)]
#[test]
fn servers_that_run_as_root_are_noted() {
    let path = file("root.yaml", &sky("start-wait: 30s\n"));
    let (_child, said) = started(&path);
    let is_root = std::fs::metadata("/proc/self")
        .is_ok_and(|it| std::os::unix::fs::MetadataExt::uid(&it) == 0);
    let note = "warning: servers run as root, like Vary, and can read and change every file; start Vary as another user, as with `sudo -u NAME`.";
    let said: Vec<_> = said
        .take_while(|line| !line.starts_with("Ctrl-C"))
        .collect();
    assert_eq!(said.iter().any(|line| line == note), is_root, "{said:?}");
}

/// What is checked is called by its file, and what is not checked is named.
#[cfg(unix)]
#[test]
fn a_check_of_a_file_names_the_servers_that_are_down_or_late() {
    let entry = "gone: {command: \"false\"}";
    let path = file(
        "messages-check.yaml",
        &sky("").replace("servers: {", &format!("servers: {{{entry}, ")),
    );
    let checked = run(&["check", "--only", "SV-8", &path]).exited(0);
    assert!(
        checked.stdout.starts_with(&format!("{path} passes")),
        "{checked:?}"
    );
    assert_contains(
        &checked.stderr,
        &["`gone` is down", "; nothing of it is checked\n"],
    );
    let late = file(
        "messages-late.yaml",
        "servers: {late: {command: sh, args: [-c, exec sleep 60]}}",
    );
    run(&["check", "--time-limit", "1", &late]).refuses(&[
        "`late` was not ready: its first answers need more than the 1 s of this run, so no check was reached; give it more time, \
         as with `--time-limit 300`\n",
    ]);
}
