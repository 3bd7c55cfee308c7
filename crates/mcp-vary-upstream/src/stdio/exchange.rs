//! One request to a process, until its answer.

use std::sync::Arc;

use mcp_vary_wire::server_message;

use super::Shared;
use crate::error::UpstreamError;
use crate::mailbox::Mailbox;
use crate::message::{Message, RequestKind, cancel_params};

/// One request to a process, until its answer.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(super) shared: Arc<Shared>,
    pub(super) id: u64,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) kind: RequestKind,
    pub(super) is_sent: bool,
    pub(super) is_finished: bool,
}

impl Exchange {
    pub(crate) fn server(&self) -> &Arc<str> {
        &self.shared.server
    }

    /// The next message. Safe to drop while it waits.
    pub(crate) async fn next(&mut self) -> Result<Message, UpstreamError> {
        if self.is_finished {
            return Err(UpstreamError::Finished {
                server: Arc::clone(&self.shared.server),
            });
        }
        let idle = self.kind.is_work().then_some(self.shared.limits.idle);
        let next = loop {
            match self.mailbox.next(idle).await {
                Ok(None) if self.is_waiting_for_client() => self.mailbox.touch(),
                next => break next,
            }
        };
        match next {
            Ok(Some(message)) => {
                self.is_finished = matches!(message, Message::Answer(_));
                Ok(message)
            }
            Ok(None) => {
                self.cancel(Some("the gateway's time limit"));
                Err(UpstreamError::Timeout {
                    server: Arc::clone(&self.shared.server),
                    limit: self.shared.limits.idle,
                })
            }
            Err(error) => {
                self.is_finished = true;
                Err(error)
            }
        }
    }

    /// Whether the server is or was recently waiting for an answer of the client, which explains its silence.
    fn is_waiting_for_client(&self) -> bool {
        let calm = self.shared.server_requests.idle_since();
        calm.is_none_or(|calm| calm.elapsed() < self.shared.limits.idle)
    }

    /// Ends the exchange and cancels the request at the server, unless it has answered.
    pub(crate) fn cancel(&mut self, reason: Option<&str>) {
        self.is_finished = true;
        let was_open = self.shared.in_flight().abandon(self.id).is_some();
        if was_open && self.is_sent && self.kind.is_cancellable() {
            let params = cancel_params(self.id, reason);
            let message =
                server_message::write_request(None, "notifications/cancelled", Some(&params));
            self.shared.try_send(message);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !self.is_finished {
            self.cancel(None);
        }
    }
}
