//! What the operator of a running gateway requests of it: a reload, a drain, and the token for both.
//!
//! | question | here |
//! |---|---|
//! | who may request it? | a client that sends the [`AdminToken`] |
//! | what can be requested? | a [`Command`] |
//! | is the gateway ready for clients? | by its [`Readiness`] in a [`GatewayState`] |
//! | what do machines ask? | a [`Probe`], which gets a [`ProbeResponse`] |
//! | what does a browser show? | the [`Page`] of the program |
//! | who does it? | the program: it receives [`Requests`] from an [`Operator`] |
//!
//! The gateway answers requests over HTTP with an [`Operator`]. It reads no files, so the program that started it reads the
//! configuration again.

mod command;
mod operator;
mod page;
mod page_codes;
mod probe;
mod readiness;
mod token;

pub use command::Command;
pub use operator::{Operator, Outcome, RefusedCommand, ReloadRequest, Requests, channel};
pub use page::{PAGE_CODE, PAGE_TOKEN, Page, PageAccess, PageBody, PageResponse};
pub use probe::{Probe, ProbeResponse};
pub use readiness::{GatewayState, Readiness};
pub use token::{AdminToken, TokenError};

#[cfg(test)]
mod tests;
