//! A server that is lost and comes back: processes and endpoints that die, hang, flap and change.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../http_peer/mod.rs"]
mod http_peer;

mod http;
mod stdio;
mod support;
