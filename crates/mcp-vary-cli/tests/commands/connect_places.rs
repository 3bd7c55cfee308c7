//! `vary connect --write`: where servers run, in which files the client has others, and which files are not written.

use serde_json::{Value, json};

use crate::connect::Home;
use crate::program::{Run, VARY, command};
use crate::text::{assert_contains, assert_ends, assert_lacks};

/// The servers of a client's file, each started by another command.
#[cfg(unix)]
fn servers(names: &[&str]) -> String {
    let script = format!("exec '{VARY}' weather");
    let servers = names.iter().map(|name| {
        (
            *name,
            json!({"command": "/bin/sh", "args": ["-c", script, name]}),
        )
    });
    json!({"mcpServers": servers.collect::<std::collections::BTreeMap<_, _>>()}).to_string()
}

/// Checks that `run` ended with `code`, and that its messages have `part`.
#[track_caller]
fn ends(run: &Run, code: i32, part: &str) {
    assert_eq!(run.code, Some(code), "{}", run.stderr);
    assert_contains(&run.stderr, &[part]);
}

#[cfg(unix)]
#[test]
fn the_servers_of_a_file_run_in_its_directory_wherever_the_client_starts_vary() {
    let home = Home::new("directory");
    let script = format!("pwd > here && exec '{VARY}' weather");
    let config = json!({"servers": {"sky": {"command": "/bin/sh", "args": ["-c", script]}}});
    home.write("project/vary.json", &config.to_string());
    let run = home.connect(&["cursor", "vary.json", "--write"]);
    ends(&run, 0, "connected: 2 tools");
    std::fs::remove_file(home.path("project/here")).unwrap();
    let written: Value = serde_json::from_str(&home.read(".cursor/mcp.json")).unwrap();
    let args = written["mcpServers"]["vary"]["args"].as_array().unwrap();
    let args: Vec<&str> = args.iter().filter_map(Value::as_str).collect();
    // As Claude Desktop starts it on macOS: in another directory.
    let elsewhere = home.path("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    let run = Run::of(command(&args).current_dir(&elsewhere));
    ends(&run, 0, "in front of weather");
    let here = std::fs::canonicalize(home.path("project")).unwrap();
    assert_eq!(home.read("project/here"), format!("{}\n", here.display()));
}

#[test]
fn a_directory_that_does_not_exist_is_named() {
    let run = Run::of(&mut command(&[
        "serve",
        "--directory",
        "/no/such/place",
        "vary.yaml",
    ]));
    ends(&run, 2, "--directory: /no/such/place cannot be entered: ");
}

#[test]
fn a_variable_that_is_not_set_is_named_and_nothing_else() {
    let home = Home::new("variable");
    let header = "Authorization: Bearer ${VARY_TEST_MISSING}";
    let run = home.connect(&["claude-code", "--header", header, "--write"]);
    let last = run.stderr.lines().last().unwrap();
    let expected = ".claude.json is written, but the variable `VARY_TEST_MISSING` is not set here, so the connection was \
                    not tried; set it where Claude Code is started, and repeat the command to try it";
    ends(&run, 1, expected);
    assert_ends(last, expected);
    assert_lacks(&run.stderr, &["the entry", "nothing answers"]);
}

/// The user's file, the project's, and what Claude Code has for this project in the user's.
#[cfg(unix)]
#[test]
fn what_vary_serves_is_taken_out_of_all_files_of_the_client_and_put_back() {
    let home = Home::new("places");
    home.write("project/vary.json", &servers(&["git", "time", "files"]));
    let project = home.write("project/.mcp.json", &servers(&["git", "time", "mine"]));
    let here = std::fs::canonicalize(home.path("project")).unwrap();
    let local: Value = serde_json::from_str(&servers(&["files"])).unwrap();
    let mut user: Value = serde_json::from_str(&servers(&["git", "own"])).unwrap();
    user["projects"] = json!({here.to_str().unwrap(): local});
    home.write(".claude.json", &user.to_string());
    let before = [".claude.json", "project/.mcp.json"].map(|file| home.read(file));
    let named = home.connect(&["claude-code", "vary.json", "--write"]);
    ends(
        &named,
        0,
        "`time` in .mcp.json starts the same command as a server that Vary serves: ",
    );
    ends(
        &named,
        0,
        "they stay; to take them out: vary connect claude-code vary.json --write --move\n",
    );
    assert_eq!(home.read("project/.mcp.json"), before[1]);
    let moved = home.connect(&["claude-code", "vary.json", "--write", "--move"]);
    ends(&moved, 0, "took out `git`\n");
    ends(&moved, 0, "took out of .mcp.json: `git`, `time`\n");
    ends(&moved, 0, ".claude.json for this project alone: `files`\n");
    ends(
        &moved,
        0,
        "to undo it: vary connect claude-code --remove; what was taken out of /",
    );
    let undo = "/project/.mcp.json: vary connect claude-code --project --remove\n";
    ends(&moved, 0, undo);
    assert_eq!(names(&home), [&["own", "vary"][..], &["mine"]]);
    // Once more, and nothing is said to be there twice.
    let again = home.connect(&["claude-code", "vary.json", "--write"]);
    ends(&again, 0, ": 6 tools, `files_get_weather` for one");
    assert_lacks(
        &again.stderr,
        &["also has", "also reaches", "would have", "they stay"],
    );
    assert_eq!(names(&home), [&["own", "vary"][..], &["mine"]]);
    ends(&again, 0, undo);
    // Where the project is, is known from any directory.
    let mut removed = home.command(&["claude-code", "--remove"]);
    let removed = Run::of(removed.current_dir(home.path("")));
    ends(&removed, 0, ".claude.json, and put back `files`, `git`\n");
    ends(&removed, 0, "/project/.mcp.json, too: cd /");
    std::fs::create_dir_all(home.path("elsewhere")).unwrap();
    let mut elsewhere = home.command(&["claude-code", "--project", "--remove"]);
    let elsewhere = Run::of(elsewhere.current_dir(home.path("elsewhere")));
    ends(&elsewhere, 2, "/elsewhere/.mcp.json\n");
    let removed = home.connect(&["claude-code", "--project", "--remove"]);
    ends(&removed, 0, "put back into .mcp.json: `git`, `time`\n");
    assert_eq!(
        [".claude.json", "project/.mcp.json"].map(|file| home.read(file)),
        before
    );
    assert!(
        !project
            .with_file_name(".mcp.json.vary-record.json")
            .exists()
    );
}

/// The servers of the user's file and of the project's.
#[cfg(unix)]
fn names(home: &Home) -> [Vec<String>; 2] {
    [".claude.json", "project/.mcp.json"].map(|file| {
        let read: Value = serde_json::from_str(&home.read(file)).unwrap();
        let servers = read["mcpServers"].as_object().unwrap();
        servers.keys().cloned().collect()
    })
}

#[cfg(unix)]
#[test]
fn nothing_is_taken_out_of_a_file_that_a_link_leads_out_of_the_project() {
    let home = Home::new("linked");
    home.write("project/vary.json", &servers(&["git"]));
    let secret = home.write("secret.json", &servers(&["git"]));
    std::os::unix::fs::symlink(&secret, home.path("project/.mcp.json")).unwrap();
    let run = home.connect(&["claude-code", "vary.json", "--write", "--move"]);
    ends(&run, 2, ".mcp.json leads out of the project, to ");
    assert_eq!(home.read("secret.json"), servers(&["git"]));
    assert!(!home.path(".claude.json").exists());
}

/// Each server is there once after the step that is printed.
#[cfg(unix)]
#[test]
fn vary_in_the_file_of_the_project_replaces_what_the_user_has_by_the_printed_step() {
    let home = Home::new("from-project");
    home.write("project/vary.json", &servers(&["git", "time"]));
    home.write("project/.mcp.json", &servers(&["git", "time"]));
    home.write(".claude.json", &servers(&["git", "time"]));
    let step = "vary connect claude-code vary.json --write --move\n";
    let run = home.connect(&["claude-code", "vary.json", "--project", "--write", "--move"]);
    let line =
        format!("their tools are listed twice; to have Vary there alone, for all projects: {step}");
    ends(&run, 0, &line);
    assert_eq!(names(&home), [&["git", "time"][..], &["vary"]]);
    let run = home.connect(&["claude-code", "vary.json", "--write"]);
    ends(&run, 0, &format!("to take them out: {step}"));
    let line = "also reaches Vary by `vary` in .mcp.json, and lists its tools twice; to have it in this file alone: ";
    ends(&run, 0, &format!("{line}{step}"));
    let run = home.connect(&["claude-code", "vary.json", "--write", "--move"]);
    ends(&run, 0, "took out of .mcp.json: `vary`\n");
    assert_eq!(names(&home), [&["vary"][..], &[]]);
    assert_lacks(&run.stderr, &["also has", "also reaches"]);
    ends(
        &home.connect(&["claude-code", "--project", "--remove"]),
        0,
        "put back into .mcp.json: ",
    );
    assert_eq!(names(&home), [&["vary"][..], &["git", "time"]]);
}

#[test]
fn the_entry_of_vary_in_another_file_of_the_client_is_called_so() {
    let home = Home::new("both-scopes");
    let sky = ["--write", "--", VARY, "weather"];
    let project = [&["claude-code", "--project"], &sky[..]].concat();
    ends(&home.connect(&project), 0, "connected: 2 tools");
    let line = "Claude Code also reaches Vary by `vary` in .mcp.json, and lists its tools twice; take one of them out: vary \
                connect claude-code --project --remove\n";
    let address = ["claude-code", "http://127.0.0.1:9/mcp", "--write"];
    for (args, code) in [
        (&address[..], 1),
        (&[&["claude-code"], &sky[..]].concat(), 0),
    ] {
        let run = home.connect(args);
        ends(&run, code, line);
        assert_lacks(&run.stderr, &["Claude Code also has"]);
    }
    let line = ".claude.json, and lists its tools twice; take one of them out: vary connect claude-code --remove\n";
    ends(&home.connect(&project), 0, line);
}

#[cfg(unix)]
#[test]
fn without_a_configuration_the_servers_that_may_be_there_twice_are_named() {
    let home = Home::new("unknown");
    home.write("project/.cursor/mcp.json", &servers(&["git"]));
    home.write(".cursor/mcp.json", &servers(&["time"]));
    let run = home.connect(&["cursor", "http://127.0.0.1:9/mcp", "--write"]);
    let expected = "Cursor keeps `time` and `git` in .cursor/mcp.json; if Vary serves them too, take them out: vary connect cursor \
                    http://127.0.0.1:9/mcp --config VARY.YAML --write --move\n";
    ends(&run, 1, expected);
}

#[cfg(unix)]
#[test]
fn a_file_that_a_link_leads_out_of_the_project_is_not_written() {
    let home = Home::new("outside");
    let secret = home.write("secret.json", "{}");
    std::fs::create_dir_all(home.path("project/.cursor")).unwrap();
    std::os::unix::fs::symlink(&secret, home.path("project/.cursor/mcp.json")).unwrap();
    let args = ["cursor", "--project", "--write", "--", VARY, "weather"];
    let refused = ".cursor/mcp.json leads out of the project, to ";
    let run = home.connect(&args);
    ends(&run, 2, refused);
    ends(
        &run,
        2,
        "secret.json; remove the link, or leave --project out\n",
    );
    assert_eq!(home.read("secret.json"), "{}");
    let left: Vec<_> = std::fs::read_dir(home.path("project/.cursor"))
        .unwrap()
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
    // A directory, in which the file does not exist yet.
    std::fs::remove_dir_all(home.path("project/.cursor")).unwrap();
    std::fs::create_dir_all(home.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(home.path("elsewhere"), home.path("project/.cursor")).unwrap();
    ends(&home.connect(&args), 2, refused);
    // A link inside of the project stays one.
    std::fs::remove_file(home.path("project/.cursor")).unwrap();
    std::fs::create_dir_all(home.path("project/dotfiles")).unwrap();
    std::os::unix::fs::symlink("dotfiles", home.path("project/.cursor")).unwrap();
    ends(&home.connect(&args), 0, "connected: 2 tools");
    assert_contains(&home.read("project/dotfiles/mcp.json"), &["vary"]);
}
