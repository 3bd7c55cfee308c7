//! How the clients of a class use its connections.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_vary_base::lock::Lock;
use mcp_vary_wire::client_id::ClientId;

use crate::pool::connections::last_use::LastUse;

/// The use of the connections of a class. The class that replaces it continues it.
#[derive(Debug)]
pub(crate) struct ClassUsage {
    last: LastUse,
    /// The number of requests in flight, and of tasks that keep the connections.
    in_flight: AtomicUsize,
    /// The sessions that use it; none once there were too many to know.
    sessions: Lock<Option<BTreeSet<ClientId>>>,
}

impl ClassUsage {
    /// Used now.
    pub(crate) fn now() -> Self {
        Self {
            last: LastUse::now(),
            in_flight: AtomicUsize::new(0),
            sessions: Lock::new(Some(BTreeSet::new())),
        }
    }

    /// Counts as used until `time` from now.
    pub(crate) fn extend(&self, time: Duration) {
        self.last.extend(time);
    }

    pub(crate) fn begin(&self) {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn end(&self) {
        self.extend(Duration::ZERO);
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
    }

    /// The time since the last use; zero while a request is in flight.
    pub(crate) fn idle(&self) -> Duration {
        if self.in_flight.load(Ordering::SeqCst) > 0 {
            return Duration::ZERO;
        }
        self.last.elapsed()
    }

    /// Notes that a session uses it.
    pub(crate) fn add_session(&self, session: ClientId) {
        let mut sessions = self.sessions.lock();
        if let Some(known) = &mut *sessions {
            known.insert(session);
            if known.len() > MAX_SESSIONS {
                *sessions = None;
            }
        }
    }

    /// Notes that a session has ended. Returns whether it was the last one.
    pub(crate) fn remove_session(&self, session: ClientId) -> bool {
        let mut sessions = self.sessions.lock();
        let known = sessions.as_mut();
        known.is_some_and(|known| known.remove(&session) && known.is_empty())
    }
}

/// The sessions of one class that are known. Beyond them, its connections close after `idle-timeout` only.
const MAX_SESSIONS: usize = 64;
