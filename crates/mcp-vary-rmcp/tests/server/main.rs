//! Servers behind `VaryServer` with an rmcp client: both eras, over a pipe and HTTP.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![expect(clippy::needless_pass_by_value, reason = "`json!` is written in place")]

mod choosing;
#[path = "../common/mod.rs"]
mod common;
mod cursors;
mod declarations;
mod future_size;
mod handlers;
mod logging;
mod negotiation;
mod notifications;
mod prelude;
mod request_state;
mod shop;
mod support;
mod variants;
mod views;
