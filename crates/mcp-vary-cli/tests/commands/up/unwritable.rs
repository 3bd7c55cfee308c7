//! Files that cannot be written are named, with what was changed and what to do.

use std::fs;

use serde_json::json;

use super::User;
use crate::program::{Run, VARY};
use crate::text::{assert_contains, assert_ends, assert_lacks};

/// `vary up --yes` after the lines of a shell, whose number is that of Vary.
fn up_after(user: &User, lines: &str) -> Run {
    let command = user.command(&[]);
    let mut shell = std::process::Command::new("/bin/sh");
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.args(["-c", &format!("{lines}\nexec {VARY} up --yes")]);
    Run::of(shell.current_dir(&user.home.0))
}

#[test]
fn a_disk_without_room_is_reported_and_nothing_is_changed() {
    let user = User::new("full");
    let run = up_after(&user, "trap '' XFSZ; ulimit -f 0").exited(1);
    let journal = user.home.path("state/vary/up.json").display().to_string();
    let why = format!("error: {journal} cannot be written: it is too large\nnothing was changed\n");
    assert_ends(&run.stderr, &why);
    user.is_as_it_was();
    assert!(!user.configuration().exists());
    user.run(&["up", "--yes"]).exited(0);
}

#[test]
fn a_configuration_that_cannot_be_written_is_named_with_how_to_finish() {
    let user = User::new("no-configuration");
    let path = user.configuration().display().to_string();
    let run = up_after(&user, &format!("/bin/mkdir -p {path}.vary-$$")).exited(1);
    let finish =
        "no client's file was changed; to go on: vary up; to undo what was written: vary down\n";
    let why = format!("error: {path} cannot be written: File exists; it is as it was\n{finish}");
    assert_ends(&run.stderr, &why);
    user.is_as_it_was();
    user.run(&["up", "--yes"]).exited(0);
    assert!(user.servers(".claude.json")["vary"].is_object());
}

#[test]
fn vary_keeps_the_address_at_which_it_runs_until_a_client_can_be_connected() {
    let user = User::new("late-client");
    let files = [".claude.json", ".cursor/mcp.json", ".gemini/settings.json"];
    let occupied = files.map(|file| {
        format!(
            "{}.vary-record.json.vary-$$",
            user.home.path(file).display()
        )
    });
    let run = up_after(&user, &format!("/bin/mkdir {}", occupied.join(" "))).exited(1);
    let why = "mcp.json.vary-record.json cannot be written: File exists; it is as it was\n";
    assert_contains(&run.stderr, &["Cursor is left as it is: ", why]);
    assert_ends(&run.stderr, "repair that, then: vary up\n");
    user.is_as_it_was();
    let written = fs::read_to_string(user.configuration()).unwrap();
    let run = user.run(&["up", "--yes"]).exited(0);
    assert_lacks(&run.stderr, &["another program listens"]);
    assert_eq!(fs::read_to_string(user.configuration()).unwrap(), written);
}

#[test]
fn a_file_of_a_client_that_is_a_list_is_named_with_what_is_expected() {
    let user = User::new("list");
    user.home.write(".cursor/mcp.json", "[]\n");
    let path = user.home.path(".cursor/mcp.json").display().to_string();
    let why = "1:1: is JSON, but the whole file is a list; servers are in an object: write `{}`";
    let run = user.run(&["up", "--dry-run"]).exited(0);
    assert_contains(
        &run.stderr,
        &[&format!("Cursor is left as it is: {path}:{why}\n")],
    );
    fs::remove_file(user.home.path(".cursor/mcp.json")).unwrap();
    let sky = json!({"mcpServers": {"sky": {"command": VARY, "args": ["weather"]}}});
    user.home.write(".cursor/mcp.json", &sky.to_string());
    user.run(&["up", "--yes"]).exited(0);
    user.home.write(".cursor/mcp.json", "[]\n");
    let run = user.run(&["down"]).exited(1);
    let repair = format!(
        "not given back: {path}:{why}; or have it as it was before Vary: cp {path}.vary-before {path}\n"
    );
    assert_contains(&run.stderr, &[&repair]);
}
