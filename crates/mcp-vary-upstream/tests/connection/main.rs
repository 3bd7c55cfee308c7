//! Connections to servers, over HTTP and to processes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod http;
mod stdio;
