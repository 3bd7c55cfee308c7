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
