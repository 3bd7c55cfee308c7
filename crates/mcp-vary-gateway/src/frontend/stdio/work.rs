//! Requests that run while the client's next messages are read.

use std::sync::Arc;

use bytes::Bytes;
use mcp_vary_base::memory_budget::Lease;
use mcp_vary_wire::envelope::Message;
use mcp_vary_wire::params::Params;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::debug;

use super::{StdioConnection, WRITE_QUEUE};
use crate::pipeline::exchange::{InFlightRequest, ResponseEvent, cancelled};
use crate::pipeline::inbound::{Outcome, dispatch};
use crate::pipeline::request::IncomingRequest;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::session::client::Client;
use crate::session::{InFlightGuard, Session};
use crate::subscriptions::ListenStream;

/// An admitted message of a client, whose `line` is read again where it runs.
pub(super) struct AdmittedLine {
    pub(super) snapshot: Arc<ConfigSnapshot>,
    pub(super) client: Client,
    pub(super) guard: Option<InFlightGuard>,
    pub(super) line: Bytes,
    /// The memory of the line.
    pub(super) _memory: Lease,
}

impl StdioConnection {
    /// Runs a request concurrently. Its answer is written when it arrives.
    pub(super) fn spawn_request(&self, admitted: AdmittedLine) {
        let (lines, stopping) = (self.lines.clone(), self.stopping.clone());
        let gone = self.client_gone.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                // A client that is gone gets no answer, although the end of its session answers the request.
                biased;
                () = gone.cancelled() => {}
                () = admitted.run(&lines, stopping) => {}
            }
        });
    }

    /// Writes the messages of a batch when they arrive.
    pub(super) fn spawn_batch_writer(&self, mut answers: mpsc::Receiver<Bytes>) {
        let (lines, gone) = (self.lines.clone(), self.client_gone.clone());
        let writing = async move {
            while let Some(answer) = answers.recv().await {
                let _ = lines.send(answer).await;
            }
        };
        self.tasks.spawn(gone.run_until_cancelled_owned(writing));
    }

    /// Forwards a notification of an extension concurrently, in order. If there are too many, the last are dropped.
    pub(super) fn queue_notification(&self, notification: AdmittedLine) {
        let queue = self.extension_notifications.get_or_init(|| {
            let (sender, mut notifications) = mpsc::channel::<AdmittedLine>(WRITE_QUEUE);
            let (lines, stopping) = (self.lines.clone(), self.stopping.clone());
            let forwarding = async move {
                while let Some(notification) = notifications.recv().await {
                    notification.run(&lines, stopping.clone()).await;
                }
            };
            let gone = self.client_gone.clone();
            self.tasks.spawn(gone.run_until_cancelled_owned(forwarding));
            sender
        });
        if queue.try_send(notification).is_err() {
            debug!("notifications come faster than servers take them; one was dropped");
        }
    }

    /// Writes the messages of `session` that belong to no request, until the guard is dropped.
    pub(super) fn spawn_session_writer(&self, session: &Arc<Session>) -> Option<DropGuard> {
        let messages = session.open_stream(1)?;
        let (stopped, gone) = (CancellationToken::new(), self.client_gone.clone());
        let (lines, guard) = (self.lines.clone(), stopped.clone().drop_guard());
        let next = async move || {
            tokio::select! {
                biased;
                message = messages.next() => message,
                () = stopped.cancelled() => None,
            }
        };
        self.tasks.spawn(async move {
            while let Some(message) = next().await {
                tokio::select! {
                    _ = lines.send(message) => {}
                    () = gone.cancelled() => return,
                }
            }
        });
        Some(guard)
    }
}

impl AdmittedLine {
    /// Runs to its end and writes its messages.
    async fn run(self, lines: &mpsc::Sender<Bytes>, stopping: CancellationToken) {
        // The line was readable before, so it is now.
        let Ok((message, params)) = Message::read_with_params(&self.line) else {
            return;
        };
        let params = Params::of(&message, params).unwrap_or_default();
        let request = IncomingRequest::new(&message, params, &self.line);
        let outcome = dispatch(&self.snapshot, &self.client, self.guard, request).await;
        // A request that its server works on no longer needs the configuration, which may be replaced.
        drop(self.snapshot);
        match outcome {
            Outcome::Answered(reply, _) => drop(lines.send(reply.body).await),
            Outcome::InFlight(running) => write_messages(running, lines).await,
            Outcome::Listening(listener, guard) => {
                let listener = listener.until(stopping.cancelled_owned());
                write_notifications(listener, guard, lines).await;
            }
            // The other outcomes are those of messages that were not admitted, and of notifications.
            _ => {}
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
