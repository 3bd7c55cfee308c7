//! The audit log as its users see it.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod log;
mod ocsf;
mod schema;
mod sinks;
mod support;
