//! The clients that called on a connection, and the one that receives messages without a call.
//!
//! A log message of a server that works in the background may be about a call that was answered long ago. No time is
//! long enough to be sure, so a connection remembers for its whole life whether one client used it, or several.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use super::message::{CallerId, NotificationSink};

/// The clients that called on one connection since it was opened.
///
/// # Properties
///
/// Only the first client is stored. Once another one has called, there is no sole client any more.
#[derive(Debug)]
pub(super) struct Clients {
    /// The number of the sole client, or one of the two constants.
    sole: AtomicU64,
    /// Receives messages for the sole client between its calls, if it has a session.
    receiver: OnceLock<Weak<dyn NotificationSink>>,
}

/// No client has called yet. Clients are numbered from 1 and never reach this value.
const NONE: u64 = u64::MAX;
/// More than one client has called.
const SEVERAL: u64 = u64::MAX - 1;

impl Default for Clients {
    fn default() -> Self {
        Self {
            sole: AtomicU64::new(NONE),
            receiver: OnceLock::new(),
        }
    }
}

impl Clients {
    /// Records a call of `owner` before it is sent; `receiver` receives messages for the client between calls.
    pub(super) fn record(&self, owner: CallerId, receiver: Option<&Weak<dyn NotificationSink>>) {
        let CallerId(number) = owner;
        // A release store, so that the task that reads the answer sees the call.
        let first = self
            .sole
            .compare_exchange(NONE, number, Ordering::AcqRel, Ordering::Acquire);
        match first {
            Ok(_) => {
                if let Some(receiver) = receiver {
                    // Set once: only one call is the first.
                    let _ = self.receiver.set(Weak::clone(receiver));
                }
            }
            Err(sole) if sole == number => {}
            Err(_) => self.sole.store(SEVERAL, Ordering::Release),
        }
    }

    /// Whether no client has called yet.
    pub(super) fn is_unused(&self) -> bool {
        self.sole.load(Ordering::Acquire) == NONE
    }

    /// The only client that has called so far.
    pub(super) fn sole(&self) -> Option<CallerId> {
        match self.sole.load(Ordering::Acquire) {
            NONE | SEVERAL => None,
            number => Some(CallerId(number)),
        }
    }

    /// The receiver of messages for the sole client between its calls.
    pub(super) fn receiver(&self) -> Option<Arc<dyn NotificationSink>> {
        self.sole()?;
        self.receiver.get()?.upgrade()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_client_ends_it_for_good() {
        let clients = Clients::default();
        assert!(clients.is_unused() && clients.sole().is_none());
        clients.record(CallerId(7), None);
        clients.record(CallerId(7), None);
        assert_eq!(clients.sole(), Some(CallerId(7)));
        clients.record(CallerId(8), None);
        clients.record(CallerId(7), None);
        assert!(clients.sole().is_none() && !clients.is_unused());
    }
}
