//! A server that is a child process and speaks on its standard streams, one message per line.

mod connect;
mod in_flight_calls;
mod lines;
mod oversize;
mod process;
mod tasks;

pub use self::lines::read_lines;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use mcp_vary::json::Members;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::oversize::Lost;
use self::tasks::LastWords;
use super::config::Limits;
use super::error::UpstreamError;
use super::mailbox::{Budget, Mailbox};
use super::message::{
    Answer, Event, LOG_MESSAGE, Message, RESOURCE_UPDATED, Request, RequestKind, cancel_params,
};
use super::secrets::Secrets;
use crate::liveness::Liveness;
use crate::server_requests::{ReplyHandle, ServerRequest, ServerRequests};
use crate::stdio::in_flight_calls::{Flight, Flights};
use mcp_vary_base::log_backoff::LogBackoff;
use mcp_vary_wire::counters::{Counter, Counters};
use mcp_vary_wire::list_kind::Kind;
use mcp_vary_wire::sanitize::excerpt;
use mcp_vary_wire::server_message::{self, Frame};
use mcp_vary_wire::task_dialect::TASK_STATUS;

pub(super) use self::connect::connect;

/// A connection to one process. Dropping it ends the process.
#[derive(Debug)]
pub(super) struct Connection {
    shared: Arc<Shared>,
    stop: CancellationToken,
    _stop_when_dropped: DropGuard,
    ended: watch::Receiver<bool>,
}

/// What the tasks of a connection have in common.
#[derive(Debug)]
pub(super) struct Shared {
    server: Arc<str>,
    limits: Limits,
    capabilities: String,
    /// Whether one client has it alone.
    is_held: bool,
    /// Whether one request after the other has it.
    by_turns: bool,
    counters: Arc<Counters>,
    secrets: Secrets,
    asking: Arc<ServerRequests>,
    next_id: AtomicU64,
    flights: Mutex<Flights>,
    outbox: mpsc::UnboundedSender<Outgoing>,
    room: Arc<Semaphore>,
    budget: Arc<Budget>,
    events: broadcast::Sender<Event>,
    life: Arc<Liveness>,
    strays: AtomicU64,
    long_lines: LogBackoff,
    /// Places for answers that wait since the process does not read its input.
    unread: Arc<Semaphore>,
    last_stray: Mutex<String>,
    stderr_tail: LastWords,
}

/// A message on its way; its permit is its share of the outbox.
#[derive(Debug)]
struct Outgoing {
    message: Bytes,
    _room: OwnedSemaphorePermit,
}

impl Connection {
    /// Sends a request.
    pub(super) async fn request(
        &self,
        request: Request,
        purpose: RequestKind,
    ) -> Result<Exchange, UpstreamError> {
        let shared = &self.shared;
        let id = shared.next_id.fetch_add(1, Ordering::Relaxed);
        let budget = Arc::clone(&shared.budget);
        let mailbox = Arc::new(Mailbox::new(shared.limits.line, budget));
        let flight = Flight {
            mailbox: Arc::clone(&mailbox),
            token: request.progress_token,
            owner: request.caller,
            purpose,
        };
        let receiver = request.out_of_band.client();
        shared.flights().open(id, flight, receiver)?;
        let mut exchange = Exchange {
            shared: Arc::clone(shared),
            id,
            mailbox,
            purpose,
            is_over: false,
            sent: false,
        };
        let message = server_message::write(Some(id), &request.method, request.params.as_deref());
        shared.send(message).await?;
        exchange.sent = true;
        Ok(exchange)
    }

    pub(super) async fn notify(
        &self,
        method: &str,
        params: Option<&str>,
    ) -> Result<(), UpstreamError> {
        if let Some(closed) = self.shared.flights().closed() {
            return Err(closed.clone());
        }
        let message = server_message::write(None, method, params);
        self.shared.send(message).await
    }

    pub(super) fn asking(&self) -> &Arc<ServerRequests> {
        &self.shared.asking
    }

    pub(super) fn life(&self) -> &Arc<Liveness> {
        &self.shared.life
    }

    /// Ends the process and waits until it is gone.
    pub(super) async fn close(&self) {
        self.stop.cancel();
        let mut ended = self.ended.clone();
        // An error means that the supervisor is gone, and the process with it.
        let _ = ended.wait_for(|ended| *ended).await;
    }
}

impl Shared {
    fn flights(&self) -> MutexGuard<'_, Flights> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a message, waiting for room when the process reads slowly.
    async fn send(&self, message: Bytes) -> Result<(), UpstreamError> {
        let room = Arc::clone(&self.room).acquire_many_owned(self.share(&message));
        match tokio::time::timeout(self.limits.write, room).await {
            Ok(Ok(room)) => self.push(message, room),
            Ok(Err(_closed)) => Err(self.closed()),
            Err(_elapsed) => Err(UpstreamError::Busy {
                server: Arc::clone(&self.server),
                limit: self.limits.outbox,
            }),
        }
    }

    /// Queues a message if there is room now.
    pub(super) fn send_now(&self, message: Bytes) {
        let share = self.share(&message);
        let sent = match Arc::clone(&self.room).try_acquire_many_owned(share) {
            Ok(room) => self.push(message, room).is_ok(),
            Err(_) => false,
        };
        if !sent {
            tracing::debug!(server = %self.server, "message dropped, the server does not read its input");
        }
    }

    /// Queues the answer to a request of the process, in the background if the process reads slowly. One that goes on
    /// asking without reading any answer loses the connection.
    pub(super) fn send_answer(self: &Arc<Self>, message: Bytes) {
        let share = self.share(&message);
        if let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(share) {
            // An error means that the process is gone, and nobody waits for the message.
            let _ = self.push(message, room);
            return;
        }
        let Ok(place) = Arc::clone(&self.unread).try_acquire_owned() else {
            self.life.end(UpstreamError::unread_replies(&self.server));
            return;
        };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let shared = Arc::clone(self);
        runtime.spawn(async move {
            // A process that is gone waits for nothing.
            if let Err(error) = shared.send(message).await
                && !matches!(error, UpstreamError::Closed { .. })
            {
                let (server, error) = (&shared.server, error.details());
                tracing::warn!(server = %server, error, "answer to the server not delivered");
            }
            drop(place);
        });
    }

    fn push(&self, message: Bytes, room: OwnedSemaphorePermit) -> Result<(), UpstreamError> {
        let outgoing = Outgoing {
            message,
            _room: room,
        };
        self.outbox.send(outgoing).map_err(|_| self.closed())
    }

    /// What a message takes of the outbox; one that is larger than it takes all.
    fn share(&self, message: &Bytes) -> u32 {
        let size = u32::try_from(message.len() + MESSAGE_OVERHEAD).unwrap_or(u32::MAX);
        size.min(room(&self.limits))
    }

    fn closed(&self) -> UpstreamError {
        let closed = self.flights().closed().cloned();
        let closed = closed.or_else(|| self.life.end_reason().cloned());
        closed.unwrap_or_else(|| UpstreamError::Closed {
            server: Arc::clone(&self.server),
            reason: "closed its input".into(),
            stderr_tail: Arc::default(),
        })
    }

    /// Tells the process that nothing in flight is wanted any more; some leave only then.
    fn cancel_all(&self) {
        let open = self.flights().cancellable();
        for id in open {
            let params = cancel_params(id, Some("the gateway closes"));
            let message = server_message::write(None, "notifications/cancelled", Some(&params));
            self.send_now(message);
        }
    }

    /// Takes one line of the process's output.
    fn receive(self: &Arc<Self>, line: Bytes) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        for message in server_message::messages(line) {
            self.receive_message(message);
        }
    }

    fn receive_answer(&self, id: u64, answer: impl FnOnce() -> Answer) {
        let flight = self.flights().take(id);
        match flight {
            Some(flight) => flight.mailbox.end(Ok(answer())),
            None => {
                tracing::debug!(server = %self.server, id, "answer to no open request dropped");
            }
        }
    }

    fn receive_message(self: &Arc<Self>, message: Bytes) {
        let frame = Frame::read(&message);
        if frame.is_ok() {
            self.life.touch();
        }
        match frame {
            Ok(Frame::Answer {
                id: Some(id),
                outcome,
            }) => self.receive_answer(id, || Answer::new(message, outcome)),
            Ok(Frame::TooDeep { id }) => {
                self.receive_answer(id, || Answer::too_deep(&self.server, id));
            }
            Ok(Frame::Answer { id: None, .. }) => {
                let said = self.secrets.excerpt(&message, 200);
                tracing::debug!(server = %self.server, said, "answer without id dropped");
            }
            Ok(Frame::Request { id, method, params }) => {
                let back = || ReplyHandle::Stdio(Arc::downgrade(self));
                let parts = (id, &*method, params);
                match self.asking.register(&message, parts, self.is_held, back) {
                    Ok(request) => self.receive_request(request),
                    Err(reply) => self.send_now(reply),
                }
            }
            Ok(Frame::Notification { method, params }) => {
                self.asking.on_notification(&method, params);
                let (method, route) = (method.into_owned(), Route::of(params));
                let changed = match route.subscription {
                    None => Event::from_notification(&method, params),
                    Some(_) => None,
                };
                match changed {
                    // Nobody listening is fine.
                    Some(event) => drop(self.events.send(event)),
                    None => self.receive_notification(&method, &route, &message),
                }
            }
            Err(why) => self.skip(&why, &message),
        }
    }

    /// Gives what the process asks to the call that it must be about, else to whoever has the connection.
    fn receive_request(&self, request: ServerRequest) {
        let flights = self.flights();
        if let Some(flight) = flights.latest_of_a_client() {
            return flight.mailbox.ask(request);
        }
        drop(flights);
        // With nobody there it is dropped, and thereby answered.
        let _ = self.events.send(Event::ServerRequest(request));
    }

    fn receive_notification(&self, method: &str, route: &Route, message: &Bytes) {
        if let Some(kind) = Kind::changed_by(method) {
            // Nobody listening is fine.
            let _ = self.events.send(Event::ListChanged(kind));
            return;
        }
        let flights = self.flights();
        let flight = match method {
            "notifications/progress" => match &route.token {
                Some(token) => flights.by_token(token),
                None => None,
            },
            "notifications/cancelled" if !self.is_held => {
                let id = route.request.and_then(|id| flights.by_id(id));
                id.filter(|flight| flight.is_background())
            }
            _ if is_of_a_stream(method) => {
                let id = route.subscription.and_then(|id| flights.by_id(id));
                id.filter(|flight| flight.is_background())
            }
            _ if route.subscription.is_some() => None,
            _ => flights.of_sole_client(),
        };
        if let Some(flight) = flight {
            flight.mailbox.post(message);
            return;
        }
        let receiver = flights.clients.receiver();
        drop(flights);
        let is_log = method == LOG_MESSAGE;
        if let Some(receiver) = receiver.filter(|_| is_log && !self.is_held) {
            receiver.receive(message);
            return;
        }
        // On a connection that requests have by turns, a log may be about an earlier one.
        if self.is_held && !(is_log && self.by_turns) {
            let _ = self
                .events
                .send(Event::Notification(Bytes::copy_from_slice(message)));
            return;
        }
        if is_log {
            self.counters.increment(Counter::DroppedLogs);
        }
        // No client gets it: a log line, for example, may be about any of several clients.
        let method = excerpt(method.as_bytes(), 60);
        tracing::debug!(server = %self.server, method, "notification that belongs to no call dropped");
    }

    /// Logs a line that is no message: the first few, then ever more rarely.
    fn skip(&self, why: &str, line: &[u8]) {
        let count = self.strays.fetch_add(1, Ordering::Relaxed) + 1;
        if count <= 8 || count.is_power_of_two() {
            let line = self.secrets.excerpt(line, 200);
            tracing::warn!(server = %self.server, count, line, why, "line on standard output skipped");
            *self
                .last_stray
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = line;
        }
    }

    /// What the process has said that is no message, for an error.
    fn said(&self) -> String {
        let stray = self
            .last_stray
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let words = self.stderr_tail.text();
        match (stray.as_str(), words.as_str()) {
            ("", "") => "it said nothing".to_owned(),
            ("", words) => format!("its last words: {words}"),
            (stray, "") => format!("it wrote `{stray}`, which is no message"),
            (stray, words) => {
                format!("it wrote `{stray}`, which is no message; its last words: {words}")
            }
        }
    }

    /// A line was too long to be kept: fails the call that it answered, or all that it may have.
    fn refuse_line(&self, lost: Lost) {
        let (server, limit) = (&self.server, self.limits.line);
        if let Some(count) = self.long_lines.next() {
            tracing::warn!(server = %server, limit, ?lost, count, "line over the limit skipped");
        }
        let error = UpstreamError::TooLarge {
            server: Arc::clone(server),
            what: "a line",
            limit,
        };
        match lost {
            Lost::Nothing => {}
            Lost::Anything => {
                self.flights().fail_all(&error);
            }
            Lost::Answer(id) => {
                let flight = self.flights().take(id);
                if let Some(flight) = flight {
                    flight.mailbox.end(Err(error));
                }
            }
        }
    }
}

/// What a notification says about where it belongs.
#[derive(Debug, Default)]
struct Route {
    token: Option<String>,
    request: Option<u64>,
    subscription: Option<u64>,
}

impl Route {
    fn of(params: Option<&str>) -> Self {
        let members = Members::parse(params.unwrap_or("{}")).unwrap_or_default();
        let meta = Members::parse(members.get("_meta").unwrap_or("{}")).unwrap_or_default();
        let subscription = meta.get("io.modelcontextprotocol/subscriptionId");
        Self {
            subscription: subscription.and_then(|id| id.parse().ok()),
            token: members.get("progressToken").map(str::to_owned),
            request: members.get("requestId").and_then(|id| id.parse().ok()),
        }
    }
}

/// Whether a notification comes on a stream of `subscriptions/listen`.
fn is_of_a_stream(method: &str) -> bool {
    const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
    [ACKNOWLEDGED, RESOURCE_UPDATED].contains(&method) || TASK_STATUS.contains(&method)
}

/// One request to a process, until its answer.
#[derive(Debug)]
pub(super) struct Exchange {
    shared: Arc<Shared>,
    id: u64,
    mailbox: Arc<Mailbox>,
    purpose: RequestKind,
    sent: bool,
    is_over: bool,
}

impl Exchange {
    /// The next message. Safe to drop while it waits.
    pub(super) async fn next(&mut self) -> Result<Message, UpstreamError> {
        if self.is_over {
            return Err(UpstreamError::Finished {
                server: Arc::clone(&self.shared.server),
            });
        }
        let idle = self
            .purpose
            .has_idle_timeout()
            .then_some(self.shared.limits.idle);
        let next = loop {
            match self.mailbox.next(idle).await {
                Ok(None) if self.waits_for_the_client() => self.mailbox.touch(),
                next => break next,
            }
        };
        match next {
            Ok(Some(message)) => {
                self.is_over = matches!(message, Message::Answer(_));
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
                self.is_over = true;
                Err(error)
            }
        }
    }

    /// Whether the server is silent since it waits for the client, or has done so until lately.
    fn waits_for_the_client(&self) -> bool {
        let calm = self.shared.asking.idle_since();
        calm.is_none_or(|calm| calm.elapsed() < self.shared.limits.idle)
    }

    /// Ends the exchange; tells the server unless it has answered.
    pub(super) fn cancel(&mut self, reason: Option<&str>) {
        self.is_over = true;
        let was_open = self.shared.flights().take(self.id).is_some();
        if was_open && self.sent && self.purpose.is_cancellable() {
            let params = cancel_params(self.id, reason);
            let message = server_message::write(None, "notifications/cancelled", Some(&params));
            self.shared.send_now(message);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !self.is_over {
            self.cancel(None);
        }
    }
}

/// The size of the outbox, as far as a semaphore can count it.
fn room(limits: &Limits) -> u32 {
    u32::try_from(limits.outbox.max(1)).unwrap_or(u32::MAX)
}

/// What a short message costs besides its bytes.
const MESSAGE_OVERHEAD: usize = 64;
