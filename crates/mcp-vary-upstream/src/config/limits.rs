//! The limits of one server: times, sizes and counts.

use std::time::Duration;

/// The limits of one server.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// The time from the start to ready. Long, since package runners download first.
    pub handshake: Duration,
    /// The time to wait for an answer to `server/discover` on stdio before `initialize` is tried.
    pub probe: Duration,
    /// The time to wait for an answer to `initialize` from a server that supports `server/discover` before that is sent.
    pub initialize: Duration,
    /// The time to open one HTTP connection.
    pub connect: Duration,
    /// The time that a call may take without any message from the server.
    pub idle: Duration,
    /// The time that a message may wait until a process reads its input.
    pub write: Duration,
    /// The time that a process has to exit after its input was closed, and again after `SIGTERM`.
    pub grace: Duration,
    /// The size of one line of a process, and of one event of a stream, in bytes.
    pub message: usize,
    /// The size of the body of one HTTP response, in bytes.
    pub body: usize,
    /// The size of the messages that wait until a process reads its input, in bytes.
    pub outbox: usize,
    /// The size of all notifications that wait for slow clients, in bytes.
    pub waiting: usize,
    /// The number of consecutive attempts to resume a broken stream.
    pub resumes: u32,
    /// The number of concurrent calls; further calls are queued.
    pub concurrency: usize,
    /// The time that a call may be queued, or wait for a server that starts.
    pub ready_timeout: Duration,
    /// The number of connections, for clients with different capabilities or isolated ones.
    pub connections: usize,
    /// The number of dedicated connections, for clients that accept server requests.
    pub dedicated_connections: usize,
    /// How long an unused connection stays open.
    pub idle_timeout: Duration,
    /// How long a list is used before it is read again, if the server announces no changes; zero means forever.
    pub list_ttl: Duration,
    /// How long a server may be silent before its health is checked; zero means never.
    pub ping: Duration,
    /// How long the health check may take while no call is running; after that the server counts as hung. While calls
    /// are running, it may take as long as one of them, `idle`.
    pub hang_timeout: Duration,
    /// The first pause before a reconnect; doubled with each failure.
    pub backoff: Duration,
    /// The longest pause; a connection that lasted as long counts as a success.
    pub max_backoff: Duration,
}

impl Limits {
    /// How long the `ping` after `initialize` may take: at most half of the time limit of the handshake, so that a server
    /// that only leaves this one unanswered is connected to whatever the limit is.
    pub(crate) fn first_ping(&self) -> Duration {
        self.probe.min(self.handshake / 2)
    }
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
            message: 16 << 20,
            body: 64 << 20,
            outbox: 64 << 20,
            waiting: 64 << 20,
            resumes: 5,
            concurrency: 256,
            ready_timeout: Duration::from_secs(10),
            connections: 256,
            dedicated_connections: 256,
            idle_timeout: Duration::from_secs(300),
            list_ttl: Duration::from_secs(60),
            ping: Duration::from_secs(30),
            hang_timeout: Duration::from_secs(20),
            backoff: Duration::from_millis(250),
            max_backoff: Duration::from_secs(30),
        }
    }
}
