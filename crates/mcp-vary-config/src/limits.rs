//! `limits`: limits on the resources that clients can use.

use mcp_vary_settings::limits::Limits;

use super::reader::MOST;
use crate::key_spec::ValueKind::{Count, Duration, Other, Size};
use crate::key_spec::{KeySpec, keys};
use crate::schema_builder::SchemaBuilder;

/// The settings under `limits`.
pub(super) const SETTINGS: &[KeySpec<Limits>] = keys![
    /// bytes of one request
    "body" = "4 MiB" => Size(|limits| &mut limits.body),
    /// memory for what clients send, in total: requests with bodies over 16 KiB (twice their size), subscriptions (at
    /// most a quarter), and arguments that are checked under a `dialect`; and for answers of servers over 64 KiB until
    /// they are read (at most a half, and a quarter for one principal). Beyond it, requests are rejected (HTTP 503,
    /// `-32603`), and answers replaced by an error (`-32603`)
    "memory" = "256 MiB" => Size(|limits| &mut limits.memory),
    /// all headers of a request
    "headers" = "32 KiB" => Size(|limits| &mut limits.headers),
    /// open connections; beyond it, a new one replaces one that is idle or only listens, first of the session that has
    /// the most
    "connections" = "1024" => Count(1..=MOST, |limits| &mut limits.connections),
    /// concurrent requests of one session, or of the client on stdio
    "in-flight" = "256" => Count(1..=MOST, |limits| &mut limits.in_flight),
    /// sessions with state in memory; the state of the oldest idle session is evicted
    "sessions" = "10000" => Count(1..=MOST, |limits| &mut limits.sessions),
    /// capability classes of clients, each with its own connections and lists. Further ones share those of the nearest
    /// class, and still get the requests that servers send
    "classes" = "8" => Count(1..=MOST, |limits| &mut limits.classes),
    /// requests that keep running after their client (2025-11-25 or older) disconnected; one more is cancelled
    "orphaned-requests" = "256" => Count(1..=MOST, |limits| &mut limits.orphaned_requests),
    /// `GET` streams of one session
    "streams" = "4" => Count(1..=MOST, |limits| &mut limits.streams),
    /// resource subscriptions of one session, or of one `subscriptions/listen` stream
    "subscriptions" = "1024" => Count(1..=MOST, |limits| &mut limits.subscriptions),
    /// how long a client may take to send a request
    "read-timeout" = "30s" => Duration(|limits| &mut limits.read_timeout),
    /// how long a write to a client may make no progress; then the connection is closed
    "write-timeout" = "1m" => Duration(|limits| &mut limits.write_timeout),
    /// how long clients are still accepted at shutdown, while `/readyz` is 503: longer than load balancers need to
    /// notice
    "drain-delay" = "off" => Other(SchemaBuilder::duration_or_off, |reader, field, limits| {
        reader.duration_or_off(field, &mut limits.drain_delay)
    }),
    /// how long requests in flight may take to finish at shutdown; the rest get an error
    "drain" = "10s" => Duration(|limits| &mut limits.drain),
    /// bytes of all stored results of which clients got a part (`verbosity=compact`); one result may take a quarter
    "result-store" = "64 MiB" => Size(|limits| &mut limits.result_store),
    /// how long a stored result can be read
    "result-ttl" = "10m" => Duration(|limits| &mut limits.result_ttl),
    /// how long a client may take to retry a request with the input that a result asked for
    "state-lifetime" = "1h" => Duration(|limits| &mut limits.state_lifetime),
    /// calls that wait for input from clients without sessions, and the same number of tasks (`task-lifetime`); one
    /// more is cancelled
    "suspended-calls" = "256" => Count(1..=MOST, |limits| &mut limits.suspended_calls),
    /// suspended calls of one principal; without authentication all HTTP clients together are one, and each stdio
    /// client is one
    "suspended-calls-per-principal" = "64" => Count(1..=MOST, |limits| &mut limits.suspended_calls_per_principal),
    /// how long Vary waits for a task and stores its result, if the client uses the tasks extension and the server
    /// tasks of 2025-11-25
    "task-lifetime" = "1h" => Duration(|limits| &mut limits.task_lifetime),
    /// how often a server of 2026-07-28 may ask for input for one request of a client with a session
    "max-rounds" = "16" => Count(1..=MOST, |limits| &mut limits.max_rounds),
    /// dedicated connections to all servers together; each serves one client that accepts server requests
    "dedicated-connections" = "1024" => Count(1..=MOST, |limits| &mut limits.dedicated_connections),
    /// server requests that wait for an answer of a client; one more is rejected
    "pending-server-requests" = "1024" => Count(1..=MOST, |limits| &mut limits.pending_server_requests),
    /// how long a client may take to answer a server request, and the call waits; no longer than the session lasts
    "ask-timeout" = "10m" => Duration(|limits| &mut limits.ask_timeout),
    /// how long Vary waits for a response before it opens a resumable event stream for it; for clients of 2025-11-25
    "stream-after" = "2s" => Duration(|limits| &mut limits.stream_after),
    /// bytes of buffered stream events, in total, for clients that lost their connection
    "replay-buffer" = "16 MiB" => Size(|limits| &mut limits.replay_buffer),
    /// how long a client can resume a stream that has ended, or a stream of notifications that belong to no request
    "replay-ttl" = "2m" => Duration(|limits| &mut limits.replay_ttl),
];
