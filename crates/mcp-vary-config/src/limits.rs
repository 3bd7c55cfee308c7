//! `limits`: limits on the resources that clients can use.

use mcp_vary_gateway::Limits;

use super::reader::MOST;
use crate::key_spec::{KeySpec, ValueKind};

/// The settings under `limits`.
pub(super) const SETTINGS: &[KeySpec<Limits>] = &[
    KeySpec {
        key: "body",
        about: "bytes of one request",
        default: "4 MiB",
        takes: ValueKind::Size(|limits| &mut limits.body),
    },
    KeySpec {
        key: "memory",
        about: "memory for what clients send, in total: requests with bodies over 16 KiB (twice their size), subscriptions (at most a quarter), and arguments that are checked under a `dialect`. Requests that need more are rejected (HTTP 503, `-32603`)",
        default: "256 MiB",
        takes: ValueKind::Size(|limits| &mut limits.memory),
    },
    KeySpec {
        key: "headers",
        about: "all headers of a request",
        default: "32 KiB",
        takes: ValueKind::Size(|limits| &mut limits.headers),
    },
    KeySpec {
        key: "connections",
        about: "open connections; when all are in use, a new connection replaces one that is idle or only listens, first one of the session that has the most",
        default: "1024",
        takes: ValueKind::Count(1..=MOST, |limits| &mut limits.connections),
    },
    KeySpec {
        key: "in-flight",
        about: "concurrent requests of one session, or of the client on stdio",
        default: "256",
        takes: ValueKind::Count(1..=MOST, |limits| &mut limits.in_flight),
    },
    KeySpec {
        key: "sessions",
        about: "sessions with state in memory; the state of the oldest idle session is evicted",
        default: "10000",
        takes: ValueKind::Count(1..=MOST, |limits| &mut limits.sessions),
    },
    KeySpec {
        key: "classes",
        about: "capability classes of clients, each with its own connections and lists; clients of further classes share those of the nearest class, and still get the requests that servers send",
        default: "8",
        takes: ValueKind::Count(1..=MOST, |limits| &mut limits.classes),
    },
    KeySpec {
        key: "orphaned-requests",
        about: "requests that keep running after their client (2025-11-25 or older) disconnected; one more is cancelled",
        default: "256",
        takes: ValueKind::Count(1..=MOST, |limits| &mut limits.orphaned_requests),
    },
    KeySpec {
        key: "streams",
        about: "`GET` streams of one session",
        default: "4",
        takes: ValueKind::Count(1..=MOST, |limits| &mut limits.streams),
    },
    KeySpec {
        key: "subscriptions",
        about: "resource subscriptions of one session, or of one `subscriptions/listen` stream",
        default: "1024",
        takes: ValueKind::Count(1..=MOST, |limits| &mut limits.subscriptions),
    },
    KeySpec {
        key: "read-timeout",
        about: "how long a client may take to send a request",
        default: "30s",
        takes: ValueKind::Duration(|limits| &mut limits.read_timeout),
    },
    KeySpec {
        key: "write-timeout",
        about: "how long a write to a client may make no progress; then the connection is closed",
        default: "1m",
        takes: ValueKind::Duration(|limits| &mut limits.write_timeout),
    },
    KeySpec {
        key: "drain",
        about: "how long requests in flight may take to finish at shutdown; the rest get an error",
        default: "10s",
        takes: ValueKind::Duration(|limits| &mut limits.drain),
    },
    KeySpec {
        key: "result-store",
        about: "bytes of whole results, in total, stored for clients that got a shortened one (`verbosity=compact`); one result may take a quarter",
        default: "64 MiB",
        takes: ValueKind::Size(|limits| &mut limits.result_store),
    },
    KeySpec {
        key: "result-ttl",
        about: "how long a stored result can be read",
        default: "10m",
        takes: ValueKind::Duration(|limits| &mut limits.result_ttl),
    },
    KeySpec {
        key: "state-lifetime",
        about: "how long a client may take to retry a request with the input that a result asked for",
        default: "1h",
        takes: ValueKind::Duration(|limits| &mut limits.state_lifetime),
    },
    KeySpec {
        key: "suspended-calls",
        about: "calls that wait for input from clients without sessions, and the same number of tasks (`task-lifetime`); one more is cancelled",
        default: "256",
        takes: ValueKind::Count(1..=MOST, |limits| &mut limits.suspended_calls),
    },
    KeySpec {
        key: "suspended-calls-per-principal",
        about: "suspended calls of one principal; without authentication each stdio client is a principal, and all HTTP clients together are one",
        default: "64",
        takes: ValueKind::Count(1..=MOST, |limits| &mut limits.suspended_calls_per_principal),
    },
    KeySpec {
        key: "task-lifetime",
        about: "how long Vary waits for a task and stores its result, when the client uses the tasks extension and the server the tasks of 2025-11-25",
        default: "1h",
        takes: ValueKind::Duration(|limits| &mut limits.task_lifetime),
    },
    KeySpec {
        key: "max-rounds",
        about: "how many times a server of 2026-07-28 may ask for input for one request of a client with a session",
        default: "16",
        takes: ValueKind::Count(1..=MOST, |limits| &mut limits.max_rounds),
    },
    KeySpec {
        key: "dedicated-connections",
        about: "dedicated connections to all servers together; each serves one client that accepts server requests",
        default: "256",
        takes: ValueKind::Count(1..=MOST, |limits| &mut limits.dedicated_connections),
    },
    KeySpec {
        key: "pending-server-requests",
        about: "server requests that wait for an answer of a client; one more is rejected",
        default: "1024",
        takes: ValueKind::Count(1..=MOST, |limits| &mut limits.pending_server_requests),
    },
    KeySpec {
        key: "ask-timeout",
        about: "how long a client may take to answer a server request; the call waits as long, but no longer than the session lasts",
        default: "10m",
        takes: ValueKind::Duration(|limits| &mut limits.ask_timeout),
    },
    KeySpec {
        key: "stream-after",
        about: "how long Vary waits for a response before it opens a resumable event stream for it; for clients of 2025-11-25",
        default: "2s",
        takes: ValueKind::Duration(|limits| &mut limits.stream_after),
    },
    KeySpec {
        key: "replay-buffer",
        about: "bytes of buffered stream events, in total, for clients that lost their connection",
        default: "16 MiB",
        takes: ValueKind::Size(|limits| &mut limits.replay_buffer),
    },
    KeySpec {
        key: "replay-ttl",
        about: "how long a client can resume a stream that has ended, or a stream of notifications that belong to no request",
        default: "2m",
        takes: ValueKind::Duration(|limits| &mut limits.replay_ttl),
    },
];
