//! A request that was sent, with its connection, so that it can be sent again.

use std::sync::Arc;

use mcp_vary_wire::response::RpcError;

use crate::connection::UpstreamConnection;
use crate::message::Request;
use crate::supervised::SupervisedConnection;
use crate::transport::Exchange;

/// A request that was sent.
#[derive(Clone, Debug)]
pub struct SentRequest {
    /// The supervised connection to the server.
    pub supervised: Arc<SupervisedConnection>,
    /// The connection on which it was sent.
    pub connection: Arc<UpstreamConnection>,
    /// The request.
    pub request: Request,
}

impl SentRequest {
    /// Sends `request`, which continues this one, to the same server as soon as there is a connection to it.
    ///
    /// # Errors
    ///
    /// When there is no connection, and when a different server has replaced the one that received the first request: it
    /// does not know the state of that request.
    pub async fn resend(&self, request: Request) -> Result<Exchange, RpcError> {
        let upstream = self.supervised.ready().await?;
        if !upstream
            .handshake()
            .is_equivalent_to(self.connection.handshake())
        {
            let server = upstream.name();
            let why = format!(
                "server `{server}` was replaced by another one; repeat the request from its start"
            );
            return Err(RpcError::internal(why));
        }
        Ok(upstream.request(request).await?)
    }
}
