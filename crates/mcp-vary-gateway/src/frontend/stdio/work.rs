//! Requests that run while the client's next messages are read.

use std::sync::Arc;

use bytes::Bytes;
use mcp_vary_base::memory_budget::Lease;
use mcp_vary_wire::envelope::Message;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::debug;

use super::{StdioConnection, WRITE_QUEUE};
use crate::frontend::batch;
use crate::pipeline::exchange::{InFlightRequest, ResponseEvent, cancelled};
use crate::pipeline::inbound::{Outcome, dispatch};
use crate::pipeline::methods::forward_notification;
use crate::pipeline::request::IncomingRequest;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::session::client::Client;
use crate::session::{InFlightGuard, Session};
use crate::subscriptions::ListenStream;

/// An admitted message of a client, whose `line` is read again where it runs.
pub(super) struct AdmittedLine {
    pub(super) snapshot: Arc<ConfigSnapshot>,
    pub(super) client: Client,
    pub(super) line: Bytes,
    /// The memory of the line.
    pub(super) memory: Lease,
}

impl StdioConnection {
    /// Runs a request concurrently. Its answer is written when it arrives.
    pub(super) fn spawn_request(&self, admitted: AdmittedLine, guard: Option<InFlightGuard>) {
        let lines = self.lines.clone();
        let (gone, stopping) = (self.client_gone.clone(), self.stopping.clone());
        self.tasks.spawn(async move {
            let AdmittedLine {
                snapshot,
                client,
                line,
                memory,
            } = admitted;
            let answer = run(snapshot, &client, &line, guard, &lines, stopping);
            tokio::select! {
                biased;
                () = gone.cancelled() => {}
                () = answer => {}
            }
            drop(memory);
        });
    }

    pub(super) fn spawn_batch(
        &self,
        snapshot: &Arc<ConfigSnapshot>,
        session: &Arc<Session>,
        messages: &[&str],
        memory: Lease,
    ) {
        let caller = self.caller(snapshot);
        let mut answers = batch::run(snapshot, session, &caller, messages, memory);
        let lines = self.lines.clone();
        let gone = self.client_gone.clone();
        self.tasks.spawn(async move {
            let writing = async {
                while let Some(answer) = answers.recv().await {
                    let _ = lines.send(answer).await;
                }
            };
            tokio::select! {
                () = gone.cancelled() => {}
                () = writing => {}
            }
        });
    }

    /// Forwards a notification of an extension concurrently, in order. If there are too many, the last are dropped.
    pub(super) fn queue_notification(&self, notification: AdmittedLine) {
        let queue = self.extension_notifications.get_or_init(|| {
            let (sender, notifications) = mpsc::channel(WRITE_QUEUE);
            let gone = self.client_gone.clone();
            self.tasks
                .spawn(gone.run_until_cancelled_owned(forward_all(notifications)));
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

/// Runs one request to its end and writes its messages.
async fn run(
    snapshot: Arc<ConfigSnapshot>,
    client: &Client,
    line: &Bytes,
    guard: Option<InFlightGuard>,
    lines: &mpsc::Sender<Bytes>,
    stopping: CancellationToken,
) {
    // The line was readable before, so it is now.
    let Ok((message, params)) = Message::read_with_params(line) else {
        return;
    };
    let request = IncomingRequest::read_again(&message, params, line);
    let outcome = dispatch(&snapshot, client, guard, request).await;
    // A request that its server works on no longer needs the configuration, which may be replaced.
    drop(snapshot);
    match outcome {
        Outcome::Answered { reply, .. } => drop(lines.send(reply.body).await),
        Outcome::InFlight(running) => write_messages(running, lines).await,
        Outcome::Listening(listener, guard) => {
            let listener = listener.until(stopping.cancelled_owned());
            write_notifications(listener, guard, lines).await;
        }
        // The request was admitted.
        Outcome::Accepted
        | Outcome::NotAccepted(_)
        | Outcome::Refused(_)
        | Outcome::SessionOpened(_) => {}
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

/// Forwards notifications one after the other.
async fn forward_all(mut notifications: mpsc::Receiver<AdmittedLine>) {
    while let Some(notification) = notifications.recv().await {
        // The line was readable before, so it is now.
        let Ok((message, params)) = Message::read_with_params(&notification.line) else {
            continue;
        };
        let read = IncomingRequest::read_again(&message, params, &notification.line);
        let (snapshot, client) = (&notification.snapshot, &notification.client);
        forward_notification(snapshot, client, read.method, read.params).await;
    }
}
