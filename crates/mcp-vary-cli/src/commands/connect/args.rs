//! The arguments of `vary connect`.

use std::path::PathBuf;

use clap::Parser;
use mcp_vary_upstream::command_line::shell_word;

use super::client::ClientName;

/// Connect an MCP client to Vary
///
/// Prints what to add to the client's file, or with --write adds it: the rest of the file stays as it is, the file as it
/// was is stored in FILE.vary-backup, and --remove undoes it. After that it connects as the client will, and lists the
/// tools. TARGET is the address of a running gateway (a URL, HOST:PORT or a port), or a configuration, for which the
/// client starts Vary itself.
#[derive(Debug, Parser)]
#[command(
    override_usage = "vary connect [OPTIONS] <CLIENT> [TARGET | -- <COMMAND>...]",
    after_help = "Examples:\n  \
        vary connect cursor\n  \
        vary connect claude-code --variant read-only --write\n  \
        vary connect claude-desktop vary.yaml --write --move\n  \
        vary connect codex https://example.com/mcp --header 'Authorization: Bearer ${TOKEN}'\n  \
        vary connect vscode --project --write -- npx -y @modelcontextprotocol/server-filesystem .\n  \
        vary connect cursor --remove"
)]
pub(crate) struct Connect {
    /// The client
    #[arg(value_name = "CLIENT")]
    pub(crate) client: ClientName,
    /// The gateway's address, or a configuration that the client's own Vary serves [default: http://127.0.0.1:8800/mcp]
    #[arg(value_name = "TARGET", conflicts_with = "command")]
    pub(crate) target: Option<String>,
    /// The variant that the client gets
    #[arg(long, value_name = "ID")]
    pub(crate) variant: Option<String>,
    /// The name of Vary in the client's file; with --remove, the only entry to take out [default: vary]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// A header for every request to the address. Write ${VARIABLE} for a secret: the client replaces it; may be
    /// repeated
    #[arg(long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// The configuration of the gateway at the address, to find its servers in the client's file
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub(crate) config: Option<PathBuf>,
    /// Use the file of the project in this directory instead of the user's
    #[arg(long)]
    pub(crate) project: bool,
    /// Write to the client's file, then connect as the client will
    #[arg(long, conflicts_with = "remove")]
    pub(crate) write: bool,
    /// Take the servers that Vary serves out of the client's file, which would have their tools twice; without --project,
    /// out of the project's file too
    #[arg(long = "move", requires = "write")]
    pub(crate) move_servers: bool,
    /// Take out what --write added, and put moved servers back
    #[arg(
        long,
        conflicts_with_all = ["target", "variant", "headers", "config", "command"]
    )]
    pub(crate) remove: bool,
    /// The command of a server that the client's own Vary serves, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

impl Connect {
    /// The command that writes the same entry, to the project's file if `is_project`, and takes out the servers that Vary
    /// serves. `config` stands for a configuration that is not known.
    pub(crate) fn moving_command(&self, config: Option<&str>, is_project: bool) -> String {
        let mut arguments = vec![
            "vary".to_owned(),
            "connect".to_owned(),
            self.client.as_str(),
        ];
        arguments.extend(self.target.clone());
        let known = self.config.as_ref().map(|path| path.display().to_string());
        let config = known.or_else(|| config.map(str::to_owned));
        let options = [
            ("--variant", &self.variant),
            ("--name", &self.name),
            ("--config", &config),
        ];
        let headers = self.headers.iter().map(|header| ("--header", header));
        let given = options
            .iter()
            .filter_map(|(option, value)| Some((*option, value.as_ref()?)));
        for (option, value) in given.chain(headers) {
            arguments.extend([option.to_owned(), value.clone()]);
        }
        arguments.extend(is_project.then(|| "--project".to_owned()));
        arguments.extend(["--write".to_owned(), "--move".to_owned()]);
        if !self.command.is_empty() {
            arguments.push("--".to_owned());
            arguments.extend(self.command.iter().cloned());
        }
        let quoted: Vec<_> = arguments.iter().map(|word| shell_word(word)).collect();
        quoted.join(" ")
    }
}
