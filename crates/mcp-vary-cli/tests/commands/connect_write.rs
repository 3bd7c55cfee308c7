//! `vary connect --write` and `--remove`: the client's file keeps everything else, and is itself again at the end.

use std::io::{BufRead as _, BufReader};

use serde_json::{Value, json};

use crate::connect::{CLIENTS, Home};
use crate::program::{Run, Server, VARY, file, run, sky};
use crate::text::{assert_contains, assert_ends, assert_lacks, assert_starts};

/// What the client starts in these tests.
const SKY: [&str; 3] = ["--", VARY, "weather"];

impl Run {
    /// Checks that the command did its work, and said each of `parts`.
    #[track_caller]
    fn says(&self, parts: &[&str]) {
        assert_eq!(
            (self.code, self.stdout.as_str()),
            (Some(0), ""),
            "{}",
            self.stderr
        );
        for part in parts {
            assert_contains(&self.stderr, &[part]);
        }
    }
}

fn own_files(home: &Home, file: &str) -> [bool; 2] {
    [".vary-backup", ".vary-record.json"].map(|end| home.path(&format!("{file}{end}")).exists())
}

#[cfg(not(windows))]
#[test]
fn each_client_gets_vary_keeps_the_rest_and_is_itself_again() {
    let home = Home::new("round");
    for (client, _, file, container) in CLIENTS {
        let before = match client {
            "codex" => {
                "# mine\nmodel = \"x\" # fast\n\n[mcp_servers.other]\ncommand = 'y'\n".to_owned()
            }
            _ => format!(
                "{{\n\t// mine\n\t\"{container}\": {{\n\t\t\"other\": {{\"type\": \"local\", \"command\": [\"y\"]}}, // 1\n\t}},\n\t\"n\": 1.10,\n}}"
            ),
        };
        home.write(file, &before);
        let run = home.connect(&[&[client, "--write"], &SKY[..]].concat());
        run.says(&[
            "wrote `vary` to ",
            "connected: 2 tools, `get_weather` for one",
            &format!("vary connect {client} --remove"),
        ]);
        let after = home.read(file);
        assert_ne!(after, before);
        for line in before
            .lines()
            .filter(|line| line.contains("mine") || line.contains("other") || line.contains("1.10"))
        {
            assert_contains(&after, &[line]);
        }
        assert_eq!(home.read(&format!("{file}.vary-backup")), before);
        home.connect(&[client, "--remove"])
            .says(&["took Vary out of "]);
        assert_eq!(home.read(file), before, "{client}");
        assert_eq!(own_files(&home, file), [false, false]);
    }
}

#[test]
fn a_client_without_a_file_gets_one_and_loses_it_again() {
    let home = Home::new("fresh");
    for (client, _, file, _) in CLIENTS {
        home.connect(&[&[client, "--write"], &SKY[..]].concat())
            .says(&["; the file is new", "connected: "]);
        assert_contains(&home.read(file), &["vary"]);
        home.connect(&[client, "--remove"])
            .says(&["which had only Vary"]);
        assert!(!home.path(file).exists());
        assert_eq!(own_files(&home, file), [false, false]);
    }
}

#[test]
fn an_address_is_tried_as_well() {
    let server = Server::serve(&[SKY[0], SKY[1], SKY[2]]);
    let home = Home::new("address");
    let run = home.connect(&["cursor", &server.url(), "--variant", "standard", "--write"]);
    run.says(&["connected: 2 tools"]);
    assert_lacks(&run.stderr, &["--config"]);
    let url = format!("{}/v/standard", server.url());
    let written: Value = serde_json::from_str(&home.read(".cursor/mcp.json")).unwrap();
    assert_eq!(written, json!({"mcpServers": {"vary": {"url": url}}}));
}

#[test]
fn a_variant_that_does_not_exist_is_reported_with_the_nearest() {
    let server = Server::serve(&[SKY[0], SKY[1], SKY[2]]);
    let home = Home::new("variant");
    let run = home
        .connect(&["cursor", &server.url(), "--variant", "standrad", "--write"])
        .exited(1);
    let expected = "nothing was written: there is no variant `standrad`; did you mean `standard`?\n\
                    repeat the command with another --variant\n";
    assert_ends(&run.stderr, expected);
    assert!(!home.path(".cursor").exists());
}

#[test]
fn a_variant_that_does_not_exist_is_reported_before_its_entry_is_added() {
    let server = Server::serve(&[SKY[0], SKY[1], SKY[2]]);
    let home = Home::new("printed-variant");
    let run = home
        .connect(&["cursor", &server.url(), "--variant", "standrad"])
        .exited(1);
    let expected = "there is no variant `standrad`; did you mean `standard`?\n\
                    repeat the command with another --variant\n";
    assert_ends(&run.stderr, expected);
    assert_eq!(run.stdout, "");
    let _run = home
        .connect(&["cursor", &server.url(), "--variant", "standard"])
        .exited(0);
    assert!(!home.path(".cursor/mcp.json").exists());
}

/// The file is written all the same: the gateway may be started later.
#[test]
fn a_connection_that_fails_says_what_to_do() {
    let home = Home::new("unreachable");
    let run = home
        .connect(&["cursor", "http://127.0.0.1:9/mcp", "--write"])
        .exited(1);
    assert_contains(
        &run.stderr,
        &["mcp.json is written, but nothing answers at http://127.0.0.1:9/mcp; "],
    );
    let undo = "\nto undo it: vary connect cursor --remove\n";
    assert_ends(&run.stderr, undo);
    assert!(home.path(".cursor/mcp.json").exists());
    let run = home
        .connect(&["windsurf", "--write", "--", "no-such-program-here"])
        .exited(1);
    assert_contains(&run.stderr, &["to see what is wrong, run: "]);
}

#[cfg(unix)]
#[test]
fn a_connection_that_is_interrupted_was_not_tried_and_says_how_to_undo_the_entry() {
    let home = Home::new("interrupted");
    let mut connect = home.command(&["cursor", "--write", "--", "sleep", "1000"]);
    let mut child = connect
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert_starts(&lines.next().unwrap().unwrap(), "wrote `vary`");
    crate::program::signal("INT", child.id());
    let said: Vec<_> = lines.map(Result::unwrap).collect();
    let [.., error, undo] = &said[..] else {
        panic!("{said:?}");
    };
    // What was waited for is named if the wait had begun when the signal came.
    let expected = format!(
        "; {} is written, and whether the connection works is not known; repeat the command to try it",
        home.path(".cursor/mcp.json").display()
    );
    let interrupted = error.strip_suffix(&expected);
    let begun = Some("error: interrupted before `vary` was ready");
    assert!(
        interrupted == Some("error: interrupted") || interrupted == begun,
        "{said:?}"
    );
    assert_eq!(undo, "to undo it: vary connect cursor --remove");
    child.wait().unwrap();
}

/// Its progress says how long the wait is, and for whom.
#[cfg(unix)]
#[test]
fn a_connection_that_is_interrupted_names_the_servers_that_were_not_ready() {
    let home = Home::new("not-ready");
    let state = std::env::temp_dir().join(format!("vary-not-ready-{}", std::process::id()));
    let sky = json!({"command": VARY, "args": ["weather"]});
    let hang = json!({"command": "/bin/sleep", "args": ["1000"]});
    let config = |more: &Value| json!({"servers": {"sky": sky, "other": more}, "start-wait": "1h"});
    home.write("project/vary.json", &config(&hang).to_string());
    let mut connect = home.command(&["cursor", "vary.json", "--write"]);
    connect.env("XDG_STATE_HOME", &state);
    let mut child = connect
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map(Result::unwrap);
    assert!(lines.any(|line| line == "waiting for `other` ... 5 s, 60 at most"));
    crate::program::signal("INT", child.id());
    let path = home.path(".cursor/mcp.json");
    let expected = format!(
        "error: interrupted before `other` was ready; ready: `sky`; {} is written, and whether the connection works is not \
         known; to see what each server answers, after its `start-timeout` (a minute by default) at most: vary config check vary.json",
        path.display()
    );
    let said: Vec<_> = lines.collect();
    assert!(said.contains(&expected), "{said:?}");
    assert_eq!(child.wait().unwrap().code(), Some(1));
    home.write("project/vary.json", &config(&sky).to_string());
    let mut connect = home.command(&["cursor", "vary.json", "--write"]);
    let connected = Run::of(connect.env("XDG_STATE_HOME", &state));
    connected.says(&["connected to `sky`, `other`: 4 tools, `"]);
    std::fs::remove_dir_all(state).unwrap();
}

/// Also when the terminal is closed, which is another signal.
#[cfg(target_os = "linux")]
#[test]
fn a_server_that_ignores_every_signal_ends_with_the_command_that_is_interrupted() {
    let home = Home::new("deaf");
    let script = "trap '' TERM INT HUP; echo $$ > pid; exec /bin/sleep 1000";
    let config = json!({"servers": {"deaf": {"command": "/bin/sh", "args": ["-c", script]}}});
    home.write("project/vary.json", &config.to_string());
    for (signal, args) in [
        ("INT", &["connect", "cursor", "vary.json", "--write"][..]),
        ("HUP", &["inspect", "vary.json"]),
        (
            "HUP",
            &["serve", "--listen", "0", "--", "/bin/sh", "-c", script],
        ),
    ] {
        let mut command = with_hangup("--default-signal=HUP", &home.command_of(args));
        let mut child = command.spawn().unwrap();
        let pid = home.path("project/pid");
        let server = loop {
            let read = std::fs::read_to_string(&pid).unwrap_or_default();
            if read.ends_with('\n') {
                break read;
            }
            assert!(child.try_wait().unwrap().is_none(), "{args:?} has ended");
            std::thread::sleep(std::time::Duration::from_millis(20));
        };
        std::fs::remove_file(pid).unwrap();
        crate::program::signal(signal, child.id());
        child.wait().unwrap();
        let has_ended = || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", server.trim()));
            status.map_or(true, |it| it.contains("State:\tZ"))
        };
        // A process that was killed ends when it is its turn.
        let pause = std::time::Duration::from_millis(10);
        let has_ended = (0..1000).any(|_| {
            has_ended() || {
                std::thread::sleep(pause);
                false
            }
        });
        assert!(has_ended, "{args:?}: it still runs");
    }
}

/// The command without messages, for which `option` of `env` decides what SIGHUP does.
#[cfg(target_os = "linux")]
fn with_hangup(option: &str, inner: &std::process::Command) -> std::process::Command {
    let mut command = std::process::Command::new("/usr/bin/env");
    command.arg(option).arg(inner.get_program());
    command
        .args(inner.get_args())
        .stderr(std::process::Stdio::null());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.current_dir(inner.get_current_dir().unwrap());
    command
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_that_nohup_started_goes_on_when_its_terminal_is_closed() {
    let home = Home::new("nohup");
    let script = format!("echo $$ > pid; exec '{VARY}' weather");
    let args = ["serve", "--listen", "0", "--", "/bin/sh", "-c", &script];
    let mut command = with_hangup("--ignore-signal=HUP", &home.command_of(&args));
    let mut child = command.spawn().unwrap();
    // Its server runs, so it has begun to receive signals.
    while !home.path("project/pid").exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    crate::program::signal("HUP", child.id());
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none(), "it has ended");
    crate::program::signal("INT", child.id());
    child.wait().unwrap();
}

#[test]
fn a_gateway_that_wants_a_key_is_told_from_one_that_does_not_run() {
    let made = run(&["key", "new", "ci"]);
    let (key, entry) = (made.stdout.trim(), &made.stderr);
    let entry = entry.lines().find(|line| line.contains("sha256")).unwrap();
    let entry = entry.trim().trim_start_matches("- ");
    let text = sky(&format!("auth: {{keys: [{entry}]}}\n"));
    let path = file("connect-keys.yaml", &text);
    let server = Server::serve(&[&path]);
    let (home, url) = (Home::new("keys"), server.url());
    let tried = |header: &[&str]| {
        let mut connect = home.command(&[&["cursor", &url, "--write"], header].concat());
        let tried = Run::of(connect.env("KEY", "vary_wrong").env("RAW", key)).exited(1);
        tried.stderr
    };
    for (header, part) in [
        (
            &[][..],
            "but the gateway wants a key or a login: repeat the command with `--header 'Authorization: Bearer \
             ${VARY_API_KEY}'`, or let Cursor log in by itself (HTTP 401 Unauthorized)\nto undo it: ",
        ),
        (
            &["--header", "Authorization: Bearer ${KEY}"],
            "but the gateway does not know the key or token of --header: check that it is complete",
        ),
        (
            &["--header", "Authorization: ${RAW}"],
            ": only the authorization scheme Bearer is supported; its header `Authorization` has no scheme: write \
             `Authorization: Bearer TOKEN`\n",
        ),
    ] {
        let said = tried(header);
        assert_contains(&said, &[part]);
        assert_lacks(&said, &["error_description"]);
    }
}

/// Servers that run and do not work are reported with their reason, all of them and one of them.
#[cfg(unix)]
#[test]
fn servers_that_do_not_work_are_named_with_their_reason() {
    let home = Home::new("broken-servers");
    let crash = "crash: {command: /bin/sh, args: [-c, 'echo no licence >&2; exit 3']}";
    home.write("project/all.yaml", &format!("servers: {{{crash}}}"));
    let all = home.connect(&["cursor", "all.yaml", "--write"]).exited(1);
    assert_contains(
        &all.stderr,
        &[
            "Vary starts, but no server behind it works:\n  ",
            "no licence",
        ],
    );
    let sky = format!("sky: {{command: {VARY:?}, args: [weather]}}");
    home.write("project/one.yaml", &format!("servers: {{{crash}, {sky}}}"));
    let one = home.connect(&["cursor", "one.yaml", "--write"]).exited(0);
    assert_contains(
        &one.stderr,
        &[
            "not all servers work:\n  crash",
            "no licence",
            "connected: 2 tools",
        ],
    );
}

#[test]
fn servers_that_vary_serves_are_named_moved_on_request_and_put_back() {
    let home = Home::new("move");
    let entry = json!({"command": VARY, "args": ["weather"]});
    let config = json!({"servers": {"sky": entry, "web": {"url": "http://127.0.0.1:9/mcp"}}});
    home.write("project/vary.json", &config.to_string());
    let before = format!(
        "{{\n  \"mcpServers\": {{\n    \"weather\": {{\"command\": \"{VARY}\", \"args\": [\"weather\"]}}, // rain\n    \"mine\": {{\"command\": \"m\"}},\n    \"web\": {{\"command\": \"other\"}},\n    \"sky\": {{\"command\": \"{VARY}\", \"args\": [\"weather\"], \"env\": {{\"N\": \"20\"}}}}\n  }}\n}}\n"
    );
    home.write(".cursor/mcp.json", &before);
    let named = home.connect(&["cursor", "vary.json", "--write"]);
    named.says(&[
        "`weather` starts the same command as a server that Vary serves: Cursor would have its tools twice\n",
        "`web` has the same name as a server that Vary serves",
        "`sky` starts the same command as a server that Vary serves, but with another `env`, so it stays\n",
        "they stay; to take them out: vary connect cursor vary.json --write --move\n",
    ]);
    assert_contains(&home.read(".cursor/mcp.json"), &["// rain"]);
    let moved = home.connect(&["cursor", "vary.json", "--write", "--move"]);
    moved.says(&["took out `weather`, `web`\n"]);
    let text = home.read(".cursor/mcp.json");
    let left: Value = serde_json::from_str(&text).unwrap();
    let names: Vec<&String> = left["mcpServers"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["mine", "sky", "vary"]);
    assert_eq!(home.read(".cursor/mcp.json.vary-backup"), before);
    home.connect(&["cursor", "--remove"]).says(&[]);
    assert_eq!(home.read(".cursor/mcp.json"), before);
}

#[test]
fn what_the_user_changed_meanwhile_stays() {
    let home = Home::new("meanwhile");
    let before = format!(
        "{{\"mcpServers\": {{\"sky\": {{\"command\": \"{VARY}\", \"args\": [\"weather\"]}}}}}}"
    );
    let path = home.write(".claude.json", &before);
    home.connect(&[&["claude-code", "--write", "--move"], &SKY[..]].concat())
        .says(&["took out `sky`"]);
    // The client prints its file anew, and the user adds a server.
    let mut now: Value = serde_json::from_str(&home.read(".claude.json")).unwrap();
    now["mcpServers"]["new"] = json!({"command": "n"});
    now["history"] = json!([1]);
    std::fs::write(&path, format!("{now:#}\n")).unwrap();
    home.connect(&["claude-code", "--remove"])
        .says(&["changed in other places as well"]);
    let restored: Value = serde_json::from_str(&home.read(".claude.json")).unwrap();
    let sky = json!({"command": VARY, "args": ["weather"]});
    let expected = json!({"mcpServers": {"new": {"command": "n"}, "sky": sky}, "history": [1]});
    assert_eq!(restored, expected);
    assert_eq!(own_files(&home, ".claude.json"), [true, false]);
}

#[test]
fn an_entry_that_the_user_changed_is_not_taken_out() {
    let home = Home::new("changed");
    home.connect(&[&["codex", "--write"], &SKY[..]].concat())
        .says(&[]);
    let written = home.read(".codex/config.toml");
    let text = written.replace("weather", "other");
    home.write(".codex/config.toml", &text);
    let run = home.connect(&["codex", "--remove"]);
    run.says(&["note: `vary` was changed since, and stays; take it out by hand"]);
    assert_eq!(home.read(".codex/config.toml"), text);
}

#[test]
fn an_entry_with_a_setting_that_the_user_added_is_taken_out() {
    let home = Home::new("set");
    home.connect(&[&["codex", "--write"], &SKY[..]].concat())
        .says(&[]);
    let text = home.read(".codex/config.toml") + "tool_timeout_sec = 9\n";
    home.write(".codex/config.toml", &text);
    home.connect(&["codex", "--remove"]).says(&[]);
    assert!(!home.read(".codex/config.toml").contains("vary"));
}

#[test]
fn written_again_the_entry_is_replaced_and_the_backup_stays_the_first() {
    let home = Home::new("again");
    let before = "{\"mcpServers\": {}}\n";
    home.write(".gemini/settings.json", before);
    home.connect(&[&["gemini-cli", "--write"], &SKY[..]].concat())
        .says(&[]);
    home.connect(&[&["gemini-cli", "--write", "--variant", "compact"], &SKY[..]].concat())
        .says(&[]);
    home.connect(&[&["gemini-cli", "--write", "--name", "second"], &SKY[..]].concat())
        .says(&[]);
    let text = home.read(".gemini/settings.json");
    let entries: Value = serde_json::from_str(&text).unwrap();
    let names: Vec<&String> = entries["mcpServers"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["vary", "second"]);
    assert_eq!(text.matches("compact").count(), 1, "{text}");
    assert_eq!(home.read(".gemini/settings.json.vary-backup"), before);
    home.connect(&["gemini-cli", "--remove"]).says(&[]);
    assert_eq!(home.read(".gemini/settings.json"), before);
}

/// <https://opencode.ai/v2/docs/mcp-servers>: version 2 has servers under `mcp.servers`, and no `enabled`.
#[test]
fn opencode_2_gets_its_own_form_where_the_file_has_it() {
    let home = Home::new("opencode2");
    let before = "{\n  \"mcp\": {\n    \"servers\": {\n    },\n  },\n}\n";
    home.write(".config/opencode/opencode.jsonc", before);
    home.connect(&[&["opencode", "--write"], &SKY[..]].concat())
        .says(&["opencode.jsonc; the file as it was is"]);
    let line = format!(
        "      \"vary\": {{\n        \"type\": \"local\",\n        \"command\": [\"{VARY}\", \"serve\", \"--stdio\", \"--directory\", \"{}\", \"--\", \"{VARY}\", \"weather\"]\n      }}\n",
        home.path("project").display()
    );
    let text = home.read(".config/opencode/opencode.jsonc");
    assert_contains(&text, &[&line]);
    home.connect(&["opencode", "--remove"]).says(&[]);
    assert_eq!(home.read(".config/opencode/opencode.jsonc"), before);
}

#[test]
fn a_second_entry_has_its_name_in_each_message_and_is_taken_out_alone() {
    let home = Home::new("two-names");
    let write =
        |name: &str| home.connect(&[&["cursor", "--write", "--name", name], &SKY[..]].concat());
    let first = write("one");
    first.says(&[
        "; the file is new\n",
        "switch `one` on",
        "to undo it: vary connect cursor --remove\n",
    ]);
    let second = write("two");
    second.says(&[
        ".cursor/mcp.json\n",
        "switch `two` on",
        "to undo it: vary connect cursor --remove --name two\n",
    ]);
    assert_lacks(&second.stderr, &["is new"]);
    home.connect(&["cursor", "--remove", "--name", "three"])
        .refuses(&["Vary has not written `three` to "]);
    home.connect(&["cursor", "--remove", "--name", "two"])
        .says(&["took `two` out of "]);
    let left: Value = serde_json::from_str(&home.read(".cursor/mcp.json")).unwrap();
    let names: Vec<&String> = left["mcpServers"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["one"]);
    home.connect(&["cursor", "--remove", "--name", "one"])
        .says(&["which had only Vary"]);
    assert!(!home.path(".cursor/mcp.json").exists());
}

#[test]
fn a_misspelled_key_for_the_servers_is_named_with_its_place() {
    let home = Home::new("misspelled");
    let text = "{\n  \"mcpservers\": {\"git\": {\"command\": \"uvx\"}}\n}\n";
    home.write("project/.mcp.json", text);
    home.connect(&[&["claude-code", "--project", "--write"], &SKY[..]].concat())
        .says(&["warning: .mcp.json:2:3: `mcpservers` is not a known key, so Claude Code ignores what it holds; did you mean `mcpServers`?\n"]);
}

#[test]
fn a_project_has_its_own_file() {
    let home = Home::new("project");
    home.connect(&[&["vscode", "--project", "--write"], &SKY[..]].concat())
        .says(&[
            "wrote `vary` to .vscode/mcp.json; the file is new",
            "vary connect vscode --project --remove",
        ]);
    let expected = "\"command\": \"vary\"";
    assert_contains(&home.read("project/.vscode/mcp.json"), &[expected]);
    home.connect(&["vscode", "--project", "--remove"])
        .says(&["removed .vscode/mcp.json"]);
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link_and_the_file_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new("link");
    let real = home.write("dotfiles/cursor.json", "{}");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::fs::create_dir_all(home.path(".cursor")).unwrap();
    std::os::unix::fs::symlink(&real, home.path(".cursor/mcp.json")).unwrap();
    home.connect(&[&["cursor", "--write"], &SKY[..]].concat())
        .says(&[]);
    assert!(
        std::fs::symlink_metadata(home.path(".cursor/mcp.json"))
            .unwrap()
            .is_symlink()
    );
    assert_contains(&home.read("dotfiles/cursor.json"), &["vary"]);
    let mode = |file: &str| {
        std::fs::metadata(home.path(file))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode("dotfiles/cursor.json"), 0o640);
    assert_eq!(mode(".cursor/mcp.json.vary-backup"), 0o640);
    home.connect(&["cursor", "--remove"]).says(&[]);
    assert_eq!(home.read("dotfiles/cursor.json"), "{}");
    let left: Vec<_> = std::fs::read_dir(home.path(".cursor")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// A program that is not there is known at once.
#[test]
fn a_connection_in_front_of_servers_that_are_down_has_the_reason_of_each() {
    let home = Home::new("some-down");
    let sky = json!({"command": VARY, "args": ["weather"]});
    let servers = json!({"sky": sky, "bad": {"command": "no-such-program"}});
    home.write(
        "project/vary.json",
        &json!({"servers": servers}).to_string(),
    );
    let run = home.connect(&["cursor", "vary.json", "--write"]);
    run.says(&[
        "not all servers work:\n  bad  down: the program `no-such-program` was not found",
        "connected: 2 tools, `sky_get_weather` for one; `bad` is down\n",
    ]);
}
