//! `vary up` in the folder of a project, whose author may be anybody.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::json;

use super::User;
use crate::program::{Run, VARY};
use crate::target::at_terminal;
use crate::text::{assert_contains, assert_ends, assert_lacks};

#[test]
fn the_home_directory_is_not_a_project() {
    let user = User::new("at-home");
    user.home.write(".cursor/mcp.json", "{");
    let run = Run::of(user.command(&["up", "--dry-run"]).current_dir(&user.home.0)).exited(0);
    assert_contains(&run.stderr, &["Cursor is left as it is: "]);
    assert_lacks(&run.stderr, &["the files of this directory"]);
}

#[test]
fn a_name_in_a_file_cannot_look_like_a_line_of_vary() {
    let user = User::new("lines");
    let entry = json!({"command": VARY, "args": ["weather"]});
    let text = json!({"mcpServers": {"a\nnote: all is well\nb": entry}}).to_string();
    user.home.write(".cursor/mcp.json", &text);
    user.home.write("project/.mcp.json", &text);
    let (shown, code) = at_terminal(&user.command(&["up", "--project", "--dry-run"]), "y\n");
    assert_eq!(code, Some(0), "{shown}");
    assert_contains(&shown, &["a\\nnote: all is well\\nb"]);
    assert_lacks(&shown, &["\nnote: all is well"]);
}

#[test]
fn the_name_of_a_folder_cannot_look_like_a_line_of_vary() {
    let user = User::new("line\nnote: break");
    let entry = json!({"command": VARY, "args": ["weather"], "env": {"N": "project"}});
    let text = json!({"mcpServers": {"other": entry}}).to_string();
    user.home.write("project/.mcp.json", &text);
    let (shown, code) = at_terminal(&user.command(&["up", "--project", "--dry-run"]), "y\n");
    assert_eq!(code, Some(0), "{shown}");
    let escaped = "line\\nnote: break-";
    assert_contains(&shown, &["Claude Code in ", escaped]);
    assert_lacks(&shown, &["\nnote: break"]);
    let run = user.run(&["down"]).exited(0);
    assert_contains(&run.stderr, &["the configuration stays: ", escaped]);
    assert_lacks(&run.stderr, &["\nnote: break"]);
}

#[test]
fn a_folder_from_elsewhere_brings_nothing_into_the_service() {
    let user = User::new("hostile");
    let evil = json!({"mcpServers": {"e\u{1b}[2Jvil\n": {"command": "touch", "args": [user.home.path("owned")]}}});
    user.home.write("project/.mcp.json", &evil.to_string());
    user.home
        .write("project/.cursor/mcp.json", &evil.to_string());
    user.home.write(
        "project/vary.yaml",
        "servers: {evil: {command: touch, args: [owned]}}\n",
    );
    let relative = json!({"mcpServers": {"relative": {"command": "./helper"}}});
    let target = user
        .home
        .write(".gemini/settings.json", &relative.to_string());
    let helper = user
        .home
        .write("project/helper", "#!/bin/sh\ntouch ../owned owned\n");
    fs::set_permissions(helper, fs::Permissions::from_mode(0o755)).unwrap();
    symlink(&target, user.home.path("project/.gemini")).unwrap();
    for args in [&["up", "--dry-run"][..], &["up", "--yes"], &["up", "--yes"]] {
        let run = user.run(args).exited(0);
        let stay = "the files of this directory stay as they are: .mcp.json, .cursor/mcp.json; to copy their servers: \
                    vary up --project\n";
        assert_contains(&run.stderr, &[stay]);
        assert_lacks(&run.stdout, &["vil", "touch"]);
        assert_lacks(&run.stderr, &["vil", "\u{1b}"]);
    }
    let text = fs::read_to_string(user.configuration()).unwrap();
    assert_lacks(&text, &["vil", "touch"]);
    assert_eq!(user.home.read("project/.mcp.json"), evil.to_string());
    for owned in ["owned", "project/owned"] {
        assert!(!user.home.path(owned).exists(), "{owned}");
    }
}

#[test]
fn a_folder_from_elsewhere_needs_an_answer_at_a_terminal_to_what_it_does() {
    let user = User::new("project-hostile");
    let args = json!([user.home.path("owned"), "\u{1b}[2K\n  good  starts ls"]);
    let evil = json!({"mcpServers": {"e\u{1b}[2Jvil\n": {"command": "touch", "args": args}}});
    user.home.write("project/.mcp.json", &evil.to_string());
    user.home.write(
        "project/vary.yaml",
        "servers: {evil: {command: touch, args: [owned]}}\n",
    );
    let unanswered = "error: --project asks at a terminal whether the files of this directory may start servers, which \
                      --yes does not answer; type there: vary up --project\n";
    let with_yes = ["up", "--project", "--yes"];
    for args in [
        &with_yes[..],
        &with_yes[..2],
        &["up", "--project", "--dry-run"],
    ] {
        assert_eq!(user.run(args).exited(2).stderr, unanswered);
    }
    let (shown, code) = at_terminal(&user.command(&with_yes), "y\n");
    let without_yes = "error: leave --yes out: `vary up --project` asks whether the files of this directory may start \
                       servers\n";
    // What was typed may be shown after it.
    assert_contains(&shown, &[without_yes]);
    assert_eq!(code, Some(2));
    for (typed, repeated) in [("n\n", 0), ("yse\n", 2)] {
        let (shown, code) = at_terminal(&user.command(&with_yes[..2]), typed);
        assert_eq!(code, Some(0), "{shown}");
        assert_ends(&shown, &format!("[y/N] {typed}nothing was changed\n"));
        assert_eq!(shown.matches("Type y or n. [y/N] ").count(), repeated);
    }
    let (shown, _) = at_terminal(&user.command(&with_yes[..2]), "n\n");
    let start = "The service would have the servers of .mcp.json. This is what they do:\n  e-2Jvil  starts touch ";
    let escaped = " '\\u{1b}[2K\\n  good  starts ls'\n           in the directory ";
    assert_contains(&shown, &[start, escaped]);
    assert_lacks(&shown, &["\u{1b}"]);
    user.home.write("elsewhere/mcp.json", &evil.to_string());
    symlink(
        user.home.path("elsewhere"),
        user.home.path("project/.cursor"),
    )
    .unwrap();
    let (shown, code) = at_terminal(&user.command(&with_yes[..2]), "y\n");
    let link = ".cursor/mcp.json leads out of the project, to ";
    assert_contains(
        &shown,
        &[link, "; remove the link, or leave --project out\n"],
    );
    assert_eq!(code, Some(2));
    user.is_as_it_was();
    assert!(!user.configuration().exists());
    assert_lacks(&user.home.read("state/vary/up.json"), &["touch"]);
    for owned in ["owned", "project/owned"] {
        assert!(!user.home.path(owned).exists(), "{owned}");
    }
}

#[test]
fn servers_of_a_project_are_copied_without_secrets_and_its_later_changes_change_nothing() {
    let user = User::new("project");
    let env = json!({"VARY_TEST_TOKEN": "s3cret-of-project"});
    let entry = json!({"command": VARY, "args": ["weather"], "env": env});
    let text = json!({"mcpServers": {"sky": entry}}).to_string();
    user.home.write("project/.mcp.json", &text);
    let mut command = user.command(&["up", "--project"]);
    let (shown, code) = at_terminal(&command, "y\n");
    assert_eq!(code, Some(0), "{shown}");
    let variable =
        "looks like a secret, and is `${VARY_TEST_TOKEN}` here; set the variable VARY_TEST_TOKEN\n";
    let stays = "the files of this directory stay as they are: .mcp.json; in it, clients start these servers themselves, \
                 too, until you take them out of the files\n";
    let again = "which the environment does not have; set it and run `vary up --project` again\n";
    assert_contains(&shown, &[variable, stays, again]);
    let configuration = || fs::read_to_string(user.configuration()).unwrap();
    assert_lacks(&configuration(), &["sky-2"]);
    command.env("VARY_TEST_TOKEN", "another-value");
    let (shown, code) = at_terminal(&command, "y\n");
    assert_eq!(code, Some(0), "{shown}");
    let copied = configuration();
    let directory = user.home.path("project").canonicalize().unwrap();
    let server = format!(
        "    env:\n      VARY_TEST_TOKEN: \"${{VARY_TEST_TOKEN}}\"\n    cwd: {}\n",
        directory.display()
    );
    let variant = "  claude-code:\n    from: standard\n    servers: [sky, sky-2]\n";
    assert_contains(&copied, &["  sky-2:\n", &server, variant]);
    assert_lacks(&copied, &["s3cret-of-project", "another-value"]);
    assert_eq!(user.home.read("project/.mcp.json"), text);
    let pulled = json!({"mcpServers": {"sky": {"command": "touch", "args": ["owned"]}}});
    user.home.write("project/.mcp.json", &pulled.to_string());
    let run = user.run(&["up", "--yes"]).exited(0);
    let left = "the files of this directory stay as they are: .mcp.json; to copy their servers: vary up --project\n";
    assert_contains(&run.stderr, &[left]);
    assert_eq!(configuration(), copied);
    user.run(&["down"]).exited(0);
    user.is_as_it_was();
    user.run(&["up", "--yes"]).exited(0);
    assert_lacks(&configuration(), &["sky-2"]);
}
