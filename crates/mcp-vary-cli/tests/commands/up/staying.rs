//! Servers that need something of their client stay with it.

use std::fs;

use serde_json::json;

use super::User;
use crate::program::{Run, VARY};
use crate::target::at_terminal;
use crate::text::{assert_contains, assert_lacks};

#[test]
fn a_server_that_needs_its_client_stays_with_it_and_the_others_are_moved() {
    let user = User::new("staying");
    let file = ".cursor/mcp.json";
    let mut servers = user.servers(file);
    servers["dot"] = json!({"command": VARY, "args": ["weather", "."]});
    servers["file"] = servers["sky"].clone();
    servers["file"]["envFile"] = json!("/nonexistent/.env");
    servers["root"] =
        json!({"command": VARY, "args": ["weather"], "env": {"ROOT": "${workspaceFolder}"}});
    let text = format!("{:#}\n", json!({"mcpServers": servers}));
    user.home.write(file, &text);
    let stay = "`dot` stays with Cursor: it uses the folder that the client has open (`.`)\n\
                `file` stays with Cursor: it reads its variables from a file (`envFile`), which Vary does not\n\
                `root` stays with Cursor: it uses the folder that the client has open (`${workspaceFolder}`)\n";
    for _ in 0..2 {
        let run = user.run(&["up", "--yes"]).exited(0);
        assert_contains(&run.stdout, &[stay]);
        assert_lacks(&run.stderr, &["set -a"]);
    }
    let configuration = fs::read_to_string(user.configuration()).unwrap();
    assert_lacks(&configuration, &["  dot:", "  file:", "  root:", "ROOT"]);
    let left = user.servers(file);
    assert!(left["sky"].is_null() && left["vary"].is_object(), "{left}");
    for name in ["dot", "file", "root"] {
        assert_eq!(left[name], servers[name]);
    }
    user.run(&["down"]).exited(0);
    assert_eq!(user.home.read(file), text);
}

#[test]
fn if_all_servers_need_their_client_that_is_said_and_nothing_is_written() {
    let user = User::new("all-staying");
    for (file, _) in &user.files {
        user.home.write(file, "{}");
    }
    let text = json!({"mcpServers": {"ws": {"command": "x", "cwd": "${workspaceFolder}"}}});
    user.home.write(".cursor/mcp.json", &text.to_string());
    let run = user.run(&["up", "--yes"]).exited(2);
    let stays = "`ws` stays with Cursor: it uses the folder that the client has open (`${workspaceFolder}`)\n";
    let error = "error: no client of yours has servers that Vary can take over";
    assert_contains(&run.stderr, &[stays, error]);
    assert_eq!(user.home.read(".cursor/mcp.json"), text.to_string());
    assert!(!user.configuration().exists());
}

#[test]
fn the_open_folder_of_a_project_is_its_own_and_the_question_names_the_command_that_shows_more() {
    let user = User::new("rooted");
    user.run(&["up", "--yes"]).exited(0);
    let rooted =
        json!({"command": VARY, "args": ["weather"], "env": {"ROOT": "${workspaceFolder}"}});
    let with_file = json!({"command": VARY, "args": ["weather"], "envFile": ".env"});
    let servers = json!({"mcpServers": {"rooted": rooted, "file": with_file}});
    user.home.write("project/.mcp.json", &servers.to_string());
    let (shown, code) = at_terminal(&user.command(&["up", "--project"]), "y\n");
    assert_eq!(code, Some(0), "{shown}");
    let directory = user.home.path("project").canonicalize().unwrap();
    let project = directory.display();
    let stays = format!(
        "`file` stays with Claude Code in {project}: it reads its variables from a file (`envFile`), which Vary does not\n"
    );
    let question = "(`vary up --project --dry-run` shows how)";
    assert_contains(&shown, &[&stays, question]);
    assert_lacks(&shown, &["`vary up --dry-run`"]);
    let configuration = fs::read_to_string(user.configuration()).unwrap();
    assert_contains(&configuration, &[&format!("      ROOT: {project}\n")]);
    assert_lacks(&configuration, &["  file:"]);
    let files = json!({"mcpServers": {"file": with_file}});
    user.home.write("project/.mcp.json", &files.to_string());
    let (shown, code) = at_terminal(&user.command(&["up", "--project"]), "y\n");
    assert_eq!(code, Some(2), "{shown}");
    let error = "error: no file of this directory has servers for Vary";
    assert_contains(&shown, &[&stays, error]);
}

#[test]
fn a_server_that_its_client_or_a_project_of_it_disables_stays() {
    let user = User::new("disabled");
    let sky = user.servers(".cursor/mcp.json")["sky"].clone();
    let mut off = sky.clone();
    off["disabled"] = json!(true);
    let cursor = json!({"mcpServers": {"sky": sky, "other": off}});
    user.home.write(".cursor/mcp.json", &cursor.to_string());
    let mut settings = sky.clone();
    settings["env"]["N"] = json!("switched");
    let claude = json!({
        "mcpServers": {"sky": sky, "switched": settings},
        "projects": {"/p": {"disabledMcpServers": ["switched", "none"]}}
    });
    user.home.write(".claude.json", &claude.to_string());
    let run = user.run(&["up", "--yes"]).exited(0);
    let of_project = "`switched` stays with Claude Code: it is disabled there (`projects./p.disabledMcpServers`)\n";
    let of_client = "`other` stays with Cursor: it is disabled there (`disabled`)\n";
    assert_contains(&run.stdout, &[of_project, of_client]);
    assert_lacks(&run.stdout, &["none", "switched  "]);
    assert_lacks(&run.stderr, &["other-2"]);
    assert_eq!(user.servers(".cursor/mcp.json")["other"], off);
    assert_eq!(user.servers(".claude.json")["switched"], settings);
}

#[test]
fn permission_rules_of_claude_code_are_named_until_their_server_is_in_vary() {
    let user = User::new("rules");
    let rules = json!({"permissions": {
        "allow": ["mcp__sky__get_weather", "mcp__dead__x"], "deny": ["mcp__sky__forecast"],
    }});
    user.home.write(".claude/settings.json", &rules.to_string());
    let run = user.run(&["up", "--yes"]).exited(0);
    let change =
        "/.claude/settings.json: `mcp__sky__get_weather` to `mcp__vary__sky_get_weather`\n";
    let strict = "/.claude/settings.json protect nothing until you change them: `mcp__sky__forecast` to `mcp__vary__sky_forecast`\n";
    assert_contains(&run.stderr, &[change, strict]);
    let again = user.run(&["up", "--yes", "--dry-run"]).exited(0);
    assert_lacks(&again.stderr, &["mcp__"]);
}

#[test]
fn quiet_hides_notes_and_a_home_that_is_not_there_is_named() {
    let user = User::new("quiet");
    let run = user.run(&["up", "--dry-run", "--quiet"]).exited(0);
    assert_lacks(&run.stderr, &["note: "]);
    let missing = user.home.path("missing").display().to_string();
    for (home, why) in [
        ("relative", "which is not a whole path"),
        (&*missing, "which does not exist"),
    ] {
        let why = format!("`HOME` is {home}, {why}; set it to your home directory\n");
        let mut command = user.command(&["up", "--dry-run"]);
        let run = Run::of(command.env("HOME", home)).exited(2);
        assert_contains(&run.stderr, &[&why]);
    }
}
