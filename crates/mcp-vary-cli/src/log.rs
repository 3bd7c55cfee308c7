//! The log on standard error.

mod format;

use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicBool, Ordering};

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
use crate::args::{Args, Command, LogArgs, LogFormat};
use crate::environment::variable;
use crate::failure::Failure;
use crate::print;

/// The log of a command. That of `vary serve` starts when its file has been read, which can configure it.
#[derive(Debug)]
pub(crate) struct CommandLog {
    args: LogArgs,
    /// The level on the command line.
    level: Option<LogLevel>,
}

impl CommandLog {
    /// Checks the level on the command line, and starts the log of all commands but `vary serve`.
    ///
    /// # Errors
    ///
    /// When the level cannot be used.
    pub(crate) fn start(args: &Args) -> Result<Self, Failure> {
        // An empty variable is one that is not set.
        let written = args
            .log
            .level
            .as_deref()
            .filter(|level| !level.trim().is_empty());
        let level = written.map(str::parse).transpose();
        let named = |error: LogLevelError| {
            let is_variable = variable("VARY_LOG").as_deref() == written;
            let name = if is_variable { "VARY_LOG" } else { "--log" };
            Failure::command(format!("{name}: {error}"))
        };
        let log = Self {
            args: args.log.clone(),
            level: level.map_err(named)?,
        };
        match &args.command {
            Command::Serve(serve) if serve.log_format == Some(LogFormat::Json) => print::set_json(),
            Command::Serve(_) => {}
            // They end before a time would help.
            _ => tracing_subscriber::fmt()
                .with_env_filter(log.filter("error", None)?)
                .with_writer(|| print::LogWriter)
                .with_target(false)
                .with_ansi(print::terminal::has_color(&io::stderr()))
                .without_time()
                .init(),
        }
        Ok(log)
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
