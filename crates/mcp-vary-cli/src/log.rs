//! The log on standard error.

mod format;

use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use mcp_vary_config::{LogFormat as FileFormat, LogLevel, LogLevelError, LogSettings};
use mcp_vary_gateway::COLLISION_TARGET;
use mcp_vary_upstream::CONNECT_TARGET;
use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::DynFilterFn;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

pub(crate) use self::format::time_of_day;
use self::format::{JsonLines, LineTime};
use crate::environment::variable;
use crate::failure::Failure;
use crate::print;

/// What is written to standard error.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LogArgs {
    /// Log level for standard error: error, warn, info, debug, trace or off [default: error; with serve: `log.level` of
    /// the file, or warn]
    #[arg(
        long = "log",
        global = true,
        value_name = "LEVEL",
        env = "VARY_LOG",
        hide_env_values = true,
        display_order = 100
    )]
    pub(crate) level: Option<String>,
    /// Log more: one level for each -v. Replaces --log
    #[arg(short, long, global = true, action = clap::ArgAction::Count, display_order = 101)]
    pub(crate) verbose: u8,
    /// Only print data and errors. With --log or -v, the log is still written
    #[arg(short, long, global = true, display_order = 102)]
    pub(crate) quiet: bool,
}

/// The form of the lines on standard error.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Text, as a person reads it.
    Plain,
    /// A JSON object on each line.
    Json,
}

/// The log of a command. That of `vary serve` starts when its file has been read, which can configure it.
#[derive(Debug)]
pub(crate) struct CommandLog {
    args: LogArgs,
    /// The level on the command line.
    level: Option<LogLevel>,
}

impl CommandLog {
    /// Checks the level on the command line.
    ///
    /// # Errors
    ///
    /// When the level cannot be used.
    pub(crate) fn new(args: &LogArgs) -> Result<Self, Failure> {
        // An empty variable is one that is not set.
        let given = args.level.as_deref();
        let written = given.filter(|level| !level.trim().is_empty());
        let level = written.map(str::parse).transpose();
        let named = |error: LogLevelError| {
            let is_variable = variable("VARY_LOG").as_deref() == written;
            let name = if is_variable { "VARY_LOG" } else { "--log" };
            Failure::command(format!("{name}: {error}"))
        };
        Ok(Self {
            args: args.clone(),
            level: level.map_err(named)?,
        })
    }

    /// Starts the log of all commands but `vary serve`.
    ///
    /// # Errors
    ///
    /// When the level cannot be used.
    pub(crate) fn start(&self) -> Result<(), Failure> {
        tracing_subscriber::fmt()
            .with_env_filter(self.filter("error", None)?)
            .with_writer(|| print::LogWriter)
            .with_target(false)
            .with_ansi(print::terminal::has_color(&io::stderr()))
            // They end before a time would help.
            .without_time()
            .init();
        Ok(())
    }

    /// Starts the log of `vary serve`, as the command line and then the `file` configure it.
    ///
    /// # Errors
    ///
    /// When the level cannot be used.
    pub(crate) fn start_serving(
        &self,
        format: Option<LogFormat>,
        file: &LogSettings,
    ) -> Result<(), Failure> {
        // `--log debug` also shows the servers' standard error. If a server dies, the error contains its last lines.
        let filter = self.filter("warn", file.level.as_ref())?;
        // Nothing else reports the servers to a user who wants no more than errors.
        IS_STARTING.store(!self.args.quiet, Ordering::Relaxed);
        let time = if io::stderr().is_terminal() {
            LineTime::OfDay
        } else {
            LineTime::Full
        };
        let lines = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(|| print::LogWriter)
            .with_target(false);
        let is_json = match format {
            Some(format) => format == LogFormat::Json,
            None => file.format == Some(FileFormat::Json),
        };
        if is_json {
            print::set_json();
            let json = lines.with_ansi(false).event_format(JsonLines);
            json.finish().with(unreported()).init();
        } else {
            let text = lines.with_ansi(print::terminal::has_color(&io::stderr()));
            text.with_timer(time).finish().with(unreported()).init();
        }
        Ok(())
    }

    /// What is written: as the command line says, then the `file`, then the `usual` level of the command. `-v` counts from
    /// the level without it.
    fn filter(&self, usual: &str, file: Option<&LogLevel>) -> Result<EnvFilter, Failure> {
        let usual = if self.args.quiet { "error" } else { usual };
        let configured = if self.args.quiet { None } else { file.cloned() };
        let base = configured.or_else(|| usual.parse().ok());
        let directives = match self.args.verbose {
            0 => {
                let level = self.level.as_ref().or(base.as_ref());
                level.map_or(usual, LogLevel::as_str)
            }
            count => base.map_or("trace", |base| base.raised(count, usual)),
        };
        EnvFilter::try_new(directives).map_err(|error| {
            Failure::command(format!(
                "the log level `{directives}` cannot be read ({error}); write error, warn, info, debug or trace"
            ))
        })
    }
}

/// Leaves out the events that the program reports itself.
fn unreported<S: Subscriber>() -> impl Layer<S> {
    let filter =
        DynFilterFn::new(|event: &Metadata<'_>, _: &Context<'_, S>| !is_reported(event.target()));
    filter.with_callsite_filter(|event| {
        if REPORTED.contains(&event.target()) {
            Interest::sometimes()
        } else {
            Interest::always()
        }
    })
}

/// What the report about the servers has, too: which one cannot be connected to, and that names collide.
const REPORTED: [&str; 2] = [CONNECT_TARGET, COLLISION_TARGET];

/// Whether the program reports the event itself, as it does until the servers are reported.
fn is_reported(target: &str) -> bool {
    REPORTED.contains(&target) && IS_STARTING.load(Ordering::Relaxed)
}

/// From now on the log has what becomes of the servers.
pub(crate) fn servers_reported() {
    IS_STARTING.store(false, Ordering::Relaxed);
}

static IS_STARTING: AtomicBool = AtomicBool::new(false);
