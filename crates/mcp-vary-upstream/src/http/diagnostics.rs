//! What a connection logs for the operator, ever more rarely if it repeats.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mcp_vary_base::log_backoff::{LogBackoff, is_logged};

use crate::error::{UpstreamError, without_server};
use crate::secrets::Secrets;

/// Logs what goes wrong on one connection, without secrets.
pub(super) struct Diagnostics {
    server: Arc<str>,
    secrets: Secrets,
    failures: LogBackoff,
    skipped: AtomicU64,
    undelivered: AtomicU64,
}

impl Diagnostics {
    pub(super) fn new(server: Arc<str>, secrets: Secrets) -> Self {
        Self {
            server,
            secrets,
            failures: LogBackoff::default(),
            skipped: AtomicU64::new(0),
            undelivered: AtomicU64::new(0),
        }
    }

    /// `text` without the secrets that the server may have repeated.
    pub(super) fn hide(&self, text: &str) -> String {
        self.secrets.hide(text)
    }

    /// The beginning of a message of the server.
    pub(super) fn excerpt(&self, message: &[u8]) -> String {
        self.secrets.excerpt(message, EXCERPT_CHARS)
    }

    /// Logs a failed call with its details, which only the operator may see.
    pub(super) fn call_failed(&self, error: &UpstreamError) {
        let server = &*self.server;
        let details = error.details();
        let error = without_server(&details, server);
        match self.failures.next() {
            Some(count) => tracing::warn!(server, count, error, "call failed"),
            None => tracing::debug!(server, error, "call failed"),
        }
    }

    /// Logs an event that is not a message.
    pub(super) fn event_skipped(&self, why: &str, event: &[u8]) {
        let count = self.skipped.fetch_add(1, Ordering::Relaxed) + 1;
        if is_logged(count) {
            let event = self.excerpt(event);
            tracing::warn!(server = %self.server, count, event, why, "event skipped");
        }
    }

    /// Logs that a message was not sent, since too many are being sent already.
    pub(super) fn message_dropped(&self) {
        let count = self.undelivered.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_power_of_two() {
            tracing::warn!(server = %self.server, count, "message dropped, the server does not take so many or so long ones");
        }
    }
}

/// How much of a server's text an error or a log line contains.
pub(super) const EXCERPT_CHARS: usize = 200;
