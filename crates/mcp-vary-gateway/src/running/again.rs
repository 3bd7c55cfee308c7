//! A request that is sent once more, where that does no harm.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::info;

use super::{Running, Step, withdrawn};
use crate::reply::Failure;
use crate::upstream::{Exchange, Line, Request, Upstream, UpstreamError};

/// A request that may be sent once more, and to whom.
#[derive(Debug)]
pub(crate) struct Again {
    pub(crate) line: Arc<Line>,
    pub(crate) request: Request,
    /// Whom it was sent to.
    pub(crate) upstream: Arc<Upstream>,
    /// When it was first sent once more.
    pub(crate) since: Option<Instant>,
}

impl Again {
    /// Whether it may be sent after `error`: when the server was lost, and after that only when it was not
    /// delivered, since a loss may take a moment to be noticed.
    pub(super) fn follows(&self, error: &UpstreamError) -> bool {
        let patience = self.line.config().limits.patience;
        match self.since {
            None => error.is_loss(),
            Some(since) => error.is_undelivered() && since.elapsed() < patience,
        }
    }

    async fn send(&mut self) -> Result<Exchange, Failure> {
        if self.since.is_some() {
            tokio::time::sleep(UNNOTICED).await;
        }
        self.since.get_or_insert_with(Instant::now);
        let upstream = self.line.ready().await?;
        let server = upstream.name();
        if !upstream.hello().agrees_with(self.upstream.hello()) {
            let why = format!("server `{server}` was lost, and is another one now; ask again");
            return Err(Failure::internal(why));
        }
        info!(server, method = %self.request.method, "an idempotent request is sent once more");
        Ok(upstream.request(self.request.clone()).await?)
    }
}

impl Running {
    /// Lets the request be sent once more if the server is lost before it said anything.
    pub(crate) fn repeat_with(&mut self, again: Again) {
        self.again = Some(again);
    }

    /// Sends the request once more to a server that was lost, as soon as it is back; what the client gets
    /// when that does not come about.
    pub(super) async fn sent_again(&mut self) -> Option<Step> {
        let Some(again) = &mut self.again else {
            return Some(Step::Cancelled);
        };
        let sent = tokio::select! {
            biased;
            () = withdrawn(self.place.as_ref()) => {
                self.end();
                return Some(self.finish.withdrawn());
            }
            sent = again.send() => sent,
        };
        match sent {
            Ok(exchange) => {
                self.exchange = Some(exchange);
                None
            }
            Err(failure) => {
                self.end();
                Some(Step::Done(self.finish.failed(&failure)))
            }
        }
    }
}

/// How long a line may take to notice that its server cannot be reached.
const UNNOTICED: Duration = Duration::from_millis(50);
