//! How messages reach the server: over HTTP, or over the standard streams of a process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::header::HeaderValue;
use serde_json::Value;

use crate::check::Era;
use crate::http::Http;
use crate::limits::Limits;
use crate::process::Process;
use crate::stdio::Stdio;
use crate::target::{Place, Target};

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
    /// Requests over HTTP; of legacy clients, with the session that the server opened.
    Http {
        session: Option<HeaderValue>,
        /// Whether the client is of the other principal.
        is_other: bool,
    },
    /// A process. Legacy clients have it alone while they use it.
    Stdio(Arc<Process>),
}

impl Connection {
    /// The last lines that its process wrote to standard error.
    pub(crate) fn stderr(&self) -> String {
        match self {
            Self::Http { .. } => String::new(),
            Self::Stdio(process) => process.stderr(),
        }
    }
}

/// A JSON-RPC message to the server.
#[derive(Debug)]
pub(crate) struct Outgoing<'a> {
    pub(crate) era: Era,
    pub(crate) method: &'a str,
    pub(crate) params: &'a Value,
    /// `None` for notifications.
    pub(crate) id: Option<u64>,
    /// The variant that the header selects, over HTTP.
    pub(crate) variant_header: Option<&'a str>,
    pub(crate) text: String,
}

/// What the server sent back.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) session: Option<HeaderValue>,
    /// The JSON-RPC response, if there is one for the request.
    pub(crate) message: Option<Value>,
    /// Whether the request was refused without a JSON-RPC response: an HTTP status of 400 to 499.
    pub(crate) is_refusal: bool,
    /// The HTTP status, or another word for what came instead of a response.
    pub(crate) status: String,
    /// What was received, as far as it was read.
    pub(crate) body: String,
}

impl Transport {
    /// The transport to `target`.
    ///
    /// # Errors
    ///
    /// If the machine's certificates cannot be read.
    pub(crate) fn new(target: &Target, limits: Limits) -> Result<Self, String> {
        let wire = match target.place() {
            Place::Http(_) => Wire::Http(Box::new(Http::new(target, limits.request)?)),
            Place::Command(command) => Wire::Stdio(Stdio::new(command.clone(), limits)),
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
            (Wire::Http(_), _) => Ok(Connection::Http {
                session: None,
                is_other: false,
            }),
            (Wire::Stdio(stdio), Era::Legacy) => {
                stdio.open(&capabilities.to_string()).map(Connection::Stdio)
            }
            // Each modern request declares the capabilities itself.
            (Wire::Stdio(stdio), Era::Modern) => stdio.open("").map(Connection::Stdio),
        }
    }

    /// The connection of a client of the other principal, if one is known.
    pub(crate) fn open_other(&self) -> Option<Connection> {
        let Wire::Http(http) = &self.wire else {
            return None;
        };
        let (session, is_other) = (None, true);
        http.has_other()
            .then_some(Connection::Http { session, is_other })
    }

    /// Sends a message, and receives the response if it is a request.
    pub(crate) async fn send(
        &self,
        connection: &Connection,
        message: &Outgoing<'_>,
    ) -> Result<Reply, String> {
        match (&self.wire, connection) {
            (Wire::Http(http), Connection::Http { session, is_other }) => {
                http.send(message, session.as_ref(), *is_other).await
            }
            (Wire::Stdio(stdio), Connection::Stdio(process)) => stdio.send(process, message).await,
            _ => Err("the connection is of another transport".to_owned()),
        }
    }

    /// Ends a connection, or keeps its process for the next client with the same capabilities.
    pub(crate) async fn close(&self, connection: Connection) {
        match (&self.wire, connection) {
            (
                Wire::Http(http),
                Connection::Http {
                    session: Some(id),
                    is_other,
                },
            ) => http.end_session(id, is_other).await,
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
    pub(crate) async fn finish(&self) {
        if let Wire::Stdio(stdio) = &self.wire {
            stdio.finish().await;
        }
    }
}

/// `json` as a message, if it is the response to the request `id`. An error without an id is one, too: the server could
/// not read the request's.
pub(crate) fn response_to(json: &[u8], id: Option<u64>) -> Option<Value> {
    let message: Value = serde_json::from_slice(json).ok()?;
    let is_response = message.get("result").is_some() || message.get("error").is_some();
    let answered = message.get("id").and_then(Value::as_u64);
    let is_ours = answered == id || (answered.is_none() && message.get("error").is_some());
    (is_response && is_ours).then_some(message)
}
