//! What cannot be done says which and why, and ends with 2.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::program::{Run, Server, VARY, command, file, run, sky, with_weather};
use crate::text::{assert_contains, assert_lacks, assert_starts};

#[test]
fn a_program_that_is_not_there_is_named() {
    let why = [
        "program `no-such-program` was not found",
        "put its directory on `PATH`",
    ];
    run(&["serve", "--listen", "0", "--", "no-such-program"]).refuses(&why);
    run(&["inspect", "--", "no-such-program"]).refuses(&why);
    run(&["serve", "--listen", "0", "--", "npx -y foo"]).refuses(&[
        "the program `npx -y foo` was not found; it has spaces: write only the program as `command`, and put the arguments \
         into `args`, as in `\"command\": \"npx\", \"args\": [\"-y\", \"foo\"]` (on a command line, leave out the quotes)",
    ]);
    run(&["inspect", "--", "node.exe C:\\x\\y.js"])
        .refuses(&[r#"as in `"command": "node.exe", "args": ["C:\\x\\y.js"]`"#]);
    let directory = std::env::current_dir().unwrap();
    let directory = directory.display();
    let relative = format!(
        "`./no-such.sh` was not found; it is looked for in {directory}; write its whole path"
    );
    run(&["inspect", "--", "./no-such.sh"]).refuses(&[&relative]);
    run(&["call", "x", "--", "no-such-program"]).refuses(&why);
}

#[cfg(unix)]
#[test]
fn a_program_that_ends_has_its_last_words() {
    let dies = ["--", "sh", "-c", "echo no licence >&2; exit 3"];
    run(&[&["inspect"], &dies[..]].concat())
        .refuses(&["ended (exit status: 3); last stderr lines: no licence"]);
}

/// The command is shown as its file has it, without the values of variables and without secrets.
#[cfg(unix)]
#[test]
fn a_program_that_ends_without_a_word_has_its_command() {
    run(&["inspect", "--", "sh", "-c", "exit 3"]).refuses(&[
        "ended (exit status: 3); it wrote nothing; to see why, run it in a terminal: sh -c 'exit 3'\n",
    ]);
    let text = "servers: {a: {command: sh, args: [-c, exit, '--dir=${QUIET}', --token, s3cret-s3cret], env: {MODE: a b, API_KEY: s3cret-s3cret}}}";
    let path = file("quiet.yaml", text);
    let mut inspect = command(&["inspect", &path]);
    Run::of(inspect.env("QUIET", "/s3cret")).refuses(&[
        "it wrote nothing; to see why, run it in a terminal: MODE='a b' API_KEY=... sh -c exit \"--dir=${QUIET}\" --token ...\n",
    ]);
}

#[cfg(unix)]
#[test]
fn a_script_whose_interpreter_is_missing_is_told_from_a_missing_script() {
    use std::os::unix::fs::PermissionsExt as _;
    let script = file("no-interpreter.sh", "#!/no/such/interpreter\n");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    run(&["inspect", "--", &script]).refuses(&[
        "cannot be started: its first line names `/no/such/interpreter`, which does not exist\n",
    ]);
    // The system finds some interpreters all the same, which then fail.
    for first in [
        "#!/bin/sh",
        "#! /bin/sh -e",
        "#!/usr/bin/env sh",
        "#!/usr/bin/env -S sh -x",
    ] {
        let script = file("windows.sh", &format!("{first}\r\nexit 0\r\n"));
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let named = first.trim_start_matches("#!").trim();
        run(&["inspect", "--", &script]).refuses(&[&format!(
            "its first line names `{named}\\r`: it has the line ends of Windows; take them out: sed -i 's/\\r$//' {script}\n"
        )]);
    }
}

#[test]
fn a_program_in_place_of_a_configuration_has_its_command() {
    let program = file("server.py", "print(1)");
    let instead = format!("to start it as a server, write `vary serve -- python3 {program}`");
    run(&["serve", &program]).refuses(&["is a program, not a configuration", &instead]);
}

#[test]
fn a_check_without_a_connection_has_the_advice_of_inspect() {
    run(&["check", "http://127.0.0.1:1/mcp"])
        .refuses(&["connection refused; start the server, or correct host and port"]);
}

#[test]
fn a_url_that_cannot_be_reached_is_named() {
    // Nothing listens on the port of a listener that is gone.
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("http://{address}/mcp");
    let why = format!(
        "server `127.0.0.1` cannot be reached: {url}: connection refused; start the server, or correct host and port\n"
    );
    let why = [why.as_str()];
    run(&["serve", "--require-all", "--listen", "0", &url]).refuses(&why);
    run(&["inspect", &url]).refuses(&why);
    run(&["call", "x", &url]).refuses(&why);
    run(&["inspect", "localhost:8800"]).refuses(&[
        "`localhost:8800` is not the URL",
        "write it like http://localhost:8800/mcp",
    ]);
}

/// The log has the reason as well, for servers that are lost later; at the start it would be there twice.
#[test]
fn the_reason_why_the_only_server_cannot_be_used_is_printed_once() {
    let url = "http://127.0.0.1:1/mcp";
    for target in [&[url][..], &["--", "no-such-program"]] {
        let args = [&["serve", "--require-all", "--listen", "0"], target].concat();
        let refused = run(&args).exited(2);
        let lines: Vec<_> = refused.stderr.lines().collect();
        let [start, error] = &lines[..] else {
            panic!("{lines:?}");
        };
        assert_starts(start, "starting `");
        assert_starts(error, "error: server `");
    }
}

#[test]
fn an_option_that_does_not_exist_is_followed_by_what_to_write() {
    run(&["serve", "--port", "8800", "vary.yaml"]).refuses(&[
        "error: `--port` does not exist; write `--listen HOST:PORT`, or `--listen PORT`\n",
    ]);
    run(&["inspect", "-H", "a: b", "http://127.0.0.1:1/mcp"])
        .refuses(&["`-H` does not exist; write `--header 'NAME: VALUE'`"]);
    for command in ["inspect", "tools", "call"] {
        run(&[command, "--client", "x"])
            .refuses(&["`--client` does not exist; write `--client-name NAME`\n"]);
    }
    let near = run(&["serve", "--listn", "8800"]);
    assert_contains(&near.stderr, &["a similar argument exists: '--listen'"]);
    run(&["up", "cursor"])
        .refuses(&["`vary up` takes all clients; for one: vary connect cursor\n"]);
    let unknown = run(&["serve", "--frobnicate"]).stderr;
    assert_contains(&unknown, &["unexpected argument '--frobnicate'"]);
    assert_lacks(&unknown, &["-- --frobnicate"]);
}

#[test]
fn a_port_that_is_taken_is_said_before_the_server_is_started() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let why = format!(
        "{address} is in use by another program, or twice in this command; choose another: --listen 127.0.0.1:8810"
    );
    run(&["serve", "--listen", &address, "--", "no-such-program"]).refuses(&[&why]);
    run(&["demo", "--listen", &address]).refuses(&[&why]);
    let server = Server::with_weather(&[]);
    let url = server.url();
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let why = format!(
        "{address} is in use by another Vary, at {url}: `vary status {address}` shows what it serves, and `vary drain {address}` \
         ends it, if it is yours; or choose another with --listen"
    );
    run(&["serve", "--listen", address, "--", VARY, "weather"]).refuses(&[&why]);
    let first = Server::with_weather(&["--admin", "0"]);
    let admin = first.admin();
    let why =
        format!("{admin} is in use by the status of another Vary; choose another with --admin");
    let second = [
        "serve", "--listen", "0", "--admin", &admin, "--", VARY, "weather",
    ];
    run(&second).refuses(&[&why]);
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
        .refuses(&["the arguments are not a JSON object", "line 1, column 7"]);
    run(&["call", "x", "[1]", url]).refuses(&[
        "the arguments are not a JSON object",
        "it must be an object",
    ]);
    run(&["call", "x", r#"{"a":1,"a":2}"#, url]).refuses(&[
        "the arguments are not a JSON object",
        "\"a\" is given twice",
    ]);
}

#[track_caller]
fn refuses_file(name: &str, text: &str, part: &str) {
    let path = file(name, text);
    run(&["serve", &path]).refuses(&[name, part]);
}

#[test]
fn a_clients_file_with_a_mistake_is_named_with_its_key() {
    refuses_file(
        "broken.json",
        "{",
        "broken.json:1:1: is not JSON: the file ends before the `{` in line 1, column 1 is closed",
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
    run(&["serve", "no-such-file.json"]).refuses(&["no-such-file.json cannot be read"]);
}

#[test]
fn a_command_line_that_lacks_something_is_refused() {
    run(&["inspect", "--hints", "compact", "http://127.0.0.1:1/"]).refuses(&["KEY=VALUE"]);
    run(&["inspect", "--header", "no colon", "http://127.0.0.1:1/"]).refuses(&["'Name: value'"]);
    run(&["--log", "=", "inspect", "http://127.0.0.1:1/"])
        .refuses(&["--log: `=` is not a log level"]);
}

/// The address of a server that answers every request with `head` and no body.
fn answering(head: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let mut request = [0; 4096];
            let _ = socket.read(&mut request);
            let answer =
                format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            let _ = socket.write_all(answer.as_bytes());
        }
    });
    url
}

#[test]
fn a_server_that_wants_credentials_is_named_with_where_to_write_them() {
    let url = answering("401 Unauthorized");
    let text =
        format!("servers: {{a: {{url: '{url}', headers: {{Authorization: 'Bearer ${{X:-}}'}}}}}}");
    run(&["tools", &file("empty-token.yaml", &text)]).refuses(&[
        "401 Unauthorized at ",
        "/mcp; its header `authorization` has no token: is the variable empty?",
    ]);
    let with_secrets = url.replace("http://", "http://user:SECRET@") + "?key=SECRET";
    let advice = [
        "it wants a token: add --header 'Authorization: Bearer TOKEN', or write `Authorization: Bearer ${TOKEN}` into `headers` \
         of its entry",
        "it refused the headers that were sent, `authorization`; check that the token is complete, has not expired, and is \
         for this server",
    ];
    for (url_with, advice) in [&url, &with_secrets].into_iter().zip(advice) {
        let refused = run(&["inspect", url_with]);
        assert_eq!(
            refused.stderr,
            format!(
                "error: server `127.0.0.1` answered HTTP 401 Unauthorized at {url}; {advice}\n"
            )
        );
    }
    run(&["check", &url]).refuses(&[
        "HTTP 401",
        "it wants a token: add --header 'Authorization: Bearer TOKEN', or ",
    ]);
}

/// RFC 9728: the challenge names the metadata of the resource, and that names the authorization server.
#[test]
fn a_server_that_wants_a_login_is_named_with_what_logs_in() {
    let url = answering(
        "401 Unauthorized\r\nWWW-Authenticate: Bearer resource_metadata=\"https://h.example/.well-known/r\"",
    );
    let login = "check that the token is complete, has not expired, and is for this server, or log in with `vary login` and \
                 send no `Authorization`\n";
    run(&["inspect", &url]).refuses(&[&format!(
        " answered HTTP 401 Unauthorized: log in with `vary login {url}`, or write a token of the server into `headers` \
         (for a URL on the command line, `--header`)\n"
    )]);
    let with_keys = answering("401 Unauthorized\r\nWWW-Authenticate: Bearer");
    run(&["inspect", &with_keys]).refuses(&[&format!(
        " answered HTTP 401 Unauthorized: it wants a token: add --header 'Authorization: Bearer KEY', or log in with `vary login \
         {with_keys}`\n"
    )]);
    let header = ["--header", "Authorization: Bearer x"];
    run(&["inspect", &url, header[0], header[1]]).refuses(&[&format!(
        "at {url}; it refused the headers that were sent, `authorization`; {login}"
    )]);
    run(&["inspect", &url, header[0], "Authorization: key"]).refuses(&[
        "; its header `Authorization` has no scheme: write `Authorization: Bearer TOKEN`\n",
    ]);
}

#[test]
fn a_server_without_either_transport_over_http_says_so() {
    let url = answering("405 Method Not Allowed");
    run(&["inspect", &url]).refuses(&[
        "answered `initialize` with HTTP 405 Method Not Allowed, and has no stream of the transport of 2024-11-05 (SSE) \
         either; check host and path of its address, which is often `http://",
        "/sse` (`/sse` is for the transport of 2024-11-05)\n",
    ]);
    let url = url.replace("/mcp", "");
    run(&["inspect", &url]).refuses(&["/mcp` or `http://", "/sse` (`/sse` is for the "]);
}

#[test]
fn a_program_whose_path_has_spaces_is_not_taken_for_a_command_line() {
    let missing = |program: &str| run(&["inspect", "--", program]);
    for path in [
        r"C:\Program Files\nodejs\npx.cmd",
        "/Applications/My Tools/server",
    ] {
        missing(path).refuses(&[
            path,
            "was not found; there is no file with this path; check it, or write only the name of the program if it is on \
             `PATH`\n",
        ]);
    }
    run(&[
        "inspect",
        "--",
        r"C:\Program",
        r"Files\nodejs\npx.cmd",
        "-y",
    ])
    .refuses(&[
        r#"its path has spaces: write it in quotes, as in "C:\Program Files\nodejs\npx.cmd""#,
    ]);
    missing("C:nodejsnpx.cmd")
        .refuses(&["a shell took each `\\` of its path: write the path in quotes"]);
    missing(r"C:\Program Files\nodejs\npx.cmd -y foo").refuses(&[
        r#"as in `command: 'C:\Program Files\nodejs\npx.cmd'` and `args: ["-y", "foo"]` (in JSON, write `\\` for each"#,
    ]);
    missing("/usr/bin/no-npx -y foo")
        .refuses(&["it has spaces: write only the program as `command`"]);
}

/// Files of clients that are read by an import only.
#[test]
fn a_file_that_needs_an_import_is_refused_with_the_command() {
    let cases = [
        (
            "config.toml",
            "[mcp_servers.a]\ncommand = 'x'\n",
            "1:2: `mcp_servers`",
            "Codex",
        ),
        (
            "opencode.json",
            "{\"mcp\": {\"a\": {\"type\": \"local\", \"command\": [\"x\"]}}}",
            "1:2: `mcp`",
            "opencode",
        ),
        (
            "settings.json",
            "{\"mcp\": {\"servers\": {\"a\": {\"command\": \"x\"}}}}",
            "1:2: `mcp`",
            "VS Code",
        ),
        (
            "continue.yaml",
            "name: team\nmcpServers:\n  - {name: a, command: x}\n",
            "2:1: `mcpServers`",
            "Continue",
        ),
    ];
    for (name, text, at, program) in cases {
        let path = file(name, text);
        run(&["serve", &path]).refuses(&[&format!(
            "{path}:{at} has servers as {program} writes them, which Vary has to import; run `vary config import \
             {path} > vary.yaml`, and name vary.yaml instead\n"
        )]);
        assert_eq!(run(&["config", "import", &path]).code, Some(0), "{name}");
    }
    let path = file(
        "lower-case.json",
        "{\"mcpservers\": {\"a\": {\"command\": \"x\"}}}",
    );
    run(&["inspect", &path]).refuses(&[&format!(
        "{path}:1:2: `mcpservers` is not a known key; did you mean `mcpServers`?\n"
    )]);
}

#[test]
fn a_tool_that_does_not_exist_is_refused_with_the_one_that_was_meant() {
    let text = format!(
        "naming: always\nservers: {{sky: {{command: {VARY:?}, args: [weather]}}}}\n\
         variants:\n  standard: {{}}\n  agent: {{overrides: {{tools: {{sky_get_weather: {{name: now}}}}}}}}\n"
    );
    let path = file("suggested-tools.yaml", &text);
    let tips = "
        sky_get_wether -> `sky_get_wether` is not listed; did you mean `sky_get_weather`?
        get_weather -> `get_weather` is called `sky_get_weather` here
        get_weather --variant agent -> `get_weather` is called `now` here
        now -> `now` exists in variant `agent`; add --variant agent
        nothing -> `nothing` is not listed; `vary tools TARGET` shows what is
        city=Bern -> `city=Bern` is an argument; write the tool before it: `vary call TOOL city=Bern`
    ";
    for line in tips.trim().lines() {
        let (args, tip) = line.trim().split_once(" -> ").unwrap();
        let args: Vec<&str> = args.split(' ').collect();
        let bern = r#"{"location":"Bern"}"#;
        run(&[&["call"], &args[..], &[bern, &path]].concat()).prints(1, &format!("tip: {tip}\n"));
    }
    let meant = "error: there is no variant `agnet`; did you mean `agent`?\n";
    let others = "error: there is no variant `other`; choose one of `standard`, `agent`\n";
    for command in [
        &["inspect"][..],
        &["tools"],
        &["call", "sky_get_weather"],
        &["call", "sky_get_weather", "location=Bern"],
        &["serve", "--listen", "0"],
    ] {
        for (variant, expected) in [("agnet", meant), ("other", others)] {
            let arguments = [command, &["--variant", variant, &path]].concat();
            let printed = run(&arguments).exited(2).stderr;
            assert_eq!(printed.replace("--variant: ", ""), expected, "{command:?}");
        }
    }
}

#[test]
fn a_selection_that_matches_nothing_is_warned_of_wherever_it_is_missed() {
    let text = sky("variants: {a: {tools: [get_wether]}}\n");
    let path = file("inspect-pattern.yaml", &text);
    let line = format!(
        "{path}:2:24: `variants.a.tools[0]` matches nothing: `get_wether`; did you mean `get_weather`?\n"
    );
    let checked = run(&["config", "check", &path]);
    assert_contains(&checked.stdout, &[&line]);
    for command in [
        &["inspect"][..],
        &["tools"],
        &["tools", "--diff"],
        &["call", "get_weather", "location=Bern"],
    ] {
        let warned = run(&[command, &[&path]].concat());
        let warning = format!("warning: {line}");
        assert_contains(&warned.stderr, &[&warning]);
    }
}

#[test]
fn a_feature_tag_with_a_slip_is_noted() {
    let called = with_weather(&["inspect", "--features", "huma"]);
    let note = "note: `huma` is not a registered feature tag; did you mean `human`?\n";
    called.prints(0, note);
}

#[test]
fn a_key_a_variant_and_a_pattern_with_a_slip_are_named_with_what_was_meant() {
    let checked = |name: &str, variants: &str| {
        let path = file(&format!("slip-{name}.yaml"), &sky(variants));
        run(&["config", "check", &path]).exited(1).stdout
    };
    let slips = "
        variants: {a: {description_mode: full}} -> `variants.a.description_mode` is not a known key; did you mean `descriptions`?
        variants: {standard: {}, a: {from: readonl}} -> `variants.a.from` is not a variant: `readonl`; did you mean `read-only`?
        variant: {a: {}} -> `variant` is a table of keys; write the id of the default variant, or `variants` for a table of variants
        variants: {a: {tools: [get_wether, get_forecast]}} -> `variants.a.tools[0]` matches nothing: `get_wether`; did you mean `get_weather`?
    ";
    for (at, line) in slips.trim().lines().enumerate() {
        let (variants, said) = line.trim().split_once(" -> ").unwrap();
        assert_contains(&checked(&at.to_string(), variants), &[said]);
    }
    let shown = checked("far", "variants: {standard: {}, a: {from: nope}}");
    assert_eq!(shown.matches("`standard`").count(), 1, "{shown}");
}
