//! A message of a client, which runs while the next ones are read.

use std::sync::Arc;

use bytes::Bytes;
use mcp_vary_base::memory_budget::Lease;
use mcp_vary_wire::envelope::Message;
use mcp_vary_wire::params::Params;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::pipeline::exchange::{InFlightRequest, ResponseEvent, cancelled};
use crate::pipeline::inbound::{Outcome, handle_admitted};
use crate::pipeline::methods::Dispatch;
use crate::pipeline::request::IncomingRequest;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::subscriptions::ListenStream;
use mcp_vary_session::InFlightGuard;
use mcp_vary_session::client::Client;

/// An admitted message of a client, whose `line` is read again where it runs.
pub(super) struct AdmittedLine {
    pub(super) snapshot: Arc<ConfigSnapshot>,
    pub(super) client: Arc<Client>,
    pub(super) guard: Option<InFlightGuard>,
    pub(super) line: Bytes,
    /// The memory of the line.
    pub(super) _memory: Lease,
}

impl AdmittedLine {
    /// Runs to its end and writes its messages.
    pub(super) async fn run(self, lines: &mpsc::Sender<Bytes>, stopping: CancellationToken) {
        // The line was readable before, so it is now.
        let Ok((message, params)) = Message::read_with_params(&self.line) else {
            return;
        };
        let params = Params::of(&message, params).unwrap_or_default();
        let mut request = IncomingRequest::new(&message, params, &self.line);
        request.find_client(&self.snapshot.services.client_uses);
        let outcome = handle_admitted(&self.snapshot, &self.client, self.guard, request).await;
        // A request that its server works on no longer needs the configuration, which may be replaced.
        drop(self.snapshot);
        let Outcome::Dispatched(dispatch, _) = outcome else {
            // A notification has no answer.
            return;
        };
        match dispatch {
            Dispatch::Done(reply) => drop(lines.send(reply.into_body()).await),
            Dispatch::InFlight(running) => write_messages(running, lines).await,
            Dispatch::Listen(listening) => {
                let listener = listening.stream.until(stopping.cancelled_owned());
                write_notifications(listener, listening.guard, lines).await;
            }
        }
    }
}

/// Writes the messages of a request until its answer.
async fn write_messages(mut running: Box<InFlightRequest>, lines: &mpsc::Sender<Bytes>) {
    loop {
        match running.next().await {
            ResponseEvent::Message(message) => drop(lines.send(message).await),
            ResponseEvent::Done(reply) => {
                drop(running);
                return drop(lines.send(reply.body).await);
            }
            ResponseEvent::Cancelled => return,
        }
    }
}

/// Writes a client's notifications until it cancels the request or the stream ends.
async fn write_notifications(
    mut listener: Box<ListenStream>,
    guard: Option<InFlightGuard>,
    lines: &mpsc::Sender<Bytes>,
) {
    loop {
        let message = tokio::select! {
            biased;
            // > Servers receiving cancellation notifications SHOULD not send a response for the cancelled
            // > request. (MCP 2026-07-28, basic/patterns/cancellation)
            () = cancelled(guard.as_ref()) => return,
            message = listener.next() => message,
        };
        match message {
            Some(message) => drop(lines.send(message).await),
            None => return,
        }
    }
}
