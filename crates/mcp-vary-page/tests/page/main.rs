//! The page of a gateway, as a browser gets it.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod call;
mod catalog;
mod draft;
mod endpoint;
mod events;
mod experiments;
mod explain;
mod protection;
mod readers;
mod retry;
mod review;
mod support;
