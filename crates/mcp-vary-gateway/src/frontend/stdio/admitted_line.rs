//! A message of a client, which runs while the next ones are read.

use std::sync::Arc;

use bytes::Bytes;
use mcp_vary_base::memory_budget::Lease;
use mcp_vary_wire::envelope::{Message, WireError};
use mcp_vary_wire::params::Params;
use self_cell::self_cell;
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
use mcp_vary_session::client_uses::DeclaredClient;

self_cell! {
    /// A line of a client, and what was read of it, once.
    pub(super) struct ReadLine {
        owner: Bytes,
        #[covariant]
        dependent: LineMessage,
    }
}

/// The message on a line, and its params if they were read with it.
pub(super) struct LineMessage<'a> {
    pub(super) message: Message<'a>,
    pub(super) params: Option<Params<'a>>,
}

impl ReadLine {
    /// Reads the message on a `line`.
    pub(super) fn read(line: Bytes) -> Result<Self, WireError> {
        Self::try_new(line, |line| {
            let (message, params) = Message::read_with_params(line)?;
            Ok(LineMessage { message, params })
        })
    }
}

/// An admitted message of a client.
pub(super) struct AdmittedLine {
    pub(super) snapshot: Arc<ConfigSnapshot>,
    pub(super) client: Arc<Client>,
    /// The client that the request itself names.
    pub(super) declared: Option<Arc<DeclaredClient>>,
    pub(super) guard: Option<InFlightGuard>,
    pub(super) line: ReadLine,
    /// The memory of the line.
    pub(super) _memory: Lease,
}

impl AdmittedLine {
    /// Runs to its end and writes its messages.
    pub(super) async fn run(self, lines: &mpsc::Sender<Bytes>, stopping: CancellationToken) {
        let LineMessage { message, params } = self.line.borrow_dependent();
        // What was admitted is readable.
        let params = Params::of(message, params.clone()).unwrap_or_default();
        let request = IncomingRequest {
            client: self.declared,
            ..IncomingRequest::new(message, params, self.line.borrow_owner())
        };
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
