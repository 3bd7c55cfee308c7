//! TARGET of `serve`, `inspect`, `call` and `check`: a URL, a file, a command, or the file of this directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{Run, Server, VARY, WEATHER, command, file, run, with_weather};
use crate::text::{assert_contains, assert_ends, assert_lacks, assert_starts};

/// An empty directory for one test.
fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// The text of a configuration with the weather server as `name`.
fn weather(name: &str) -> String {
    format!("servers: {{{name}: {{command: '{VARY}', args: [weather]}}}}\n")
}

/// The program in `directory`, which also has what it stores of the user.
fn within(directory: &Path, args: &[&str]) -> Command {
    let mut command = command(args);
    command
        .current_dir(directory)
        .env("XDG_STATE_HOME", directory.join("state"));
    command
}

#[test]
fn without_a_target_and_a_file_the_message_says_what_to_name() {
    let empty = directory("target-none");
    for name in ["serve", "inspect", "check"] {
        let expected = format!(
            "error: no server is named, and this directory has neither ./vary.yaml nor ./.mcp.json; name a file or a URL \
             as in `vary {name} FILE`, or a command as in `vary {name} -- COMMAND`\n"
        );
        let ended = Run::of(&mut within(&empty, &[name]));
        assert_eq!((ended.code, ended.stderr), (Some(2), expected));
    }
    let call = Run::of(&mut within(&empty, &["call", "x", "a=b"]));
    call.refuses(&["as in `vary call TOOL FILE`"]);
}

#[test]
fn a_file_that_nobody_named_starts_nothing_without_a_terminal() {
    let here = directory("target-found");
    let started = here.join("started");
    let script = format!("touch {}; exec {VARY} weather", started.display());
    let text = format!("servers: {{x: {{command: sh, args: [-c, '{script}']}}}}\n");
    fs::write(here.join("vary.yaml"), text).unwrap();
    let refused = Run::of(&mut within(&here, &["inspect"]));
    refused.prints(2, "error: ./vary.yaml starts servers, so it must be named: vary inspect ./vary.yaml (or add --yes)\n");
    assert!(!started.exists());
    let agreed = Run::of(&mut within(&here, &["inspect", "--yes"])).data(0);
    assert_starts(&agreed, "weather 2.0.0");
    assert!(started.exists());
    let named = Run::of(&mut within(&here, &["inspect", "vary.yaml"])).data(0);
    assert_eq!(named, agreed);
    // `--yes` is not remembered.
    Run::of(&mut within(&here, &["inspect"])).refuses(&["starts servers, so it must be named"]);
}

#[test]
fn a_configuration_comes_before_the_file_of_a_client() {
    let here = directory("target-order");
    let client = format!(
        r#"{{"mcpServers": {{"of-client": {{"command": "{VARY}", "args": ["weather"]}}, "b": {{"url": "http://127.0.0.1:1/"}}}}}}"#
    );
    fs::write(here.join(".mcp.json"), client).unwrap();
    let only = ["inspect", "--yes", "--json", "--server", "of-client"];
    let shown = Run::of(&mut within(&here, &only)).data(0);
    assert_contains(&shown, &["\"get_weather\""]);
    fs::write(here.join("vary.yaml"), weather("ours")).unwrap();
    Run::of(&mut within(&here, &only))
        .refuses(&["vary.yaml:1:10: `servers` has no server `of-client`; it has `ours`"]);
}

/// Runs the program at a terminal on which `typed` is typed, at the start and after each question, and returns what the
/// terminal shows and the exit code. Ctrl-C is typed after a question only, and a signal that is named is sent then.
#[cfg(unix)]
pub(crate) fn at_terminal(command: &Command, typed: &str) -> (String, Option<i32>) {
    const TERMINAL: &str = "import os, pty, sys
typed = sys.argv[1].encode()
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[2], sys.argv[2:])
interruptions = {
    b'\\x03': lambda: os.write(terminal, typed),
    b'SIGINT': lambda: os.kill(child, 2),
    b'SIGTERM': lambda: os.kill(child, 15),
}
answer = interruptions.get(typed, lambda: os.write(terminal, typed))
if typed not in interruptions:
    answer()
shown = b''
answers = 0
try:
    while True:
        more = os.read(terminal, 4096)
        if not more:
            break
        shown += more
        if shown.count(b'[y/N] ') > answers:
            answers += 1
            answer()
except OSError:
    pass
sys.stdout.buffer.write(shown)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
";
    let mut terminal = Command::new("python3");
    terminal.args(["-c", TERMINAL, typed, "/usr/bin/env"]);
    if let Some(directory) = command.get_current_dir() {
        terminal.current_dir(directory);
    }
    terminal
        .env_remove("VARY_LOG")
        .env("TERM", "xterm")
        .env_remove("NO_COLOR");
    for (name, value) in command.get_envs() {
        match value {
            // Python may be a script that needs its own.
            Some(path) if name == "PATH" => terminal.arg(format!("PATH={}", path.display())),
            Some(value) => terminal.env(name, value),
            None => terminal.env_remove(name),
        };
    }
    terminal.arg(command.get_program()).args(command.get_args());
    let ran = Run::of(&mut terminal);
    assert_eq!(ran.stderr, "");
    (ran.stdout.replace("\r\n", "\n"), ran.code)
}

#[cfg(unix)]
#[test]
fn at_a_terminal_a_file_is_asked_for_once_until_it_changes() {
    let here = directory("target-asked");
    fs::write(here.join("vary.yaml"), weather("sky")).unwrap();
    let question = format!(
        "./vary.yaml was found in this directory. This is what it does:\n  sky  starts {VARY} weather\nUse it? Vary \
         asks again when the file changes. [y/N] "
    );
    let ask = |typed: &str| at_terminal(&within(&here, &["inspect", "--json"]), typed);
    let (shown, code) = ask("\n");
    assert_contains(&shown, &[&question]);
    // What is typed at the start can answer the question; then the echo of the line after it comes last.
    assert_ends(shown.trim_end(), "error: ./vary.yaml is not used");
    assert_eq!(code, Some(2));
    for (interruption, echo) in [("\u{3}", "^C"), ("SIGINT", ""), ("SIGTERM", "")] {
        let (shown, code) = ask(interruption);
        assert_ends(&shown, &format!("[y/N] {echo}\nerror: interrupted\n"));
        assert_eq!(code, Some(2), "{interruption}");
    }
    let (shown, code) = ask("y\n");
    assert_contains(&shown, &[&question, "\"get_weather\""]);
    assert_eq!(code, Some(0));
    let (shown, _) = ask("");
    assert_lacks(&shown, &["Use it?"]);
    assert_contains(&shown, &["\"get_weather\""]);
    // Now a terminal is not needed either.
    Run::of(&mut within(&here, &["inspect"])).data(0);
    fs::write(here.join("vary.yaml"), weather("sea")).unwrap();
    let (shown, _) = ask("n\n");
    assert_contains(&shown, &["  sea  starts "]);
    Run::of(&mut within(&here, &["inspect"])).refuses(&["starts servers, so it must be named"]);
}

/// Who could once write the directory of what Vary remembers may have left anything there.
#[cfg(unix)]
#[test]
fn a_pipe_in_the_place_of_the_answers_is_not_waited_for() {
    use std::os::unix::fs::PermissionsExt as _;
    let here = directory("target-planted");
    fs::write(here.join("vary.yaml"), weather("sky")).unwrap();
    let state = here.join("state/vary");
    fs::create_dir_all(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).unwrap();
    let answers = state.join("confirmed-files");
    let made = Command::new("mkfifo").arg(&answers).status().unwrap();
    assert!(made.success());
    Run::of(&mut within(&here, &["inspect"])).refuses(&["starts servers, so it must be named"]);
    let (_, code) = at_terminal(&within(&here, &["inspect", "--json"]), "y\n");
    assert_eq!(code, Some(0));
    assert!(fs::symlink_metadata(&answers).unwrap().is_file());
    let mode = fs::metadata(&state).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[cfg(unix)]
#[test]
fn a_found_file_that_changes_while_it_is_served_starts_no_other_servers() {
    let here = directory("target-reload");
    let file = here.join("vary.yaml");
    fs::write(&file, weather("sky")).unwrap();
    at_terminal(&within(&here, &["inspect"]), "y\n");
    let mut served = Server::of(&mut within(&here, &["serve", "--listen", "0"]));
    fs::write(&file, weather("sky") + "variants: {mine: {}}\n").unwrap();
    served.says("vary.yaml reloaded: ");
    fs::write(
        &file,
        weather("sky") + "variants: {mine: {description: '${HOME}'}}\n",
    )
    .unwrap();
    served.says("what you did not confirm");
    fs::write(&file, weather("sea")).unwrap();
    let said = served.says("what you did not confirm");
    let expected = "./vary.yaml was not reloaded, everything stays as it was: it starts or sends what you did not confirm; start \
             Vary again to confirm it, or name the file";
    assert_contains(&said, &[expected]);
}

#[test]
fn a_word_that_is_no_target_is_followed_by_what_to_write() {
    let says = |args: &[&str], expected: &str| {
        let ended = run(args);
        assert_eq!(
            (ended.code, ended.stderr),
            (Some(2), format!("error: {expected}\n"))
        );
    };
    says(
        &["serve", "npx", "-y", "foo"],
        "`npx` is not a URL or a file; to start a server by its command, write it after `--`: `vary serve -- npx -y foo`",
    );
    says(
        &["serve", "--", "npx", "-y"],
        "`npx` got no package to run; write it at the end, as in `-- npx PACKAGE`",
    );
    says(
        &["inspect", "my-server"],
        "`my-server` is not a URL or a file; to start it as a server, write `vary inspect -- my-server`",
    );
    says(
        &["tools", "example.com/mcp"],
        "`example.com/mcp` is not a URL or a file; if it is an address, write `https://example.com/mcp`; to start it as a \
         server, write `vary tools -- example.com/mcp`",
    );
    says(
        &["inspect", "1"],
        "server `127.0.0.1` cannot be reached: http://127.0.0.1:1/mcp: connection refused; start the server, or correct host and port",
    );
    says(
        &["check", "npx -y foo"],
        "`npx -y foo` is not a URL or a file; to start a server by its command, write `vary check -- COMMAND`, without \
         quotes",
    );
    says(
        &["serve", "--config", "vary.yaml", "--stdio"],
        "`--config` does not exist; write the file or URL alone, or a server's command after `--`",
    );
    says(
        &["inspect", "no-such.yaml"],
        &format!(
            "no-such.yaml cannot be read: no such file in {}",
            env!("CARGO_MANIFEST_DIR")
        ),
    );
    says(
        &["call", "x", "a.yaml", "http://x/"],
        "`a.yaml` and `http://x/` are two targets; write an argument as NAME=VALUE, and a server's command after `--`",
    );
    says(
        &["serve", "http://x/?key=secret", "--", "y"],
        "`http://x/` and a command after `--` are two targets; leave one of them out",
    );
}

#[test]
fn a_wrong_ending_is_followed_by_the_file_that_is_there() {
    let here = directory("target-endings");
    for (name, mistyped) in [("one.yaml", "one.yam"), (".mcp.json", ".mcp.jsn")] {
        let path = here.join(name);
        fs::write(&path, weather("x")).unwrap();
        let typed = here.join(mistyped);
        run(&["serve", typed.to_str().unwrap()]).prints(
            2,
            &format!(
                "error: `{}` does not exist; did you mean `{}`?\n",
                typed.display(),
                path.display()
            ),
        );
    }
}

#[test]
fn a_directory_in_place_of_a_file_is_refused_with_the_files_in_it() {
    let here = directory("target-directory");
    let path = here.to_str().unwrap();
    for command in ["inspect", "serve"] {
        run(&[command, path]).refuses(&[&format!(
            "error: {path} is a directory; name a file in it, such as `{path}/vary.yaml`\n"
        )]);
    }
    fs::create_dir(here.join(".vscode")).unwrap();
    for name in [".mcp.json", ".vscode/mcp.json", "vary.yaml"] {
        fs::write(here.join(name), "{}").unwrap();
    }
    run(&["config", "check", path]).refuses(&[&format!(
        "{path} is a directory; name the file in it: `{path}/vary.yaml` or `{path}/.mcp.json` or `{path}/.vscode/mcp.json`\n"
    )]);
}

#[test]
fn an_option_that_has_no_effect_on_the_target_is_refused() {
    run(&["serve", "--server", "a", "http://127.0.0.1:1/"])
        .refuses(&["--server selects servers of a file, and TARGET is not a file; leave it out"]);
    with_weather(&["inspect", "--header", "a: b"]).refuses(&[
        "--header is for a URL, and TARGET is not a URL; a command gets no headers; leave it out",
    ]);
    let here = directory("target-options");
    let file = here.join("x.yaml");
    fs::write(&file, weather("x")).unwrap();
    let path = file.to_str().unwrap();
    run(&["check", "--header", "a: b", path])
        .refuses(&["write `headers` into the server's entry of the file"]);
    run(&["inspect", "--admin", "8801", path])
        .refuses(&["--admin is the address of a running gateway, so TARGET must be its URL"]);
}

#[test]
fn several_servers_of_a_file_can_be_selected_in_every_command() {
    let here = directory("target-servers");
    let file = here.join("three.yaml");
    let entry = format!("{{command: '{VARY}', args: [weather]}}");
    fs::write(
        &file,
        format!("servers: {{a: {entry}, b: {entry}, c: {{command: no-such-program}}}}\n"),
    )
    .unwrap();
    let path = file.to_str().unwrap();
    let two = ["--server", "a", "--server", "b", path];
    let shown = run(&[&["inspect", "--json"][..], &two].concat()).data(0);
    assert_contains(&shown, &["\"a_get_weather\""]);
    assert_lacks(&shown, &["no-such-program"]);
    run(&[&["call", "b_get_weather", "location=Bern"][..], &two].concat()).data(0);
    let served = Server::start(&[&["serve", "--listen", "0"][..], &two].concat());
    assert_contains(&served.said, &["in front of 2 servers"]);
    let _checked = run(&[&["check", "--only", "SV-1"][..], &two].concat()).exited(0);
}

#[cfg(unix)]
#[test]
fn at_a_terminal_stdio_says_what_it_waits_for() {
    let mut args = vec!["serve", "--stdio"];
    args.extend(WEATHER);
    // Ctrl-D ends the input.
    let (shown, code) = at_terminal(&command(&args), "\u{4}");
    let expected = "waiting for an MCP client on standard input, which is a terminal here: --stdio is for programs that start Vary";
    assert_contains(&shown, &[expected]);
    assert_eq!(code, Some(0), "{shown}");
    let piped = run(&args);
    assert_lacks(&piped.stderr, &["waiting for an MCP client"]);
}

#[cfg(unix)]
#[test]
fn at_a_terminal_the_log_is_above_the_line_that_shows_the_progress() {
    let text = format!(
        "servers:\n  sky: {{command: {VARY:?}, args: [weather]}}\n  gone: {{command: sh, args: [-c, 'sleep 0.5; echo noise >&2; sleep 0.5; exit 1']}}\n"
    );
    let path = file("target-progress.yaml", &text);
    let command = command(&["-vv", "serve", "--stdio", &path]);
    let (shown, _) = at_terminal(&command, "\u{4}");
    let line = shown.lines().find(|line| line.contains("noise"));
    let line = line.unwrap_or_else(|| panic!("{shown}"));
    let (before, _) = line.split_once("DEBUG").unwrap();
    let (progress, time) = before.rsplit_once("\r\u{1b}[K").unwrap();
    assert!(progress.contains("`gone` ..."), "{shown}");
    assert!(!time.contains("waiting"), "{shown}");
}

#[cfg(unix)]
#[test]
fn the_log_has_colors_at_terminals_that_want_them() {
    let script = format!("echo noise >&2; exec {VARY} weather");
    let args = ["-vv", "serve", "--stdio", "--", "sh", "-c", &script];
    let log = |variables: &[(&str, &str)]| {
        let mut command = command(&args);
        command.envs(variables.iter().copied());
        let (shown, _) = at_terminal(&command, "\u{4}");
        let line = shown.lines().find(|line| line.contains("noise"));
        let line = line.unwrap_or_else(|| panic!("{shown}"));
        // There, the time of the day is enough.
        let digits = |c: char| if c.is_ascii_digit() { '0' } else { c };
        let shape: String = line.chars().map(digits).collect();
        assert!(
            shape.contains("00:00:00Z") && !shape.contains("0000-00-00"),
            "{line}"
        );
        line.contains("\u{1b}[0m")
    };
    assert!(log(&[]));
    assert!(!log(&[("NO_COLOR", "1")]));
    assert!(!log(&[("TERM", "dumb")]));
}

#[cfg(unix)]
#[test]
fn verbose_and_quiet_change_what_is_written_to_standard_error() {
    let script = format!("echo noise >&2; exec {VARY} weather");
    let serve = |more: &[&str]| {
        let args = [more, &["serve", "--stdio", "--", "sh", "-c", &script]].concat();
        run(&args).notices()
    };
    let usual = serve(&[]);
    assert_contains(&usual, &["in front of weather"]);
    assert_lacks(&usual, &["noise"]);
    let more = serve(&["-v"]);
    assert_contains(&more, &["server connected"]);
    assert_lacks(&more, &["noise"]);
    assert_contains(&serve(&["-vv"]), &["noise"]);
    assert_eq!(serve(&["-q"]), "");
    let gone = run(&["-q", "serve", "--stdio", "--", "no-such-program"]);
    gone.refuses(&["error: "]);
}

#[test]
fn arguments_can_be_typed_in_every_form() {
    let expected = with_weather(&["call", "get_weather", r#"{"location":"Bern"}"#]).data(0);
    let here = directory("target-arguments");
    let file = here.join("bern.json");
    fs::write(&file, "{\"location\": \"Bern\"}\n").unwrap();
    let at = format!("@{}", file.display());
    for words in [
        &["location=Bern"][..],
        &["location:=\"Bern\""],
        &[&at],
        &["{\"location\":\"Basel\"}", "location=Bern"],
    ] {
        let shown = with_weather(&[&["call", "get_weather"], words].concat()).data(0);
        assert_eq!(shown, expected, "{words:?}");
    }
    with_weather(&["call", "get_weather", "@no-such.json"])
        .refuses(&["the arguments in no-such.json cannot be read: no such file or directory\n"]);
    with_weather(&["call", "get_weather", "location:=Bern"]).refuses(&[
        "the argument `location` is not JSON: ",
        "write text as `location=TEXT`",
    ]);
}

#[test]
fn help_of_a_command_is_what_its_flag_prints() {
    for command in ["serve", "call", "status"] {
        assert_eq!(
            run(&["help", command]).data(0),
            run(&[command, "--help"]).data(0)
        );
    }
    assert_eq!(
        run(&["help", "config", "check"]).data(0),
        run(&["config", "check", "--help"]).data(0)
    );
}
