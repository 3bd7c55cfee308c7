//! One request over HTTP, until its answer: in a new session if the server has lost the first one.

use std::future::pending;
use std::sync::Arc;

use tokio::time::Instant;

use super::attempt::{Attempt, BoxFuture, Call};
use super::handshaker::Handshaker;
use super::handshaker::renewal::Doubt;
use super::inbound::CallRoutes;
use super::session::Session;
use crate::error::UpstreamError;
use crate::message::Message;

/// One request over HTTP, until its answer.
pub(crate) struct Exchange {
    handshaker: Arc<Handshaker>,
    attempt: Attempt,
    /// The renewal of the session, while the attempt waits for it: whether there is a new one.
    renewal: Option<BoxFuture<bool>>,
    routes: CallRoutes,
    was_sent: bool,
}

mcp_vary_base::debug_by_name!(Exchange);

impl Exchange {
    pub(crate) fn server(&self) -> &Arc<str> {
        &self.attempt.shared.endpoint.server
    }

    pub(super) fn send(
        handshaker: &Arc<Handshaker>,
        session: Arc<Session>,
        call: Call,
        routes: CallRoutes,
    ) -> Self {
        Self {
            attempt: Attempt::send(&handshaker.shared, session, call),
            handshaker: Arc::clone(handshaker),
            renewal: None,
            routes,
            was_sent: false,
        }
    }

    /// The next message. Safe to drop while it waits.
    pub(crate) async fn next(&mut self) -> Result<Message, UpstreamError> {
        self.was_sent = true;
        let is_work = self.attempt.call.kind.is_work();
        loop {
            if let Some(message) = self.routes.take().or_else(|| self.attempt.take()) {
                return Ok(message);
            }
            let step = if is_work {
                tokio::time::timeout_at(self.attempt.deadline, self.advance()).await
            } else {
                Ok(self.advance().await)
            };
            match step {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    self.end();
                    if is_work {
                        self.attempt.shared.endpoint.on_failure(&error);
                    }
                    return Err(error);
                }
                Err(_elapsed) if self.is_waiting_for_client() => {}
                Err(_elapsed) => {
                    self.cancel(Some("the gateway's time limit"));
                    return Err(self.attempt.shared.endpoint.timeout());
                }
            }
        }
    }

    /// Whether the server is or was recently waiting for an answer of the client, which explains its silence.
    fn is_waiting_for_client(&mut self) -> bool {
        let shared = &self.attempt.shared;
        let now = Instant::now();
        let idle = shared.endpoint.limits.idle;
        let idle_since = shared.inbound.server_requests.idle_since();
        self.attempt.deadline = idle_since.unwrap_or(now) + idle;
        self.attempt.deadline > now
    }

    /// Waits for one step, a message outside the response, or the end of the connection.
    async fn advance(&mut self) -> Result<(), UpstreamError> {
        let liveness = Arc::clone(&self.attempt.shared.endpoint.liveness);
        let mailbox = self.routes.mailbox().cloned();
        let arrived = async {
            match &mailbox {
                Some(mailbox) => mailbox.arrived().await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            () = arrived => {
                self.attempt.touch();
                Ok(())
            }
            step = self.step() => step,
            error = liveness.ended() => Err(error),
        }
    }

    /// Waits for the next event of the attempt, or for the session in which it is sent again.
    async fn step(&mut self) -> Result<(), UpstreamError> {
        if let Some(renewal) = &mut self.renewal {
            let is_renewed = renewal.await;
            self.renewal = None;
            return self.attempt.on_renewal(is_renewed);
        }
        self.attempt.step().await?;
        if let Some(refusal) = self.attempt.refusal() {
            let handshaker = Arc::clone(&self.handshaker);
            let session = Arc::clone(&self.attempt.session);
            let doubt = Doubt {
                is_conclusive: refusal.is_conclusive,
                can_wait: self.attempt.call.kind.is_work(),
            };
            self.renewal = Some(Box::pin(handshaker.renew(session, doubt)));
        }
        Ok(())
    }

    /// Ends the exchange and cancels the request at the server, unless it has answered.
    ///
    /// Legacy: "Disconnection SHOULD NOT be interpreted as the client cancelling its request", so a
    /// notification says so. Modern: "Closing the SSE response stream MUST be treated by the server
    /// as cancellation".
    pub(crate) fn cancel(&mut self, reason: Option<&str>) {
        let Attempt {
            shared,
            session,
            call,
            ..
        } = &self.attempt;
        let is_notified = session.is_legacy() && call.kind.is_cancellable();
        if !self.attempt.is_over() && self.was_sent && is_notified {
            shared.cancel(session, call.id, reason);
        }
        self.end();
    }

    fn end(&mut self) {
        self.renewal = None;
        self.attempt.end();
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.cancel(None);
    }
}
