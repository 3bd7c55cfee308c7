//! Requests of servers to clients, and requests of several round trips.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::needless_pass_by_value,
    reason = "a message is written where it is sent"
)]

mod support;

mod mrtr {
    mod round_trips;
    mod server_requests;
}
