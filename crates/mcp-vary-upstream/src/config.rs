//! Which server to connect to, how, and what it may cost.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{HeaderMap, Uri};
use mcp_vary_wire::counters::Counters;

use super::error::ConnectError;
use crate::chain::OutgoingChain;

/// One server: its name in logs and errors, where it is, and its limits.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// The name that the operator gave it.
    pub name: String,
    /// Where it is.
    pub target: Target,
    /// What it may cost.
    pub limits: Limits,
    /// The client capabilities that it is told, JSON text; `{}` by default.
    pub capabilities: String,
    /// Which clients share a connection to it.
    pub isolation: Isolation,
    /// Which calls are sent once more when the server is lost while it works on them.
    pub retry: RetryPolicy,
    /// The extensions whose settings it is told when a client declares them, by identifier.
    pub forwarded_extensions: Vec<String>,
    /// The methods of extensions that pass to it although the client's variant hides something.
    pub allowed_methods: Vec<String>,
    /// Whether one client has each connection alone, so that it can be asked what the server asks.
    pub is_dedicated: bool,
    /// Whether its requests have such a connection by turns, so that all that the server asks is about the one that
    /// runs.
    pub is_pooled: bool,
    /// Whether a server of both eras is connected to in that of `initialize`.
    pub legacy_first: bool,
    /// Fills the bytes with randomness, so that many gateways do not come back to a server at the same
    /// moment. By default it does not: the pauses between attempts are then the longest they can be.
    pub fill_random: fn(&mut [u8]),
    /// Where what is dropped is counted.
    pub counters: Arc<Counters>,
    /// The gateways in front of it.
    pub chain: OutgoingChain,
    /// Set when it turned out to be a gateway that would serve itself.
    pub loop_error: Arc<OnceLock<ConnectError>>,
}

/// Which clients share a connection to a server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Isolation {
    /// All that can do the same.
    #[default]
    Shared,
    /// None: each session of a client has one of its own. Clients without sessions share one.
    Session,
}

/// Which calls are sent once more when a server is lost while it works on them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RetryPolicy {
    /// None: nobody knows whether the server had run them.
    #[default]
    Never,
    /// Those of tools that declare `idempotentHint` or `readOnlyHint`, once, if the client was passed
    /// nothing of them yet.
    Idempotent,
}

impl UpstreamConfig {
    /// The server `name` at `target`, with the default limits.
    pub fn new(name: impl Into<String>, target: Target) -> Self {
        Self {
            name: name.into(),
            target,
            limits: Limits::default(),
            capabilities: "{}".to_owned(),
            isolation: Isolation::default(),
            retry: RetryPolicy::default(),
            forwarded_extensions: DEFAULT_FORWARDED.map(str::to_owned).to_vec(),
            allowed_methods: Vec::new(),
            is_dedicated: false,
            is_pooled: false,
            legacy_first: false,
            fill_random: |bytes| bytes.fill(u8::MAX),
            counters: Arc::default(),
            chain: OutgoingChain::default(),
            loop_error: Arc::default(),
        }
    }

    /// The same server, its pauses between attempts spread by `random`.
    #[must_use]
    pub fn with_random(mut self, random: fn(&mut [u8])) -> Self {
        self.fill_random = random;
        self
    }

    /// The same server, told these client capabilities: the JSON text of an object.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: impl Into<String>) -> Self {
        self.capabilities = capabilities.into();
        self
    }

    /// The same server on connections that one client has alone: what the server asks then arrives as
    /// [`Message::Request`](super::Message::Request) or [`Event::ServerRequest`](super::Event::ServerRequest).
    #[must_use]
    pub fn dedicated(mut self) -> Self {
        self.is_dedicated = true;
        self
    }

    /// The same server, its connections shared as `isolation` says.
    #[must_use]
    pub fn with_isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }

    /// Whether `other` is the same server, reached and treated in the same way, so that a connection to one is a
    /// connection to the other. What spreads the pauses between attempts does not matter.
    pub fn is_same_connection(&self, other: &Self) -> bool {
        let Self {
            name,
            target,
            limits,
            capabilities,
            isolation,
            retry: repeat,
            forwarded_extensions: mirrored,
            is_dedicated: is_held,
            is_pooled: by_turns,
            legacy_first,
            // Requests are held against the configuration of their moment, not against that of the connection.
            allowed_methods: _,
            fill_random: _,
            counters: _,
            chain: _,
            loop_error: _,
        } = self;
        *name == other.name
            && *target == other.target
            && *limits == other.limits
            && *capabilities == other.capabilities
            && *isolation == other.isolation
            && *repeat == other.retry
            && *mirrored == other.forwarded_extensions
            && *is_held == other.is_dedicated
            && *by_turns == other.is_pooled
            && *legacy_first == other.legacy_first
    }

    /// The same server with other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

/// MCP Apps: servers list other tools to clients that can show them. Tasks: servers make some only for clients that
/// know them.
const DEFAULT_FORWARDED: [&str; 2] = [
    "io.modelcontextprotocol/ui",
    mcp_vary_wire::task_dialect::TASKS_EXTENSION,
];

/// Where a server is.
#[derive(Clone, Eq, PartialEq)]
pub enum Target {
    /// A program to start; it speaks on its standard streams.
    Command {
        /// The program, a path or a name on `PATH`.
        program: String,
        /// Its arguments.
        args: Vec<String>,
        /// What is added to the environment that it inherits.
        env: BTreeMap<String, String>,
        /// Where it runs; the gateway's own directory when `None`.
        cwd: Option<PathBuf>,
    },
    /// A streamable HTTP endpoint.
    Http {
        /// The endpoint.
        url: Uri,
        /// Headers to send with every request, credentials for example.
        headers: HeaderMap,
    },
}

impl Target {
    /// The program with its arguments, in the gateway's environment and directory.
    pub fn command(program: impl Into<String>, args: impl IntoIterator<Item = String>) -> Self {
        Self::Command {
            program: program.into(),
            args: args.into_iter().collect(),
            env: BTreeMap::new(),
            cwd: None,
        }
    }

    /// The endpoint `url`, without further headers.
    #[must_use]
    pub fn http(url: Uri) -> Self {
        Self::Http {
            url,
            headers: HeaderMap::new(),
        }
    }
}

/// Without what may be secret: values of the environment and of headers, all of a URL but its origin.
impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Command { program, args, .. } => f
                .debug_struct("Command")
                .field("program", program)
                .field("args", &args.len())
                .finish_non_exhaustive(),
            Self::Http { url, .. } => f
                .debug_struct("Http")
                .field("url", &origin(url))
                .finish_non_exhaustive(),
        }
    }
}

/// `url` as logs and errors may show it: its origin, since user, path and query may hold keys.
pub(super) fn origin(url: &Uri) -> String {
    let scheme = url.scheme_str().unwrap_or("http");
    let host = url.host().unwrap_or("");
    let port = url.port().map(|port| format!(":{port}"));
    format!("{scheme}://{host}{}", port.unwrap_or_default())
}

/// What one server may cost.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// From start to ready. Long, since package runners download first.
    pub handshake: Duration,
    /// How long `server/discover` on stdio may stay unanswered before `initialize` is tried.
    pub probe: Duration,
    /// How long `initialize` may stay unanswered by a server that knows `server/discover`, before that is sent.
    pub initialize: Duration,
    /// Opening one HTTP connection.
    pub connect: Duration,
    /// A call without any sign of life.
    pub idle: Duration,
    /// A message waiting for a process to read its input.
    pub write: Duration,
    /// How long a process has to leave after its input was closed, and again after `SIGTERM`.
    pub grace: Duration,
    /// One line of a process, and one event of a stream, in bytes.
    pub line: usize,
    /// The body of one HTTP reply, in bytes.
    pub body: usize,
    /// What may wait for a process to read its input, in bytes.
    pub outbox: usize,
    /// The notifications that may wait for slow clients, together, in bytes.
    pub waiting: usize,
    /// Attempts in a row to resume a broken stream.
    pub resumes: u32,
    /// Calls at once; the next ones wait for their turn.
    pub concurrency: usize,
    /// How long a call waits for its turn, or for a server that is being started.
    pub ready_timeout: Duration,
    /// Connections to it at most, for clients that can do different things or share none.
    pub connections: usize,
    /// Connections that one client each has alone at most, for clients that can be asked something.
    pub dedicated_connections: usize,
    /// How long a connection that nobody uses stays open.
    pub idle_timeout: Duration,
    /// How long a list of a server that does not announce changes is shown before it is read again; zero for ever.
    pub list_ttl: Duration,
    /// How long a server may be silent before it is asked whether it is there; zero to never ask.
    pub ping: Duration,
    /// How long it may take to say so, while no call is running; then it counts as hung.
    /// While calls are running it may take as long as one of them, `idle`.
    pub hang_timeout: Duration,
    /// The first pause before a lost server is connected to again; doubled each time it fails.
    pub backoff: Duration,
    /// The longest such pause; a connection that held for as long did not fail.
    pub max_backoff: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(60),
            probe: Duration::from_secs(5),
            initialize: Duration::from_secs(2),
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(600),
            write: Duration::from_secs(10),
            grace: Duration::from_secs(2),
            line: 16 << 20,
            body: 64 << 20,
            outbox: 64 << 20,
            waiting: 64 << 20,
            resumes: 5,
            concurrency: 256,
            ready_timeout: Duration::from_secs(10),
            connections: 8,
            dedicated_connections: 64,
            idle_timeout: Duration::from_secs(300),
            list_ttl: Duration::from_secs(60),
            ping: Duration::from_secs(30),
            hang_timeout: Duration::from_secs(20),
            backoff: Duration::from_millis(250),
            max_backoff: Duration::from_secs(30),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_a_target_are_not_shown() {
        let url = Uri::from_static("https://me:pw@example.org:8443/key/mcp?key=secret");
        assert_eq!(origin(&url), "https://example.org:8443");
        let debug = format!("{:?}", Target::http(url));
        assert_eq!(debug, r#"Http { url: "https://example.org:8443", .. }"#);
    }
}
