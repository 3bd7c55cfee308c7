//! What clients may use at most.

use std::time::Duration;

/// What clients may take up at most.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one HTTP body or one stdio line; 4 MiB.
    pub body: usize,
    /// Bytes of what clients make the gateway hold, all together: bodies of requests, subscriptions, and the trees that
    /// arguments are checked in; 256 MiB, of which subscriptions may take a quarter. What needs more is refused.
    pub memory: usize,
    /// Bytes of all headers of a request; 32 KiB.
    pub headers: usize,
    /// Open HTTP connections; 1,024. When all are in use, one is closed for a new one.
    pub connections: usize,
    /// Requests of one session or stdio client in flight; 256.
    pub in_flight: usize,
    /// Sessions that are found without opening their ids; 10,000. Of one that gives way to another,
    /// only the log level is forgotten.
    pub sessions: usize,
    /// Classes of clients that can do different things, each with connections and lists of its own; 8. Clients of
    /// further ones share those of the nearest.
    pub classes: usize,
    /// Requests that run on although their legacy client is gone; 256. One too many is cancelled.
    pub orphaned_requests: usize,
    /// Standalone `GET` streams of one session; 4.
    pub streams: usize,
    /// Resources that one session, or one modern stream, is subscribed to; 1,024.
    pub subscriptions: usize,
    /// How long a client may take to send the head or the body of a request; 30 seconds.
    pub read_timeout: Duration,
    /// How long what is written to a client may wait without a byte of it being taken; 60 seconds.
    /// Then its connection is closed.
    pub write_timeout: Duration,
    /// How long requests in flight may take to finish at shutdown; 10 seconds. Those that have not are answered
    /// with an error.
    pub drain: Duration,
    /// Bytes of the results, all together, that are kept whole for clients that got less of them; 64 MiB, and
    /// a quarter of it for one.
    pub result_store: usize,
    /// How long such a result can be read; 10 minutes.
    pub result_ttl: Duration,
    /// How long a client may take to come back with what a server asked for in a result; an hour.
    pub state_lifetime: Duration,
    /// Calls that wait for clients whose requests ended with a question; 256.
    pub suspended_calls: usize,
    /// Of them those of one principal; 64.
    pub suspended_calls_per_principal: usize,
    /// How long a task is watched, and what it came to kept, for a client that knows another form of tasks than its
    /// server; an hour.
    pub task_lifetime: Duration,
    /// How often a server may ask again for one request of a client with a session; 16.
    pub max_rounds: usize,
    /// Connections, to all servers together, that one client each has alone since it can be asked something; 256.
    pub dedicated_connections: usize,
    /// What servers ask of clients at once; 1,024.
    pub pending_server_requests: usize,
    /// How long a client may take to answer what a server asks; 10 minutes.
    pub ask_timeout: Duration,
    /// How long an answer is waited for before a stream is opened for it, to clients of 2025-11-25; 2 seconds.
    pub stream_after: Duration,
    /// Bytes of the events, of all streams together, that are kept for clients that lost their connection;
    /// 16 MiB.
    pub replay_buffer: usize,
    /// How long a stream that nobody reads can be come back to; 2 minutes.
    pub replay_ttl: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 4 << 20,
            memory: 256 << 20,
            headers: 32 << 10,
            connections: 1024,
            in_flight: 256,
            sessions: 10_000,
            classes: 8,
            orphaned_requests: 256,
            streams: 4,
            subscriptions: 1024,
            read_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(60),
            drain: Duration::from_secs(10),
            result_store: 64 << 20,
            result_ttl: Duration::from_secs(600),
            state_lifetime: Duration::from_secs(3600),
            suspended_calls: 256,
            suspended_calls_per_principal: 64,
            task_lifetime: Duration::from_secs(3600),
            max_rounds: 16,
            dedicated_connections: 256,
            pending_server_requests: 1024,
            ask_timeout: Duration::from_secs(600),
            stream_after: Duration::from_secs(2),
            replay_buffer: 16 << 20,
            replay_ttl: Duration::from_secs(120),
        }
    }
}

impl Limits {
    /// Bounds one HTTP body or stdio line to `bytes`.
    #[must_use]
    pub fn with_body(mut self, bytes: usize) -> Self {
        self.body = bytes;
        self
    }

    /// Bounds what clients make the gateway hold, all together, to `bytes`.
    #[must_use]
    pub fn with_memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }

    /// Bounds the requests of one client in flight.
    #[must_use]
    pub fn with_in_flight(mut self, requests: usize) -> Self {
        self.in_flight = requests;
        self
    }

    /// Bounds the sessions with state in memory.
    #[must_use]
    pub fn with_sessions(mut self, sessions: usize) -> Self {
        self.sessions = sessions;
        self
    }

    /// Bounds how long a client may take to send a request.
    #[must_use]
    pub fn with_read_timeout(mut self, timeout: Duration) -> Self {
        self.read_timeout = timeout;
        self
    }

    /// Bounds how long what is written to a client may wait.
    #[must_use]
    pub fn with_write_timeout(mut self, timeout: Duration) -> Self {
        self.write_timeout = timeout;
        self
    }

    /// Opens a stream for answers that take longer than this.
    #[must_use]
    pub fn with_stream_after(mut self, time: Duration) -> Self {
        self.stream_after = time;
        self
    }

    /// Bounds the events that are kept for clients that lost their connection, and for how long.
    #[must_use]
    pub fn with_replay_buffer(mut self, bytes: usize, time: Duration) -> Self {
        self.replay_buffer = bytes;
        self.replay_ttl = time;
        self
    }

    /// Bounds how long requests in flight may take to finish at shutdown.
    #[must_use]
    pub fn with_drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }
}
