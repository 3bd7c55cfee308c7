//! Replicas with a real `redis-server` of Debian between them.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod ended;
mod failures;
mod heirs;
mod mailbox;
mod rates;
mod saved;
mod sentinels;
mod server;
mod tallies;
mod variants;
