//! Retries of requests that are safe to send again.

use std::sync::Arc;
use std::time::Duration;

use mcp_vary_upstream::sent_request::SentRequest;
use mcp_vary_upstream::{Exchange, UpstreamError};
use mcp_vary_wire::response::RpcError;
use tokio::time::Instant;
use tracing::info;

use super::{InFlightRequest, ResponseEvent, unless_cancelled};

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

    async fn resend(&mut self) -> Result<Exchange, RpcError> {
        // The other idle connections to a server that has died close at about the same time. On one of them the retry
        // would be lost as well.
        tokio::time::sleep(DETECTION_DELAY).await;
        self.since.get_or_insert_with(Instant::now);
        let request = self.sent.request.clone();
        let (server, method) = (self.sent.connection.name(), request.method.clone());
        let exchange = self.sent.resend(request).await?;
        info!(server, %method, "an idempotent request was sent once more");
        Ok(exchange)
    }
}

impl InFlightRequest {
    /// Lets the request be sent again if the server is lost before its first message.
    pub(crate) fn retry_with(&mut self, retry: RetryState) {
        self.retry = Some(retry);
    }

    /// The event after the loss of the server; `None` if the request may be sent again.
    pub(super) fn connection_lost(&mut self, error: UpstreamError) -> Option<ResponseEvent> {
        let is_retryable = self
            .retry
            .as_ref()
            .is_some_and(|retry| retry.is_retryable(&error));
        if !is_retryable {
            return Some(self.fail(&RpcError::from(error)));
        }
        self.exchange = None;
        None
    }

    /// Sends the request again as soon as the server is connected. Returns an event if that fails.
    pub(super) async fn resend(&mut self) -> Option<ResponseEvent> {
        let Some(retry) = &mut self.retry else {
            return Some(ResponseEvent::Cancelled);
        };
        match unless_cancelled(self.in_flight_guard.as_ref(), retry.resend()).await {
            None => Some(self.cancel_by_client()),
            Some(Err(failure)) => Some(self.fail(&failure)),
            Some(Ok(exchange)) => {
                self.exchange = Some(exchange);
                None
            }
        }
    }
}

/// How long a connection may take to notice that its server cannot be reached.
const DETECTION_DELAY: Duration = Duration::from_millis(50);
