//! The limits of one server: times, sizes and counts.

use std::time::Duration;

use mcp_vary_base::limit::{Count, DurationOrOff, Limit as _, Size, quantity};

/// Calls the macro `$with` with a row for each limit of a server that operators can set: what it bounds, its key, its
/// default, its field, and the kind of its value. The groups are in the order of the reference.
#[macro_export]
macro_rules! server_limits {
    ($with:ident) => {
        $with! {
            STARTING {
                /// how long a call may run without a message from the server, such as a progress notification
                "timeout" = "10m" => idle: Duration,
                /// how long the server may take to start, with downloads by `npx` and `uvx`, to finish the handshake, and to
                /// send each list; a program that speaks 2025-11-25 and 2026-07-28, and needs more than 5 s for its first
                /// answer, is started twice
                "start-timeout" = "1m" => handshake: Duration,
                /// opening a connection to `url`
                "connect-timeout" = "10s" => connect: Duration,
            }
            CONNECTIONS {
                /// concurrent calls of all clients; at most 16 times as many wait
                "concurrency" = "256" => concurrency: Count,
                /// how long a call waits for a free slot, or for a server that is starting; a program that waits for its turn to
                /// start, as one of many on a busy machine, is waited for up to `start-timeout` longer
                "ready-timeout" = "10s" => ready_timeout: Duration,
                /// shared connections at most; one user has at most a quarter of them. If all are in use, an idle one is closed
                /// for another user, except with `isolation: principal` and `session`; with `session` one of them is for
                /// clients without sessions
                "connections" = "256" => connections: Count,
                /// dedicated connections at most, in addition, each for one client that accepts server requests. If all are in
                /// use, an idle one is closed, or else the call is rejected
                "dedicated-connections" = "256" => dedicated_connections: Count,
                /// how long an idle connection stays open; the first connection always does
                "idle-timeout" = "5m" => idle_timeout: Duration,
                /// how long a list is shown before it is read again, in the background, if the server does not declare
                /// `listChanged`. The `ttlMs` of a server of 2026-07-28 wins. `off`: it is read only when the server announces
                /// a change
                "list-ttl" = "60s" => list_ttl: DurationOrOff,
            }
            MESSAGES {
                /// one line of a program, or one event of a stream
                "max-message" = "16 MiB" => message: Size,
                /// one body of an HTTP reply
                "max-body" = "64 MiB" => body: Size,
                /// how long the server may be silent before Vary pings it; `off` for no pings
                "ping" = "30s" => ping: DurationOrOff,
                /// how long a ping may stay unanswered while no call is running, before the server counts as lost
                "hang-timeout" = "20s" => hang_timeout: Duration,
            }
            RESTART {
                /// the first pause; doubled after each failed attempt
                "first" = "250ms" => backoff: Duration,
                /// the longest pause
                "longest" = "30s" => max_backoff: Duration,
            }
        }
    };
}

macro_rules! fields {
    ($($group:ident {$($(#[doc = $about:literal])+ $key:literal = $default:literal => $field:ident: $kind:ident,)*})*) => {
        /// The limits of one server.
        #[derive(Clone, Debug, Eq, PartialEq)]
        #[non_exhaustive]
        pub struct Limits {
            $($($(#[doc = $about])+ pub $field: $kind,)*)*
            /// The time to wait for an answer to `server/discover` on stdio before `initialize` is tried.
            pub probe: Duration,
            /// The time to wait for an answer to `initialize` from a server that supports `server/discover` before that is
            /// sent.
            pub initialize: Duration,
            /// The time that a message may wait until a process reads its input.
            pub write: Duration,
            /// The time that a process has to exit after its input was closed, and again after `SIGTERM`.
            pub grace: Duration,
            /// The size of the messages that wait until a process reads its input, in bytes.
            pub outbox: usize,
            /// The size of all notifications that wait for slow clients, in bytes.
            pub waiting: usize,
            /// The number of consecutive attempts to resume a broken stream.
            pub resumes: u32,
        }

        impl Default for Limits {
            fn default() -> Self {
                Self {
                    $($($field: $kind::of(const { quantity($default) }),)*)*
                    probe: Duration::from_secs(5),
                    initialize: Duration::from_secs(2),
                    write: Duration::from_secs(10),
                    grace: Duration::from_secs(2),
                    outbox: 64 << 20,
                    waiting: 64 << 20,
                    resumes: 5,
                }
            }
        }
    };
}

server_limits!(fields);

impl Limits {
    /// How long the `ping` after `initialize` may take: at most half of the time limit of the handshake, so that a server
    /// that only leaves this one unanswered is connected to whatever the limit is.
    pub(crate) fn first_ping(&self) -> Duration {
        self.probe.min(self.handshake / 2)
    }
}
