//! Messages that arrived for one call and were not fetched yet.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use mcp_vary_base::lock::ScopedLock;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::error::UpstreamError;
use super::message::{Answer, Message, NotificationSink};
use crate::server_requests::ServerRequest;

/// The bytes that all mailboxes of one connection may hold together.
#[derive(Debug)]
pub(super) struct Budget {
    left: AtomicUsize,
}

impl Budget {
    pub(super) const fn new(bytes: usize) -> Self {
        Self {
            left: AtomicUsize::new(bytes),
        }
    }

    /// Reserves `bytes`; `false` if fewer are left.
    fn reserve(&self, bytes: usize) -> bool {
        let spent = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(bytes)
            });
        spent.is_ok()
    }

    fn release(&self, bytes: usize) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The notifications for one call, in order, and then its end.
///
/// # Properties
///
/// Holds at most [`MAX_WAITING`] notifications and `limit` bytes of them, and all mailboxes together
/// what their budget allows; more are dropped, counted and logged, since a client that
/// does not read must not stop the others. The end always fits.
#[derive(Debug)]
pub(super) struct Mailbox {
    limit: usize,
    budget: Arc<Budget>,
    state: ScopedLock<State>,
    arrived: Notify,
}

#[derive(Debug)]
struct State {
    queue: VecDeque<Queued>,
    bytes: usize,
    dropped: u64,
    end: Option<Result<Answer, UpstreamError>>,
    last_arrival: Instant,
}

impl State {
    fn take(&mut self, budget: &Budget) -> Option<Message> {
        Some(match self.queue.pop_front()? {
            Queued::Notification(message) => {
                self.bytes -= message.len();
                budget.release(cost(&message));
                Message::Notification(message)
            }
            Queued::Request(request) => Message::Request(request),
        })
    }
}

#[derive(Debug)]
enum Queued {
    Notification(Bytes),
    /// The connection bounds how many there are.
    Request(ServerRequest),
}

impl Mailbox {
    pub(super) fn new(limit: usize, budget: Arc<Budget>) -> Self {
        Self {
            limit,
            budget,
            state: ScopedLock::new(State {
                queue: VecDeque::new(),
                bytes: 0,
                dropped: 0,
                end: None,
                last_arrival: Instant::now(),
            }),
            arrived: Notify::new(),
        }
    }

    /// Adds a notification.
    pub(super) fn post(&self, message: &Bytes) {
        let mut state = self.state.lock();
        state.last_arrival = Instant::now();
        if state.queue.len() >= MAX_QUEUED
            || state.bytes + message.len() > self.limit
            || !self.budget.reserve(cost(message))
        {
            state.dropped += 1;
            if state.dropped.is_power_of_two() {
                let dropped = state.dropped;
                tracing::warn!(
                    dropped,
                    "notifications dropped for a client that does not read"
                );
            }
            return;
        }
        state.bytes += message.len();
        // A copy, since a slice would keep the whole read buffer alive.
        let message = Bytes::copy_from_slice(message);
        state.queue.push_back(Queued::Notification(message));
        drop(state);
        self.arrived.notify_one();
    }

    /// Adds a request of the server.
    pub(super) fn post_request(&self, request: ServerRequest) {
        let mut state = self.state.lock();
        state.last_arrival = Instant::now();
        state.queue.push_back(Queued::Request(request));
        drop(state);
        self.arrived.notify_one();
    }

    /// Restarts the idle timeout.
    pub(super) fn touch(&self) {
        self.state.lock().last_arrival = Instant::now();
    }

    /// Ends the call; only the first end counts.
    pub(super) fn end(&self, end: Result<Answer, UpstreamError>) {
        let mut state = self.state.lock();
        state.end.get_or_insert(end);
        drop(state);
        self.arrived.notify_one();
    }

    /// The next message or the end; `Ok(None)` when nothing arrived for `idle`.
    ///
    /// Safe to drop while it waits: nothing is lost.
    pub(super) async fn next(
        &self,
        idle: Option<Duration>,
    ) -> Result<Option<Message>, UpstreamError> {
        loop {
            let last_arrival = {
                let mut state = self.state.lock();
                if let Some(message) = state.take(&self.budget) {
                    return Ok(Some(message));
                }
                if let Some(end) = &state.end {
                    return end.clone().map(|answer| Some(Message::Answer(answer)));
                }
                state.last_arrival
            };
            let arrived = self.arrived.notified();
            match idle {
                None => arrived.await,
                Some(idle) => {
                    let silent = tokio::time::timeout_at(last_arrival + idle, arrived).await;
                    if silent.is_err() && self.state.lock().last_arrival == last_arrival {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Removes a message that has arrived already.
    pub(super) fn take(&self) -> Option<Message> {
        self.state.lock().take(&self.budget)
    }

    /// Waits until something may have arrived.
    pub(super) async fn arrived(&self) {
        self.arrived.notified().await;
    }
}

impl NotificationSink for Mailbox {
    fn receive(&self, _: &str, message: &Bytes) {
        self.post(message);
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        while self.take().is_some() {}
    }
}

/// The part of the budget that a message takes.
fn cost(message: &Bytes) -> usize {
    message.len() + MESSAGE_OVERHEAD
}

/// How many notifications may wait for one call.
const MAX_QUEUED: usize = 8192;
/// The cost of a message besides its bytes.
const MESSAGE_OVERHEAD: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn held(mailbox: &Mailbox) -> usize {
        std::iter::from_fn(|| mailbox.take()).count()
    }

    #[test]
    fn mailboxes_together_hold_what_their_budget_allows() {
        let budget = Arc::new(Budget::new(3 * (100 + MESSAGE_OVERHEAD)));
        let [one, other] = [(); 2].map(|()| Mailbox::new(1000, Arc::clone(&budget)));
        let message = Bytes::from(vec![b'x'; 100]);
        for mailbox in [&one, &one, &other, &other] {
            mailbox.post(&message);
        }
        assert_eq!((held(&one), held(&other)), (2, 1));
        // Messages that were fetched or dropped make room for others.
        for _ in 0..3 {
            one.post(&message);
        }
        drop(one);
        for _ in 0..4 {
            other.post(&message);
        }
        assert_eq!(held(&other), 3);
    }

    #[test]
    fn a_message_that_waits_keeps_nothing_else() {
        let line = Bytes::from(vec![b'x'; 1 << 20]);
        let mailbox = Mailbox::new(1000, Arc::new(Budget::new(1000)));
        mailbox.post(&line.slice(..10));
        let Some(Message::Notification(kept)) = mailbox.take() else {
            panic!("nothing was kept");
        };
        assert_eq!(kept, line.slice(..10));
        mailbox.post(&line.slice(..10));
        assert!(line.is_unique());
    }
}
