//! Programs that serve MCP over HTTP and print their URL.

use std::ffi::OsStr;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::process::{self, Group, tail};

/// Only for programs that hang: a start on a busy machine takes less.
const LIMIT: Duration = Duration::from_secs(60);

/// `vary serve` over HTTP on a free port.
pub(crate) fn serve(vary: impl AsRef<OsStr>) -> Command {
    let mut command = process::command(vary);
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    command
}

/// A server that has printed its URL. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    /// Its URL.
    pub(crate) url: String,
    /// Ends the server when dropped; also keeps its standard input open until then.
    group: Group,
    log: PathBuf,
}

impl Server {
    /// Starts `command` and waits until it has written its URL to either output; both go to `log`.
    ///
    /// # Errors
    ///
    /// When it cannot start, ends, or prints no URL in time.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Result<Self, String> {
        StartingServer::begin(command, log)?.ready()
    }

    /// Waits until it has written a whole line that begins with `label`, and returns what follows.
    ///
    /// # Errors
    ///
    /// When it ends, or prints no such line in time.
    pub(crate) fn printed(&mut self, label: &str) -> Result<String, String> {
        let log = &self.log;
        let line = || after(label, &fs::read_to_string(log).unwrap_or_default());
        let printed = self.group.until(LIMIT, line);
        printed.map_err(|why| format!("no line with `{label}`: the server {why}\n{}", tail(log)))
    }
}

/// A server that may not have printed its URL yet. Several that start at the same time need less time than one after
/// another.
///
/// The kernel ends a process with the thread that started it, so that servers cannot be started in threads of their own.
#[derive(Debug)]
pub(crate) struct StartingServer {
    group: Group,
    log: PathBuf,
}

impl StartingServer {
    /// Starts `command`; both of its outputs go to `log`.
    ///
    /// # Errors
    ///
    /// When it cannot start.
    pub(crate) fn begin(command: &mut Command, log: &Path) -> Result<Self, String> {
        let group = Group::logged(command.stdin(Stdio::piped()), log)?;
        let log = log.to_owned();
        Ok(Self { group, log })
    }

    /// Waits until it has written its URL to either output.
    ///
    /// # Errors
    ///
    /// When it ends, or prints no URL in time.
    pub(crate) fn ready(self) -> Result<Server, String> {
        let Self { mut group, log } = self;
        let url = || url(&fs::read_to_string(&log).unwrap_or_default());
        let ready = group.until(LIMIT, url);
        let url = ready.map_err(|why| format!("the server {why}\n{}", tail(&log)))?;
        Ok(Server { url, group, log })
    }

    /// Waits until it accepts connections at this address, for a program that does not print its URL.
    ///
    /// # Errors
    ///
    /// When it ends, or does not listen in time.
    pub(crate) fn at(self, address: SocketAddr) -> Result<Server, String> {
        let Self { mut group, log } = self;
        let ready = group.until(LIMIT, || TcpStream::connect(address).ok());
        ready.map_err(|why| format!("the server {why}\n{}", tail(&log)))?;
        let url = format!("http://{address}/mcp");
        Ok(Server { url, group, log })
    }
}

/// The first URL of this machine in `text` that a line break or space follows.
fn url(text: &str) -> Option<String> {
    let start = text.find("http://127.0.0.1:")?;
    let end = text[start..].find(|letter: char| letter.is_whitespace() || letter == '\u{1b}')?;
    Some(text[start..start + end].to_owned())
}

/// What follows `label` in the first whole line of `text` that begins with it.
fn after(label: &str, text: &str) -> Option<String> {
    let whole = text
        .split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n'));
    let mut labelled = whole.filter_map(|line| line.strip_prefix(label));
    labelled.next().map(str::to_owned)
}
