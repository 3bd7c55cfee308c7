//! What a supervised connection shares with its tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use mcp_vary_base::lock::ScopedLock;
use mcp_vary_base::tasks::TaskTracker;
use mcp_vary_wire::revision::Era;
use tokio::sync::{Notify, broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::dedup::UpdateDedup;
use super::subscriptions::Subscriptions;
use super::topic::Topic;
use crate::config::UpstreamConfig;
use crate::connect_error::ConnectError;
use crate::connection::UpstreamConnection;
use crate::message::Event;
use crate::server_facts::ServerFacts;

/// The state of a supervised connection.
#[derive(Clone, Debug)]
pub enum ConnectionState {
    /// The first attempt is running: at the start, or after a stable connection was lost.
    Connecting,
    /// The connection is established.
    Connected(Arc<UpstreamConnection>),
    /// The last attempt failed; another one follows after a pause.
    Disconnected {
        /// Why the last attempt failed.
        error: ConnectError,
        /// The pause between that attempt and the next one.
        pause: Duration,
        /// When the next attempt begins.
        retry_at: Instant,
    },
    /// The gateway closed the connection.
    Closed,
}

/// The state that a supervised connection shares with its tasks.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: UpstreamConfig,
    pub(super) current: ArcSwapOption<UpstreamConnection>,
    pub(super) state: watch::Sender<ConnectionState>,
    /// When the state last changed.
    pub(super) state_since: ScopedLock<Instant>,
    pub(super) events: broadcast::Sender<Event>,
    pub(super) stop: CancellationToken,
    /// Ends the pause before the next attempt.
    pub(super) retry: Notify,
    pub(super) tasks: TaskTracker,
    /// The subscribed resources.
    pub(super) resources: Arc<Subscriptions>,
    /// The subscribed tasks.
    pub(super) task_updates: Arc<Subscriptions>,
    pub(super) dedup: UpdateDedup,
    pub(super) server_facts: Arc<ServerFacts>,
    /// The era of the clients of this connection, if they all have the same.
    pub(super) preferred: watch::Sender<Option<Era>>,
    /// Whether a connection in that era failed for a transient reason.
    pub(super) era_failed: AtomicBool,
    pub(super) attempts: AttemptCounters,
    /// When the last turn of its program to be started began; `None` while it waits for one.
    pub(super) turn_began: ScopedLock<Option<Instant>>,
    /// How many attempts in a row took too long.
    pub(super) late: AtomicU32,
}

/// The attempts to connect to a server so far.
#[derive(Clone, Copy, Debug)]
pub struct ConnectAttempts {
    /// How many connections came into use, one after the other.
    pub established: u64,
    /// How many succeeded; one more than came into use if the server turned out to support the preferred era.
    pub succeeded: u64,
    /// How many failed.
    pub failed: u64,
    /// What those that succeeded took together.
    pub duration: Duration,
}

/// Counts attempts to connect.
#[derive(Debug, Default)]
pub(super) struct AttemptCounters {
    established: AtomicU64,
    succeeded: AtomicU64,
    failed: AtomicU64,
    microseconds: AtomicU64,
}

impl AttemptCounters {
    pub(super) fn load(&self) -> ConnectAttempts {
        ConnectAttempts {
            established: self.established.load(Ordering::Relaxed),
            succeeded: self.succeeded.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            duration: Duration::from_micros(self.microseconds.load(Ordering::Relaxed)),
        }
    }

    pub(super) fn count(&self, duration: Duration, succeeded: bool) {
        if succeeded {
            let microseconds = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
            self.succeeded.fetch_add(1, Ordering::Relaxed);
            self.microseconds.fetch_add(microseconds, Ordering::Relaxed);
        } else {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Shared {
    /// Whether the server may support the preferred era while `upstream` uses the other one.
    pub(super) fn is_better_in_other_era(&self, upstream: &UpstreamConnection) -> bool {
        match *self.preferred.borrow() {
            Some(era) => upstream.handshake().era() != era && self.server_facts.may_support(era),
            None => false,
        }
    }

    /// Sets the state and notifies those who watch it.
    pub(super) fn set_state(&self, state: ConnectionState) {
        if matches!(state, ConnectionState::Connected(_)) {
            self.attempts.established.fetch_add(1, Ordering::Relaxed);
        }
        let kind = std::mem::discriminant(&state);
        let before = self.state.send_replace(state);
        if std::mem::discriminant(&before) != kind {
            let mut since = self.state_since.lock();
            *since = Instant::now();
        }
    }

    /// The subscriptions of `topic`.
    pub(super) fn subscriptions(&self, topic: Topic) -> &Arc<Subscriptions> {
        match topic {
            Topic::Resources => &self.resources,
            Topic::Tasks => &self.task_updates,
        }
    }

    /// Publishes `event` to the subscribers of the supervised connection.
    pub(super) fn publish(&self, event: Event) {
        if let Event::ResourceUpdated { uri, .. } = &event {
            self.dedup.take(uri);
        }
        // An error only means that there is no subscriber.
        let _ = self.events.send(event);
    }
}
