//! A second `vary up` tries only what is new.

use serde_json::json;

use super::User;
use crate::program::{Run, VARY};
use crate::text::{assert_contains, assert_lacks, assert_starts};

#[test]
fn a_second_run_tries_only_what_is_new_and_needs_no_variable_again() {
    let user = User::new("taken-over");
    let starts = user.home.path("starts");
    let script = format!("echo >> {}; exec {VARY} weather", starts.display());
    let counted =
        |name: &str| json!({"command": "/bin/sh", "args": ["-c", script], "env": {"A": name}});
    let old = counted("${env:VARY_TEST_SET}");
    let text = json!({"mcpServers": {"old": old}}).to_string();
    user.home.write(".cursor/mcp.json", &text);
    let mut command = user.command(&["up", "--yes"]);
    Run::of(command.env("VARY_TEST_SET", "value")).exited(0);
    let count = || user.home.read("starts").len();
    let before = count();
    let run = user.run(&["up", "--yes"]).exited(0);
    assert_contains(&run.stderr, &["nothing to change; Vary is running"]);
    assert_eq!(count(), before);
    let mut servers = user.servers(".cursor/mcp.json");
    servers["fresh"] = counted("fresh");
    let text = json!({"mcpServers": servers}).to_string();
    user.home.write(".cursor/mcp.json", &text);
    let run = user.run(&["up", "--dry-run"]).exited(0);
    let table = "new in Vary  clients  tools  tokens\nfresh        Cursor       2     603\n";
    assert_starts(&run.stdout, table);
    assert_contains(&run.stdout, &["tried again: `old`, `other`, `sky`\n"]);
    assert_lacks(&run.stdout, &["compact"]);
    assert_eq!(count(), before + 1);
    // An entry that its user took out is repaired without a server, too.
    user.home.write(".cursor/mcp.json", "{\"mcpServers\": {}}");
    user.run(&["up", "--yes"]).exited(0);
    assert!(user.servers(".cursor/mcp.json")["vary"].is_object());
    assert_eq!(count(), before + 1);
}

#[test]
fn a_server_that_a_client_has_again_must_answer_before_it_replaces_the_one_in_vary() {
    let user = User::new("again");
    user.run(&["up", "--yes"]).exited(0);
    let configuration = std::fs::read_to_string(user.configuration()).unwrap();
    let again = |command: &str| {
        let mut servers = user.servers(".gemini/settings.json");
        servers["other"] = json!({"command": command, "args": ["weather"]});
        let text = json!({"mcpServers": servers}).to_string();
        user.home.write(".gemini/settings.json", &text);
        text
    };
    let text = again("/nonexistent/broken");
    let run = user.run(&["up", "--yes"]).exited(1);
    let why = "has `other` again, and it does not answer, so nothing was changed; repair it or take it out there, then: vary up\n";
    assert_contains(&run.stderr, &[why]);
    assert_eq!(user.home.read(".gemini/settings.json"), text);
    let now = std::fs::read_to_string(user.configuration()).unwrap();
    assert_eq!(now, configuration);
    again(VARY);
    let run = user.run(&["up", "--yes"]).exited(0);
    assert_contains(&run.stdout, &["\nother        Gemini CLI      2     603\n"]);
    assert!(user.servers(".gemini/settings.json")["other"].is_null());
}

#[test]
fn a_server_that_was_taken_out_of_the_configuration_stays_with_its_client() {
    let user = User::new("taken-out");
    user.run(&["up", "--yes"]).exited(0);
    user.run(&["down"]).exited(0);
    let text = std::fs::read_to_string(user.configuration()).unwrap();
    let mut blocks: Vec<&str> = text.split("\n  other:\n").collect();
    let after = blocks.pop().unwrap();
    let end = after.find("\n\n").unwrap_or(after.len());
    let changed = format!("{}\n{}", blocks.concat(), &after[end..]);
    std::fs::write(user.configuration(), &changed).unwrap();
    let run = user.run(&["up", "--yes"]).exited(0);
    let path = user.configuration().display().to_string();
    let line = format!("Gemini CLI keeps `other`, which was taken out of {path}\n");
    assert_contains(&run.stderr, &[&line]);
    assert!(user.servers(".gemini/settings.json")["other"].is_object());
    assert!(user.servers(".cursor/mcp.json")["sky"].is_null());
}
