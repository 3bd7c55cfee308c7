//! A request that is sent once more, where that does no harm.

use std::sync::Arc;
use std::time::Duration;

use mcp_vary_upstream::sent_request::SentRequest;
use mcp_vary_upstream::{Exchange, UpstreamError};
use mcp_vary_wire::response::RpcError;
use tokio::time::Instant;
use tracing::info;

use super::{Running, Step, unless_withdrawn};

/// A request that may be sent once more.
#[derive(Debug)]
pub(crate) struct Again {
    sent: Arc<SentRequest>,
    /// When it was first sent once more.
    since: Option<Instant>,
}

impl Again {
    pub(crate) const fn new(sent: Arc<SentRequest>) -> Self {
        Self { sent, since: None }
    }

    /// Whether it may be sent after `error`: when the server was lost, and after that only when it was not
    /// delivered, since a loss may take a moment to be noticed.
    pub(super) fn follows(&self, error: &UpstreamError) -> bool {
        let patience = self.sent.supervised.config().limits.ready_timeout;
        match self.since {
            None => error.is_loss(),
            Some(since) => error.is_undelivered() && since.elapsed() < patience,
        }
    }

    async fn send(&mut self) -> Result<Exchange, RpcError> {
        if self.since.is_some() {
            tokio::time::sleep(UNNOTICED).await;
        }
        self.since.get_or_insert_with(Instant::now);
        let request = self.sent.request.clone();
        let (server, method) = (self.sent.connection.name(), request.method.clone());
        let exchange = self.sent.resend(request).await?;
        info!(server, %method, "an idempotent request was sent once more");
        Ok(exchange)
    }
}

impl Running {
    /// Lets the request be sent once more if the server is lost before it said anything.
    pub(crate) fn repeat_with(&mut self, again: Again) {
        self.again = Some(again);
    }

    /// What the client gets of a server that was lost; nothing yet where the request may be sent once more.
    pub(super) fn lost(&mut self, error: UpstreamError) -> Option<Step> {
        let may_follow = self.again.as_ref().is_some_and(|it| it.follows(&error));
        if !may_follow {
            return Some(self.fail(&RpcError::from(error)));
        }
        self.exchange = None;
        None
    }

    /// Sends the request once more to a server that was lost, as soon as it is back; what the client gets
    /// when that does not come about.
    pub(super) async fn send_again(&mut self) -> Option<Step> {
        let Some(again) = &mut self.again else {
            return Some(Step::Cancelled);
        };
        match unless_withdrawn(self.place.as_ref(), again.send()).await {
            None => Some(self.withdraw()),
            Some(Err(failure)) => Some(self.fail(&failure)),
            Some(Ok(exchange)) => {
                self.exchange = Some(exchange);
                None
            }
        }
    }
}

/// How long a line may take to notice that its server cannot be reached.
const UNNOTICED: Duration = Duration::from_millis(50);
