//! `vary up` and `vary down`: what they say, and what is left when they are killed.

mod fewer;
mod given_back;
mod project;
mod second_run;
mod service;
mod staying;
mod unwritable;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mcp_vary_testkit::generate::random::Random;
use mcp_vary_testkit::login_server::LoginServer;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::connect::Home;
use crate::program::{Run, VARY};
use crate::text::{assert_contains, assert_ends, assert_lacks, assert_starts};

/// A user with three clients, whose service ends with the test.
struct User {
    home: Home,
    /// The files of the clients as they were.
    files: Vec<(&'static str, String)>,
}

/// Has the service of the user of `home` listen on a free port: tests run at the same time.
pub(crate) fn with_free_port(home: &Home) {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("listen: {}\n", free.local_addr().unwrap());
    home.write(
        "state/vary/up.json",
        &json!({"generated": listen}).to_string(),
    );
}

impl User {
    fn new(name: &str) -> Self {
        // Not in the target directory: the path of a socket is short.
        let path = std::env::temp_dir().join(format!("vary-up-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("project")).unwrap();
        let home = Home(path);
        with_free_port(&home);
        let sky = json!({"command": VARY, "args": ["weather"], "env": {"TOKEN": "s3cret-token"}});
        let dead = json!({"command": "/nonexistent/server"});
        let files = [
            (
                ".claude.json",
                json!({
                    "mcpServers": {"sky": sky, "dead": dead},
                    "projects": {"/p": {"mcpServers": {"alone": dead}}, "/q": {}}
                }),
            ),
            (".cursor/mcp.json", json!({"mcpServers": {"sky": sky}})),
            (
                ".gemini/settings.json",
                json!({"mcpServers": {"other": sky}}),
            ),
        ];
        let written = files.into_iter().map(|(file, value)| {
            let text = format!("{value:#}\n");
            home.write(file, &text);
            (file, text)
        });
        let files = written.collect();
        Self { home, files }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.home.command_of(args);
        command.env("XDG_STATE_HOME", self.home.path("state"));
        // The login of a test is not looked for in the keyring of whoever runs it.
        command.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent");
        command
    }

    fn run(&self, args: &[&str]) -> Run {
        Run::of(&mut self.command(args))
    }

    /// Starts a command that is not waited for.
    fn start(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    fn configuration(&self) -> PathBuf {
        self.home.path(".config/vary/vary.yaml")
    }

    /// Writes another `listen` into the configuration.
    #[track_caller]
    fn listen_at(&self, address: &str) {
        let text = fs::read_to_string(self.configuration()).unwrap();
        let mut lines = text.lines();
        let line = lines.find(|line| line.starts_with("listen: ")).unwrap();
        let changed = text.replacen(line, &format!("listen: {address}"), 1);
        fs::write(self.configuration(), changed).unwrap();
    }

    #[track_caller]
    fn assert_is_private(&self) {
        for private in [self.configuration(), self.home.path("state/vary/up.json")] {
            let mode = fs::metadata(&private).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{}", private.display());
        }
    }

    #[track_caller]
    fn is_as_it_was(&self) {
        for (file, text) in &self.files {
            assert_eq!(self.home.read(file), *text, "{file}");
            for ending in [".vary-backup", ".vary-record.json", ".vary-before"] {
                assert!(
                    !self.home.path(&format!("{file}{ending}")).exists(),
                    "{file}{ending}"
                );
            }
        }
    }

    #[track_caller]
    fn servers(&self, file: &str) -> Value {
        let read: Value = serde_json::from_str(&self.home.read(file)).unwrap();
        read["mcpServers"].clone()
    }
}

impl Drop for User {
    fn drop(&mut self) {
        self.run(&["down", "--all"]);
        // One that a killed command started a moment ago.
        self.run(&["drain"]);
        let _ = fs::remove_dir_all(&self.home.0);
    }
}

#[test]
fn what_would_be_written_is_shown_without_secrets_and_nothing_is_written() {
    let user = User::new("dry");
    let run = user.run(&["up", "--dry-run"]).exited(0);
    let table = "new in Vary  clients              tools  tokens\n\
                 other        Gemini CLI               2     603\n\
                 sky          Claude Code, Cursor      2     603\n\
                 `dead` stays with Claude Code: ";
    assert_starts(&run.stdout, table);
    let path = user.configuration().display().to_string();
    assert_contains(
        &run.stdout,
        &[
            "\n\nclient       servers  tools  tokens  compact  directory\nClaude Code        1      2     605  ",
            "`sky` runs beside `other`, since they differ in their names: make them equal in the clients' files, and one \
             process serves both\n",
            &format!("--- {path} (new)\n+++ {path}\n@@ -0,0 +1,"),
            "+listen: 127.0.0.1:",
            "-      \"env\": {\n-        \"TOKEN\": \"••••\"\n",
            "+  gemini-cli:\n+    from: standard\n",
            "/mcp/v/cursor\"",
            ".vary-backup (for `vary down`)\n",
        ],
    );
    let stays = "Claude Code has servers for single projects, which stay as they are, since Vary would give them to all: `alone`\n";
    let secrets =
        "note: secrets move with their servers to the configuration, which only you can read\n";
    assert_contains(&run.stderr, &[stays]);
    assert_eq!(run.stderr.matches(secrets).count(), 1, "{}", run.stderr);
    assert_lacks(&run.stdout, &["s3cret", "`alone`", "\"alone\""]);
    assert_lacks(&run.stderr, &["s3cret", "looks like", "is taken once"]);
    user.is_as_it_was();
    assert!(!user.configuration().exists());
    assert!(!user.home.path("state/vary/up.lock").exists());
}

#[test]
fn what_keeps_two_servers_apart_and_what_a_client_loses_is_said_until_they_are_in_vary() {
    let user = User::new("apart");
    user.home.write(".gemini/settings.json", "{}");
    let table = format!(
        "[mcp_servers.sky]\ncommand = '{VARY}'\nargs = ['weather']\nenv = {{TOKEN = 's3cret-token'}}\n\
         startup_timeout_sec = 30\n"
    );
    user.home.write(".codex/config.toml", &table);
    let differs = "`sky-2` runs beside `sky`, since they differ in `start-timeout`: make them equal in the clients' files, \
                   and one process serves both\n";
    let works = "has a `sky`; this works; for other names, rename one of them\n";
    let secrets = "note: secrets move with their servers";
    let run = user.run(&["up", "--yes"]).exited(0);
    assert_contains(&run.stdout, &[differs]);
    assert_contains(&run.stderr, &[works, secrets]);
    let again = user.run(&["up", "--yes"]).exited(0);
    assert_contains(&again.stderr, &["nothing to change; "]);
    assert_lacks(&again.stdout, &["runs beside"]);
    assert_lacks(&again.stderr, &["this works", secrets]);
}

#[test]
fn a_server_that_vary_has_is_not_the_same_as_a_newer_one() {
    let user = User::new("newer");
    let gemini = ".gemini/settings.json";
    let copied = user.home.read(gemini).replace("\"other\"", "\"a-copy\"");
    user.home.write(gemini, "{}");
    user.run(&["up", "--yes"]).exited(0);
    user.home.write(gemini, &copied);
    let run = user.run(&["up", "--dry-run"]).exited(0);
    assert_contains(
        &run.stdout,
        &[
            "a-copy       Gemini CLI      2  ",
            "`a-copy` runs beside `sky`, since they differ in their names: ",
            "in Vary already, and not tried again: `sky`\n",
        ],
    );
}

#[test]
fn without_a_terminal_nothing_is_written_unless_yes_is_given() {
    let user = User::new("asked");
    let run = user.run(&["up"]).exited(2);
    let expected = "error: without a terminal, Vary cannot ask, so nothing was changed; add --yes, or --dry-run to see \
                    what would be written\n";
    assert_ends(&run.stderr, expected);
    user.is_as_it_was();
    let mut journal: Value = serde_json::from_str(&user.home.read("state/vary/up.json")).unwrap();
    journal["manager"] = json!("background");
    journal["is_unfinished"] = json!(true);
    user.home.write("state/vary/up.json", &journal.to_string());
    let run = user.run(&["up"]).exited(2);
    assert_contains(&run.stderr, &["so nothing else was changed; add --yes"]);
}

#[test]
fn every_client_gets_vary_and_its_servers_back() {
    let user = User::new("round");
    let run = user.run(&["up", "--yes"]).exited(0);
    assert_contains(
        &run.stdout,
        &["client       servers  tools  tokens  compact  directory\nClaude Code        1      2  "],
    );
    let naming = "Tools get the name of their server in front (";
    let advice = "_get_weather): adapt permission rules and prompts that name them.\n";
    assert_contains(&run.stderr, &[naming, advice]);
    let see =
        "Cursor has Vary: Cursor Settings > MCP lists its servers; switch `vary` on if it is off\n";
    assert_contains(
        &run.stderr,
        &[
            see,
            "write `from: compact` in place of `from: standard` for `claude-code`, `cursor`, `gemini-cli`\n",
            "the page of Vary: vary open\nto undo everything: vary down\n",
        ],
    );
    user.assert_is_private();
    let servers = user.servers(".claude.json");
    assert_eq!(servers["dead"], json!({"command": "/nonexistent/server"}));
    assert!(servers["sky"].is_null(), "{servers}");
    let url = servers["vary"]["url"].as_str().unwrap();
    let listed = user.run(&["tools", url]).exited(0);
    assert_contains(&listed.stdout, &["get_weather"]);
    let status = user.run(&["status", "--json"]).json(0);
    let mut variants = status["variants"].as_array().unwrap().iter();
    let cursor = variants.find(|variant| variant["id"] == "cursor").unwrap();
    assert_eq!(cursor["tools"], 2, "{status}");
    let again = user.run(&["up", "--yes"]).exited(0);
    assert_starts(&again.stdout, "`dead` stays with Claude Code: ");
    assert_ends(
        &again.stdout,
        "in Vary already, and not tried again: `other`, `sky`\n",
    );
    let url = url.replace("/v/claude-code", "");
    let running = format!(
        "nothing to change; Vary is running in the background at {url} (vary status, vary open)\n"
    );
    assert_ends(&again.stderr, &running);
    assert_eq!(user.servers(".claude.json"), servers);
    let down = user.run(&["down"]).exited(0);
    assert_contains(
        &down.stderr,
        &[
            ".cursor/mcp.json is as it was\n",
            "to remove it: vary down --all\n",
        ],
    );
    user.is_as_it_was();
    assert!(user.configuration().exists());
    let journal = user.home.read("state/vary/up.json");
    assert_lacks(&journal, &["s3cret", "command", "weather"]);
    let run = user.run(&["status"]).exited(2);
    assert_contains(&run.stderr, &["`vary up` starts one for your clients"]);
    assert_lacks(&run.stderr, &["127.0.0.1"]);
    user.run(&["down", "--all"]).exited(0);
    assert!(!user.home.path(".config/vary").exists());
}

#[test]
fn tools_of_one_server_keep_their_names_even_if_another_is_down() {
    let user = User::new("one-server");
    fs::remove_file(user.home.path(".gemini/settings.json")).unwrap();
    let run = user.run(&["up", "--yes"]).exited(0);
    assert_lacks(&run.stderr, &["Tools get the name"]);
    let url = user.servers(".claude.json")["vary"]["url"].clone();
    let listed = user.run(&["tools", url.as_str().unwrap()]).exited(0);
    assert_lacks(&listed.stdout, &["sky_"]);
}

#[test]
fn another_program_is_started_in_place_of_the_one_that_runs() {
    let user = User::new("moved");
    user.run(&["up", "--yes"]).exited(0);
    let program = user.home.path("vary");
    fs::copy(VARY, &program).unwrap();
    let typed = user.command(&["up", "--yes"]);
    let mut moved = Command::new(&program);
    for (name, value) in typed.get_envs() {
        match value {
            Some(value) => moved.env(name, value),
            None => moved.env_remove(name),
        };
    }
    let run = Run::of(moved.args(["up", "--yes"]).current_dir(&user.home.0)).exited(0);
    assert_contains(
        &run.stderr,
        &["Vary runs with another program; starting it again\n"],
    );
    let status = user.run(&["status"]).exited(0);
    assert_contains(
        &status.stdout,
        &[&format!("{}, in the background\n", program.display())],
    );
    fs::remove_file(&program).unwrap();
    let status = user.run(&["status"]).exited(0);
    assert_contains(
        &status.stdout,
        &["was removed since Vary started; to run another program: type `vary up` with it"],
    );
}

#[test]
fn a_second_run_adds_what_is_new_and_keeps_what_the_user_changed() {
    let user = User::new("again");
    user.run(&["up", "--yes"]).exited(0);
    let path = user.configuration();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        text.replacen("admin: 0\n", "admin: 0\nstart-wait: 20s  # mine\n", 1),
    )
    .unwrap();
    let mut servers = user.servers(".cursor/mcp.json");
    servers["new"] = json!({"command": VARY, "args": ["weather"], "env": {"N": "new"}});
    user.home.write(
        ".cursor/mcp.json",
        &json!({"mcpServers": servers}).to_string(),
    );
    user.run(&["up", "--yes"]).exited(0);
    let text = fs::read_to_string(&path).unwrap();
    assert_contains(&text, &["start-wait: 20s  # mine\n", "  new:\n"]);
    assert!(user.servers(".cursor/mcp.json")["new"].is_null());
    let down = user.run(&["down"]).exited(0);
    let line = ".cursor/mcp.json was changed since: that stays, and Vary is taken out\n";
    assert_contains(&down.stderr, &[line, ".claude.json is as it was\n"]);
    assert_lacks(&down.stderr, &[".cursor/mcp.json is as it was"]);
    let back = user.servers(".cursor/mcp.json");
    assert_eq!(back["new"], servers["new"]);
    assert_eq!(back["sky"]["command"], VARY);
    assert!(back["vary"].is_null(), "{back}");
}

/// Adds a server to the file of Cursor.
fn add_to_cursor(user: &User, name: &str) {
    let mut servers = user.servers(".cursor/mcp.json");
    servers[name] = json!({"command": VARY, "args": ["weather"], "env": {"N": name}});
    let text = json!({"mcpServers": servers}).to_string();
    user.home.write(".cursor/mcp.json", &text);
}

#[test]
fn a_server_is_added_to_the_variant_that_its_user_edited() {
    let user = User::new("edited-variant");
    add_to_cursor(&user, "first");
    user.run(&["up", "--yes"]).exited(0);
    let path = user.configuration();
    let text = fs::read_to_string(&path).unwrap();
    let (before, cursor) = text.split_once("  cursor:\n").unwrap();
    let edited = cursor.replacen("servers: [sky, first]", "servers: [sky]  # mine", 1);
    assert_ne!(cursor, edited);
    fs::write(&path, format!("{before}  cursor:\n{edited}")).unwrap();
    add_to_cursor(&user, "second");
    user.run(&["up", "--yes"]).exited(0);
    let text = fs::read_to_string(&path).unwrap();
    let (_, cursor) = text.split_once("  cursor:\n").unwrap();
    let expected = "    from: standard\n    servers: [sky, second]  # mine\n";
    assert_starts(cursor, expected);
    assert!(user.servers(".cursor/mcp.json")["second"].is_null());
}

#[test]
fn a_client_whose_variant_has_no_list_of_servers_keeps_its_new_one_and_others_get_theirs() {
    let user = User::new("no-list");
    user.run(&["up", "--yes"]).exited(0);
    let path = user.configuration();
    let text = fs::read_to_string(&path).unwrap();
    let (before, cursor) = text.split_once("  cursor:\n").unwrap();
    let mine = "    tools: [{server: sky}]\n";
    let edited = cursor.replacen("    servers: [sky]\n", mine, 1);
    assert_ne!(cursor, edited);
    fs::write(&path, format!("{before}  cursor:\n{edited}")).unwrap();
    add_to_cursor(&user, "new");
    let mut servers = user.servers(".gemini/settings.json");
    servers["theirs"] = json!({"command": VARY, "args": ["weather"], "env": {"N": "theirs"}});
    let gemini = json!({"mcpServers": servers}).to_string();
    user.home.write(".gemini/settings.json", &gemini);
    let run = user.run(&["up", "--yes"]).exited(0);
    let why = "Cursor keeps `new`: its variant `cursor` was changed (";
    assert_contains(&run.stderr, &[why, "`servers: [NAME]`, then: vary up\n"]);
    assert!(user.servers(".cursor/mcp.json")["new"].is_object());
    assert!(user.servers(".gemini/settings.json")["theirs"].is_null());
    let text = fs::read_to_string(&path).unwrap();
    assert_contains(&text, &[mine, "  theirs:\n"]);
}

#[test]
fn a_client_whose_file_cannot_be_used_now_keeps_its_servers_and_its_variant() {
    let user = User::new("protected");
    user.run(&["up", "--yes"]).exited(0);
    let path = user.configuration();
    let text = fs::read_to_string(&path).unwrap();
    let edited = text.replace("    from: standard\n", "    from: compact\n");
    fs::write(&path, &edited).unwrap();
    let protected = user.home.path(".cursor/mcp.json");
    fs::set_permissions(&protected, fs::Permissions::from_mode(0o444)).unwrap();
    let gemini = user.home.read(".gemini/settings.json");
    user.home
        .write(".gemini/settings.json", &(gemini.clone() + "{"));
    let run = user.run(&["up", "--yes"]).exited(0);
    assert_contains(
        &run.stderr,
        &[
            "Cursor is left as it is: ",
            "Gemini CLI is left as it is: ",
            "nothing to change; Vary is running",
        ],
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), edited);
    fs::set_permissions(&protected, fs::Permissions::from_mode(0o644)).unwrap();
    user.home.write(".gemini/settings.json", &gemini);
    user.run(&["down"]).exited(0);
    user.is_as_it_was();
}

#[test]
fn an_address_of_vary_that_its_user_chose_stays_until_it_is_taken_out() {
    let user = User::new("chosen");
    user.run(&["up", "--yes"]).exited(0);
    let file = ".cursor/mcp.json";
    let written = user.home.read(file);
    let chosen = written.replace("/mcp/v/cursor", "/mcp/v/compact");
    assert_ne!(chosen, written);
    user.home.write(file, &chosen);
    let configuration = || fs::read_to_string(user.configuration()).unwrap();
    let before = configuration();
    let run = user.run(&["up", "--yes"]).exited(0);
    assert_contains(&run.stderr, &["nothing to change; Vary is running"]);
    assert_eq!(user.home.read(file), chosen);
    assert_eq!(configuration(), before);
    user.run(&["down"]).exited(0);
    let back = user.servers(file);
    assert_eq!(back["sky"]["command"], VARY);
    assert!(back["vary"].is_null(), "{back}");
}

#[test]
fn a_server_keeps_its_name_when_another_client_gets_one_that_is_called_so() {
    let user = User::new("names");
    user.run(&["up", "--yes"]).exited(0);
    let mut servers = user.servers(".claude.json");
    servers["other"] = json!({"command": VARY, "args": ["weather"], "env": {"TOKEN": "of-claude"}});
    user.home
        .write(".claude.json", &json!({"mcpServers": servers}).to_string());
    user.run(&["up", "--yes"]).exited(0);
    let text = fs::read_to_string(user.configuration()).unwrap();
    let (_, newcomer) = text.split_once("  other-2:\n").unwrap();
    assert_contains(newcomer, &["of-claude"]);
    let variant = "  gemini-cli:\n    from: standard\n    servers: [other]\n";
    assert_contains(&text, &[variant]);
    let again = user.run(&["up", "--yes"]).exited(0);
    assert_contains(&again.stderr, &["nothing to change; Vary is running"]);
}

#[test]
fn a_variant_stays_when_its_client_gets_the_servers_that_it_lacked() {
    let user = User::new("grown");
    let other = json!({"command": VARY, "args": ["weather"], "env": {"N": "other"}});
    let gemini = json!({"mcpServers": {"other": other}});
    user.home
        .write(".gemini/settings.json", &gemini.to_string());
    user.run(&["up", "--yes"]).exited(0);
    let mut servers = user.servers(".cursor/mcp.json");
    let url = servers["vary"]["url"].clone();
    servers["other"] = other;
    user.home.write(
        ".cursor/mcp.json",
        &json!({"mcpServers": servers}).to_string(),
    );
    user.run(&["up", "--yes"]).exited(0);
    assert_eq!(user.servers(".cursor/mcp.json")["vary"]["url"], url);
    let text = fs::read_to_string(user.configuration()).unwrap();
    let variant = "  cursor:\n    from: standard\n    servers: [sky, other]\n";
    assert_contains(&text, &[variant]);
}

#[test]
fn a_server_of_which_a_client_shows_fewer_tools_is_one_server_and_the_client_gets_no_more() {
    let user = User::new("narrowed");
    let mut sky = user.servers(".cursor/mcp.json")["sky"].clone();
    sky["includeTools"] = json!(["get_weather"]);
    let gemini = json!({"mcpServers": {"sky": sky}});
    user.home
        .write(".gemini/settings.json", &gemini.to_string());
    let run = user.run(&["up", "--yes"]).exited(0);
    let text = fs::read_to_string(user.configuration()).unwrap();
    let include = "      include:\n        - {server: sky, name: get_weather}\n";
    let variant =
        format!("  gemini-cli:\n    from: standard\n    servers: [sky]\n    tools:\n{include}");
    assert_contains(&text, &[&variant]);
    assert_lacks(&text, &["sky-2"]);
    let mut lines = run.stdout.lines();
    let is_cost = |line: &&str| line.starts_with("Gemini CLI ");
    let cost = lines.find(is_cost).unwrap();
    assert_starts(cost, "Gemini CLI         1      1  ");
}

#[test]
fn the_costs_after_down_are_those_of_the_variant_that_the_user_changed() {
    let user = User::new("costs");
    user.run(&["up", "--yes"]).exited(0);
    let path = user.configuration();
    let text = fs::read_to_string(&path).unwrap();
    let standard = "  cursor:\n    from: standard\n";
    let compact = "  cursor:\n    from: compact\n";
    fs::write(&path, text.replacen(standard, compact, 1)).unwrap();
    user.run(&["down"]).exited(0);
    let run = user.run(&["up", "--yes"]).exited(0);
    let mut lines = run.stdout.lines();
    let cursor = lines.find(|line| line.starts_with("Cursor ")).unwrap();
    let cells: Vec<&str> = cursor.split_whitespace().collect();
    assert_eq!(cells[1..3], ["1", "2"]);
    assert_eq!(cells[3], cells[4], "{cursor}");
}

#[test]
fn an_address_that_another_program_has_is_reported_and_no_client_is_connected_to_it() {
    let user = User::new("occupied");
    let listen = || {
        let text = user.home.read(".config/vary/vary.yaml");
        let line = text.lines().find(|line| line.starts_with("listen: "));
        line.unwrap().replace("listen: ", "")
    };
    for command in [["up", "--yes"].as_slice(), &["down"]] {
        user.run(command).exited(0);
    }
    let first = listen();
    let other = TcpListener::bind(&first).unwrap();
    for command in [["up", "--yes"].as_slice(), &["down"]] {
        user.run(command).exited(0);
    }
    assert_ne!(listen(), first, "the user did not choose it");
    let text = user.home.read(".config/vary/vary.yaml");
    let address = other.local_addr().unwrap().to_string();
    user.home
        .write(".config/vary/vary.yaml", &text.replace(&listen(), &address));
    let run = user.run(&["up", "--yes"]).exited(2);
    let path = user.configuration();
    let expected = format!(
        "error: {address} is in use by another program, so Vary cannot listen there; end that program, or change `listen` \
         in {}, then: vary up\n",
        path.display()
    );
    assert_ends(&run.stderr, &expected);
    user.is_as_it_was();
}

#[test]
fn a_client_file_that_is_broken_stays_in_the_journal_until_it_is_repaired() {
    let user = User::new("broken");
    user.run(&["up", "--yes"]).exited(0);
    let file = ".cursor/mcp.json";
    let text = user.home.read(file);
    let broken = text.trim_end().trim_end_matches('}');
    user.home.write(file, broken);
    let path = user.home.path(file).display().to_string();
    let repair = format!(
        " is not JSON: the file ends before the `{{` in line 1, column 1 is closed; write `}}` where it is missing; or have it \
         as it was before Vary: cp {path}.vary-before {path}\n"
    );
    for _ in 0..2 {
        let run = user.run(&["down"]).exited(1);
        assert_contains(&run.stderr, &[&format!("not given back: {path}:"), &repair]);
        let end = "Vary has ended, so clients whose files were not given back cannot use its servers\n\
                   repair that, then type `vary down` again\n";
        assert_ends(&run.stderr, end);
    }
    fs::copy(format!("{path}.vary-before"), &path).unwrap();
    user.run(&["down"]).exited(0);
    user.is_as_it_was();
    user.run(&["up", "--yes"]).exited(0);
    user.home.write(file, broken);
    user.run(&["down"]).exited(1);
    user.home.write(file, &text);
    user.run(&["down"]).exited(0);
    user.is_as_it_was();
}

#[test]
fn an_entry_of_vary_is_taken_out_with_what_its_user_added_but_not_with_another_address() {
    let user = User::new("edited");
    user.run(&["up", "--yes"]).exited(0);
    let mut claude = json!({"mcpServers": user.servers(".claude.json")});
    claude["mcpServers"]["vary"]["timeout"] = json!(20);
    user.home.write(".claude.json", &claude.to_string());
    let mut cursor = json!({"mcpServers": user.servers(".cursor/mcp.json")});
    cursor["mcpServers"]["vary"]["url"] = json!("http://127.0.0.1:1/mcp");
    user.home.write(".cursor/mcp.json", &cursor.to_string());
    let run = user.run(&["down"]).exited(1);
    let reason = "not everything could be put back (`vary` was changed since, and stays; take it out by hand); a copy of it as \
                  it was before Vary: ";
    assert_contains(&run.stderr, &[reason]);
    assert!(user.servers(".claude.json")["vary"].is_null());
    assert_eq!(
        user.servers(".cursor/mcp.json")["vary"],
        cursor["mcpServers"]["vary"]
    );
}

#[test]
fn a_file_that_keeps_its_client_as_it_is_has_a_next_step() {
    let user = User::new("unusable");
    for (file, _) in &user.files {
        user.home.write(file, "{}");
    }
    let entries = json!({"mcpServers": {"vary": {"url": "http://127.0.0.1:1/mcp"}}});
    for (text, why) in [
        (
            entries.to_string(),
            "has an entry `vary` that `vary up` did not write; take it out of the file",
        ),
        ("{\"mcpServers\":".to_owned(), "mcp.json:1:"),
    ] {
        user.home.write(".cursor/mcp.json", &text);
        let run = user.run(&["up", "--yes"]).exited(2);
        assert_contains(&run.stderr, &["Cursor is left as it is: ", why]);
        let expected = "error: nothing to take over; repair that, then: vary up\n";
        assert_ends(&run.stderr, expected);
    }
}

#[test]
fn a_configuration_of_somebody_else_is_not_overwritten() {
    let user = User::new("other");
    fs::remove_file(user.home.path("state/vary/up.json")).unwrap();
    user.home
        .write(".config/vary/vary.yaml", "servers: {a: {command: x}}\n");
    let run = user.run(&["up", "--yes"]).exited(2);
    assert_contains(
        &run.stderr,
        &["vary.yaml was not written by `vary up`; move it away"],
    );
    user.is_as_it_was();
}

#[test]
fn a_server_that_wants_a_login_stays_with_its_clients() {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(LoginServer::start());
    let user = User::new("login");
    let url = server.url("/mcp");
    let remote = json!({"mcpServers": {"remote": {"url": url}, "typo": {"url": "ftp://h/mcp"}}});
    user.home.write(".cursor/mcp.json", &remote.to_string());
    let run = user.run(&["up", "--dry-run"]).exited(0);
    let stays = format!(
        "`remote` stays with Cursor: it wants a login; run `vary login {url}`, then `vary up` again\n"
    );
    let unusable = "`typo` stays with Cursor: `servers.typo.url` is not the URL of an MCP server; ";
    assert_contains(&run.stdout, &[&stays, unusable]);
    assert_lacks(&run.stdout, &["+  remote:", "+  typo:"]);
}

#[test]
fn a_journal_that_cannot_be_read_is_named_and_no_file_is_changed() {
    let user = User::new("journal");
    user.home.write("state/vary/up.json", "{");
    for args in [&["up", "--yes"][..], &["down"]] {
        let run = user.run(args).exited(2);
        assert_contains(&run.stderr, &["/up.json is not a journal of this Vary: "]);
        assert_ends(&run.stderr, "with the ending `.vary-backup`\n");
    }
    user.is_as_it_was();
}

#[test]
fn the_variables_of_servers_are_named() {
    let user = User::new("variables");
    let server =
        |variable: &str| json!({"command": VARY, "args": ["weather"], "env": {"A": variable}});
    let servers =
        json!({"set": server("${env:VARY_TEST_SET}"), "unset": server("${env:VARY_TEST_UNSET}")});
    let text = json!({"mcpServers": servers}).to_string();
    user.home.write(".cursor/mcp.json", &text);
    let mut command = user.command(&["up", "--dry-run"]);
    let run = Run::of(command.env("VARY_TEST_SET", "s3cret")).exited(0);
    assert_contains(
        &run.stderr,
        &["the service gets the variables: `VARY_TEST_SET`\n"],
    );
    let why = "`unset` stays with Cursor: `servers.unset.env.A` needs the variable `VARY_TEST_UNSET`, which the \
               environment does not have; set it and run `vary up` again\n";
    assert_contains(&run.stdout, &[why]);
    assert_lacks(&run.stdout, &["s3cret"]);
}

#[test]
fn of_two_at_once_one_waits_and_says_so() {
    let user = User::new("twice");
    let both = [user.start(&["up", "--yes"]), user.start(&["up", "--yes"])];
    let outputs = both.map(|child| child.wait_with_output().unwrap());
    for output in &outputs {
        assert!(output.status.success(), "{output:?}");
    }
    let texts = outputs.map(|output| String::from_utf8(output.stderr).unwrap());
    let waiting = "another `vary up` or `vary down` is at work; waiting for it\n";
    assert_contains(&texts.concat(), &[waiting]);
    user.run(&["down"]).exited(0);
    user.is_as_it_was();
}

/// Kills `up` or `down` at random moments; the next command finishes it, or takes it back.
fn kills_are_taken_back(cases: usize) {
    let user = User::new(&format!("kills-{cases}"));
    let mut random = Random(64);
    for case in 0..cases {
        let is_down = random.chance(50);
        if is_down {
            user.run(&["up", "--yes"]).exited(0);
        }
        let args: &[&str] = if is_down { &["down"] } else { &["up", "--yes"] };
        let longest = if is_down { 60 } else { 1500 };
        let mut child = user.start(args);
        let pause = random.below(longest) as u64;
        std::thread::sleep(Duration::from_millis(pause));
        child.kill().unwrap();
        child.wait().unwrap();
        for (file, _) in &user.files {
            let _whole: Value = serde_json::from_str(&user.home.read(file)).unwrap();
        }
        if random.chance(50) {
            user.run(&["up", "--yes"]).exited(0);
            assert!(
                user.servers(".cursor/mcp.json")["vary"].is_object(),
                "{case}"
            );
        }
        user.run(&["down"]).exited(0);
        user.is_as_it_was();
    }
}

#[test]
fn a_killed_command_is_finished_or_taken_back() {
    kills_are_taken_back(4);
}

#[test]
#[ignore = "`cargo xtask test-extra properties` runs it"]
fn sixty_killed_commands_are_finished_or_taken_back() {
    kills_are_taken_back(60);
}
