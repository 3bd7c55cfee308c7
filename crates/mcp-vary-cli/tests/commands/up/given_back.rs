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

#[test]
fn without_a_journal_down_names_the_command_that_gives_each_file_back_and_up_stops() {
    let user = User::new("lost");
    user.run(&["up", "--yes"]).exited(0);
    let now = user.home.read(".cursor/mcp.json");
    let [journal, other] = ["state/vary/up.json", "state/up.json"].map(|path| user.home.path(path));
    fs::rename(&journal, &other).unwrap();
    let configuration = user.configuration();
    let run = user.run(&["up", "--yes"]).exited(2);
    let why = format!(
        "error: {0} was written by a `vary up` whose journal {1} is missing; if that is in another `XDG_STATE_HOME`, set that, \
         or else type `vary down`, which says how to give the clients' files back, and move {0} away, then: vary up\n",
        configuration.display(),
        journal.display()
    );
    assert_eq!(run.stderr, why);
    let run = user.run(&["down"]).exited(1);
    let shown = |file: &str| user.home.path(file).display().to_string();
    let expected = format!(
        "nothing was changed: {}, in which `vary up` records what it wrote, is missing; if it is in another `XDG_STATE_HOME`, \
         set that and type `vary down` again, or else give back each file:\n\
         {} has Vary: vary connect claude-code --remove\n\
         {} has Vary: vary connect cursor --remove\n\
         {} has Vary: vary connect gemini-cli --remove\n",
        journal.display(),
        shown(".claude.json"),
        shown(".cursor/mcp.json"),
        shown(".gemini/settings.json")
    );
    assert_eq!(run.stderr, expected);
    assert_eq!(user.home.read(".cursor/mcp.json"), now);
    for client in ["claude-code", "cursor", "gemini-cli"] {
        user.run(&["connect", client, "--remove"]).exited(0);
    }
    user.is_as_it_was();
    let run = user.run(&["down"]).exited(0);
    assert_eq!(run.stderr, "nothing to undo: `vary up` is not in use\n");
    // It ends the service.
    fs::rename(&other, &journal).unwrap();
    user.run(&["down"]).exited(0);
}

#[test]
fn a_client_that_an_earlier_command_connected_is_left_by_up_with_the_command_that_frees_it() {
    let user = User::new("earlier");
    let address = "http://127.0.0.1:1/mcp";
    user.run(&["connect", "cursor", address, "--write"]);
    let run = user.run(&["up", "--yes"]).exited(0);
    let note = "Cursor is left as it is: an earlier `vary connect` or `vary up` wrote to its file; to have it here, too: \
                vary connect cursor --remove && vary up\n";
    assert_contains(&run.stderr, &[note]);
}
