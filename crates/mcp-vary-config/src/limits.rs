//! `limits`: what clients may take up.

use mcp_vary_gateway::Limits;

use super::reader::MOST;
use crate::key_spec::{Setting, Takes};

/// What may stand under `limits`.
pub(super) const SETTINGS: &[Setting<Limits>] = &[
    Setting {
        key: "body",
        about: "one request",
        default: "4 MiB",
        takes: Takes::Size(|limits| &mut limits.body),
    },
    Setting {
        key: "memory",
        about: "what clients make the gateway hold, all together: requests with bodies over 16 KiB, twice their size; \
subscriptions, which may take a quarter; and arguments that are checked under a `dialect`. What needs more is refused \
(HTTP 503, `-32603`)",
        default: "256 MiB",
        takes: Takes::Size(|limits| &mut limits.memory),
    },
    Setting {
        key: "headers",
        about: "all headers of a request",
        default: "32 KiB",
        takes: Takes::Size(|limits| &mut limits.headers),
    },
    Setting {
        key: "connections",
        about: "open connections; when all are in use, one that is idle or only listens is closed for a new one, first \
of the session that has the most",
        default: "1024",
        takes: Takes::Count(1..=MOST, |limits| &mut limits.connections),
    },
    Setting {
        key: "in-flight",
        about: "requests of one session, or of the client on stdio, at once",
        default: "256",
        takes: Takes::Count(1..=MOST, |limits| &mut limits.in_flight),
    },
    Setting {
        key: "sessions",
        about: "sessions with state in memory; the oldest idle one's is dropped",
        default: "10000",
        takes: Takes::Count(1..=MOST, |limits| &mut limits.sessions),
    },
    Setting {
        key: "classes",
        about: "classes of clients that can do different things, each with connections and lists of its own; clients of \
further ones share those of the nearest, and are asked what servers ask all the same",
        default: "8",
        takes: Takes::Count(1..=MOST, |limits| &mut limits.classes),
    },
    Setting {
        key: "unheard",
        about: "requests that run on although their client, of the era with sessions, is gone",
        default: "256",
        takes: Takes::Count(1..=MOST, |limits| &mut limits.unheard),
    },
    Setting {
        key: "streams",
        about: "`GET` streams of one session",
        default: "4",
        takes: Takes::Count(1..=MOST, |limits| &mut limits.streams),
    },
    Setting {
        key: "subscriptions",
        about: "resources that one session, or one stream of `subscriptions/listen`, is subscribed to",
        default: "1024",
        takes: Takes::Count(1..=MOST, |limits| &mut limits.subscriptions),
    },
    Setting {
        key: "read-timeout",
        about: "how long a client may take to send a request",
        default: "30s",
        takes: Takes::Duration(|limits| &mut limits.read_timeout),
    },
    Setting {
        key: "write-timeout",
        about: "how long what is written to a client may wait without a byte of it being taken; then its \
connection is closed",
        default: "1m",
        takes: Takes::Duration(|limits| &mut limits.write_timeout),
    },
    Setting {
        key: "drain",
        about: "how long requests in flight may take at shutdown; the others are answered with an error",
        default: "10s",
        takes: Takes::Duration(|limits| &mut limits.drain),
    },
    Setting {
        key: "kept-results",
        about: "the results, all together, that are kept whole for clients that got less of them (`verbosity=compact`); one has a quarter of it",
        default: "64 MiB",
        takes: Takes::Size(|limits| &mut limits.kept_results),
    },
    Setting {
        key: "kept-for",
        about: "how long such a result can be read",
        default: "10m",
        takes: Takes::Duration(|limits| &mut limits.kept_for),
    },
    Setting {
        key: "state-lifetime",
        about: "how long a client may take to come back with what a server asked for in a result",
        default: "1h",
        takes: Takes::Duration(|limits| &mut limits.state_lifetime),
    },
    Setting {
        key: "held-calls",
        about: "calls that wait for clients without sessions, whose requests ended with what the server asks, and as \
many tasks (`task-lifetime`); one more is cancelled",
        default: "256",
        takes: Takes::Count(1..=MOST, |limits| &mut limits.held_calls),
    },
    Setting {
        key: "held-calls-per-principal",
        about: "of them those of one principal; of clients that nobody knows those on stdio are one each, all others one together",
        default: "64",
        takes: Takes::Count(1..=MOST, |limits| &mut limits.held_calls_per_principal),
    },
    Setting {
        key: "task-lifetime",
        about: "how long a task is waited for, and what it came to kept, where the client knows the extension of tasks and \
its server those of 2025-11-25",
        default: "1h",
        takes: Takes::Duration(|limits| &mut limits.task_lifetime),
    },
    Setting {
        key: "rounds",
        about: "how often a server without sessions may ask for input for one request of a client with a session",
        default: "16",
        takes: Takes::Count(1..=MOST, |limits| &mut limits.rounds),
    },
    Setting {
        key: "own-connections",
        about: "connections, to all servers together, that one client each has alone since servers can ask it \
something",
        default: "256",
        takes: Takes::Count(1..=MOST, |limits| &mut limits.own_connections),
    },
    Setting {
        key: "questions",
        about: "what servers ask of clients at once; one more is refused",
        default: "1024",
        takes: Takes::Count(1..=MOST, |limits| &mut limits.questions),
    },
    Setting {
        key: "ask-timeout",
        about: "how long a client may take to answer what a server asks; its call waits as long, and no longer than its session lasts",
        default: "10m",
        takes: Takes::Duration(|limits| &mut limits.ask_timeout),
    },
    Setting {
        key: "stream-after",
        about: "how long an answer is waited for before a stream is opened for it, which has signs of life and can be \
come back to; for clients of 2025-11-25",
        default: "2s",
        takes: Takes::Duration(|limits| &mut limits.stream_after),
    },
    Setting {
        key: "kept-events",
        about: "the events of streams, all together, that are kept for clients that lost their connection",
        default: "16 MiB",
        takes: Takes::Size(|limits| &mut limits.kept_events),
    },
    Setting {
        key: "kept-events-for",
        about: "how long a client can come back to a stream that has ended, or on which it is told what belongs to no request",
        default: "2m",
        takes: Takes::Duration(|limits| &mut limits.kept_events_for),
    },
];
