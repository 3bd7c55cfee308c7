//! How the client reaches Vary: at an address, or as a process that it starts.

use std::path::{Path, PathBuf};

use clap::ValueEnum as _;
use mcp_vary_base::io_error;
use mcp_vary_upstream::endpoint_url::endpoint_example;
use mcp_vary_upstream::secret::holds_secret;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::args::Connect;
use super::client::ClientName;
use mcp_vary_upstream::command_line::shell_word;

use crate::failure::Failure;
use crate::file::unreadable;
use crate::server_target::args::looks_like_a_file;
use crate::server_target::{header, http_url};

/// How the client reaches Vary.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Endpoint {
    /// The client connects to a gateway that runs already.
    Http {
        url: String,
        /// Names and values. A value has secrets as `${VARIABLE}` only.
        headers: Vec<(String, String)>,
    },
    /// The client starts Vary.
    Stdio { program: String, args: Vec<String> },
}

/// What the command line names, before the client's form is known.
#[derive(Debug)]
pub(crate) enum Target {
    Address(String),
    File(PathBuf),
    Command(Vec<String>),
}

impl Target {
    pub(crate) fn address(&self) -> Option<String> {
        match self {
            Self::Address(address) => Some(address.clone()),
            Self::File(_) | Self::Command(_) => None,
        }
    }

    /// The command that checks the file.
    pub(crate) fn check_command(&self) -> Option<String> {
        let Self::File(path) = self else { return None };
        let path = shell_word(&path.display().to_string());
        Some(format!("vary config check {path}"))
    }

    /// Reads TARGET or COMMAND.
    pub(crate) fn read(args: &Connect) -> Result<Self, Failure> {
        if !args.command.is_empty() {
            return Ok(Self::Command(args.command.clone()));
        }
        let Some(target) = args.target.as_deref() else {
            return Ok(Self::Address(DEFAULT.to_owned()));
        };
        if target.contains("://") {
            http_url(target, target).map_err(Failure::command)?;
            return Ok(Self::Address(target.to_owned()));
        }
        if target.parse::<u16>().is_ok() {
            return Ok(Self::Address(format!("http://127.0.0.1:{target}/mcp")));
        }
        let port = target.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
        let path = Path::new(target);
        match (port, path.is_file() || looks_like_a_file(target)) {
            (_, true) => Ok(Self::File(path.to_owned())),
            (Some(Ok(_)), false) => Ok(Self::Address(format!("http://{target}/mcp"))),
            _ => Err(Failure::command(format!(
                "`{target}` is not a file, and not an address; write a configuration, a URL such as {}, HOST:PORT, or `--` and a \
                 command",
                endpoint_example(target)
            ))),
        }
    }
}

/// Refuses what must not be stored in a file: secrets in headers, addresses and arguments.
pub(crate) fn check_secrets(args: &Connect) -> Result<(), Failure> {
    let texts = args.target.iter().chain(&args.command);
    if texts.into_iter().any(|text| holds_secret(text)) {
        return Err(Failure::command(
            "TARGET or COMMAND has a secret, which would be stored in the client's file; put it into `headers` or `env` \
             of a configuration as `${VARIABLE}`, and connect to that",
        ));
    }
    for line in &args.headers {
        let (name, value) = split(line)?;
        args.client.client().check_secret(name, value)?;
    }
    Ok(())
}

/// The address with the variant, and the headers.
pub(crate) fn http(address: &str, args: &Connect) -> Result<Endpoint, Failure> {
    let headers = args.headers.iter().map(|line| {
        let (name, value) = split(line)?;
        header(name, value).map_err(|error| Failure::command(format!("--header: {error}")))?;
        Ok((name.to_owned(), value.to_owned()))
    });
    Ok(Endpoint::Http {
        url: with_variant(address, args.variant.as_deref())?,
        headers: headers.collect::<Result<_, Failure>>()?,
    })
}

/// `vary serve --stdio` for `target`, as the client `takes` it.
pub(crate) fn stdio(target: &Target, args: &Connect, start: &Start) -> Result<Endpoint, Failure> {
    if !args.headers.is_empty() {
        return Err(Failure::command(
            "--header is for an address, and the client starts Vary as a process here; put it into `headers` of a \
             configuration",
        ));
    }
    let mut serve_args = vec!["serve".to_owned(), "--stdio".to_owned()];
    if let (Some(directory), Target::File(_) | Target::Command(_)) = (&start.directory, target) {
        serve_args.extend(["--directory".to_owned(), directory.clone()]);
    }
    let mut variant = args.variant.as_deref();
    match target {
        Target::Address(address) => {
            serve_args.push(with_variant(address, variant.take())?);
        }
        Target::File(path) => serve_args.push(start.file(path)?),
        Target::Command(_) => {}
    }
    if let Some(variant) = variant {
        serve_args.extend(["--variant".to_owned(), variant.to_owned()]);
    }
    if let Target::Command(command) = target {
        serve_args.push("--".to_owned());
        serve_args.extend(command.iter().cloned());
    }
    Ok(Endpoint::Stdio {
        program: start.program.clone(),
        args: serve_args,
    })
}

/// How the client starts Vary.
#[derive(Debug)]
pub(crate) struct Start {
    /// The program: its path, since applications have another `PATH` than terminals, or its name in a file that others
    /// use as well.
    pub(crate) program: String,
    /// How the client writes the project's directory; `None` for the user's file.
    pub(crate) project_directory: Option<Option<&'static str>>,
    /// The directory in which Vary and its servers run; `None` for that of the client.
    pub(crate) directory: Option<String>,
}

/// The directory in which the servers of `target` are to run: that of the configuration, for a client's file such as
/// `.cursor/mcp.json` the one that it is about, and for a command the current one.
pub(crate) fn directory(target: &Target) -> Result<Option<String>, Failure> {
    let (file, is_file) = match target {
        Target::Address(_) => return Ok(None),
        Target::Command(_) => (Path::new("command"), false),
        Target::File(path) => (path.as_path(), true),
    };
    let file = std::path::absolute(file).map_err(|error| unreadable(file, &error))?;
    let mut directory = file.parent().unwrap_or(&file);
    let names = ClientName::value_variants().iter();
    let mut project_files = names.filter_map(|name| name.client().project?.rsplit_once('/'));
    if is_file && project_files.any(|(parent, _)| directory.ends_with(parent)) {
        directory = directory.parent().unwrap_or(directory);
    }
    let text = directory.to_str().map(str::to_owned);
    let unusable = || format!("the path {} is not Unicode", directory.display());
    text.map(Some).ok_or_else(|| Failure::command(unusable()))
}

impl Start {
    /// The path of a configuration as the client's file has it.
    fn file(&self, path: &Path) -> Result<String, Failure> {
        let unusable = || Failure::command(format!("the path {} is not Unicode", path.display()));
        let absolute = match self.project_directory {
            Some(directory) if path.is_relative() => {
                let relative = path.to_str().ok_or_else(unusable)?;
                let prefix = directory.map_or_else(String::new, |parent| format!("{parent}/"));
                return Ok(prefix + relative);
            }
            _ => std::path::absolute(path),
        };
        let written = absolute.map_err(|error| {
            let why = io_error::describe(&error);
            Failure::command(format!("{} cannot be used: {why}", path.display()))
        })?;
        written.to_str().map(str::to_owned).ok_or_else(unusable)
    }
}

/// The `address` of a gateway for clients of `variant`.
pub(crate) fn with_variant(address: &str, variant: Option<&str>) -> Result<String, Failure> {
    let Some(variant) = variant else {
        return Ok(address.to_owned());
    };
    if !address.ends_with("/mcp") {
        return Err(Failure::command(
            "--variant needs the address of a gateway, which ends in /mcp; or write the variant's own address",
        ));
    }
    Ok(format!(
        "{address}/v/{}",
        utf8_percent_encode(variant, RESERVED)
    ))
}

/// The name and value of a header.
fn split(line: &str) -> Result<(&str, &str), Failure> {
    let (name, value) = line
        .split_once(':')
        .ok_or_else(|| Failure::command("a --header cannot be read; write it as 'Name: value'"))?;
    Ok((name.trim(), value.trim()))
}

/// Where `vary serve` listens.
const DEFAULT: &str = "http://127.0.0.1:8800/mcp";

/// What a path segment does not contain as it is.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
