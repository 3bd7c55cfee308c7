//! The one log level that a legacy server has on a connection.

use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Mutex;
use tokio::time::Instant;

/// The least severe level that the server accepted; see `docs/decisions/0004-one-log-level.md`.
#[derive(Debug)]
pub struct ServerLogLevel {
    /// The level that the server confirmed; 8 before that.
    pub confirmed: AtomicU8,
    /// Locked while a request is pending, so that two requests cannot overtake each other; the time of the last failure.
    pub pending: Mutex<Option<Instant>>,
}

impl ServerLogLevel {
    /// The confirmed level, if any.
    pub fn current(&self) -> Option<u8> {
        Some(self.confirmed.load(Ordering::Acquire)).filter(|level| *level != NONE)
    }

    /// Records that the server has no level any more.
    pub(super) fn forget(&self) {
        self.confirmed.store(NONE, Ordering::Release);
    }
}

impl Default for ServerLogLevel {
    fn default() -> Self {
        Self {
            confirmed: AtomicU8::new(NONE),
            pending: Mutex::default(),
        }
    }
}

/// More severe than every level.
const NONE: u8 = u8::MAX;
