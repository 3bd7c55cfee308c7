//! The scripted server, from outside: its directory, and over HTTP its process.

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::Signal;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;

use crate::process::{self, LONG, until};
use crate::script::{CALLS, CHILDREN, Era, PROCESSES, Script};

/// How the gateway reaches the server.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Transport {
    /// It is a child of the gateway.
    #[serde(rename = "stdio")]
    Stdio,
    /// It runs by itself.
    #[serde(rename = "HTTP")]
    Http,
}

impl Transport {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "HTTP",
        }
    }
}

/// The server behind the gateway.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) transport: Transport,
    pub(crate) script: Script,
    program: PathBuf,
    directory: PathBuf,
    /// An address of its own, so that nobody else takes its port while it is down.
    host: Ipv4Addr,
    port: u16,
    running: Option<Child>,
}

impl Server {
    /// A server that has its directory and its script, but does not run yet.
    pub(crate) fn new(
        program: &Path,
        directory: PathBuf,
        host: Ipv4Addr,
        transport: Transport,
        era: Era,
    ) -> Result<Self, String> {
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?;
        let server = Self {
            transport,
            script: Script::new("one", era),
            program: program.into(),
            directory,
            host,
            port: 0,
            running: None,
        };
        server.script.write(&server.directory)?;
        Ok(server)
    }

    /// Another server of the same program.
    pub(crate) fn sibling(
        &self,
        name: &str,
        transport: Transport,
        era: Era,
    ) -> Result<Self, String> {
        let directory = self.directory.join(name);
        Self::new(&self.program, directory, self.host, transport, era)
    }

    /// Changes what the next start does.
    pub(crate) fn rewrite(&mut self, change: impl FnOnce(&mut Script)) -> Result<(), String> {
        change(&mut self.script);
        self.script.write(&self.directory)
    }

    /// Starts it where it has to be started: over HTTP.
    pub(crate) async fn start(&mut self) -> Result<(), String> {
        if self.transport == Transport::Stdio {
            return Ok(());
        }
        let address = format!("{}:{}", self.host, self.port);
        let mut command = process::command(&self.program);
        command.arg(&self.directory).args(["--http", &address]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let output = child.stdout.take().ok_or("no output")?;
        let mut lines = BufReader::new(output).lines();
        let line = tokio::time::timeout(LONG, lines.next_line()).await;
        let line = line.map_err(|_| "the server says no address")?;
        let line = line.map_err(|error| error.to_string())?.unwrap_or_default();
        let port = line.trim_end_matches("/mcp").rsplit(':').next();
        let port = port.and_then(|port| port.parse().ok());
        self.port = port.ok_or_else(|| format!("the server says `{line}`, no address"))?;
        self.running = Some(child);
        Ok(())
    }

    /// What the configuration says of it.
    pub(crate) fn entry(&self) -> Vec<(&'static str, Value)> {
        match self.transport {
            Transport::Stdio => vec![
                ("command", json!(self.program)),
                ("args", json!([self.directory])),
            ],
            Transport::Http => vec![("url", json!(self.url()))],
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}:{}/mcp", self.host, self.port)
    }

    /// Sends a signal to the process that was started last, of those that run: one that was only asked whether it knows
    /// sessions ends by itself.
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), String> {
        let processes = self.processes();
        let last = processes.last().ok_or("the server was never started")?;
        // The number of one that is gone may be somebody else's by now.
        let mark = self.mark();
        let mut running = processes.iter().rev();
        let running = running.find(|process| process::is_running(**process, &mark));
        let running = running.ok_or_else(|| format!("the server's process {last} has ended"))?;
        process::signal(*running, signal)
    }

    /// Kills it; over HTTP, waits until it is gone.
    pub(crate) async fn kill(&mut self) -> Result<(), String> {
        match self.running.as_mut() {
            Some(child) => child.kill().await.map_err(|error| error.to_string()),
            None => match self.signal(Signal::KILL) {
                // The gateway may have ended it already.
                Err(_) if self.left().is_empty() => Ok(()),
                result => result,
            },
        }
    }

    /// Every process of it that was ever started.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let lines = self.lines(PROCESSES);
        lines.iter().filter_map(|line| line.parse().ok()).collect()
    }

    /// Those that run, of its own and of what they started.
    pub(crate) fn left(&self) -> Vec<u32> {
        let mark = self.mark();
        let children = self.lines(CHILDREN);
        let children = children.iter().filter_map(|line| line.parse().ok());
        let all = self.processes().into_iter().chain(children);
        all.filter(|process| process::is_running(*process, &mark))
            .collect()
    }

    /// What only its processes have among their arguments, each of which ends with a zero.
    fn mark(&self) -> String {
        format!("{}\0", self.directory.display())
    }

    /// Waits until `count` of them run, and no more.
    pub(crate) async fn are_left(&self, count: usize) -> Result<(), String> {
        until(|| match self.left() {
            left if left.len() == count => Ok(()),
            left => Err(format!(
                "processes of the server that are left: {left:?}, not {count}"
            )),
        })
        .await
    }

    /// Waits until more than `before` of them were started.
    pub(crate) async fn has_started_again(&self, before: usize) -> Result<(), String> {
        until(|| match self.processes().len() {
            started if started > before => Ok(()),
            _ => Err("the server was not started again".to_owned()),
        })
        .await
    }

    /// The calls that arrived.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.lines(CALLS)
    }

    /// Waits until each of `calls` has arrived.
    pub(crate) async fn has_got(&self, calls: &[String]) -> Result<(), String> {
        until(|| {
            let here = self.calls();
            let here: BTreeSet<&str> = here.iter().map(String::as_str).collect();
            let missing = calls
                .iter()
                .filter(|call| !here.contains(call.as_str()))
                .count();
            match missing {
                0 => Ok(()),
                _ => Err(format!("{missing} calls did not reach the server")),
            }
        })
        .await
    }

    fn lines(&self, file: &str) -> Vec<String> {
        let text = fs::read_to_string(self.directory.join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// Whatever a failed case leaves.
impl Drop for Server {
    fn drop(&mut self) {
        for process in self.left() {
            let _ = process::signal(process, Signal::KILL);
        }
    }
}
