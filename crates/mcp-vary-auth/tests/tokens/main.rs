//! Tokens and keys at the door of a gateway: what passes, and what is answered to everything else.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod caching;
mod clients;
mod configuration;
mod corpus;
mod prelude;
mod rotation;
mod secrecy;
mod table;
