//! How messages reach the server: over HTTP, or over the standard streams of a process.

pub(crate) mod http;
pub(crate) mod message;
mod process;
mod sse;
mod stdio;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::era::Era;
use crate::limits::Limits;
use crate::target::{Endpoint, Target};

use http::{Http, HttpClient};
use message::{Outgoing, Reply};
use process::Process;
pub(crate) use process::REPEATED_REQUEST;
use stdio::Stdio;

/// The beginning of the reason if a server sends nothing in time.
pub(crate) const NO_RESPONSE: &str = "no response within";

/// How many checks start processes at the same time.
const PROCESSES: usize = 4;

/// The transport to one server.
#[derive(Debug)]
pub(crate) struct Transport {
    wire: Wire,
    last_id: AtomicU64,
}

#[derive(Debug)]
enum Wire {
    Http(Box<Http>),
    Stdio(Stdio),
}

/// The connection of one client.
#[derive(Clone, Debug)]
pub(crate) enum Connection {
    /// Requests over HTTP.
    Http(HttpClient),
    /// A process. A legacy client has it alone while it uses it.
    Stdio(Arc<Process>),
}

impl Connection {
    /// The last lines that its process wrote to standard error.
    pub(crate) fn stderr(&self) -> String {
        match self {
            Self::Http(_) => String::new(),
            Self::Stdio(process) => process.stderr(),
        }
    }
}

impl Transport {
    /// The transport to `target`.
    ///
    /// # Errors
    ///
    /// If the machine's certificates cannot be read.
    pub(crate) fn new(target: &Target, limits: Limits) -> Result<Self, String> {
        let wire = match target.endpoint() {
            Endpoint::Http(uri) => {
                Wire::Http(Box::new(Http::new(uri.clone(), target, limits.request)?))
            }
            Endpoint::Command(command) => Wire::Stdio(Stdio::new(command.clone(), limits)),
        };
        let last_id = AtomicU64::new(0);
        Ok(Self { wire, last_id })
    }

    /// An identifier that no request of this run has had: processes are used by several checks.
    pub(crate) fn next_id(&self) -> u64 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// How many checks can run at the same time without a server that sees more than one.
    pub(crate) fn concurrency(&self, era: Era) -> usize {
        match (&self.wire, era) {
            (Wire::Stdio(_), Era::Legacy) => PROCESSES,
            _ => 1,
        }
    }

    /// The connection of a client that declares `capabilities`.
    pub(crate) fn open(&self, era: Era, capabilities: &Value) -> Result<Connection, String> {
        match (&self.wire, era) {
            (Wire::Http(_), _) => Ok(Connection::Http(HttpClient::default())),
            (Wire::Stdio(stdio), Era::Legacy) => {
                stdio.open(&capabilities.to_string()).map(Connection::Stdio)
            }
            // Each modern request declares the capabilities itself.
            (Wire::Stdio(stdio), Era::Modern) => stdio.open("").map(Connection::Stdio),
        }
    }

    /// The connection of a client of the other principal, if one is known.
    pub(crate) fn open_other(&self) -> Option<Connection> {
        let other = Connection::Http(HttpClient {
            session: None,
            is_other: true,
        });
        matches!(&self.wire, Wire::Http(http) if http.has_other()).then_some(other)
    }

    /// Sends a message, and receives the response if it is a request.
    pub(crate) async fn send(
        &self,
        connection: &Connection,
        message: &Outgoing<'_>,
    ) -> Result<Reply, String> {
        match (&self.wire, connection) {
            (Wire::Http(http), Connection::Http(client)) => http.send(message, client).await,
            (Wire::Stdio(stdio), Connection::Stdio(process)) => stdio.send(process, message).await,
            _ => Err("the connection is of another transport".to_owned()),
        }
    }

    /// Ends a connection, or retains its process for the next client with the same capabilities.
    pub(crate) async fn close(&self, connection: Connection) {
        match (&self.wire, connection) {
            (Wire::Http(http), Connection::Http(client)) => http.end_session(&client).await,
            (Wire::Stdio(stdio), Connection::Stdio(process)) => stdio.release(process),
            _ => {}
        }
    }

    /// Ends a connection, and its process.
    pub(crate) async fn discard(&self, connection: Connection) {
        match (&self.wire, connection) {
            (Wire::Stdio(stdio), Connection::Stdio(process)) => stdio.end(process),
            (_, connection) => self.close(connection).await,
        }
    }

    /// Ends what the transport started, and waits until it has ended.
    pub(crate) async fn shut_down(&self) {
        if let Wire::Stdio(stdio) = &self.wire {
            stdio.shut_down().await;
        }
    }
}
