//! Bounds on what clients may use.

use std::time::Duration;

use mcp_vary_base::setters;

/// Bounds on what clients may use.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one HTTP body or one stdio line; 4 MiB.
    pub body: usize,
    /// Bytes that clients can make the gateway hold in total: bodies of requests, subscriptions, and the trees in which
    /// arguments are checked; 256 MiB, of which subscriptions may take a quarter. Requests beyond it are refused.
    pub memory: usize,
    /// Bytes of all headers of a request; 32 KiB.
    pub headers: usize,
    /// Open HTTP connections; 1,024. If all are in use, one is closed for a new one.
    pub connections: usize,
    /// Requests of one session or stdio client in flight; 256.
    pub in_flight: usize,
    /// Sessions that are found without opening their ids; 10,000. A session that is evicted loses only its log level.
    pub sessions: usize,
    /// Classes of clients with different capabilities, each with its own connections and lists; 8. Further clients
    /// share the nearest class.
    pub classes: usize,
    /// Requests that continue although their legacy client is gone; 256. Beyond that they are cancelled.
    pub orphaned_requests: usize,
    /// Standalone `GET` streams of one session; 4.
    pub streams: usize,
    /// Resource subscriptions of one session, or of one modern stream; 1,024.
    pub subscriptions: usize,
    /// How long a client may take to send the head or the body of a request; 30 seconds.
    pub read_timeout: Duration,
    /// How long a write to a client may make no progress; 60 seconds. Then its connection is closed.
    pub write_timeout: Duration,
    /// How long clients are still accepted at shutdown, while probes report that the gateway is not ready; 1 millisecond.
    pub drain_delay: Duration,
    /// How long requests in flight may take to finish at shutdown; 10 seconds. The others get an error.
    pub drain: Duration,
    /// Bytes, in total, of results that are stored whole for clients that got only a part; 64 MiB, and at most a
    /// quarter of it for one result.
    pub result_store: usize,
    /// How long such a result can be read; 10 minutes.
    pub result_ttl: Duration,
    /// How long a client may take to respond to input requests in a result; an hour.
    pub state_lifetime: Duration,
    /// Suspended calls, which wait for the client's input in another request; 256.
    pub suspended_calls: usize,
    /// Suspended calls of one principal; 64.
    pub suspended_calls_per_principal: usize,
    /// How long a task is proxied, and its result stored, for a client that uses another dialect of tasks than its
    /// server; an hour.
    pub task_lifetime: Duration,
    /// How many rounds of input requests one request of a client with a session may have; 16.
    pub max_rounds: usize,
    /// Dedicated connections, to all servers together; 256.
    pub dedicated_connections: usize,
    /// Server requests that wait for clients; 1,024.
    pub pending_server_requests: usize,
    /// How long a client may take to respond to a server request; 10 minutes.
    pub ask_timeout: Duration,
    /// How long to wait for a response before a stream is opened for it, to clients of 2025-11-25; 2 seconds.
    pub stream_after: Duration,
    /// Bytes of events, of all streams together, that are stored for clients that lost their connection; 16 MiB.
    pub replay_buffer: usize,
    /// How long a stream without a reader can be resumed; 2 minutes.
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
            drain_delay: Duration::ZERO,
            drain: Duration::from_secs(10),
            result_store: 64 << 20,
            result_ttl: Duration::from_secs(600),
            state_lifetime: Duration::from_secs(3600),
            suspended_calls: 256,
            suspended_calls_per_principal: 64,
            task_lifetime: Duration::from_secs(3600),
            max_rounds: 16,
            dedicated_connections: 1024,
            pending_server_requests: 1024,
            ask_timeout: Duration::from_secs(600),
            stream_after: Duration::from_secs(2),
            replay_buffer: 16 << 20,
            replay_ttl: Duration::from_secs(120),
        }
    }
}

impl Limits {
    setters! {
        /// Bounds one HTTP body or stdio line to `bytes`.
        with_body(bytes: usize): body = bytes;
        /// Bounds the requests of one client in flight.
        with_in_flight(requests: usize): in_flight = requests;
        /// Bounds the sessions with state in memory.
        with_sessions(sessions: usize): sessions = sessions;
        /// Bounds how long a client may take to send a request.
        with_read_timeout(timeout: Duration): read_timeout = timeout;
        /// Opens a stream for responses that take longer than this.
        with_stream_after(time: Duration): stream_after = time;
        /// Bounds how long requests in flight may take to finish at shutdown.
        with_drain(drain: Duration): drain = drain;
    }
}
