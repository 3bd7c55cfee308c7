//! The clients: where each has its servers, and in which form. `docs/how-to/connect.md` names the pages that say so.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use mcp_vary_config::{ClientText, Diagnostic, Format, Syntax};
use mcp_vary_upstream::secret::is_secret;
use serde_json::Value;

use crate::failure::Failure;

/// What is known of a client.
#[derive(Debug)]
pub(crate) struct Client {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// Its name as its makers write it.
    pub(crate) title: &'static str,
    pub(crate) syntax: Syntax,
    pub(crate) format: Format,
    /// The keys that lead to its servers.
    pub(crate) container: &'static [&'static str],
    /// The key of a URL in an entry; `None` if its file cannot name one.
    pub(crate) url: Option<&'static str>,
    /// The `type` of an entry with a URL, and of one with a command, if it has one.
    pub(crate) types: (Option<&'static str>, Option<&'static str>),
    /// How it writes the environment variable `NAME` in a header.
    pub(crate) variable: &'static str,
    /// Its file of the user.
    pub(crate) user: UserFile,
    /// Its file in a project.
    pub(crate) project: Option<&'static str>,
    /// How it writes the project's directory in an argument, if it needs to be written.
    pub(crate) project_directory: Option<&'static str>,
    /// Its commands that add an entry, for a `URL` or a `COMMAND`. One without `SCOPE` is for the user's file alone, and one
    /// without `HEADERS` for a URL without headers.
    pub(crate) add_commands: &'static [&'static str],
    /// What makes it read its file again, and shows its servers.
    pub(crate) see: &'static str,
}

impl Client {
    /// The keys that lead to the servers in `text`: those of opencode 2 if the file has them.
    pub(crate) fn container_in(&self, text: &str) -> Result<Vec<String>, Diagnostic> {
        let mut keys: Vec<String> = self.container.iter().map(|key| (*key).to_owned()).collect();
        if self.format == Format::Opencode {
            let entries = ClientText::new(self.syntax, text).entries(self.container)?;
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

    /// A header as its file has it: the key in the entry, the name under that key, and the value, where each `${VARIABLE}` is
    /// written as the client replaces it.
    ///
    /// # Errors
    ///
    /// If it cannot write the value.
    pub(crate) fn header<'a>(
        &self,
        name: &'a str,
        value: &str,
    ) -> Result<(&'static str, &'a str, String), Failure> {
        if self.format == Format::Codex {
            return codex_header(name, value);
        }
        let mut out = String::new();
        let mut remaining = value;
        while let Some((before, after)) = remaining.split_once("${") {
            let Some((variable, after)) = after.split_once('}') else {
                break;
            };
            out.push_str(before);
            out.push_str(&self.variable.replace("NAME", variable));
            remaining = after;
        }
        out.push_str(remaining);
        Ok(("headers", name, out))
    }

    /// Whether its file can have headers with variables.
    pub(crate) const fn takes_headers(&self) -> bool {
        self.url.is_some()
    }

    /// Refuses the `value` of a header that looks like a secret: it would be stored in the client's file.
    pub(crate) fn check_secret(&self, header: &str, value: &str) -> Result<(), Failure> {
        if !is_secret(header, value) {
            return Ok(());
        }
        let variable = self.variable.replace("NAME", "VARIABLE");
        Err(Failure::command(format!(
            "the value of --header {header} looks like a secret, and would be stored in the client's file; write \
             '{header}: ${{VARIABLE}}', which becomes `{variable}` there, and set the variable in the client's environment"
        )))
    }
}

/// Where a client has its file of the user.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UserFile {
    /// In the home directory.
    Home(&'static str),
    /// In the home directory, and it also has servers for a single project, under `projects`.
    HomeWithProjects(&'static str),
    /// In the directory that the variable names; if it is not set, at this path in the home directory.
    Variable(&'static str, &'static str),
    /// In the directory for Linux, macOS or Windows.
    Settings([Root; 3], &'static str),
}

/// A directory in which clients have their settings.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Root {
    /// The one that `XDG_CONFIG_HOME` names; if it is not set, `.config` in the home directory.
    Config,
    /// In the home directory.
    Home(&'static str),
    /// The one that the variable names, which has to be set.
    Variable(&'static str),
}

/// The argument that names a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientName(&'static Client);

impl ClientName {
    /// The name on the command line.
    pub(crate) fn as_str(self) -> String {
        self.0.name.to_owned()
    }

    /// What is known of the client.
    pub(crate) fn client(self) -> &'static Client {
        self.0
    }
}

impl ValueEnum for ClientName {
    fn value_variants<'a>() -> &'a [Self] {
        CLIENTS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name))
    }
}

/// The key of Codex for a header, its name there and its value.
fn codex_header<'a>(
    name: &'a str,
    value: &str,
) -> Result<(&'static str, &'a str, String), Failure> {
    if !value.contains("${") {
        return Ok(("http_headers", name, value.to_owned()));
    }
    if let Some(variable) = only_variable(value) {
        return Ok(("env_http_headers", name, variable.to_owned()));
    }
    let bearer = value.strip_prefix("Bearer ").and_then(only_variable);
    match bearer {
        Some(variable) if name.eq_ignore_ascii_case("authorization") => {
            Ok((BEARER, name, variable.to_owned()))
        }
        _ => Err(Failure::command(format!(
            "Codex cannot write the value of --header {name}; its headers are a variable alone, '{name}: ${{VARIABLE}}', \
             or 'Authorization: Bearer ${{VARIABLE}}'"
        ))),
    }
}

/// The name of the variable, if `value` is one and nothing else.
fn only_variable(value: &str) -> Option<&str> {
    let name = value.strip_prefix("${")?.strip_suffix('}')?;
    (!name.is_empty() && !name.contains(['$', '{', '}'])).then_some(name)
}

/// Where applications have their settings.
const APPLICATIONS: [Root; 3] = [
    Root::Config,
    Root::Home("Library/Application Support"),
    Root::Variable("APPDATA"),
];

/// The key of Codex for a token.
pub(crate) const BEARER: &str = "bearer_token_env_var";

/// The clients that `vary connect` knows, in the order of its help.
const CLIENTS: &[ClientName] = &[
    ClientName(&Client {
        name: "claude-code",
        title: "Claude Code",
        syntax: Syntax::Json,
        format: Format::McpServers,
        container: &["mcpServers"],
        url: Some("url"),
        types: (Some("http"), Some("stdio")),
        variable: "${NAME}",
        user: UserFile::HomeWithProjects(".claude.json"),
        project: Some(".mcp.json"),
        project_directory: None,
        add_commands: &[
            "claude mcp add --scope SCOPE --transport http HEADERS NAME URL",
            "claude mcp add --scope SCOPE --transport stdio NAME -- COMMAND",
        ],
        see: "start a new session; `/mcp` lists its servers",
    }),
    ClientName(&Client {
        name: "claude-desktop",
        title: "Claude Desktop",
        syntax: Syntax::Json,
        format: Format::McpServers,
        container: &["mcpServers"],
        url: None,
        types: (None, None),
        variable: "${NAME}",
        user: UserFile::Settings(APPLICATIONS, "Claude/claude_desktop_config.json"),
        project: None,
        project_directory: None,
        add_commands: &[],
        see: "quit Claude Desktop and start it again; Settings > Developer lists its servers",
    }),
    ClientName(&Client {
        name: "cursor",
        title: "Cursor",
        syntax: Syntax::Json,
        format: Format::McpServers,
        container: &["mcpServers"],
        url: Some("url"),
        // Its documentation has `type` for commands alone: https://cursor.com/docs/mcp.
        types: (None, Some("stdio")),
        variable: "${env:NAME}",
        user: UserFile::Home(".cursor/mcp.json"),
        project: Some(".cursor/mcp.json"),
        project_directory: Some("${workspaceFolder}"),
        add_commands: &[],
        see: "Cursor Settings > MCP lists its servers; switch `vary` on if it is off",
    }),
    ClientName(&Client {
        name: "vscode",
        title: "VS Code",
        syntax: Syntax::Json,
        format: Format::VsCode,
        container: &["servers"],
        url: Some("url"),
        types: (Some("http"), Some("stdio")),
        variable: "${env:NAME}",
        user: UserFile::Settings(APPLICATIONS, "Code/User/mcp.json"),
        project: Some(".vscode/mcp.json"),
        project_directory: Some("${workspaceFolder}"),
        add_commands: &[],
        see: "the command `MCP: List Servers` lists its servers; start the new one there",
    }),
    ClientName(&Client {
        name: "codex",
        title: "Codex",
        syntax: Syntax::Toml,
        format: Format::Codex,
        container: &["mcp_servers"],
        url: Some("url"),
        types: (None, None),
        variable: "NAME",
        user: UserFile::Variable("CODEX_HOME", ".codex/config.toml"),
        project: Some(".codex/config.toml"),
        project_directory: None,
        add_commands: &[
            "codex mcp add NAME --url URL",
            "codex mcp add NAME -- COMMAND",
        ],
        see: "start a new session; `/mcp` lists its servers",
    }),
    ClientName(&Client {
        name: "gemini-cli",
        title: "Gemini CLI",
        syntax: Syntax::Json,
        format: Format::McpServers,
        container: &["mcpServers"],
        url: Some("httpUrl"),
        types: (None, None),
        variable: "${NAME}",
        user: UserFile::Home(".gemini/settings.json"),
        project: Some(".gemini/settings.json"),
        project_directory: None,
        add_commands: &["gemini mcp add --scope SCOPE --transport http HEADERS NAME URL"],
        see: "start a new session; `/mcp` lists its servers",
    }),
    ClientName(&Client {
        name: "opencode",
        title: "opencode",
        syntax: Syntax::Json,
        format: Format::Opencode,
        container: &["mcp"],
        url: Some("url"),
        types: (Some("remote"), Some("local")),
        variable: "{env:NAME}",
        user: UserFile::Settings([Root::Config; 3], "opencode/opencode.json"),
        project: Some("opencode.json"),
        project_directory: None,
        add_commands: &[],
        see: "start it again; `opencode mcp list` lists its servers",
    }),
    ClientName(&Client {
        name: "windsurf",
        title: "Windsurf",
        syntax: Syntax::Json,
        format: Format::McpServers,
        container: &["mcpServers"],
        url: Some("serverUrl"),
        types: (None, None),
        variable: "${env:NAME}",
        user: UserFile::Home(".codeium/windsurf/mcp_config.json"),
        project: None,
        project_directory: None,
        add_commands: &[],
        see: "press the refresh button of the MCP servers in the settings of Cascade",
    }),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_codex_cannot_write_is_refused() {
        let codex = ClientName::from_str("codex", false).unwrap().client();
        let refused = codex.header("X-Key", "a ${K}").unwrap_err().to_string();
        assert!(
            refused.contains("its headers are a variable alone, 'X-Key: ${VARIABLE}'"),
            "{refused}"
        );
    }
}
