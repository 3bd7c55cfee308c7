//! The page of a gateway, as a browser gets it.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod catalog;
mod events;
mod protection;
mod support;
