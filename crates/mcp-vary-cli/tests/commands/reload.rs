//! `vary serve FILE`, while its file changes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::json;

use crate::program::{INITIALIZE, Server, VARY, command, run, signal};
use crate::text::{assert_contains, assert_ends, assert_lacks};

/// A directory for one test, with a configuration in it.
fn directory(name: &str, text: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("vary.yaml"), text).unwrap();
    directory
}

/// A configuration with these servers.
fn with(servers: &[&str]) -> String {
    let servers = servers.iter().map(|name| {
        let entry = json!({"command": VARY, "args": ["weather"]});
        format!("  {name}: {entry}\n")
    });
    format!("naming: always\nservers:\n{}", servers.collect::<String>())
}

fn serve(file: &Path) -> Server {
    Server::serve(&[file.to_str().unwrap()])
}

/// The names of the tools that are offered now.
fn tools(server: &Server) -> Vec<String> {
    let names = server.tools().into_iter();
    names
        .filter(|name| name.ends_with("_get_weather"))
        .collect()
}

#[test]
fn a_file_that_is_edited_is_served_as_it_is_now() {
    let directory = directory("reload-edited", &with(&["one", "two"]));
    let file = directory.join("vary.yaml");
    let mut server = serve(&file);
    assert_eq!(tools(&server), ["one_get_weather", "two_get_weather"]);
    std::fs::write(&file, with(&["two", "three"])).unwrap();
    let line = server.says("reloaded: ");
    let expected = "vary.yaml reloaded: servers: 1 added (three), 1 removed (one), 1 as before; \
                    variants: 4 as before\n";
    assert_ends(&line, expected);
    assert_eq!(tools(&server), ["two_get_weather", "three_get_weather"]);
    // As editors save it.
    let draft = directory.join(".vary.yaml.swp");
    std::fs::write(&draft, with(&["two"])).unwrap();
    std::fs::rename(&draft, &file).unwrap();
    assert_contains(&server.says("reloaded: "), &["1 removed (three)"]);
    assert_eq!(tools(&server), ["two_get_weather"]);
    // Still watched, though it is another file now.
    std::fs::write(&file, with(&["four"])).unwrap();
    let part = "1 added (four), 1 removed (two)";
    assert_contains(&server.says("reloaded: "), &[part]);
    assert_eq!(tools(&server), ["four_get_weather"]);
}

/// Puts a whole file in the place of `file`: nobody reads half of it.
fn replace(file: &Path, text: &str) {
    let draft = file.with_extension("draft");
    std::fs::write(&draft, text).unwrap();
    std::fs::rename(&draft, file).unwrap();
}

#[test]
fn a_bad_file_changes_nothing_and_says_why() {
    let directory = directory("reload-bad", &with(&["one"]));
    let file = directory.join("vary.yaml");
    let mut server = serve(&file);
    let bad = "servers:\n  one: {commnd: x, headers: {Authorization: hunter2}}\nnamig: always\n";
    replace(&file, bad);
    let line = server.says("was not reloaded, everything stays as it was: ");
    let hint = server.says("did you mean `naming`");
    assert!(!format!("{line}{hint}").contains("hunter2"), "{line}{hint}");
    assert!(
        hint.contains("vary.yaml:2:") && hint.contains("vary.yaml:3:"),
        "{line}{hint}"
    );
    assert_eq!(tools(&server), ["one_get_weather"]);
    let down = "servers:\n  one: {command: no-such-program}\n";
    replace(&file, down);
    let line = server.says("was not reloaded");
    assert_contains(&line, &["no-such-program"]);
    assert_eq!(tools(&server), ["one_get_weather"]);
    std::fs::remove_file(&file).unwrap();
    let line = server.says("was not reloaded");
    assert_contains(&line, &["cannot be read"]);
    std::fs::write(&file, with(&["one", "two"])).unwrap();
    assert_contains(&server.says("reloaded: "), &["1 added (two), 1 as before"]);
    assert_eq!(tools(&server), ["one_get_weather", "two_get_weather"]);
}

#[cfg(unix)]
#[test]
fn the_signal_reloads_whatever_has_changed() {
    let directory = directory("reload-signal", &with(&["one"]));
    let mut server = serve(&directory.join("vary.yaml"));
    for _ in 0..2 {
        signal("HUP", server.child.id());
        let line = server.says("reloaded: ");
        assert_ends(&line, "servers: 1 as before; variants: 4 as before\n");
    }
    assert_eq!(tools(&server), ["one_get_weather"]);
    assert_eq!(server.end().0, Some(0));
}

/// As Kubernetes brings a `ConfigMap` up to date: the file is a link through a directory that is a link itself.
#[cfg(unix)]
#[test]
fn links_that_are_set_to_another_place_are_followed() {
    use std::os::unix::fs::symlink;
    let directory = directory("reload-links", "");
    let file = directory.join("vary.yaml");
    std::fs::remove_file(&file).unwrap();
    let release = |name: &str, servers: &[&str]| {
        std::fs::create_dir(directory.join(name)).unwrap();
        std::fs::write(directory.join(name).join("vary.yaml"), with(servers)).unwrap();
        symlink(name, directory.join("..data_tmp")).unwrap();
        std::fs::rename(directory.join("..data_tmp"), directory.join("..data")).unwrap();
    };
    release("..2026_1", &["one"]);
    symlink("..data/vary.yaml", &file).unwrap();
    let mut server = serve(&file);
    release("..2026_2", &["two"]);
    std::fs::remove_dir_all(directory.join("..2026_1")).unwrap();
    let line = "1 added (two), 1 removed (one)";
    assert_contains(&server.says("reloaded: "), &[line]);
    // In the place that it leads to now, too.
    let led = directory.join("..2026_2").join("vary.yaml");
    std::fs::write(led, with(&["three"])).unwrap();
    let expected = "1 added (three), 1 removed (two)";
    assert_contains(&server.says("reloaded: "), &[expected]);
    assert_eq!(tools(&server), ["three_get_weather"]);
}

#[test]
fn another_address_waits_for_the_next_start() {
    let text = |listen: &str| format!("{}listen: 127.0.0.1:{listen}\n", with(&["one"]));
    let directory = directory("reload-listen", &text("0"));
    let file = directory.join("vary.yaml");
    let mut server = Server::start(&["serve", file.to_str().unwrap()]);
    std::fs::write(&file, text("8801").replace("one:", "two:")).unwrap();
    let line = server.says("reloaded: ");
    assert_contains(&line, &["1 added (two), 1 removed (one)"]);
    assert_ends(&line, "; at the next start: listen\n");
    assert_eq!(tools(&server), ["two_get_weather"]);
}

/// Nobody looks for a port that is not there: what is not served yet is said.
#[test]
fn another_address_for_the_operator_waits_for_the_next_start() {
    let text = |admin: &str| format!("{}listen: 0\n{admin}", with(&["one"]));
    let line_after = |name: &str, before: &str, after: &str, typed: &[&str]| {
        let file = directory(name, &text(before)).join("vary.yaml");
        let args = ["serve", file.to_str().unwrap()];
        let mut server = Server::start(&[&args[..], typed].concat());
        std::fs::write(&file, text(after)).unwrap();
        server.says("reloaded: ")
    };
    for (name, before, after, key) in [
        (
            "reload-admin-another",
            "admin: 0\n",
            "admin: 8801\n",
            "admin",
        ),
        ("reload-admin-new", "", "admin: 8801\n", "admin"),
        ("reload-admin-gone", "admin: 0\n", "", "admin"),
        ("reload-probes-new", "", "probes: 8802\n", "probes"),
    ] {
        let line = line_after(name, before, after, &[]);
        let waits = format!("; at the next start: {key}\n");
        assert!(line.ends_with(&waits), "{name}: {line}");
    }
    let typed = ["--admin", "0"];
    let line = line_after("reload-admin-typed", "", "admin: 8801\n", &typed);
    assert_lacks(&line, &["at the next start"]);
}

#[test]
fn what_was_typed_holds_beside_whatever_the_file_says() {
    let directory = directory("reload-typed", &with(&["one"]));
    let file = directory.join("vary.yaml");
    let args = ["serve", "--listen", "0", "--no-variants"];
    let mut server = Server::start(&[&args[..], &[file.to_str().unwrap()]].concat());
    std::fs::write(&file, with(&["two"]) + "variants: on\nlisten: 1\n").unwrap();
    assert_ends(&server.says("reloaded: "), "variants: none\n");
    assert_lacks(&server.post(INITIALIZE), &["availableVariants"]);
}

#[test]
fn a_client_of_the_standard_streams_stays_connected() {
    let directory = directory("reload-stdio", &with(&["one"]));
    let file = directory.join("vary.yaml");
    let mut child = command(&["serve", "--stdio", file.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut talk = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut ask = |message: &str| {
        writeln!(input, "{message}").unwrap();
        // That lists changed may be told before.
        let mut lines = output.by_ref().map(Result::unwrap);
        let answer = lines.find(|line| line.contains(r#""id":"#));
        answer.unwrap()
    };
    ask(INITIALIZE);
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    assert_contains(&ask(list), &["one_get_weather"]);
    std::fs::write(&file, with(&["two"])).unwrap();
    assert!(talk.any(|line| line.unwrap().contains("1 added (two), 1 removed (one)")));
    let now = ask(list);
    assert_contains(&now, &["two_get_weather"]);
    assert_lacks(&now, &["one_get_weather"]);
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// SV-1: a removal date that is past is named by `config check`, at the start, and when the file is read again.
#[test]
fn a_past_removal_date_is_named_at_check_start_and_reload() {
    let variants = "variants:\n  now: {description: d}\n  old: {description: d, deprecation: \
                    {message: m, removal-date: 2026-06-01}}\n";
    let with_variants = |servers: &[&str]| with(servers) + variants;
    let directory = directory("reload-past-date", &with_variants(&["one"]));
    let file = directory.join("vary.yaml");
    let past = "`variants.old.deprecation.removal-date` is past: `old` was to be removed on 2026-06-01 and is still \
                served; remove the variant, or move the date";
    let checked = run(&["config", "check", "--offline", file.to_str().unwrap()]).exited(0);
    let report = checked.stdout + &checked.stderr;
    let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(past), "{report}");
    let mut server = serve(&file);
    assert_contains(&server.said, &[past]);
    replace(&file, &with_variants(&["one", "two"]));
    let line = server.says("note: ");
    assert_contains(&line, &[past]);
    let line = server.says("reloaded: ");
    assert_contains(&line, &["1 added (two)"]);
}

/// Two servers, of which `one` has a secret in its environment.
fn with_secret(secret: &str) -> String {
    let one = json!({"command": VARY, "args": ["weather"], "env": {"KEY": secret}});
    let two = json!({"command": VARY, "args": ["weather"]});
    format!("naming: always\nservers:\n  one: {one}\n  two: {two}\n")
}

#[test]
fn a_changed_secret_file_reconnects_the_servers_that_use_it_and_no_other() {
    let directory = directory("reload-secret", &with_secret("${file:secrets/key}"));
    let secret = directory.join("secrets/key");
    std::fs::create_dir(directory.join("secrets")).unwrap();
    std::fs::write(&secret, "TOPSECRETONE\n").unwrap();
    let file = directory.join("vary.yaml");
    let mut server = serve(&file);
    assert_eq!(tools(&server), ["one_get_weather", "two_get_weather"]);
    replace(&secret, "TOPSECRETTWO\n");
    let line = server.says("reloaded: ");
    let expected =
        "reloaded: servers: 1 connected anew (one), 1 as before; variants: 4 as before\n";
    assert_ends(&line, expected);
    // The same secret with another line break at its end is the same.
    replace(&secret, "TOPSECRETTWO\r\n");
    let line = server.says("reloaded: ");
    let message = "reloaded: servers: 2 as before; variants: 4 as before\n";
    assert_ends(&line, message);
    std::fs::remove_file(&secret).unwrap();
    let line = server.says("was not reloaded, everything stays as it was: ");
    let part = "needs `secrets/key`, which does not exist; write the secret to ";
    assert_contains(&line, &[part]);
    assert_eq!(tools(&server), ["one_get_weather", "two_get_weather"]);
    std::fs::write(&secret, "TOPSECRETTHREE").unwrap();
    let line = server.says("reloaded: ");
    assert_contains(&line, &["1 connected anew (one)"]);
    let (_, all) = server.end_with_said();
    assert_lacks(&all, &["TOPSECRET"]);
}

#[test]
fn a_secret_is_shown_by_no_command() {
    let directory = directory("secret-shown", &with_secret("${file:key}"));
    let file = directory.join("vary.yaml");
    let file = file.to_str().unwrap();
    let check = |args: &[&str]| {
        let arguments = [&["config", "check", file], args].concat();
        let out = command(&arguments).output().unwrap();
        let text = [out.stdout, out.stderr].concat();
        (out.status.code(), String::from_utf8(text).unwrap())
    };
    let (code, line) = check(&["--offline"]);
    assert_eq!(code, Some(1), "{line}");
    assert_contains(
        &line,
        &[
            "vary.yaml:3:",
            "`servers.one.env.KEY` needs `key`, which does not exist",
        ],
    );
    std::fs::write(directory.join("key"), "TOPSECRET").unwrap();
    for args in [
        &["--offline"][..],
        &["--offline", "--json"],
        &[],
        &["--json"],
    ] {
        let (code, line) = check(args);
        assert_eq!(code, Some(0), "{line}");
        assert_lacks(&line, &["TOPSECRET"]);
    }
    std::fs::write(directory.join("key"), b"TOPSECRET\xff").unwrap();
    let (code, line) = check(&["--offline"]);
    assert_eq!(code, Some(1), "{line}");
    assert_contains(&line, &["is not UTF-8 text"]);
    assert_lacks(&line, &["TOPSECRET"]);
}

#[test]
fn a_server_whose_headers_have_claims_is_checked_without_a_connection() {
    let servers =
        "servers: {a: {url: 'http://127.0.0.1:9/mcp', headers: {X-User: '${claims.email}'}}}\n";
    let directory = directory("check-claims", servers);
    let file = directory.join("vary.yaml");
    let check = || {
        command(&["config", "check", file.to_str().unwrap()])
            .output()
            .unwrap()
    };
    let line = String::from_utf8(check().stdout).unwrap();
    assert_eq!(check().status.code(), Some(1));
    let expected = "vary.yaml:1:55: `servers.a.headers` uses claims, but without authentication no client has any; add `auth`, or \
                    `stdio-principal` with `claims`";
    assert_contains(&line, &[expected]);
    let principal = "stdio-principal: {name: ann, claims: {email: ann@example.com}}\n";
    std::fs::write(&file, format!("{servers}{principal}")).unwrap();
    let line = String::from_utf8(check().stdout).unwrap();
    assert_eq!(check().status.code(), Some(0), "{line}");
    assert_contains(
        &line,
        &["per-user", "server `a` needs the claims of its users"],
    );
}
