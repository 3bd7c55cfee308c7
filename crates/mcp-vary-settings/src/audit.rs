//! The audit log that a configuration asks for.

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mcp_vary_audit::{
    ArgumentsDetail, AuditConfig, AuditKey, AuditLog, FileSink, IdentityDetail, OnFull, Sink,
    StreamSink, SyslogAddress, SyslogHeader, SyslogSink, Text,
};
use mcp_vary_base::environment::Environment;
use mcp_vary_base::io_error;

use crate::sealing_keys::SealingKey;

mcp_vary_base::defaults! {
    /// The audit log of a configuration, which [`start`](Self::start) begins.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary_base::environment::Environment;
    /// use mcp_vary_settings::audit::{AuditSettings, AuditTarget};
    /// use std::time::Duration;
    ///
    /// let settings = AuditSettings::new(AuditTarget::Stdout);
    /// let log = settings.start(|| 1_763_705_520_123_456, Environment::new(|| 0, |bytes| bytes.fill(7)))?;
    /// assert!(log.close(Duration::from_secs(5)));
    ///
    /// // A file that cannot be written is an error at the start, not a lost record later.
    /// let settings = AuditSettings::new(AuditTarget::File("/no such folder/audit.jsonl".into()));
    /// assert!(settings.start(|| 0, Environment::new(|| 0, |_| {})).is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[derive(Clone, Debug, Eq, PartialEq)]
    #[non_exhaustive]
    pub struct AuditSettings {
        /// A log with the defaults.
        #[must_use]
        pub fn new(target: AuditTarget);
        /// Where the records go.
        pub target: AuditTarget = target,
        /// What is written of principals; their names by default.
        pub identities: IdentityDetail = IdentityDetail::Name,
        /// What is written of the arguments of calls; digests by default.
        pub arguments: ArgumentsDetail = ArgumentsDetail::Digest,
        /// What happens when records arrive faster than they are written; by default they are lost and counted.
        pub on_full: OnFull = OnFull::Drop,
        /// The key of the digests. Random by default, so that digests of two runs cannot be compared.
        pub key: Option<SealingKey> = None,
        /// The name of this instance among several.
        pub replica: Option<String> = None,
    }
}

/// Where the records of an audit log go.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum AuditTarget {
    /// A file, which is appended to.
    File(PathBuf),
    /// Standard output.
    Stdout,
    /// A syslog daemon.
    Syslog(SyslogAddress),
}

/// How long a request may wait for room if [`OnFull::Wait`] is configured without a limit of its own.
pub const DEFAULT_WAIT: Duration = Duration::from_secs(1);

/// How much of the arguments of a call is written if they are written in full, in bytes.
pub const DEFAULT_ARGUMENTS: usize = 16 << 10;

impl AuditSettings {
    /// Opens the target and starts the log; [`Config::audit_log`](crate::config::Config::audit_log) takes it. `now` returns
    /// microseconds since 1970-01-01 UTC.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened; the error names it. A syslog daemon is connected to later, and again after
    /// failures.
    pub fn start(&self, now: fn() -> u64, environment: Environment) -> io::Result<AuditLog> {
        let mut random = [0; 32];
        (environment.random)(&mut random);
        let SealingKey(key) = self.key.unwrap_or(SealingKey(random));
        let run = environment.random_name();
        let start = run.get(..16).unwrap_or_default();
        let mut config = AuditConfig::new(now, AuditKey::new(key), start);
        config.replica = self.replica.as_ref().map(Text::new);
        config.identity = self.identities;
        config.arguments = self.arguments;
        config.on_full = self.on_full;
        AuditLog::start(&config, self.sink()?)
    }

    /// Checks that the folder of its file exists, and that the file can be written if it exists.
    ///
    /// # Errors
    ///
    /// If not; the error names it.
    pub fn check(&self) -> io::Result<()> {
        let AuditTarget::File(path) = &self.target else {
            return Ok(());
        };
        match std::path::absolute(path)?.parent() {
            Some(folder) if !folder.exists() => {
                Err(not_opened(path, &io::ErrorKind::NotFound.into()))
            }
            // To open a pipe would wait for its reader.
            _ if path.is_file() || path.is_dir() => {
                let opened = OpenOptions::new().append(true).open(path);
                opened.map(drop).map_err(|error| not_opened(path, &error))
            }
            _ => Ok(()),
        }
    }

    fn sink(&self) -> io::Result<Box<dyn Sink>> {
        Ok(match &self.target {
            AuditTarget::File(path) => {
                Box::new(FileSink::open(path).map_err(|error| not_opened(path, &error))?)
            }
            AuditTarget::Stdout => {
                Box::new(StreamSink::new("standard output", Box::new(io::stdout())))
            }
            AuditTarget::Syslog(address) => {
                let header = SyslogHeader::new(None, "vary", std::process::id());
                Box::new(SyslogSink::new(
                    address.clone(),
                    header.map_err(io::Error::other)?,
                ))
            }
        })
    }
}

fn not_opened(path: &Path, error: &io::Error) -> io::Error {
    let cause = io_error::describe_writing_at(path, error);
    let why = format!("the audit log {} cannot be opened: {cause}", path.display());
    io::Error::new(error.kind(), why)
}
