//! The client for all HTTP requests that Vary sends: to MCP servers, authorization servers, models and collectors.
//!
//! | question | here |
//! |---|---|
//! | which way do requests take? | [`proxy`], [`resolver`], [`tls`] |
//! | what came back? | [`body`]: decoded, with the errors of what cannot be |
//! | why is there no answer? | [`failure`], [`tls_failure`] |
//! | what about one address, once? | [`document`] |
//! | who authorizes requests? | [`credential_source`] |

#![expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "the crates of this workspace build and match these values, and are released together"
)]

pub mod body;
pub mod client_certificate;
mod content_coding;
pub mod credential_source;
pub mod document;
pub mod failure;
pub mod headers;
pub mod origin;
pub mod proxy;
pub mod resolver;
pub mod tls;
pub mod tls_failure;
