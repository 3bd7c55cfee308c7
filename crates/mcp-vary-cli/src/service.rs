//! Vary as a service of this user: under systemd, under launchd, or as a process in the background.

mod files;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};
use std::{env, fs};

use clap::ValueEnum;
use http::{Method, StatusCode};
use mcp_vary_base::{io_error, private_files};
use mcp_vary_operator::Command as OperatorCommand;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::environment::{path_variable, state_directory, variable};
use crate::failure::Failure;
use crate::file::unwritable;
use crate::operator::client::{GatewayAddress, about, running, status_at};
use crate::serving::LISTEN;

/// What runs as the service.
#[derive(Clone, Debug)]
pub(crate) struct ServiceSpec {
    /// The absolute path of this program.
    pub(crate) program: PathBuf,
    /// The absolute path of the configuration.
    pub(crate) configuration: PathBuf,
    /// Where clients are served: HOST:PORT.
    pub(crate) address: String,
    /// The variables that servers need. Those that Vary itself needs, such as `PATH`, are added from the environment.
    pub(crate) variables: BTreeMap<String, String>,
    /// The file for standard error.
    pub(crate) log: PathBuf,
}

/// What starts the service, and starts it again.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Manager {
    /// The systemd of the user.
    Systemd,
    /// The launchd of macOS.
    Launchd,
    /// Nothing: a process without a terminal, until the machine restarts.
    Background,
}

/// A file by which a manager knows the service.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ServiceFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) mode: u32,
}

impl Manager {
    /// The manager that answers here.
    pub(crate) async fn detect() -> Self {
        if systemctl(&["show-environment"]).await.is_ok() {
            Self::Systemd
        } else if run("launchctl", &["print", &launchd_domain()])
            .await
            .is_ok()
        {
            Self::Launchd
        } else {
            Self::Background
        }
    }

    /// The name after `--service`, and in what is known of the running gateway.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Systemd => "systemd",
            Self::Launchd => "launchd",
            Self::Background => "background",
        }
    }

    /// The files to write before [`Self::start`], and to remove after [`Self::stop`].
    ///
    /// # Errors
    ///
    /// If the user's home directory is not known.
    pub(crate) fn files(self, spec: &ServiceSpec) -> Result<Vec<ServiceFile>, Failure> {
        match self {
            Self::Systemd => {
                let directory = configuration_directory()?;
                Ok(files::of_systemd(spec, &spec.variables(), &directory))
            }
            Self::Launchd => {
                let agent = files::of_launchd(spec, &spec.variables(), &home()?);
                Ok(vec![agent])
            }
            Self::Background => Ok(Vec::new()),
        }
    }

    /// Starts the service, or starts it again, and waits until the gateway answers.
    ///
    /// # Errors
    ///
    /// If it does not within a minute, with the last line of its log.
    pub(crate) async fn start(self, spec: &ServiceSpec) -> Result<(), Failure> {
        prepare_log(&spec.log).map_err(|error| unwritable(&spec.log, &error))?;
        let mut process = None;
        let started = match self {
            Self::Systemd => start_unit().await,
            Self::Launchd => {
                self.stop().await?;
                let path = home()?.join(files::AGENT).display().to_string();
                run("launchctl", &["bootstrap", &launchd_domain(), &path]).await
            }
            Self::Background => {
                self.stop().await?;
                process = Some(spawn(spec)?);
                Ok(())
            }
        };
        started.map_err(|why| with_log(why, &spec.log))?;
        let ready = async {
            while self.socket().is_none() {
                if let Some(Ok(Some(_))) = process.as_mut().map(Child::try_wait) {
                    return Err(Failure::command("Vary ended at once"));
                }
                tokio::time::sleep(PAUSE).await;
            }
            Ok(())
        };
        let address = &spec.address;
        let late = || Failure::command(format!("nothing answers at {address} after {START:?}"));
        let answered = tokio::time::timeout(START, ready).await;
        let outcome = answered.unwrap_or_else(|_| Err(late()));
        outcome.map_err(|why| with_log(why, &spec.log))?;
        self.servers_started().await;
        Ok(())
    }

    /// Has the running service read its configuration, and waits until its servers have started.
    ///
    /// # Errors
    ///
    /// If it does not answer, or refuses the configuration.
    pub(crate) async fn reload(self) -> Result<(), Failure> {
        let socket = self.socket();
        let gateway = GatewayAddress::Socket(
            socket.ok_or_else(|| Failure::command("Vary has ended; type `vary up` again"))?,
        );
        let path = OperatorCommand::Reload.path();
        let answered = gateway.request(Method::POST, path, None, RELOAD).await;
        let (status, body) = answered.map_err(|why| {
            Failure::command(format!("Vary did not read its configuration: {why}"))
        })?;
        if status != StatusCode::OK {
            let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
            let why = answer["error"].as_str().unwrap_or(status.as_str());
            return Err(Failure::command(why));
        }
        self.servers_started().await;
        Ok(())
    }

    /// Waits until no server of the service is starting and their tools are listed, or a few seconds: those that are up
    /// work without the others.
    async fn servers_started(self) {
        let started = async {
            while let Some(socket) = self.socket() {
                let status = status_at(&socket).await.unwrap_or_default();
                let mut servers = status["servers"].as_array().into_iter().flatten();
                let is_listed = |server: &Value| match server["state"].as_str() {
                    Some("starting") => false,
                    Some("up") => server["tools"].is_number() || server["failedLists"].is_object(),
                    _ => true,
                };
                if servers.all(is_listed) {
                    return;
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        let _ = tokio::time::timeout(SERVERS, started).await;
    }

    /// Ends the service for good, once requests in flight have finished. Does nothing if it does not run.
    ///
    /// # Errors
    ///
    /// If it still runs after a minute.
    pub(crate) async fn stop(self) -> Result<(), Failure> {
        // Managers also fail if they do not know the service.
        let requested = match self {
            Self::Systemd => systemctl(&["disable", "--now", files::UNIT]).await,
            Self::Launchd => {
                let agent = format!("{}/{}", launchd_domain(), files::LABEL);
                run("launchctl", &["bootout", &agent]).await
            }
            Self::Background => {
                // One that was just started has no socket yet.
                let starting = async {
                    while self.socket().is_none() && is_locked() {
                        tokio::time::sleep(PAUSE).await;
                    }
                };
                let _ = tokio::time::timeout(START, starting).await;
                match self.socket() {
                    Some(socket) => drain(GatewayAddress::Socket(socket)).await,
                    None => Ok(()),
                }
            }
        };
        let ended = async {
            while self.socket().is_some() || self == Self::Background && is_locked() {
                tokio::time::sleep(PAUSE).await;
            }
        };
        if tokio::time::timeout(STOP, ended).await.is_ok() {
            return Ok(());
        }
        let late = || Failure::command(format!("Vary has not ended after {STOP:?}"));
        Err(requested.err().unwrap_or_else(late))
    }

    /// Has the manager forget the files of [`Self::files`], which were removed.
    pub(crate) async fn removed(self) {
        if self == Self::Systemd {
            // A unit without its file does nothing.
            let _ = systemctl(&["daemon-reload"]).await;
        }
    }

    /// What a user has to know of this manager.
    pub(crate) const fn note(self) -> Option<&'static str> {
        match self {
            Self::Systemd => Some(
                "Vary runs while you are logged in; to keep it running after that: loginctl enable-linger",
            ),
            Self::Launchd => None,
            Self::Background => Some(
                "Vary runs in the background until this machine restarts; then type `vary up` again",
            ),
        }
    }

    /// How Vary runs under it.
    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::Systemd => "as a systemd user service",
            Self::Launchd => "as a launchd agent",
            Self::Background => "in the background",
        }
    }

    /// Whether the gateway of the service answers.
    pub(crate) fn is_running(self) -> bool {
        self.socket().is_some()
    }

    /// The `listen` of the configuration with which the gateway of the service was started; `None` if it does not answer.
    pub(crate) fn listen(self) -> Option<String> {
        let description = about(&self.socket()?);
        Some(description["listen"].as_str().unwrap_or(LISTEN).to_owned())
    }

    /// Whether the gateway of the service was started from the program that is at `path` now.
    pub(crate) fn runs(self, path: &Path) -> bool {
        let socket = self.socket();
        socket.is_some_and(|socket| program_file(path).as_ref() == Some(&about(&socket)["program"]))
    }

    /// The socket of the service, if its gateway answers.
    fn socket(self) -> Option<PathBuf> {
        let is_service = |socket: &PathBuf| about(socket)["manager"] == self.name();
        running().into_iter().find(is_service)
    }
}

/// What tells a program on disk from another one at the same path.
pub(crate) fn program_file(path: &Path) -> Option<Value> {
    let metadata = fs::metadata(path).ok()?;
    let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    let microseconds = u64::try_from(modified.as_micros()).ok()?;
    Some(json!({"path": path.to_str()?, "modified": microseconds, "length": metadata.len()}))
}

impl ServiceSpec {
    /// The variables of the service.
    fn variables(&self) -> BTreeMap<String, String> {
        let set = |name: &str| Some((name.to_owned(), variable(name)?));
        let mut variables: BTreeMap<_, _> = VARIABLES.split(' ').filter_map(set).collect();
        variables.extend(self.variables.clone());
        if let Some(path) = variables.get_mut("PATH") {
            // The others depend on the current directory, in which anybody may have put a program.
            let absolute = env::split_paths(&*path).filter(|folder| folder.is_absolute());
            let joined = env::join_paths(absolute).ok();
            *path = joined
                .as_deref()
                .and_then(OsStr::to_str)
                .unwrap_or_default()
                .to_owned();
        }
        variables
    }
}

/// Makes the folder of the log, in which only the last start is kept beside this one.
fn prepare_log(log: &Path) -> io::Result<()> {
    private_files::create_directory(log.parent().unwrap_or(log))?;
    match fs::rename(log, log.with_extension("log.1")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

async fn start_unit() -> Result<(), Failure> {
    systemctl(&["daemon-reload"]).await?;
    systemctl(&["enable", files::UNIT]).await?;
    // Starts that failed before do not count.
    let _ = systemctl(&["reset-failed", files::UNIT]).await;
    systemctl(&["restart", files::UNIT]).await
}

/// Whether a process in the background holds the lock.
fn is_locked() -> bool {
    let path = directory().map(|directory| directory.join(LOCK));
    let opened = path.ok().and_then(|path| File::open(path).ok());
    opened.is_some_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

/// Starts a process that has no terminal and holds the lock until it ends.
fn spawn(spec: &ServiceSpec) -> Result<Child, Failure> {
    if !cfg!(unix) {
        let why =
            "Vary runs in the background on Linux and macOS only; run `vary serve` at a terminal";
        return Err(Failure::command(why));
    }
    let path = directory()?.join(LOCK);
    let lock = private_files::open(&path).map_err(|error| unwritable(&path, &error))?;
    let held = |_| Failure::command(format!("another Vary holds the lock {}", path.display()));
    lock.try_lock().map_err(held)?;
    let log = private_files::replace(&spec.log).map_err(|error| unwritable(&spec.log, &error))?;
    let mut command = Command::new(&spec.program);
    command
        .args(["serve", "--service", Manager::Background.name()])
        .arg(&spec.configuration)
        .env_clear()
        .envs(spec.variables())
        .current_dir(home()?)
        // Nothing is read there: the lock is that of the process.
        .stdin(lock)
        .stdout(Stdio::null())
        .stderr(log);
    command.spawn().map_err(|error| {
        let program = spec.program.display();
        let why = io_error::describe(&error);
        Failure::command(format!("{program} cannot be started: {why}"))
    })
}

/// Has a gateway end.
async fn drain(gateway: GatewayAddress) -> Result<(), Failure> {
    let path = OperatorCommand::Drain.path();
    let answered = gateway.request(Method::POST, path, None, STOP).await;
    answered.map(drop).map_err(Failure::command)
}

async fn systemctl(args: &[&str]) -> Result<(), Failure> {
    run("systemctl", &[&["--user"], args].concat()).await
}

/// Runs a program of the system.
async fn run(program: &str, args: &[&str]) -> Result<(), Failure> {
    let line = format!("{program} {}", args.join(" "));
    let mut command = tokio::process::Command::new(program);
    command.args(args).stdin(Stdio::null()).kill_on_drop(true);
    let ended = tokio::time::timeout(RUN, command.output()).await;
    let late = |_| Failure::command(format!("`{line}` did not end within {RUN:?}"));
    let failed = |why: &str| Failure::command(format!("`{line}` failed: {why}"));
    let output = ended
        .map_err(late)?
        .map_err(|error| failed(&io_error::describe(&error)))?;
    if output.status.success() {
        return Ok(());
    }
    let printed = String::from_utf8_lossy(&output.stderr);
    let first_line = printed.trim().lines().next().unwrap_or_default();
    Err(failed(first_line.trim_end_matches('.')))
}

/// The failure with the last line of the log.
fn with_log(failure: Failure, log: &Path) -> Failure {
    let bytes = log_end(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    match text.trim().lines().next_back() {
        Some(line) => failure.with_end(&format!(": {line} ({})", log.display())),
        None => failure,
    }
}

/// The end of the log, which may be long.
fn log_end(log: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(log)?;
    let start = file.metadata()?.len().saturating_sub(LOG_END);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(LOG_END).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Where the journal of `vary up`, its lock, and the log and the lock of the service are.
pub(crate) fn directory() -> Result<PathBuf, Failure> {
    let why =
        "`HOME` is not set, so your clients' files are not known; set it: export HOME=/srv/NAME";
    let state = state_directory(&path_variable).ok_or_else(|| Failure::command(why))?;
    Ok(state.join("vary"))
}

/// The user's home directory.
pub(crate) fn home() -> Result<PathBuf, Failure> {
    let why = "`HOME` is not set; set it to your home directory";
    path_variable("HOME").ok_or_else(|| Failure::command(why))
}

/// The directory for configurations, by the XDG base directory specification.
pub(crate) fn configuration_directory() -> Result<PathBuf, Failure> {
    let set = path_variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    set.map_or_else(|| Ok(home()?.join(".config")), Ok)
}

/// The user's part of launchd.
fn launchd_domain() -> String {
    #[cfg(unix)]
    let user = rustix::process::getuid().as_raw();
    #[cfg(not(unix))]
    let user = 0;
    format!("gui/{user}")
}

/// The variables that every program needs, that name folders, and that name proxies and certificates.
const VARIABLES: &str = "PATH HOME USER LOGNAME LANG TMPDIR DBUS_SESSION_BUS_ADDRESS XDG_CACHE_HOME XDG_CONFIG_HOME \
                         XDG_DATA_HOME XDG_RUNTIME_DIR XDG_STATE_HOME HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY \
                         http_proxy https_proxy all_proxy no_proxy SSL_CERT_DIR SSL_CERT_FILE";

/// The file that a process in the background locks until it ends.
const LOCK: &str = "service.lock";
/// How much of the log is read for its last line.
const LOG_END: u64 = 64 * 1024;
/// The pause between two checks whether the gateway answers.
const PAUSE: Duration = Duration::from_millis(50);
/// How long the gateway may take to answer.
const START: Duration = Duration::from_secs(60);
/// A reload connects to new servers before it answers.
const RELOAD: Duration = Duration::from_secs(300);
/// How long the start waits for servers.
const SERVERS: Duration = Duration::from_secs(5);
/// How long requests in flight may take to finish.
const STOP: Duration = Duration::from_secs(60);
/// How long a program of the system may take: systemd waits until the servers are ready.
const RUN: Duration = Duration::from_secs(120);
