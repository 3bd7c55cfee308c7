//! The options of `vary check`.

use std::time::Duration;

use clap::{Args, Parser, ValueEnum};
use mcp_vary_conformance as conformance;
use mcp_vary_conformance::Options;

use crate::failure::Failure;
use crate::server_target::args::TargetArgs;

/// Check a server or client against the documents of the extensions
///
/// Sends requests to a server in any language, as several clients of 2025-11-25 and of 2026-07-28, and compares the answers
/// with what content negotiation, server variants, the extension framework and the visibility of tool results require. Calls
/// only tools that declare `readOnlyHint`, and those of --tool. What a server does not declare is not checked. A violation of a MUST fails, one
/// of a SHOULD is a warning; MAY, and decisions of this project where the documents are silent (MUST*), are only noted. A
/// command is started several times. There is a verdict within a minute.
///
/// With --client, COMMAND is a client: it is started before a mock server in several scenarios, whose URL is its last
/// argument, and what it sends is compared with the same documents.
#[derive(Debug, Parser)]
#[command(
    override_usage = "vary check [OPTIONS] [TARGET | -- COMMAND...]\n       vary check --client [--stdio] [OPTIONS] -- COMMAND...",
    after_help = "Examples:\n  \
    vary check http://127.0.0.1:8800/mcp\n  \
    vary check -- npx -y my-server\n  \
    vary check --tool get_weather --arguments '{\"location\": \"Bern\"}' --expect negotiation -- python3 server.py\n  \
    vary check --only SV-9 --expect variants --format junit https://example.com/mcp > report.xml\n  \
    vary check --client -- python3 my_client.py\n\n\
    Exit codes: 0 passes, 1 does not pass, 2 could not be checked, or not to the end. docs/reference/check.md explains reports, --list lists the checks.\n\n\
    With --format json: {target, passes, counts, skippedRevisions: [{revision, reason}], findings: [{id, revision, level, outcome, finding, \
    sentence, source, does, advice, milliseconds, traffic: [{sent, received}], stderr}]}, where outcome is pass, fail, warn, \
    info, skip or not-reached."
)]
pub(crate) struct ServerCheck {
    /// A URL or a port of this machine; or a file, to check Vary itself with it [default: ./vary.yaml or ./.mcp.json]
    #[arg(value_name = "TARGET")]
    pub(crate) named: Option<String>,
    #[command(flatten)]
    pub(crate) checks: Checks,
    /// A header of another principal, such as its credentials, to compare what both get; may be repeated
    #[arg(long = "other-header", value_name = "NAME: VALUE")]
    pub(crate) other_headers: Vec<String>,
    /// Check a client: COMMAND and the URL of a mock server
    #[arg(long, conflicts_with_all = ["named", "servers", "headers", "ca", "other_headers"])]
    pub(crate) client: bool,
    /// With --client: the last arguments are the command of the mock server instead of its URL
    #[arg(long, requires = "client")]
    pub(crate) stdio: bool,
    /// The mock server as a command: the checks start it with its address
    #[arg(long, hide = true, value_name = "ADDRESS", exclusive = true)]
    pub(crate) relay: Option<String>,
    /// How the report is written
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// List the checks instead; with --only, the selected ones
    #[arg(long)]
    pub(crate) list: bool,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// Which checks run.
#[derive(Args, Debug)]
pub(crate) struct Checks {
    /// Only this check, or the checks of this requirement, such as SV-9; may be repeated. A server or client that does not
    /// declare what they are about fails them
    #[arg(long, value_name = "ID")]
    only: Vec<String>,
    /// Fail servers or clients that do not declare these extensions, and servers without a result that shows them
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    expect: Vec<Extension>,
    /// Also call this tool, whatever it declares; may be repeated. Its results are checked first, and must have data
    #[arg(long = "tool", value_name = "NAME")]
    tools: Vec<String>,
    /// The arguments of a --tool; once for each, in the same order [default: made from the input schema]
    #[arg(long, value_name = "JSON", requires = "tools")]
    arguments: Vec<String>,
    /// Only this revision of the protocol
    #[arg(long)]
    revision: Option<Revision>,
    /// Seconds after which the run ends; if checks were not reached and none failed, there is no verdict, and the exit
    /// code is 2
    #[arg(long, value_name = "SECONDS", default_value_t = 55, value_parser = clap::value_parser!(u64).range(1..=3600))]
    time_limit: u64,
}

/// How a report is written.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Format {
    /// What did not pass, with what to do
    #[default]
    Plain,
    /// All findings, as one object
    Json,
    /// All findings, for systems that run tests
    Junit,
}

/// An extension that a server or client must declare.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Extension {
    /// Server variants
    Variants,
    /// Content negotiation
    Negotiation,
}

/// A revision of the protocol.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Revision {
    /// With sessions
    #[value(name = "2025-11-25")]
    WithSessions,
    /// Stateless requests
    #[value(name = "2026-07-28")]
    Stateless,
}

impl Checks {
    /// How long the run may take.
    pub(crate) const fn time_limit(&self) -> Duration {
        Duration::from_secs(self.time_limit)
    }

    /// The options of a run that checks a client or a server.
    ///
    /// # Errors
    ///
    /// If `--only` selects nothing.
    pub(crate) fn options(&self, is_client: bool) -> Result<Options, Failure> {
        let (all, list) = if is_client {
            (Options::for_clients(), "vary check --client --list")
        } else {
            (Options::default(), "vary check --list")
        };
        let mut options = all
            .only(&self.only)
            .map_err(|error| Failure::command(format!("--only: {error}; `{list}` lists them")))?;
        for extension in &self.expect {
            options = options.expect(match extension {
                Extension::Variants => conformance::Extension::Variants,
                Extension::Negotiation => conformance::Extension::Negotiation,
            });
        }
        options = self.with_tools(options, is_client)?;
        let era = self.revision.map(|revision| match revision {
            Revision::WithSessions => conformance::Era::Legacy,
            Revision::Stateless => conformance::Era::Modern,
        });
        options = options.run_limit(self.time_limit());
        // A longer run is for a slower machine, so that each response gets more time in proportion.
        let in_proportion =
            |of_55: u64| Duration::from_secs((self.time_limit * of_55 / 55).max(of_55));
        let request = if is_client { 5 } else { 10 };
        options = options
            .request_limit(in_proportion(request))
            .start_limit(in_proportion(20));
        Ok(match era {
            Some(era) => options.era(era),
            None => options,
        })
    }

    /// `options` with the tools that the command names.
    fn with_tools(&self, mut options: Options, is_client: bool) -> Result<Options, Failure> {
        let names = self.tools.len();
        let texts = self.arguments.len();
        if is_client && names > 0 {
            return Err(Failure::command(
                "--tool names a tool of a server; --client checks a client",
            ));
        }
        if texts > 0 && texts != names {
            return Err(Failure::command(format!(
                "--arguments is there {texts} times for {names} times --tool; write one after each --tool, `{{}}` for none"
            )));
        }
        for (at, name) in self.tools.iter().enumerate() {
            let arguments = self.arguments.get(at).map(String::as_str);
            let named = options.tool(name, arguments);
            options = named.map_err(|error| Failure::command(format!("--arguments: {error}")))?;
        }
        Ok(options)
    }
}

impl From<Format> for conformance::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Plain => Self::Plain,
            Format::Json => Self::Json,
            Format::Junit => Self::Junit,
        }
    }
}
