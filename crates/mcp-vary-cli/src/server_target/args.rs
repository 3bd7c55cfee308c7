//! TARGET, which `serve`, `inspect`, `call` and `check` have in common: a URL, a file, or `--` and a command.

use std::path::{Path, PathBuf};

use clap::Args;
use mcp_vary_config::{Effect, File, SecretFiles, effects};
use mcp_vary_wire::client_name::ClientName;

use crate::failure::Failure;
use crate::{file, server_target};

use super::approval;

/// The options about TARGET.
#[derive(Args, Debug)]
pub(crate) struct TargetArgs {
    /// Only this server of the file; may be repeated
    #[arg(long = "server", value_name = "NAME")]
    pub(crate) servers: Vec<String>,
    /// A header for every request to the URL; may be repeated
    #[arg(long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// A file with the certificate of a further authority to trust, for the URL
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// Without TARGET: use the file of this directory without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// The command of a server and its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// The options of `inspect`, `tools` and `call`.
#[derive(Args, Debug)]
pub(crate) struct ClientArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Only this variant
    #[arg(long, value_name = "ID")]
    pub(crate) variant: Option<String>,
    /// Connect under the name of another client, to try rules under `clients`
    #[arg(long, value_name = "NAME")]
    pub(crate) client_name: Option<String>,
    /// Open the browser when a server wants a login, in the middle of a call too
    #[arg(long)]
    pub(crate) login: bool,
    /// The version of that client
    #[arg(
        long,
        value_name = "VERSION",
        requires = "client_name",
        default_value = "1"
    )]
    pub(crate) client_version: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What the command line names.
#[derive(Debug)]
pub(crate) enum ServerTarget {
    /// The endpoint of a running server.
    Url {
        url: String,
        /// Further headers, as `Name: value`.
        headers: Vec<String>,
        /// The file of further authorities.
        ca: Option<PathBuf>,
    },
    /// A server to start: a program and its arguments.
    Command(Vec<String>),
    /// A configuration, or the server list of an MCP client.
    File(TargetFile),
}

/// A file with servers, as it was when the command started.
#[derive(Debug)]
pub(crate) struct TargetFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    /// Its servers that are read; empty for all.
    pub(crate) servers: Vec<String>,
    /// Whether the user confirmed these servers, since the file was found and not named.
    pub(crate) is_confirmed: bool,
}

impl ClientArgs {
    /// The client under whose name to connect, if one is given.
    pub(crate) fn client(&self) -> Option<ClientName> {
        let name = self.client_name.clone()?;
        let version = self.client_version.clone();
        Some(ClientName { name, version })
    }
}

impl TargetArgs {
    /// What `word` names, or else the command after `--`, or else the file of this directory. `usage` is the beginning
    /// of the command line, such as `vary serve`.
    ///
    /// # Errors
    ///
    /// When nothing or two things are named, options do not fit to what is named, a file cannot be read, or the user
    /// does not want the servers of a file that was found.
    pub(crate) async fn resolve(
        &self,
        word: Option<&str>,
        usage: &str,
    ) -> Result<ServerTarget, Failure> {
        let target = match (word, &self.command[..]) {
            (Some(word), [_, ..]) => {
                return Err(Failure::command(format!(
                    "`{}` and a command after `--` are two targets; leave one of them out",
                    shown(word)
                )));
            }
            (None, [_, ..]) => ServerTarget::Command(self.command.clone()),
            (Some(word), []) => self.named(word, usage)?,
            (None, []) => ServerTarget::File(self.found(usage).await?),
        };
        self.check_options(&target)?;
        Ok(target)
    }

    /// The URL or file `word`.
    fn named(&self, word: &str, usage: &str) -> Result<ServerTarget, Failure> {
        if let Some(url) = endpoint(word) {
            return Ok(ServerTarget::Url {
                url,
                headers: self.headers.clone(),
                ca: self.ca.clone(),
            });
        }
        let path = PathBuf::from(word);
        if !path.exists() && !looks_like_a_file(word) {
            return Err(Failure::command(not_a_target(word, usage)));
        }
        if let Some((_, runner)) = RUNNERS.iter().find(|(ending, _)| word.ends_with(ending)) {
            return Err(Failure::command(format!(
                "`{0}` is a program, not a configuration; to start it as a server, write `{usage} -- {runner}{0}`",
                shown(word)
            )));
        }
        self.resolve_file(path)
    }

    /// The file of this directory, once the user has confirmed its servers.
    async fn found(&self, usage: &str) -> Result<TargetFile, Failure> {
        let path = find_file().ok_or_else(|| {
            Failure::command(format!(
                "no server is named, and this directory has neither {}; name a file or a URL as in `{usage} FILE`, or \
                 a command as in `{usage} -- COMMAND`",
                FOUND.join(" nor ")
            ))
        })?;
        let text = file::text(path)?;
        if !self.yes {
            approval::confirm(path, &text, &self.servers, usage).await?;
        }
        Ok(self.file(path.to_owned(), text, !self.yes))
    }

    /// The file at `path`, for the options of a URL that it stands for.
    pub(crate) fn resolve_file(&self, path: PathBuf) -> Result<ServerTarget, Failure> {
        let text = file::text(&path)?;
        Ok(ServerTarget::File(self.file(path, text, false)))
    }

    fn file(&self, path: PathBuf, text: String, is_confirmed: bool) -> TargetFile {
        TargetFile {
            path,
            text,
            servers: self.servers.clone(),
            is_confirmed,
        }
    }

    /// Refuses options that would have no effect.
    fn check_options(&self, target: &ServerTarget) -> Result<(), Failure> {
        let is_file = matches!(target, ServerTarget::File(_));
        let is_url = matches!(target, ServerTarget::Url { .. });
        if !self.servers.is_empty() && !is_file {
            return Err(Failure::command(
                "--server selects servers of a file, and TARGET is not a file; leave it out",
            ));
        }
        if self.ca.is_some() && !is_url {
            let instead = if is_file {
                "write `ca` into the server's entry of the file"
            } else {
                "leave it out"
            };
            return Err(Failure::command(format!(
                "--ca is for a URL, and TARGET is not a URL; {instead}"
            )));
        }
        if !self.headers.is_empty() && !is_url {
            let instead = if is_file {
                "write `headers` into the server's entry of the file"
            } else {
                "a command gets no headers; leave it out"
            };
            return Err(Failure::command(format!(
                "--header is for a URL, and TARGET is not a URL; {instead}"
            )));
        }
        Ok(())
    }
}

impl TargetFile {
    /// The name of the file, for messages.
    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// What the user confirmed, if the file was found and not named.
    ///
    /// # Errors
    ///
    /// If the file cannot be parsed.
    pub(crate) fn confirmed_effects(&self) -> Result<Option<Vec<Effect>>, Failure> {
        if !self.is_confirmed {
            return Ok(None);
        }
        let read = effects(&self.name(), &self.text, &self.servers);
        let effects = read.map_err(|diagnostics| file::invalid_file(&diagnostics))?;
        Ok(Some(effects))
    }

    /// Reads the servers, and prints notes.
    ///
    /// # Errors
    ///
    /// All mistakes of the file.
    pub(crate) fn read(&self) -> Result<File, Failure> {
        self.read_with(&SecretFiles::beside(&self.path), None)
    }

    /// Reads the servers with the `secrets` that the file names, to be served on `listen`, and prints notes.
    ///
    /// # Errors
    ///
    /// All mistakes of the file.
    pub(crate) fn read_with(
        &self,
        secrets: &SecretFiles,
        listen: Option<&str>,
    ) -> Result<File, Failure> {
        file::parse_and_report(&self.path, &self.text, &self.servers, secrets, listen)
    }
}

/// The URL that `word` is, or that of a gateway on this machine if it is a port; `None` for a file.
pub(crate) fn endpoint(word: &str) -> Option<String> {
    match word.parse::<u16>() {
        Ok(port) => Some(format!("http://127.0.0.1:{port}/mcp")),
        Err(_) => word.contains("://").then(|| word.to_owned()),
    }
}

/// Whether `word` can be nothing but a target.
pub(crate) fn is_target(word: &str) -> bool {
    let is_file = || looks_like_a_file(word) || Path::new(word).is_file();
    endpoint(word).is_some() || is_file()
}

/// The endings of programs that people take for configurations, and what runs them.
const RUNNERS: [(&str, &str); 6] = [
    (".py", "python3 "),
    (".js", "node "),
    (".mjs", "node "),
    (".ts", "npx tsx "),
    (".sh", "sh "),
    (".jar", "java -jar "),
];

/// Whether `word` is meant as a file, although there may be none.
pub(crate) fn looks_like_a_file(word: &str) -> bool {
    let extensions = [".yaml", ".yml", ".json", ".toml"];
    let lower = word.to_lowercase();
    !word.contains(':') && extensions.iter().any(|end| lower.ends_with(end))
}

/// Whether `word` begins like the name of a host, such as `example.com/mcp`.
fn looks_like_a_host(word: &str) -> bool {
    let host = word.split('/').next().unwrap_or_default();
    let is_label = |label: &str| {
        let is_of_label = |c: char| c.is_ascii_alphanumeric() || c == '-';
        !label.is_empty() && label.chars().all(is_of_label)
    };
    word.contains('/') && host.contains('.') && host.split('.').all(is_label)
}

/// Why `word` cannot be used, and what to write instead.
fn not_a_target(word: &str, usage: &str) -> String {
    if word.contains(':') {
        let error = server_target::http_url(word, word).err();
        return error.unwrap_or_else(|| format!("`{}` is not a URL or a file", shown(word)));
    }
    if let Some(meant) = meant_file(word) {
        return format!("`{word}`: there is no such file; did you mean `{meant}`?");
    }
    let is_program = !word.chars().any(char::is_whitespace);
    let tip = match is_program {
        true if looks_like_a_host(word) => format!(
            "if it is an address, write `https://{}`; to start it as a server, write `{usage} -- {word}`",
            shown(word)
        ),
        true => format!("to start it as a server, write `{usage} -- {word}`"),
        false => {
            format!("to start a server by its command, write `{usage} -- COMMAND`, without quotes")
        }
    };
    format!("`{}` is not a URL or a file; {tip}", shown(word))
}

/// The configuration whose name `word` almost has.
fn meant_file(word: &str) -> Option<String> {
    let similar = file::similar_file(Path::new(word))?.display().to_string();
    looks_like_a_file(&similar).then_some(similar)
}

/// `word` without a query, which can have a key.
fn shown(word: &str) -> &str {
    word.split('?').next().unwrap_or_default()
}

/// The file of this directory, for a command that names none.
pub(crate) fn find_file() -> Option<&'static Path> {
    FOUND.iter().map(Path::new).find(|path| path.exists())
}

/// The files that are used if none is named, the first one that exists.
pub(crate) const FOUND: [&str; 2] = ["./vary.yaml", "./.mcp.json"];
