//! Verification of credentials: who sends a request, and what to answer if nobody can tell.
//!
//! | question | here |
//! |---|---|
//! | what does the head of a request present? | [`credential`] |
//! | is it an API key of the configuration? | [`key`] |
//! | is it an access token of a trusted issuer, for this server? | [`token`], with the keys of [`jwks`] |
//! | where are the keys of an issuer, and when are they fetched again? | [`discovery`], [`refresh`] |
//! | which token was verified lately? | [`cache`] |
//! | all of it in order | [`authenticator`] |
//! | what does a client get that may not pass? | [`challenge`], [`metadata`] |
//!
//! Everything is a value: no network, no files, no clock, no randomness. Vary is a resource server (RFC 6750, RFC 9728)
//! and never an authorization server. No `Debug`, error or answer contains a token, a key or a claim.
#![expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "the crates of this workspace build and match these values, and are released together"
)]

pub mod address;
mod algorithm;
pub mod authenticator;
pub mod cache;
pub mod challenge;
pub mod credential;
pub mod discovery;
pub mod jwks;
pub mod key;
pub mod metadata;
pub mod provider;
pub mod refresh;
pub mod scope;
mod strict;
pub mod token;
mod url;
