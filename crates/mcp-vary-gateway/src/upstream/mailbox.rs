//! What has arrived for one call and was not fetched yet.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::error::UpstreamError;
use super::message::{Answer, Message};

/// The notifications for one call, in order, and then its end.
///
/// # Properties
///
/// Holds at most [`MAX_WAITING`] notifications and `limit` bytes of them; what comes beyond is dropped,
/// counted and logged, since a client that does not read must not stop the others. The end
/// always fits.
#[derive(Debug)]
pub(super) struct Mailbox {
    limit: usize,
    state: Mutex<State>,
    arrived: Notify,
}

#[derive(Debug)]
struct State {
    waiting: VecDeque<Bytes>,
    bytes: usize,
    dropped: u64,
    end: Option<Result<Answer, UpstreamError>>,
    last_arrival: Instant,
}

impl State {
    fn take(&mut self) -> Option<Bytes> {
        let message = self.waiting.pop_front()?;
        self.bytes -= message.len();
        Some(message)
    }
}

impl Mailbox {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            state: Mutex::new(State {
                waiting: VecDeque::new(),
                bytes: 0,
                dropped: 0,
                end: None,
                last_arrival: Instant::now(),
            }),
            arrived: Notify::new(),
        }
    }

    /// Puts a notification in.
    pub(super) fn post(&self, message: Bytes) {
        let mut state = self.lock();
        state.last_arrival = Instant::now();
        if state.waiting.len() >= MAX_WAITING || state.bytes + message.len() > self.limit {
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
        state.waiting.push_back(message);
        drop(state);
        self.arrived.notify_one();
    }

    /// Ends the call; only the first end counts.
    pub(super) fn end(&self, end: Result<Answer, UpstreamError>) {
        let mut state = self.lock();
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
                let mut state = self.lock();
                if let Some(message) = state.take() {
                    return Ok(Some(Message::Notification(message)));
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
                    if silent.is_err() && self.lock().last_arrival == last_arrival {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// A notification that is there already.
    pub(super) fn take(&self) -> Option<Bytes> {
        self.lock().take()
    }

    /// Waits until something may have arrived.
    pub(super) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many notifications may wait for one call.
const MAX_WAITING: usize = 8192;
