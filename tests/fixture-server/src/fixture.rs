//! The state of one connection to the fixture server.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use rmcp::model::LoggingLevel;

use crate::changes::{Changes, Subscribed, lock};
use crate::options::Options;
use crate::state::Shared;

/// The state of one connection.
#[derive(Clone)]
pub(crate) struct Fixture {
    pub(crate) options: Options,
    pub(crate) shared: Shared,
    pub(crate) level: Arc<Mutex<LoggingLevel>>,
    pub(crate) subscribed: Subscribed,
    /// What the clients knew that were answered, but not handed to us yet; the first answered is first.
    pub(crate) answered: Arc<Mutex<VecDeque<Changes>>>,
}

impl Fixture {
    pub(crate) fn new(options: Options, shared: Shared) -> Self {
        Self {
            options,
            shared,
            level: Arc::new(Mutex::new(LoggingLevel::Debug)),
            subscribed: Subscribed::default(),
            answered: Arc::default(),
        }
    }

    /// The lowest log level that the session receives; everything until it sets one.
    pub(crate) fn level(&self) -> LoggingLevel {
        *lock(&self.level)
    }

    pub(crate) fn remember_what_is_known(&self) {
        let known = self.shared.audience().changes();
        lock(&self.answered).push_back(known);
    }

    pub(crate) fn recall_what_was_known(&self) -> Changes {
        let known = lock(&self.answered).pop_front();
        known.unwrap_or_else(|| self.shared.audience().changes())
    }
}
