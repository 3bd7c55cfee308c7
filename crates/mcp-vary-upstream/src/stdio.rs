//! A server that is a child process and speaks on its standard streams, or one in this process on a pipe: one message per line.

mod connect;
mod deadline;
mod exchange;
mod guard;
mod handshake_requests;
mod in_flight_calls;
mod lines;
mod observed;
mod outline;
mod oversize;
mod process;
mod receiving;
mod stderr;
mod stragglers;
mod streams;
mod tasks;
mod unreadable;

pub(super) use self::exchange::Exchange;
pub use self::guard::{guard_servers, set_server_guard};
pub use self::lines::read_lines;
pub(super) use self::process::Process;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, Weak};

use bytes::Bytes;
use mcp_vary_base::tasks::try_spawn;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::oversize::LostMessage;
use self::stderr::StderrTail;
use self::unreadable::SpreadObject;
use super::config::{LastOutput, Limits};
use super::error::{UpstreamError, without_server};
use super::mailbox::{Budget, Mailbox};
use super::message::{Event, Request, RequestKind, cancel_params};
use super::secrets::Secrets;
use crate::command_line::CommandLine;
use crate::config::Target;
use crate::handshake_progress::HandshakeProgress;
use crate::liveness::Liveness;
use crate::server_requests::{ReplyHandle, ServerRequests};
use crate::stdio::in_flight_calls::{InFlightCall, InFlightCalls};
use mcp_vary_base::lock::ScopedLock;
use mcp_vary_base::log_backoff::{LogBackoff, is_logged};
use mcp_vary_wire::counters::Counters;
use mcp_vary_wire::server_message;

pub(super) use self::connect::connect;

/// A connection to one process, or on one pipe. Dropping it ends the process, or closes the pipe.
#[derive(Debug)]
pub(super) struct Connection {
    shared: Arc<Shared>,
    stop: CancellationToken,
    _stop_when_dropped: DropGuard,
    ended: watch::Receiver<bool>,
}

/// The state that a connection shares with its tasks.
#[derive(Debug)]
pub(super) struct Shared {
    server: Arc<str>,
    limits: Limits,
    capabilities: String,
    client_info: Option<String>,
    /// Whether one client uses the connection alone.
    is_dedicated: bool,
    /// Whether requests lease the connection one after the other.
    is_pooled: bool,
    /// Whether several clients share the only process, which may ask each of them.
    is_shared: bool,
    counters: Arc<Counters>,
    secrets: Secrets,
    server_requests: Arc<ServerRequests>,
    next_id: AtomicU64,
    in_flight: ScopedLock<InFlightCalls>,
    outbox: mpsc::UnboundedSender<Outgoing>,
    outbox_permits: Arc<Semaphore>,
    budget: Arc<Budget>,
    events: broadcast::Sender<Event>,
    liveness: Arc<Liveness>,
    skipped_lines: AtomicU64,
    long_lines: LogBackoff,
    /// Permits for answers that are queued since the process does not read its input.
    reply_permits: Arc<Semaphore>,
    last_skipped_line: ScopedLock<String>,
    /// What may be a message over several lines.
    spread_object: ScopedLock<SpreadObject>,
    progress: HandshakeProgress,
    stderr_tail: StderrTail,
    last_output: Arc<ScopedLock<LastOutput>>,
    command_line: Option<CommandLine>,
    target: Target,
    /// The process group of a program.
    group: Option<u32>,
}

/// A queued message with its permits of the outbox.
#[derive(Debug)]
struct Outgoing {
    message: Bytes,
    _permits: OwnedSemaphorePermit,
}

impl Connection {
    /// Sends a request.
    pub(super) async fn request(
        &self,
        request: Request,
        kind: RequestKind,
    ) -> Result<Exchange, UpstreamError> {
        let shared = &self.shared;
        let id = shared.next_id.fetch_add(1, Ordering::Relaxed);
        let budget = Arc::clone(&shared.budget);
        let mailbox = Arc::new(Mailbox::new(shared.limits.message, budget));
        let call = InFlightCall {
            mailbox: Arc::clone(&mailbox),
            token: request.progress_token,
            caller: request.caller,
            kind,
            is_doubtful: false,
        };
        let receiver = request.out_of_band.client();
        shared.in_flight().insert(id, call, receiver)?;
        let mut exchange = Exchange {
            shared: Arc::clone(shared),
            id,
            mailbox,
            kind,
            is_finished: false,
            is_sent: false,
        };
        let message =
            server_message::write_request(Some(id), &request.method, request.params.as_deref());
        shared.send(message).await?;
        exchange.is_sent = true;
        Ok(exchange)
    }

    pub(super) async fn notify(
        &self,
        method: &str,
        params: Option<&str>,
    ) -> Result<(), UpstreamError> {
        if let Some(closed) = self.shared.in_flight().closed() {
            return Err(closed.clone());
        }
        let message = server_message::write_request(None, method, params);
        self.shared.send(message).await
    }

    pub(super) fn server_requests(&self) -> &Arc<ServerRequests> {
        &self.shared.server_requests
    }

    pub(super) fn without_secrets(&self, text: &str) -> String {
        self.shared.secrets.hide(text)
    }

    /// The last lines of the process's standard error.
    pub(crate) fn stderr_lines(&self) -> Vec<String> {
        self.shared.stderr_tail.lines()
    }

    pub(super) fn liveness(&self) -> &Arc<Liveness> {
        &self.shared.liveness
    }

    /// Ends the process and waits until it is gone.
    pub(super) async fn close(&self) {
        self.stop.cancel();
        let mut ended = self.ended.clone();
        // An error means that the supervisor is gone, and the process with it.
        let _ = ended.wait_for(|ended| *ended).await;
    }
}

impl ReplyHandle for Weak<Shared> {
    fn answer(&self, message: Bytes) {
        if let Some(shared) = self.upgrade() {
            shared.send_answer(message);
        }
    }

    fn notify(&self, message: Bytes) {
        if let Some(shared) = self.upgrade() {
            shared.try_send(message);
        }
    }
}

impl Shared {
    fn in_flight(&self) -> MutexGuard<'_, InFlightCalls> {
        self.in_flight.lock()
    }

    /// Queues a message, waiting for room when the process reads slowly.
    async fn send(&self, message: Bytes) -> Result<(), UpstreamError> {
        let room = Arc::clone(&self.outbox_permits).acquire_many_owned(self.permits_for(&message));
        match tokio::time::timeout(self.limits.write, room).await {
            Ok(Ok(room)) => self.enqueue(message, room),
            Ok(Err(_closed)) => Err(self.closed()),
            Err(_elapsed) => Err(UpstreamError::Busy {
                server: Arc::clone(&self.server),
                limit: self.limits.outbox,
            }),
        }
    }

    /// Queues a message if there is room now.
    pub(super) fn try_send(&self, message: Bytes) {
        let share = self.permits_for(&message);
        let sent = match Arc::clone(&self.outbox_permits).try_acquire_many_owned(share) {
            Ok(room) => self.enqueue(message, room).is_ok(),
            Err(_) => false,
        };
        if !sent {
            tracing::debug!(server = %self.server, "message dropped, the server does not read its input");
        }
    }

    /// Queues the answer to a request of the process, in the background if the process reads slowly. A process that sends
    /// more requests without reading any answer loses its connection.
    fn send_answer(self: &Arc<Self>, message: Bytes) {
        let share = self.permits_for(&message);
        if let Ok(room) = Arc::clone(&self.outbox_permits).try_acquire_many_owned(share) {
            // An error means that the process has ended.
            let _ = self.enqueue(message, room);
            return;
        }
        let Ok(place) = Arc::clone(&self.reply_permits).try_acquire_owned() else {
            self.liveness
                .end(UpstreamError::unread_replies(&self.server));
            return;
        };
        let shared = Arc::clone(self);
        let _ = try_spawn(async move {
            // A process that has ended needs no answer.
            if let Err(error) = shared.send(message).await
                && !matches!(error, UpstreamError::Closed { .. })
            {
                let server = &*shared.server;
                let details = error.details();
                let error = without_server(&details, server);
                tracing::warn!(server, error, "answer to the server not delivered");
            }
            drop(place);
        });
    }

    fn enqueue(&self, message: Bytes, room: OwnedSemaphorePermit) -> Result<(), UpstreamError> {
        let outgoing = Outgoing {
            message,
            _permits: room,
        };
        self.outbox.send(outgoing).map_err(|_| self.closed())
    }

    /// The permits that a message needs; one that is larger than the outbox needs all.
    fn permits_for(&self, message: &Bytes) -> u32 {
        let size = u32::try_from(message.len() + MESSAGE_OVERHEAD).unwrap_or(u32::MAX);
        size.min(outbox_size(&self.limits))
    }

    fn closed(&self) -> UpstreamError {
        let closed = self.in_flight().closed().cloned();
        let reason = closed.or_else(|| self.liveness.end_reason().cloned());
        reason.unwrap_or_else(|| UpstreamError::Closed {
            server: Arc::clone(&self.server),
            reason: "closed its input".into(),
            output: Arc::default(),
        })
    }

    /// Cancels all requests in flight at the process; some processes exit only then.
    fn cancel_all(&self) {
        let open = self.in_flight().cancellable();
        for id in open {
            let params = cancel_params(id, Some("the gateway closes"));
            let message =
                server_message::write_request(None, "notifications/cancelled", Some(&params));
            self.try_send(message);
        }
    }

    /// Logs a line that is not a message: the first few, then at growing intervals.
    fn skip(&self, why: &str, output: &[u8]) {
        let count = self.skipped_lines.fetch_add(1, Ordering::Relaxed) + 1;
        if is_logged(count) {
            let output = self.secrets.excerpt(output, 200);
            let place = match self.target {
                Target::InProcess(_) => "its pipe",
                Target::Command { .. } | Target::Http { .. } => "standard output",
            };
            if count == 1 {
                let advice = self.stray_text_advice();
                tracing::warn!(server = %self.server, output, why, "the server prints text that is not a message, which is skipped: {advice}");
            } else {
                tracing::debug!(server = %self.server, count, output, why, "text on {place} skipped");
            }
            let line = format!("`{output}` on {place}, which is for messages only");
            self.last_output.lock().line = Some(line);
            *self.last_skipped_line.lock() = output;
        }
    }

    /// Ends a call with `error`, if it is in flight.
    fn fail(&self, id: u64, error: UpstreamError) {
        let call = self.in_flight().remove(id);
        if let Some(call) = call {
            call.mailbox.end(Err(error));
        }
    }

    /// Handles a line over the limit: fails the call that it answered, or every call that it may have answered.
    fn on_oversized_line(&self, lost: LostMessage) {
        let server = &self.server;
        let limit = self.limits.message;
        if let Some(count) = self.long_lines.next() {
            tracing::warn!(server = %server, limit, ?lost, count, "line over the limit skipped");
        }
        let error = UpstreamError::TooLarge {
            server: Arc::clone(server),
            what: "a line",
            limit,
        };
        match lost {
            LostMessage::Nothing => {}
            LostMessage::Anything => {
                self.in_flight().fail_all(&error);
            }
            LostMessage::Answer(id) => self.fail(id, error),
        }
    }
}

/// The size of the outbox, as far as a semaphore can count it.
fn outbox_size(limits: &Limits) -> u32 {
    u32::try_from(limits.outbox.max(1)).unwrap_or(u32::MAX)
}

/// The cost of a message besides its bytes.
const MESSAGE_OVERHEAD: usize = 64;
