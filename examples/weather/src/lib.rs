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

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};

mod cities;
mod prompts;
mod refusal;
mod resources;
mod server;
mod tools;

/// Serves one client on standard input and output until it closes its end.
///
/// # Errors
///
/// The same as for [`serve`].
pub async fn serve_stdio() -> io::Result<()> {
    serve(tokio::io::join(tokio::io::stdin(), tokio::io::stdout())).await
}

/// Serves one client on `transport`, a message a line, until it closes its end.
///
/// # Errors
///
/// When reading fails. A client that hangs up before its response is written is not an error.
pub async fn serve(transport: impl AsyncRead + AsyncWrite) -> io::Result<()> {
    let (reader, mut writer) = tokio::io::split(transport);
    let mut lines = BufReader::new(reader).split(b'\n');
    while let Some(line) = lines.next_segment().await? {
        let Some(response) = server::respond(&line) else {
            continue;
        };
        let text = format!("{response}\n");
        if writer.write_all(text.as_bytes()).await.is_err() || writer.flush().await.is_err() {
            break;
        }
    }
    Ok(())
}
