#![expect(
    deprecated,
    reason = "logging, sampling and resource subscriptions are on their way out of the protocol, but the suite asks for them"
)]
//! A server for tests: what the official conformance suite calls by name, and what tests of a gateway need.
//!
//! It speaks both eras, with `initialize` (2025-11-25 and earlier) and stateless (2026-07-28), on any
//! transport of rmcp and on streamable HTTP. [`Options`] narrow that where a test wants to pin it.
//!
//! The tools are listed in `src/tools.json`; every module of `src/tools` answers a family of them.

use std::convert::Infallible;
use std::error::Error;
use std::io;

use rmcp::service::ServerInitializeError;
use rmcp::transport::IntoTransport;
use rmcp::{RoleServer, ServiceExt as _};

mod ask;
mod changes;
mod fixture;
mod http_front;
mod options;
mod page;
mod prompts;
mod resources;
mod server;
mod state;
mod tasks;
mod tools;

pub use http_front::serve_http;
pub use options::{Era, Options};

/// Serves one client on `transport` until it closes its end.
///
/// # Errors
///
/// When the transport fails, or the client's first message is none that a session can begin with.
pub async fn serve<T, E, A>(options: Options, transport: T) -> io::Result<()>
where
    T: IntoTransport<RoleServer, E, A>,
    E: Error + Send + Sync + 'static,
{
    let fixture = fixture::Fixture::new(options, state::Shared::new());
    match fixture.serve(transport).await {
        Ok(running) => running.waiting().await.map(drop).map_err(io::Error::other),
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(io::Error::other(error)),
    }
}

/// The body of every answer on HTTP.
type Body = http_body_util::combinators::BoxBody<hyper::body::Bytes, Infallible>;
