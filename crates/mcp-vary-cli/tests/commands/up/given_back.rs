//! What `vary down` does with files that others changed or removed.

use std::fs;

use serde_json::json;

use super::User;
use crate::program::VARY;
use crate::text::{assert_contains, assert_lacks};

#[test]
fn a_file_that_up_left_since_another_program_changed_it_is_not_touched_by_down() {
    let user = User::new("meanwhile");
    let file = ".cursor/mcp.json";
    let theirs = json!({"mcpServers": {"theirs": {"command": "/nonexistent/theirs"}}}).to_string();
    let changed = user.home.write("theirs.json", &theirs);
    // `up` has read the files of clients when it starts the servers.
    let script = format!(
        "/bin/cp {} {}; exec {VARY} weather",
        changed.display(),
        user.home.path(file).display()
    );
    let sky = json!({"mcpServers": {"sky": {"command": "/bin/sh", "args": ["-c", script]}}});
    user.home.write(".claude.json", &sky.to_string());
    let run = user.run(&["up", "--yes"]).exited(1);
    let why = "mcp.json was changed by another program meanwhile; run `vary up` again\n";
    assert_contains(&run.stderr, &["Cursor is left as it is: ", why]);
    assert_lacks(&run.stderr, &["repair that"]);
    let run = user.run(&["down"]).exited(0);
    assert_contains(&run.stderr, &[".claude.json is as it was\n"]);
    assert_lacks(&run.stderr, &[".cursor"]);
    assert_eq!(user.home.read(file), theirs);
    for ending in [".vary-backup", ".vary-record.json", ".vary-before"] {
        assert!(!user.home.path(&format!("{file}{ending}")).exists());
    }
}

#[test]
fn a_file_that_is_gone_is_named_until_its_copy_is_moved_back_or_removed() {
    let user = User::new("gone");
    user.run(&["up", "--yes"]).exited(0);
    let path = user.home.path(".cursor/mcp.json");
    fs::remove_file(&path).unwrap();
    let shown = path.display();
    let copy = format!("{shown}.vary-before");
    let run = user.run(&["down"]).exited(1);
    let gone = format!(
        "{shown} is gone; to have it as it was before Vary: mv {copy} {shown}; or else: rm {copy}\n"
    );
    assert_contains(&run.stderr, &[&gone]);
    for ending in [".vary-backup", ".vary-record.json"] {
        assert!(
            !user
                .home
                .path(&format!(".cursor/mcp.json{ending}"))
                .exists()
        );
    }
    let left = format!("{copy} is {shown} as it was before Vary; move it back, or remove it\n");
    for _ in 0..2 {
        let run = user.run(&["down"]).exited(1);
        assert_contains(&run.stderr, &["nothing to undo", &left]);
    }
    fs::rename(&copy, &path).unwrap();
    let run = user.run(&["down"]).exited(0);
    assert_lacks(&run.stderr, &["vary-before"]);
    user.is_as_it_was();
}

#[test]
fn a_client_whose_folder_is_gone_gets_nothing_back() {
    let user = User::new("no-folder");
    user.run(&["up", "--yes"]).exited(0);
    fs::remove_dir_all(user.home.path(".cursor")).unwrap();
    let run = user.run(&["down"]).exited(0);
    let gone = ".cursor/mcp.json is gone with its folder, and stays so\n";
    assert_contains(&run.stderr, &[gone]);
    assert!(!user.home.path(".cursor").exists());
}

#[test]
fn a_file_in_which_another_program_changes_something_else_meanwhile_gets_vary_and_is_given_back() {
    let user = User::new("busy");
    let file = ".cursor/mcp.json";
    let theirs = format!("{{\"starts\": 2,\n{}", &user.home.read(file)[1..]);
    let changed = user.home.write("theirs.json", &theirs);
    // The first start is the trial of `up`, which has read the files of clients.
    let script = format!(
        "/bin/mv {} {}; exec {VARY} weather",
        changed.display(),
        user.home.path(file).display()
    );
    let sky = json!({"mcpServers": {"sky": {"command": "/bin/sh", "args": ["-c", script]}}});
    user.home.write(".claude.json", &sky.to_string());
    let run = user.run(&["up", "--yes"]).exited(0);
    assert_contains(&run.stderr, &["Cursor has Vary: "]);
    assert_lacks(&run.stderr, &["is left as it is"]);
    let servers = user.servers(file);
    assert!(
        servers["vary"].is_object() && servers["sky"].is_null(),
        "{servers}"
    );
    assert_contains(&user.home.read(file), &["\"starts\": 2,"]);
    let run = user.run(&["down"]).exited(0);
    assert_contains(&run.stderr, &[".cursor/mcp.json is as it was\n"]);
    assert_eq!(user.home.read(file), theirs);
}

#[test]
fn a_file_that_is_empty_or_has_lost_most_of_it_has_a_copy() {
    for (name, left) in [("emptied", ""), ("cut", "{}")] {
        let user = User::new(name);
        user.run(&["up", "--yes"]).exited(0);
        let path = user.home.path(".claude.json");
        fs::write(&path, left).unwrap();
        let run = user.run(&["down"]).exited(1);
        let shown = path.display();
        let copy = format!("{shown}.vary-before");
        let line = format!(
            "{shown} has lost most of what it had; Vary is taken out; to have it as it was before Vary: mv {copy} {shown}; \
             or else: rm {copy}\n"
        );
        assert_contains(&run.stderr, &[&line]);
        fs::rename(&copy, &path).unwrap();
        user.run(&["down"]).exited(0);
        user.is_as_it_was();
    }
}
