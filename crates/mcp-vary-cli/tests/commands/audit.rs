//! The audit log of `vary serve`, and `vary audit`, which reads it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use mcp_vary_access::{Claims, Principal};
use serde_json::{Value, json};

use crate::program::{INITIALIZE, Server, VARY, file, run, signal};
use crate::text::{assert_contains, assert_lacks};

/// A directory for one test, and the configuration in it, whose audit log goes `to` a place.
fn configured(name: &str, to: impl FnOnce(&Path) -> String) -> (PathBuf, String) {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("vary.yaml");
    let entry = json!({"command": VARY, "args": ["weather"]});
    let to = json!(to(&directory));
    let text = format!("servers: {{sky: {entry}}}\naudit: {{to: {to}}}\n");
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap().to_owned();
    (directory, file)
}

/// The events in a log, after it has `count` of them.
#[track_caller]
fn events(path: &Path, count: usize) -> Vec<String> {
    let start = Instant::now();
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let lines = text.lines().map(|line| {
            let record: Value = serde_json::from_str(line).unwrap();
            record["event"].as_str().unwrap().to_owned()
        });
        let events: Vec<_> = lines.collect();
        if events.len() >= count {
            return events;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{text}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A rotation moves the file and sends the signal; the records go on in a new file, and the end is recorded.
#[test]
fn the_log_follows_a_rotation_and_ends_with_the_program() {
    let (directory, file) = configured("audit-rotated", |directory| {
        format!("file {}", directory.join("audit.jsonl").display())
    });
    let path = directory.join("audit.jsonl");
    let mut server = Server::serve(&["--admin", "0", &file]);
    let admin = server.admin();
    server.post(INITIALIZE);
    let session = ["variant.selected", "request"];
    assert_eq!(events(&path, 3)[1..], session);
    let rotated = directory.join("audit.jsonl.1");
    std::fs::rename(&path, &rotated).unwrap();
    signal("HUP", server.child.id());
    server.says("reloaded: ");
    assert_eq!(events(&path, 1), ["config.reloaded"]);
    server.post(INITIALIZE);
    assert_eq!(events(&path, 3)[1..], session);
    let shown = run(&["status", &admin]).data(0);
    let expected = "\naudit log: 6 written, 0 lost, 0 refused, 0 queued\n";
    assert_contains(&shown, &[expected]);
    assert_eq!(server.end().0, Some(0));
    let ended = [
        "config.reloaded",
        "variant.selected",
        "request",
        "admin.request",
        "audit.stopped",
    ];
    assert_eq!(events(&path, 5), ended);
    assert_eq!(events(&rotated, 3)[0], "audit.started");
}

/// The digest in the records is that of the file, as `sha256sum` prints it.
#[test]
fn records_have_the_digest_of_the_file() {
    let (directory, file) = configured("audit-digest", |directory| {
        format!("file {}", directory.join("audit.jsonl").display())
    });
    let server = Server::serve(&[&file]);
    server.post(INITIALIZE);
    let path = directory.join("audit.jsonl");
    events(&path, 3);
    let text = std::fs::read_to_string(&path).unwrap();
    let record: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let summed = std::process::Command::new("sha256sum").arg(&file).output();
    let summed = String::from_utf8(summed.unwrap().stdout).unwrap();
    assert_eq!(record["config"], format!("sha256:{}", &summed[..16]));
    assert_eq!(record["variant"]["id"], "standard");
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn standard_output_is_not_for_the_log_of_a_client_on_stdio() {
    let (_, file) = configured("audit-stdout", |_| "stdout".to_owned());
    run(&["serve", "--stdio", &file]).refuses(&[
        "vary.yaml:2:13: `audit.to` is `stdout`, where `--stdio` sends the messages for the client",
        "write `file PATH` or `syslog ADDRESS`",
    ]);
}

#[test]
fn a_missing_folder_is_named_by_serve_and_by_config_check() {
    let (directory, file) = configured("audit-nowhere", |directory| {
        format!("file {}", directory.join("none/audit.jsonl").display())
    });
    let folder = directory.join("none").display().to_string();
    let why = format!(
        ":2:13: the audit log {folder}/audit.jsonl cannot be opened: the folder {folder} does not exist; create it, or correct the \
         path\n"
    );
    run(&["serve", "--listen", "0", &file]).refuses(&[&why]);
    for more in [&[][..], &["--offline"]] {
        let checked = run(&[&["config", "check", &file], more].concat()).exited(1);
        assert_contains(&checked.stdout, &[&why, "1 problem\n"]);
    }
}

#[test]
fn a_log_that_cannot_be_written_is_named_by_serve_and_by_config_check() {
    let (directory, file) = configured("audit-folder", |directory| {
        format!("file {}", directory.display())
    });
    let why = format!(
        ":2:13: the audit log {} cannot be opened: it is a directory, not a file\n",
        directory.display()
    );
    run(&["serve", "--listen", "0", &file]).refuses(&[&why]);
    let checked = run(&["config", "check", "--offline", &file]).exited(1);
    assert_contains(&checked.stdout, &[&why, "1 problem\n"]);
}

/// A full disk has one line in the log, however often it is tried, and a status that fails.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_warned_of_once_a_minute_with_what_is_lost() {
    let (_, file) = configured("audit-full", |_| "file /dev/full".to_owned());
    let server = Server::serve(&["--admin", "0", &file]);
    let admin = server.admin();
    for _ in 0..3 {
        server.post(INITIALIZE);
        std::thread::sleep(Duration::from_millis(100));
    }
    let shown = run(&["status", &admin]).data(1);
    assert_contains(
        &shown,
        &["the audit log cannot be written: the disk is full\n"],
    );
    let said = server.said.clone() + &server.end().1;
    let warning = "WARN audit records could not be written; Vary tries again by itself sink=\"file /dev/full\" error=\"the disk is full\" lost=";
    assert_eq!(said.matches(warning).count(), 1, "{said}");
}

/// A line about a call at this minute after six.
fn call_at(minute: u64, principal: &Value, tool: &str, outcome: &str) -> String {
    let record = json!({
        "v": 1, "run": "r", "seq": 1, "time": format!("2026-11-21T06:{minute:02}:00.000000Z"), "event": "request",
        "outcome": outcome, "principal": principal, "client": {"name": "claude-code", "version": "3.1"},
        "method": "tools/call", "duration_ms": 41.2,
        "target": {"kind": "tool", "name": tool, "server": "git", "upstream_name": tool},
    });
    format!("{record}\n")
}

/// The id of a key with this name.
fn id_of(name: &str) -> String {
    let principal = Principal::key(name, Claims::default()).unwrap();
    principal.id_text().to_owned()
}

/// A rotated and compressed log without names, and the one after it.
fn rotated_logs(name: &str) -> [String; 2] {
    let id = id_of("bob");
    let mut compressed = GzEncoder::new(Vec::new(), Compression::fast());
    let before = call_at(1, &json!({"id": id}), "git_log", "allowed");
    compressed.write_all(before.as_bytes()).unwrap();
    let rotated = file(&format!("{name}.1.gz"), "");
    std::fs::write(&rotated, compressed.finish().unwrap()).unwrap();
    let ann = json!({"id": id_of("ann"), "name": "ann"});
    let stopped =
        r#"{"v":1,"run":"r","seq":2,"time":"2026-11-21T06:03:00.000000Z","event":"audit.stopped"}"#;
    // The first record is longer than what is read at once.
    let padded = format!(r#"{{"pad":"{}","#, "x".repeat(20_000));
    let denied = call_at(2, &ann, "git_push", "denied").replacen('{', &padded, 1);
    let after = denied + stopped + "\n";
    [file(name, &after), rotated]
}

#[test]
fn logs_are_shown_as_a_table_in_the_order_of_their_times() {
    let [latest, rotated] = rotated_logs("table.jsonl");
    let shown = run(&["audit", &latest, &rotated]).data(0);
    insta::assert_snapshot!(shown.replace(&id_of("bob"), "Xk3vYl0pQ2m8r5t7u9w1zA"), @r"
    time                         who                     client       event          method      target    server  outcome  rule    ms
    2026-11-21T06:01:00.000000Z  Xk3vYl0pQ2m8r5t7u9w1zA  claude-code  request        tools/call  git_log   git     allowed  -     41.2
    2026-11-21T06:02:00.000000Z  ann                     claude-code  request        tools/call  git_push  git     denied   -     41.2
    2026-11-21T06:03:00.000000Z  -                       -            audit.stopped  -           -         -       -        -        -
    ");
}

#[test]
fn records_are_chosen_by_who_when_what_and_outcome() {
    let [latest, rotated] = rotated_logs("chosen.jsonl");
    let ann = format!("--who {}", id_of("ann"));
    let choices: [(&str, &[&str]); 12] = [
        ("--who ann", &["git_push"]),
        // The log has the id of bob's key alone.
        ("--who bob", &["git_log"]),
        (&ann, &["git_push"]),
        ("--client claude-code", &["git_log", "git_push"]),
        ("--server git --tool git_log", &["git_log"]),
        ("--outcome denied", &["git_push"]),
        ("--since 2026-11-21T06:01:30Z", &["git_push"]),
        ("--since 2026-11-21t06:01:30Z", &["git_push"]),
        ("--since 2026-11-21 --outcome allowed", &["git_log"]),
        ("--since 36500d --who ann", &["git_push"]),
        ("--until 2026-11-21T06:02:00Z", &["git_log"]),
        (
            "--since 2026-11-21T06:01:00Z --until 2026-11-21T06:02:01Z",
            &["git_log", "git_push"],
        ),
    ];
    for (choice, tools) in choices {
        let words: Vec<_> = choice.split(' ').collect();
        let shown = run(&[&["audit", &latest, &rotated], &words[..]].concat()).data(0);
        let found = ["git_log", "git_push"]
            .into_iter()
            .filter(|tool| shown.contains(tool));
        assert_eq!(found.collect::<Vec<_>>(), tools, "{choice}: {shown}");
    }
    for nothing in ["--who eve", "--since 2027-01-31", "--tool git"] {
        let words: Vec<_> = nothing.split(' ').collect();
        let found = run(&[&["audit", &latest], &words[..]].concat());
        let stderr = found.exited(0).stderr;
        assert_contains(&stderr, &["nothing matches in 2 records"]);
        let has_people = stderr.contains("; people: ");
        assert_eq!(has_people, nothing.starts_with("--who"), "{stderr}");
    }
}

#[test]
fn lines_that_are_not_shown_are_counted_and_named() {
    let ann = json!({"id": "x", "name": "a\u{1b}nn\nb"});
    let good = call_at(1, &ann, "git_log", "allowed");
    let newer = good.replace("\"v\":1", "\"v\":2");
    let long = "x".repeat((2 << 20) + 5);
    let text = format!("{newer}<110>1 vary - - {good}\n{{\"v\":1,\n{long}\n{newer}");
    let path = file("skipped.jsonl", &text);
    let shown = run(&["audit", &path]).exited(0);
    assert_eq!(shown.stdout.lines().count(), 2, "{}", shown.stdout);
    assert_contains(&shown.stdout, &["a\\u{1b}nn\\nb"]);
    let notes = format!(
        "note: {path}: skipped 2 lines that are not records; the first is line 4\n\
         note: {path}: skipped 2 lines of another version, which this Vary does not know; the first is line 1\n"
    );
    assert_eq!(shown.stderr, notes);
    let path = file("line\nbreak.jsonl", &text);
    let shown = run(&["audit", &path]).exited(0);
    assert_contains(&shown.stderr, &["line\\nbreak.jsonl: skipped 2 lines "]);
}

#[test]
fn what_is_not_an_audit_log_is_refused() {
    let path = file("not-a-log.yaml", "servers: {a: {command: x}}\n");
    run(&["audit", &path])
        .refuses(&["not-a-log.yaml has no record of an audit log; name the file of `audit.to`"]);
    run(&["audit", env!("CARGO_TARGET_TMPDIR")]).refuses(&[
        " is a directory; name the log in it, such as `",
        "/audit.jsonl`",
    ]);
    run(&["audit", "none.jsonl"]).refuses(&["none.jsonl cannot be read: no such file in "]);
    run(&["audit", "--since", "1x", &path]).refuses(&["write it like 30m, 1h, 7d or 2027-01-31"]);
    let failed = run(&["audit", "--outcome", "failed", &path]);
    assert_lacks(&failed.stderr, &["tip"]);
    failed.refuses(&["[possible values: allowed, denied, "]);
    run(&["audit"]).refuses(&["name the log (`audit.to`): vary audit audit.jsonl\n"]);
}

/// A rotated log may be read while it is compressed.
#[test]
fn a_compressed_log_that_ends_too_soon_is_named() {
    let [latest, rotated] = rotated_logs("cut.jsonl");
    let whole = std::fs::read(&rotated).unwrap();
    for bytes in [&whole[..whole.len() / 2], &b"\x1f\x8bno gzip"[..]] {
        std::fs::write(&rotated, bytes).unwrap();
        run(&["audit", &latest, &rotated]).refuses(&["cut.jsonl.1.gz cannot be read: "]);
    }
}

/// Status and log of a running gateway call a person by the name of the key.
#[test]
fn a_running_gateway_names_people_in_its_status_and_its_log() {
    let (directory, file) = configured("audit-people", |directory| {
        format!("file {}", directory.join("audit.jsonl").display())
    });
    let key = run(&["key", "new", "ann", "--groups", "dev"]).exited(0);
    let entry = key
        .stderr
        .lines()
        .find_map(|line| line.strip_prefix("    - "));
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        &file,
        format!("{text}auth: {{keys: [{}]}}\n", entry.unwrap()),
    )
    .unwrap();
    let server = Server::serve(&["--admin", "0", &file]);
    let bearer = format!("Authorization: Bearer {}\r\n", key.stdout.trim());
    server.post_with(INITIALIZE, &bearer);
    let path = directory.join("audit.jsonl");
    events(&path, 4);
    let shown = run(&["status", &server.admin()]).data(0);
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_contains(
        &words,
        &["person requests calls refused tokens ann 1 0 0 0"],
    );
    let log = path.to_str().unwrap();
    let shown = run(&["audit", log, "--who", "ann", "--since", "1h"]).data(0);
    assert_contains(&shown, &["  ann  test  ", "  initialize  "]);
}
