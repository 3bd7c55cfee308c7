//! `vary connect`: what is printed for each client, as its documentation has it. `docs/how-to/connect.md` names the pages.

use std::path::PathBuf;
use std::process::Command;

use crate::program::{Run, VARY, command};
use crate::text::{assert_contains, assert_ends, assert_lacks};

/// Each client with its title, its file in the directory of its user on Linux, and the key of its servers.
pub(crate) const CLIENTS: [(&str, &str, &str, &str); 8] = [
    ("claude-code", "Claude Code", ".claude.json", "mcpServers"),
    (
        "claude-desktop",
        "Claude Desktop",
        ".config/Claude/claude_desktop_config.json",
        "mcpServers",
    ),
    ("cursor", "Cursor", ".cursor/mcp.json", "mcpServers"),
    ("vscode", "VS Code", ".config/Code/User/mcp.json", "servers"),
    ("codex", "Codex", ".codex/config.toml", "mcp_servers"),
    (
        "gemini-cli",
        "Gemini CLI",
        ".gemini/settings.json",
        "mcpServers",
    ),
    (
        "opencode",
        "opencode",
        ".config/opencode/opencode.json",
        "mcp",
    ),
    (
        "windsurf",
        "Windsurf",
        ".codeium/windsurf/mcp_config.json",
        "mcpServers",
    ),
];

/// A user's directory for one test, with a project in it.
pub(crate) struct Home(pub(crate) PathBuf);

impl Home {
    pub(crate) fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("connect-{name}"));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("project")).unwrap();
        Self(path)
    }

    /// Runs `vary connect` in the project of this user.
    #[track_caller]
    pub(crate) fn connect(&self, args: &[&str]) -> Run {
        Run::of(&mut self.command(args))
    }

    /// The same, not run yet.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.command_of(&[&["connect"], args].concat())
    }

    /// Another command in the project of this user, not run yet.
    pub(crate) fn command_of(&self, args: &[&str]) -> Command {
        let mut command = command(args);
        let program = PathBuf::from(VARY);
        command
            .current_dir(self.0.join("project"))
            .env("HOME", &self.0)
            .env("USERPROFILE", &self.0)
            .env("XDG_CONFIG_HOME", self.0.join(".config"))
            .env("APPDATA", self.0.join(".config"))
            .env("PATH", program.parent().unwrap())
            .env_remove("CODEX_HOME");
        command
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    #[track_caller]
    pub(crate) fn write(&self, file: &str, text: &str) -> PathBuf {
        let path = self.path(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    #[track_caller]
    pub(crate) fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.path(file)).unwrap()
    }
}

#[test]
fn a_variable_that_only_the_shell_has_is_named() {
    let home = Home::new("variables");
    home.write(
        "project/vary.yaml",
        "servers: {sky: {command: vary, env: {TOKEN: '${VARY_TEST_TOKEN}', MODE: '${VARY_TEST_MODE:-a}'}}}",
    );
    let mut command = home.command(&["cursor", "vary.yaml"]);
    let printed = Run::of(command.env("VARY_TEST_TOKEN", "s3cret"));
    let (stdout, stderr) = (printed.stdout, printed.stderr);
    assert_eq!(printed.code, Some(0), "{stderr}");
    assert!(!stdout.contains("s3cret") && !stderr.contains("s3cret"));
    let note = "the configuration uses `VARY_TEST_TOKEN`, set here: Cursor needs it in its environment too";
    assert_contains(&stderr, &[note]);
    assert_lacks(&stderr, &["VARY_TEST_MODE"]);
}

/// As a variable of `--header`: the client may have it.
#[test]
fn a_variable_that_the_shell_does_not_have_is_named_with_its_place_and_the_entry_printed() {
    let home = Home::new("missing-variable");
    let server = "command: x, args: ['${VARY_NONE_A}'], env: {B: '${VARY_NONE_B}'}";
    home.write(
        "project/vary.yaml",
        &format!("servers:\n  sky: {{{server}}}\n"),
    );
    let printed = home.connect(&["cursor", "vary.yaml"]).exited(0);
    assert_contains(&printed.stdout, &["vary.yaml\"]"]);
    let names = "`VARY_NONE_A` (vary.yaml:2:28), `VARY_NONE_B` (vary.yaml:2:56)";
    let note = format!("not set here: {names}; set it where Cursor is started\n");
    assert_ends(&printed.stderr, &note);
    let written = home.connect(&["cursor", "vary.yaml", "--write"]).exited(1);
    let expected = format!(
        "mcp.json is written, but the variables {names} are not set here, so the connection was not tried; set it where \
         Cursor is started, and repeat the command to try it\n"
    );
    assert_ends(&written.stderr, &expected);
    assert_contains(&home.read(".cursor/mcp.json"), &["vary.yaml"]);
    // Another mistake of the file is one.
    home.write(
        "project/vary.yaml",
        "servers: {sky: {url: '${VARY_NONE_A}'}}\n",
    );
    let refused = "vary.yaml:1:22: `servers.sky.url` needs the variable `VARY_NONE_A`";
    home.connect(&["cursor", "vary.yaml"]).refuses(&[refused]);
}

#[test]
fn an_entry_that_is_left_out_is_named_with_the_reason() {
    let home = Home::new("left-out");
    let servers = r#"{"mcpServers": {"sky": {"command": "vary"}, "key": {"command": "x", "env": {"A": "${input:token}"}}}}"#;
    home.write("project/servers.json", servers);
    let printed = home.connect(&["cursor", "servers.json"]).exited(0);
    let line = "`key` is left out: servers.json:1:82: `mcpServers.key.env.A` has `${input:token}`, which VS Code asks its user for; ";
    assert_contains(&printed.stderr, &[line]);
}

/// `vary connect` with `args` prints `expected` as the client's file, and on standard error each of `advice`.
#[track_caller]
fn prints(args: &[&str], expected: &str, advice: &[&str]) {
    let home = Home::new(&args.join("-").replace(['/', ':'], "_"));
    let mut run = home.connect(args);
    let here = home.path("project").display().to_string();
    run.stdout = run.stdout.replace(&here, "/project");
    run.stderr = run.stderr.replace(&here, "/project");
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (Some(0), expected),
        "{}",
        run.stderr
    );
    for part in advice {
        assert_contains(&run.stderr, &[part]);
    }
}

/// <https://code.claude.com/docs/en/mcp>
#[test]
fn claude_code_gets_an_http_server_or_a_command() {
    prints(
        &["claude-code"],
        "{\n  \"mcpServers\": {\n    \"vary\": {\n      \"type\": \"http\",\n      \"url\": \"http://127.0.0.1:8800/mcp\"\n    }\n  }\n}\n",
        &[
            "/.claude.json, or repeat the command with --write\n",
            "or run: claude mcp add --scope user --transport http vary http://127.0.0.1:8800/mcp\n",
        ],
    );
    prints(
        &[
            "claude-code",
            "--project",
            "--name",
            "tools",
            "--",
            "npx",
            "-y",
            "server",
        ],
        "{\n  \"mcpServers\": {\n    \"tools\": {\n      \"type\": \"stdio\",\n      \"command\": \"vary\",\n      \"args\": [\"serve\", \"--stdio\", \"--\", \"npx\", \"-y\", \"server\"]\n    }\n  }\n}\n",
        &[
            "add it to .mcp.json, or",
            "or run: claude mcp add --scope project --transport stdio tools -- vary serve --stdio -- npx -y server\n",
        ],
    );
}

/// <https://modelcontextprotocol.io/docs/develop/connect-local-servers>: the file has no URLs.
#[test]
fn claude_desktop_gets_a_command_in_front_of_the_address() {
    prints(
        &["claude-desktop", "8123", "--variant", "read-only"],
        &format!(
            "{{\n  \"mcpServers\": {{\n    \"vary\": {{\n      \"command\": \"{VARY}\",\n      \"args\": [\"serve\", \"--stdio\", \"http://127.0.0.1:8123/mcp/v/read-only\"]\n    }}\n  }}\n}}\n"
        ),
        &["claude_desktop_config.json, or repeat"],
    );
}

/// <https://cursor.com/docs/context/mcp>
#[test]
fn cursor_gets_a_url_without_a_type() {
    prints(
        &["cursor", "--variant", "Größe 1", "localhost:9000"],
        "{\n  \"mcpServers\": {\n    \"vary\": {\n      \"url\": \"http://localhost:9000/mcp/v/Gr%C3%B6%C3%9Fe%201\"\n    }\n  }\n}\n",
        &["/.cursor/mcp.json, or repeat"],
    );
}

/// <https://code.visualstudio.com/docs/copilot/reference/mcp-configuration>
#[test]
fn vs_code_has_servers_with_a_type() {
    prints(
        &[
            "vscode",
            "https://example.com/mcp",
            "--header",
            "Authorization: Bearer ${TOKEN}",
        ],
        "{\n  \"servers\": {\n    \"vary\": {\n      \"type\": \"http\",\n      \"url\": \"https://example.com/mcp\",\n      \"headers\": {\n        \"Authorization\": \"Bearer ${env:TOKEN}\"\n      }\n    }\n  }\n}\n",
        &["/Code/User/mcp.json, or repeat"],
    );
}

/// <https://developers.openai.com/codex/mcp>
#[test]
fn codex_gets_a_table() {
    prints(
        &[
            "codex",
            "https://example.com/mcp",
            "--header",
            "Authorization: Bearer ${TOKEN}",
            "--header",
            "X-Team: a",
        ],
        "[mcp_servers.vary]\nurl = \"https://example.com/mcp\"\nbearer_token_env_var = \"TOKEN\"\nhttp_headers = { \"X-Team\" = \"a\" }\n",
        &["/.codex/config.toml, or repeat"],
    );
    prints(
        &["codex", "--", "uvx", "mcp-server-git"],
        &format!(
            "[mcp_servers.vary]\ncommand = \"{VARY}\"\nargs = [\"serve\", \"--stdio\", \"--directory\", \"/project\", \"--\", \"uvx\", \"mcp-server-git\"]\n"
        ),
        &[&format!(
            "or run: codex mcp add vary -- {VARY} serve --stdio --directory /project -- uvx mcp-server-git\n"
        )],
    );
}

/// <https://geminicli.com/docs/tools/mcp-server>: `url` alone means the transport of 2024-11-05.
#[test]
fn gemini_cli_gets_an_http_url() {
    prints(
        &["gemini-cli", "--project"],
        "{\n  \"mcpServers\": {\n    \"vary\": {\n      \"httpUrl\": \"http://127.0.0.1:8800/mcp\"\n    }\n  }\n}\n",
        &[
            "or run: gemini mcp add --scope project --transport http vary http://127.0.0.1:8800/mcp\n",
        ],
    );
}

/// <https://opencode.ai/docs/migrate-v1>: both versions read this form.
#[test]
fn opencode_gets_a_remote_or_local_server() {
    prints(
        &["opencode", "--header", "X-Key: ${KEY}"],
        "{\n  \"mcp\": {\n    \"vary\": {\n      \"type\": \"remote\",\n      \"url\": \"http://127.0.0.1:8800/mcp\",\n      \"headers\": {\n        \"X-Key\": \"{env:KEY}\"\n      },\n      \"enabled\": true\n    }\n  }\n}\n",
        &["/.config/opencode/opencode.json, or repeat"],
    );
    prints(
        &["opencode", "--project", "--", "uvx", "g"],
        "{\n  \"mcp\": {\n    \"vary\": {\n      \"type\": \"local\",\n      \"command\": [\"vary\", \"serve\", \"--stdio\", \"--\", \"uvx\", \"g\"],\n      \"enabled\": true\n    }\n  }\n}\n",
        &["add it to opencode.json, or repeat"],
    );
}

/// <https://docs.devin.ai/desktop/cascade/mcp>
#[test]
fn windsurf_gets_a_server_url() {
    prints(
        &["windsurf", "--header", "X-Key: ${KEY}"],
        "{\n  \"mcpServers\": {\n    \"vary\": {\n      \"serverUrl\": \"http://127.0.0.1:8800/mcp\",\n      \"headers\": {\n        \"X-Key\": \"${env:KEY}\"\n      }\n    }\n  }\n}\n",
        &["/.codeium/windsurf/mcp_config.json, or repeat"],
    );
}

#[test]
fn a_configuration_has_its_whole_path_and_in_a_project_a_path_that_others_can_use() {
    let home = Home::new("paths");
    home.write(
        "project/vary.yaml",
        "servers: {sky: {command: x}}\nvariants: {agent: {description: a}}\n",
    );
    let user = home
        .connect(&["cursor", "vary.yaml", "--variant", "agent"])
        .stdout;
    let file = home.path("project/vary.yaml");
    let args = format!(
        "[\"serve\", \"--stdio\", \"--directory\", \"{}\", \"{}\", \"--variant\", \"agent\"]",
        home.path("project").display(),
        file.display()
    );
    assert_contains(&user, &[&args, VARY]);
    let project = home.connect(&["cursor", "vary.yaml", "--project"]).stdout;
    assert_contains(
        &project,
        &[
            "\"command\": \"vary\"",
            "\"--stdio\", \"--directory\", \"${workspaceFolder}\", \"${workspaceFolder}/vary.yaml\"]",
        ],
    );
    let claude = home
        .connect(&["claude-code", "vary.yaml", "--project"])
        .stdout;
    assert_contains(&claude, &["\"--stdio\", \"vary.yaml\"]"]);
}

#[test]
fn the_file_of_a_client_is_about_the_directory_above() {
    let home = Home::new("above");
    let servers = "{\"servers\": {\"sky\": {\"command\": \"x\"}}}";
    home.write("project/.vscode/mcp.json", servers);
    let entry = home.connect(&["cursor", ".vscode/mcp.json"]).stdout;
    let directory = home.path("project").display().to_string();
    let args = format!("\"--directory\", \"{directory}\", \"{directory}/.vscode/mcp.json\"]");
    assert_contains(&entry, &[&args]);
}

#[test]
fn the_page_has_the_entry_of_each_client() {
    const PAGE: &str = include_str!("../../../../docs/how-to/connect.md");
    let sections: Vec<&str> = PAGE.split("\n## ").collect();
    for (client, title, ..) in CLIENTS {
        let section = sections
            .iter()
            .find(|section| section.starts_with(&format!("{title}\n")));
        let section = section.unwrap_or_else(|| panic!("no section `{title}`"));
        let home = Home::new("page");
        let run = home.connect(&[client]);
        let entry = run.stdout.replace(VARY, "/usr/local/bin/vary");
        assert!(section.contains(&entry), "{section} lacks {entry}");
        let file = run.stderr.split_once(", or repeat").unwrap().0;
        let file = file.rsplit('/').next().unwrap();
        assert!(section.contains(file), "{section} lacks {file}");
        assert_contains(section, &[&format!("vary connect {client} ")]);
    }
}
