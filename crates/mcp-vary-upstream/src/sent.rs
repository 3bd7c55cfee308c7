//! A request as it was sent, and to whom: what it takes to send it once more.

use std::sync::Arc;

use mcp_vary_wire::response::Failure;

use crate::{Exchange, Line, Request, Upstream};

/// A request that was sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The supervised connection.
    pub line: Arc<Line>,
    /// The connection that it was sent on.
    pub upstream: Arc<Upstream>,
    /// The request.
    pub request: Request,
}

impl Sent {
    /// Sends `request`, which says the same or more, to the server that had the one before, as soon as there is a
    /// connection to it.
    ///
    /// # Errors
    ///
    /// When there is none, and when another server is there now: it knows nothing of what was said before.
    pub async fn anew(&self, request: Request) -> Result<Exchange, Failure> {
        let upstream = self.line.ready().await?;
        if !upstream.hello().agrees_with(self.upstream.hello()) {
            let server = upstream.name();
            let why = format!("server `{server}` was lost, and is another one now; ask again");
            return Err(Failure::internal(why));
        }
        Ok(upstream.request(request).await?)
    }
}
