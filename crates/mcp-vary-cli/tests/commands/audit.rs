//! The audit log of `vary serve`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::{INITIALIZE, Server, VARY, run, signal};
use crate::text::assert_contains;

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
