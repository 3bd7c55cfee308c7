//! The example configurations: each is read, served and asked, and what arrives at its servers is looked at.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod arguments;
mod calls;
mod choosing;
mod declared_features;
mod front;
mod lists;
mod readme;
