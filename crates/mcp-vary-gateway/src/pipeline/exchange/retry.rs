//! Retries of requests that are safe to send again.

use std::sync::Arc;
use std::time::Duration;

use mcp_vary_upstream::sent_request::SentRequest;
use mcp_vary_upstream::{Exchange, UpstreamError};
use mcp_vary_wire::response::RpcError;
use tokio::time::Instant;
use tracing::info;

/// A request that may be sent again.
#[derive(Debug)]
pub(crate) struct RetryState {
    sent: Arc<SentRequest>,
    /// The time of the first retry.
    since: Option<Instant>,
}

impl RetryState {
    pub(crate) const fn new(sent: Arc<SentRequest>) -> Self {
        Self { sent, since: None }
    }

    /// Whether it may be sent again after `error`: after the loss of the server, and then only while it cannot be
    /// delivered, since a loss may be noticed late.
    pub(super) fn is_retryable(&self, error: &UpstreamError) -> bool {
        let timeout = self.sent.supervised.config().limits.ready_timeout;
        match self.since {
            None => error.is_loss(),
            Some(since) => error.is_undelivered() && since.elapsed() < timeout,
        }
    }

    pub(super) async fn resend(&mut self) -> Result<Exchange, RpcError> {
        // The other idle connections to a server that has died close at about the same time. On one of them the retry
        // would be lost as well.
        tokio::time::sleep(DETECTION_DELAY).await;
        self.since.get_or_insert_with(Instant::now);
        let request = self.sent.request.clone();
        let server = self.sent.connection.name();
        let method = request.method.clone();
        let exchange = self.sent.resend(request).await?;
        info!(server, %method, "an idempotent request was sent once more");
        Ok(exchange)
    }
}

/// How long a connection may take to notice that its server cannot be reached.
const DETECTION_DELAY: Duration = Duration::from_millis(50);
