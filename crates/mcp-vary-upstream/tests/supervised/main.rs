//! A server that is lost and comes back: processes and endpoints that die, hang, flap and change.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod http;
mod stdio;
mod subscriptions;
mod support;
