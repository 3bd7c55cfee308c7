//! What the gateway accepts over HTTP and stdio, and how it answers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::needless_pass_by_value,
    reason = "a message is written where it is sent"
)]

mod support;

mod frontend {
    mod background_logs;
    mod bad_input;
    mod batches;
    mod cancellation;
    mod connection_limits;
    mod eras;
    mod http;
    mod listener;
    mod log_floods;
    mod lookalikes;
    mod memory_bounds;
    mod proxies;
    mod sessions;
    mod standalone_streams;
    mod stdio;
    mod streams;
    mod tls;
}
