//! The server that a client under test connects to. It answers in literal JSON as the scenario has it, and records everything.

pub(crate) mod answers;
mod changes;
pub(crate) mod declarations;
pub(crate) mod http;
pub(crate) mod relay;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::era::Era;
use crate::observation::{Event, Scenario};

use changes::{Changes, Sink};

/// The most events that are recorded of one run.
const EVENTS: usize = 400;

/// The most bytes of the client's messages that are recorded of one run.
const BYTES: usize = 8 << 20;

/// The most bytes of one message.
const MESSAGE: usize = 1 << 20;

/// How many messages wait for a stream that is not read.
const WAITING: usize = 64;

/// A server in one scenario, for one run of the client.
#[derive(Debug)]
pub(crate) struct MockServer {
    scenario: Scenario,
    era: Era,
    started: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    events: Vec<Event>,
    bytes: usize,
    last_message: Option<Instant>,
    changes: Changes,
}

impl MockServer {
    pub(crate) fn new(scenario: Scenario, era: Era) -> Self {
        Self {
            scenario,
            era,
            started: Instant::now(),
            state: Mutex::default(),
        }
    }

    /// Receives a message of the client; the response to a request is the outcome. `sink` is the stream that this message
    /// opens or came on, if there is one.
    fn receive(&self, message: Value, sink: Option<&Sink>) -> Option<Value> {
        if self.is_full() {
            return None;
        }
        let response = self.answer(&message);
        let bytes = message.to_string().len();
        let time = self.started.elapsed();
        let event = Event {
            message: Some(message),
            response: response.clone(),
            time,
        };
        let mut state = self.lock();
        state.bytes += bytes;
        state.last_message = Some(Instant::now());
        state
            .changes
            .record_message(self.scenario, self.era, &event, sink);
        state.events.push(event);
        response
    }

    /// Opens the stream on which a legacy client receives what concerns no request.
    fn open_stream(&self, sink: &Sink) {
        self.lock().changes.open_session_stream(sink);
    }

    /// Sends the changes that the client can receive now.
    fn send_changes(&self) {
        let mut state = self.lock();
        let time = self.started.elapsed();
        for notification in state.changes.send() {
            state.events.push(Event {
                message: None,
                response: Some(notification),
                time,
            });
        }
    }

    /// Whether the client has sent more than is recorded.
    pub(crate) fn is_full(&self) -> bool {
        let state = self.lock();
        state.events.len() >= EVENTS || state.bytes >= BYTES
    }

    /// How long ago the client sent its last message.
    pub(crate) fn silence(&self) -> Option<Duration> {
        self.lock().last_message.map(|last| last.elapsed())
    }

    /// What was recorded.
    pub(crate) fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut self.lock().events)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
