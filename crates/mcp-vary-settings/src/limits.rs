//! Bounds on what clients may use.

use std::time::Duration;

use mcp_vary_base::limit::{Count, DurationOrOff, Limit as _, Size, quantity};
use mcp_vary_base::setters;

/// Calls the macro `$with` with a row for each limit: what it bounds, its key under `limits`, its default, its field, and
/// the kind of its value.
#[macro_export]
macro_rules! limits {
    ($with:ident) => {
        $with! {
            /// bytes of one request
            "body" = "4 MiB" => body: Size,
            /// memory for what clients send, in total: requests with bodies over 16 KiB (twice their size), subscriptions (at
            /// most a quarter), and arguments that are checked under a `dialect`; and for answers of servers over 64 KiB until
            /// they are read (at most a half, and a quarter for one principal). Beyond it, requests are rejected (HTTP 503,
            /// `-32603`), and answers replaced by an error (`-32603`)
            "memory" = "256 MiB" => memory: Size,
            /// all headers of a request
            "headers" = "32 KiB" => headers: Size,
            /// open connections; beyond it, a new one replaces one that is idle or only listens, first of the session that has
            /// the most
            "connections" = "1024" => connections: Count,
            /// concurrent requests of one session, or of the client on stdio
            "in-flight" = "256" => in_flight: Count,
            /// sessions with state in memory; the state of the oldest idle session is evicted
            "sessions" = "10000" => sessions: Count,
            /// capability classes of clients, each with its own connections and lists. Further ones share those of the nearest
            /// class, and still get the requests that servers send
            "classes" = "8" => classes: Count,
            /// requests that keep running after their client (2025-11-25 or older) disconnected; one more is cancelled
            "orphaned-requests" = "256" => orphaned_requests: Count,
            /// `GET` streams of one session
            "streams" = "4" => streams: Count,
            /// resource subscriptions of one session, or of one `subscriptions/listen` stream
            "subscriptions" = "1024" => subscriptions: Count,
            /// how long a client may take to send a request
            "read-timeout" = "30s" => read_timeout: Duration,
            /// how long a write to a client may make no progress; then the connection is closed
            "write-timeout" = "1m" => write_timeout: Duration,
            /// how long clients are still accepted at shutdown, while `/readyz` is 503: longer than load balancers need to
            /// notice
            "drain-delay" = "off" => drain_delay: DurationOrOff,
            /// how long requests in flight may take to finish at shutdown; the rest get an error
            "drain" = "10s" => drain: Duration,
            /// bytes of all stored results of which clients got a part (`verbosity=compact`); one result may take a quarter
            "result-store" = "64 MiB" => result_store: Size,
            /// how long a stored result can be read
            "result-ttl" = "10m" => result_ttl: Duration,
            /// how long a client may take to retry a request with the input that a result asked for
            "state-lifetime" = "1h" => state_lifetime: Duration,
            /// calls that wait for input from clients without sessions, and the same number of tasks (`task-lifetime`); one
            /// more is cancelled
            "suspended-calls" = "256" => suspended_calls: Count,
            /// suspended calls of one principal; without authentication all HTTP clients together are one, and each stdio
            /// client is one
            "suspended-calls-per-principal" = "64" => suspended_calls_per_principal: Count,
            /// how long Vary waits for a task and stores its result, if the client uses the tasks extension and the server
            /// tasks of 2025-11-25
            "task-lifetime" = "1h" => task_lifetime: Duration,
            /// how often a server of 2026-07-28 may ask for input for one request of a client with a session
            "max-rounds" = "16" => max_rounds: Count,
            /// dedicated connections to all servers together; each serves one client that accepts server requests
            "dedicated-connections" = "1024" => dedicated_connections: Count,
            /// server requests that wait for an answer of a client; one more is rejected
            "pending-server-requests" = "1024" => pending_server_requests: Count,
            /// how long a client may take to answer a server request, and the call waits; no longer than the session lasts
            "ask-timeout" = "10m" => ask_timeout: Duration,
            /// how long Vary waits for a response before it opens a resumable event stream for it; for clients of 2025-11-25
            "stream-after" = "2s" => stream_after: Duration,
            /// bytes of buffered stream events, in total, for clients that lost their connection
            "replay-buffer" = "16 MiB" => replay_buffer: Size,
            /// how long a client can resume a stream that has ended, or a stream of notifications that belong to no request
            "replay-ttl" = "2m" => replay_ttl: Duration,
        }
    };
}

macro_rules! fields {
    ($($(#[doc = $about:literal])+ $key:literal = $default:literal => $field:ident: $kind:ident,)*) => {
        /// Bounds on what clients may use.
        #[derive(Clone, Copy, Debug)]
        #[non_exhaustive]
        pub struct Limits {
            $($(#[doc = $about])+ pub $field: $kind,)*
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($field: $kind::of(const { quantity($default) }),)* }
            }
        }
    };
}

limits!(fields);

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
