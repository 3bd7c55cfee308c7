//! Programs that serve MCP over HTTP and print their URL.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::process::{Group, tail};

/// Only for programs that hang: a start on a busy machine takes less.
const LIMIT: Duration = Duration::from_secs(60);

const POLL: Duration = Duration::from_millis(10);

/// A server that has printed its URL. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    /// Its URL.
    pub(crate) url: String,
    /// Ends the server when dropped; also keeps its standard input open until then.
    _group: Group,
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
        let file = File::create(log).map_err(|error| format!("{}: {error}", log.display()))?;
        let copy = file.try_clone().map_err(|error| error.to_string())?;
        command.stdin(Stdio::piped()).stdout(file).stderr(copy);
        let group = Group::start(command)
            .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
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
        let started = Instant::now();
        while started.elapsed() < LIMIT {
            if let Some(url) = url(&fs::read_to_string(&log).unwrap_or_default()) {
                return Ok(Server { url, _group: group });
            }
            if let Some(status) = group.ended()? {
                return Err(format!("the server ended: {status}\n{}", tail(&log)));
            }
            thread::sleep(POLL);
        }
        Err(format!("the server said no URL\n{}", tail(&log)))
    }
}

/// The first URL of this machine in `text` that a line break or space follows.
fn url(text: &str) -> Option<String> {
    let start = text.find("http://127.0.0.1:")?;
    let end = text[start..].find(|letter: char| letter.is_whitespace() || letter == '\u{1b}')?;
    Some(text[start..start + end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_counts_once_its_line_is_whole() {
        assert_eq!(url("listening on http://127.0.0.1:80"), None);
        assert_eq!(
            url("listening on http://127.0.0.1:8080/mcp\n").as_deref(),
            Some("http://127.0.0.1:8080/mcp")
        );
    }
}
