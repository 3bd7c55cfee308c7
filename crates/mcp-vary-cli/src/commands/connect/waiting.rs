//! What a connection waits for, as the gateway that is connected to tells its user at its socket, or in its lists.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Plan;
use super::endpoint::Endpoint;
use crate::failure::Failure;
use crate::operator::client::{GatewayAddress, about, running, status_at};
use crate::print::servers::first_names;
use crate::print::{Progress, progress, sanitize};
use crate::serving::{REMINDER, SILENT_WAIT, TICK, interrupted_before, were};

/// A connection that is being made, and what it waits for.
#[derive(Debug)]
pub(super) struct Waiting {
    title: &'static str,
    began: Instant,
    /// Whether the client starts the gateway, which ends with the connection.
    is_of_client: bool,
    /// The command that says what becomes of each server.
    check: Option<String>,
    /// The socket of a gateway that runs already.
    socket: Option<PathBuf>,
    /// The sockets of other gateways.
    others: Vec<PathBuf>,
    servers: Mutex<Servers>,
}

/// The servers behind the gateway by their names in backticks, as far as they are known.
#[derive(Clone, Debug, Default)]
struct Servers {
    starting: Vec<String>,
    up: Vec<String>,
}

impl Waiting {
    /// Begins to wait, before the gateway is started that the client starts.
    pub(super) fn begin(plan: &Plan) -> Self {
        let socket = match &plan.endpoint {
            Endpoint::Http { url, .. } => {
                let address = GatewayAddress::parse(url).ok();
                address.and_then(|address| address.of_clients())
            }
            Endpoint::Stdio { .. } => None,
        };
        Self {
            title: plan.client.title,
            began: Instant::now(),
            is_of_client: matches!(plan.endpoint, Endpoint::Stdio { .. }),
            check: plan.check_command.clone(),
            socket,
            others: running(),
            servers: Mutex::default(),
        }
    }

    /// Shows who is waited for, and for how long, until `ending` is cancelled.
    pub(super) async fn report(&self, ending: &CancellationToken) -> Infallible {
        let line = Progress::show(&self.text());
        let mut next = SILENT_WAIT;
        loop {
            self.look().await;
            if line.is_shown() {
                line.replace(&self.text());
            } else if self.began.elapsed() >= next {
                progress(&sanitize(&self.text()));
                next += REMINDER;
            }
            let slept = ending.run_until_cancelled(tokio::time::sleep(TICK)).await;
            if slept.is_none() {
                break;
            }
        }
        drop(line);
        std::future::pending().await
    }

    /// Asks the gateway for its servers. One that does not say so at once is asked again later.
    pub(super) async fn look(&self) {
        let Some(socket) = self.socket() else {
            return;
        };
        let Some(status) = status_at(&socket).await else {
            return;
        };
        let servers = status["servers"].as_array().into_iter().flatten();
        let mut seen = Servers::default();
        for server in servers {
            let name = format!("`{}`", server["name"].as_str().unwrap_or_default());
            match server["state"].as_str() {
                Some("starting" | "waiting") => seen.starting.push(name),
                Some("up") => seen.up.push(name),
                // That gateway ends, and another one is started to find out its era.
                Some("closed") => return,
                _ => {}
            }
        }
        *self.servers() = seen;
    }

    /// The socket of the gateway: of one that runs already, or the only one that has been started since for a client's standard
    /// streams.
    fn socket(&self) -> Option<PathBuf> {
        if !self.is_of_client {
            return self.socket.clone();
        }
        let mut started = running();
        started.retain(|path| !self.others.contains(path) && about(path)["url"] == Value::Null);
        started.pop().filter(|_| started.is_empty())
    }

    /// Takes the names of servers that are starting from a list of tools, if the gateway has no socket here.
    pub(super) fn are_starting(&self, names: &[String]) {
        let mut servers = self.servers();
        if servers.up.is_empty() && !names.is_empty() {
            servers.starting = names.iter().map(|name| format!("`{name}`")).collect();
        }
    }

    fn servers(&self) -> MutexGuard<'_, Servers> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the servers have had the time that they may take to list their tools.
    pub(super) fn is_over(&self) -> bool {
        self.began.elapsed() >= PATIENCE
    }

    /// Who is waited for, and for how long.
    fn text(&self) -> String {
        let starting = first_names(&self.servers().starting);
        let mut text = match &*starting {
            "" => format!("connecting as {} will ...", self.title),
            starting => format!("waiting for {starting} ..."),
        };
        let seconds = self.began.elapsed().as_secs();
        let most = PATIENCE.as_secs();
        if seconds > 0 {
            text.push_str(&format!(" {} s, {most} at most", seconds.min(most)));
        }
        text
    }

    /// What says more about a gateway that goes on running.
    pub(super) fn advice(&self) -> &'static str {
        if self.is_of_client {
            ""
        } else {
            "; `vary status` says why"
        }
    }

    /// What comes of servers that are still starting.
    pub(super) fn outlook(&self) -> String {
        let command = self.check.as_ref();
        let check = command.map_or_else(String::new, |check| {
            format!("; to see whether that happens: {check}")
        });
        format!("{} gets its tools when it is ready{check}", self.title)
    }

    /// Where the tools are from: `connected`, and to which servers if they are several.
    pub(super) fn connected(&self) -> String {
        match &self.servers().up[..] {
            [] | [_] => "connected".to_owned(),
            several => format!("connected to {}", first_names(several)),
        }
    }

    /// Which servers were not ready in the time that they have; `None` if it is not over, or they are not known.
    pub(super) fn late(&self) -> Option<String> {
        let Servers { starting, up } = &*self.servers();
        let state = format!("not ready within {} s", PATIENCE.as_secs());
        (self.is_over() && !starting.is_empty()).then(|| were(starting, &state, up))
    }

    /// The failure of a user who did not want to wait longer.
    pub(super) fn interruption(&self) -> Failure {
        let Servers { starting, up } = &*self.servers();
        Failure::command(interrupted_before(starting, up))
    }
}

/// How long servers may take to list their tools.
const PATIENCE: Duration = Duration::from_secs(60);
