//! The clients: where each has its servers, and in which form. `docs/how-to/connect.md` names the pages that say so.

use clap::ValueEnum;
use mcp_vary_config::{ClientText, Diagnostic, Format, Syntax};
use serde_json::Value;

/// A client that `vary connect` knows.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ClientName {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    #[value(name = "vscode")]
    VsCode,
    Codex,
    GeminiCli,
    Opencode,
    Windsurf,
}

/// What is known of a client.
#[derive(Debug)]
pub(crate) struct Client {
    /// Its name as its makers write it.
    pub(crate) title: &'static str,
    pub(crate) syntax: Syntax,
    pub(crate) format: Format,
    /// The keys that lead to its servers.
    pub(crate) container: &'static [&'static str],
    /// How it writes the environment variable `NAME` in a header; `None` if it has no headers.
    pub(crate) variable: Option<&'static str>,
    /// Its file in a project.
    pub(crate) project: Option<&'static str>,
    /// How it writes the project's directory in an argument, if it needs to be written.
    pub(crate) project_directory: Option<&'static str>,
    /// What makes it read its file again, and shows its servers.
    pub(crate) see: &'static str,
}

impl ClientName {
    /// The name on the command line.
    pub(crate) fn as_str(self) -> String {
        let value = self.to_possible_value();
        value
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }

    /// Whether the client's file can name a URL.
    pub(crate) fn takes_http(self) -> bool {
        self != Self::ClaudeDesktop
    }

    /// The keys that lead to the servers in `text`: those of opencode 2 if the file has them.
    pub(crate) fn container_in(self, text: &str) -> Result<Vec<String>, Diagnostic> {
        let known = self.client();
        let keys = known.container.iter().map(|key| (*key).to_owned());
        let mut keys: Vec<String> = keys.collect();
        if self == Self::Opencode {
            let entries = ClientText::new(known.syntax, text).entries(known.container)?;
            let nested = entries.iter().find(|(name, _)| name == "servers");
            // A server may be called `servers`: then the object is its entry.
            let is_native = nested.is_some_and(|(_, value)| {
                value.is_object() && !value.get("type").is_some_and(Value::is_string)
            });
            if is_native {
                keys.push("servers".to_owned());
            }
        }
        Ok(keys)
    }

    pub(crate) fn client(self) -> &'static Client {
        match self {
            Self::ClaudeCode => &CLAUDE_CODE,
            Self::ClaudeDesktop => &CLAUDE_DESKTOP,
            Self::Cursor => &CURSOR,
            Self::VsCode => &VS_CODE,
            Self::Codex => &CODEX,
            Self::GeminiCli => &GEMINI_CLI,
            Self::Opencode => &OPENCODE,
            Self::Windsurf => &WINDSURF,
        }
    }
}

const CLAUDE_CODE: Client = Client {
    title: "Claude Code",
    syntax: Syntax::Json,
    format: Format::McpServers,
    container: &["mcpServers"],
    variable: Some("${NAME}"),
    project: Some(".mcp.json"),
    project_directory: None,
    see: "start a new session; `/mcp` lists its servers",
};

const CLAUDE_DESKTOP: Client = Client {
    title: "Claude Desktop",
    syntax: Syntax::Json,
    format: Format::McpServers,
    container: &["mcpServers"],
    variable: None,
    project: None,
    project_directory: None,
    see: "quit Claude Desktop and start it again; Settings > Developer lists its servers",
};

const CURSOR: Client = Client {
    title: "Cursor",
    syntax: Syntax::Json,
    format: Format::McpServers,
    container: &["mcpServers"],
    variable: Some("${env:NAME}"),
    project: Some(".cursor/mcp.json"),
    project_directory: Some("${workspaceFolder}"),
    see: "Cursor Settings > MCP lists its servers; switch `vary` on if it is off",
};

const VS_CODE: Client = Client {
    title: "VS Code",
    syntax: Syntax::Json,
    format: Format::VsCode,
    container: &["servers"],
    variable: Some("${env:NAME}"),
    project: Some(".vscode/mcp.json"),
    project_directory: Some("${workspaceFolder}"),
    see: "the command `MCP: List Servers` lists its servers; start the new one there",
};

const CODEX: Client = Client {
    title: "Codex",
    syntax: Syntax::Toml,
    format: Format::Codex,
    container: &["mcp_servers"],
    variable: Some("NAME"),
    project: Some(".codex/config.toml"),
    project_directory: None,
    see: "start a new session; `/mcp` lists its servers",
};

const GEMINI_CLI: Client = Client {
    title: "Gemini CLI",
    syntax: Syntax::Json,
    format: Format::McpServers,
    container: &["mcpServers"],
    variable: Some("${NAME}"),
    project: Some(".gemini/settings.json"),
    project_directory: None,
    see: "start a new session; `/mcp` lists its servers",
};

const OPENCODE: Client = Client {
    title: "opencode",
    syntax: Syntax::Json,
    format: Format::Opencode,
    container: &["mcp"],
    variable: Some("{env:NAME}"),
    project: Some("opencode.json"),
    project_directory: None,
    see: "start it again; `opencode mcp list` lists its servers",
};

const WINDSURF: Client = Client {
    title: "Windsurf",
    syntax: Syntax::Json,
    format: Format::McpServers,
    container: &["mcpServers"],
    variable: Some("${env:NAME}"),
    project: None,
    project_directory: None,
    see: "press the refresh button of the MCP servers in the settings of Cascade",
};
