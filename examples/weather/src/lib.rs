//! The weather server of the content negotiation proposal.
//!
//! It is an ordinary MCP server, written without the extensions that Vary implements. It gives
//! every client the same answers. With Vary in front, the answers differ by client.
//!
//! # Properties
//!
//! The same request always has the same answer: the data is a table, and the clock is not read. The
//! server accepts clients with `initialize` (2025-11-25 and earlier) and stateless clients
//! (2026-07-28).
//!
//! # Examples
//!
//! Serve it over any transport:
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! let (ours, _theirs) = tokio::io::duplex(64 * 1024);
//! weather::serve(ours).await?; // returns when the other end closes
//! # Ok(())
//! # }
//! ```

use std::error::Error;
use std::io;

use rmcp::service::ServerInitializeError;
use rmcp::transport::{IntoTransport, stdio_pipes};
use rmcp::{RoleServer, ServiceExt as _};

mod cities;
mod prompts;
mod resources;
mod server;
mod tools;

pub use server::Weather;

/// Serves one client on standard input and output until it closes its end.
///
/// # Errors
///
/// The same as for [`serve`].
pub async fn serve_stdio() -> io::Result<()> {
    serve(stdio_pipes()).await
}

/// Serves one client on `transport` until it closes its end.
///
/// A client that disconnects before its first message is not an error.
///
/// # Errors
///
/// When the transport fails, or the client's first message cannot begin a session.
pub async fn serve<T, E, A>(transport: T) -> io::Result<()>
where
    T: IntoTransport<RoleServer, E, A>,
    E: Error + Send + Sync + 'static,
{
    match Weather.serve(transport).await {
        Ok(running) => running.waiting().await.map(drop).map_err(io::Error::other),
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(io::Error::other(error)),
    }
}
