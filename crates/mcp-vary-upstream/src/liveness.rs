//! The signs of life of one connection, and its end.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::error::UpstreamError;

/// What is known about a connection's life: when the server was heard, what runs, how it ended.
///
/// # Properties
///
/// It ends once; only the first reason counts.
#[derive(Debug)]
pub(super) struct Life {
    began: Instant,
    /// When something was heard last, in milliseconds after it began.
    heard: AtomicU64,
    /// When the last call ended, likewise.
    rested: AtomicU64,
    running: AtomicUsize,
    /// Told when the last call that ran has ended.
    calm: Notify,
    /// Whether the server left a `ping` without answer when it was made: then silence means nothing.
    is_mute: AtomicBool,
    doubted: Notify,
    replaced: Notify,
    end: OnceLock<UpstreamError>,
    ended: CancellationToken,
}

impl Life {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            began: Instant::now(),
            heard: AtomicU64::new(0),
            rested: AtomicU64::new(0),
            running: AtomicUsize::new(0),
            calm: Notify::new(),
            is_mute: AtomicBool::new(false),
            doubted: Notify::new(),
            replaced: Notify::new(),
            end: OnceLock::new(),
            ended: CancellationToken::new(),
        })
    }

    /// The server said something.
    pub(super) fn hear(&self) {
        self.hear_at(Instant::now());
    }

    /// The same, of a moment that is known.
    pub(super) fn hear_at(&self, now: Instant) {
        self.heard
            .store(self.after_it_began(now), Ordering::Relaxed);
    }

    /// When it was heard last.
    pub(super) fn heard(&self) -> Instant {
        self.at(&self.heard)
    }

    /// When it was heard last, or had a call to work at.
    pub(super) fn stirred(&self) -> Instant {
        self.heard().max(self.at(&self.rested))
    }

    /// A client's call runs until the guard is dropped.
    pub(super) fn run(self: &Arc<Self>) -> Running {
        self.running.fetch_add(1, Ordering::Relaxed);
        Running(Arc::clone(self))
    }

    /// How many clients' calls run.
    pub(super) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// The server does not answer `ping`.
    pub(super) fn is_mute(&self) -> bool {
        self.is_mute.load(Ordering::Relaxed)
    }

    pub(super) fn set_mute(&self) {
        self.is_mute.store(true, Ordering::Relaxed);
    }

    /// Something went wrong that a server that is gone would explain.
    pub(super) fn doubt(&self) {
        self.doubted.notify_one();
    }

    pub(super) async fn doubted(&self) {
        self.doubted.notified().await;
    }

    /// The server says something else about itself than it did when the connection was made.
    pub(super) fn replace(&self) {
        self.replaced.notify_one();
    }

    pub(super) async fn replaced(&self) {
        self.replaced.notified().await;
    }

    /// Ends the connection, and says why it ended.
    pub(super) fn end(&self, error: UpstreamError) -> UpstreamError {
        let first = self.end.get_or_init(|| error).clone();
        self.ended.cancel();
        first
    }

    /// How it ended.
    pub(super) fn how(&self) -> Option<&UpstreamError> {
        self.end.get()
    }

    /// Waits until it ends, and says how.
    pub(super) async fn ended(&self) -> UpstreamError {
        loop {
            self.ended.cancelled().await;
            if let Some(error) = self.how() {
                return error.clone();
            }
        }
    }

    /// Waits until nothing was heard for `span`.
    pub(super) async fn silent_for(&self, span: Duration) {
        loop {
            let due = self.heard() + span;
            if Instant::now() >= due {
                return;
            }
            tokio::time::sleep_until(due).await;
        }
    }

    /// Waits until no call runs any more, or the server does not stir for `limit` from now on.
    pub(super) async fn at_rest(&self, limit: Duration) {
        let now = Instant::now();
        while self.running() > 0 {
            let due = self.stirred().max(now) + limit;
            if Instant::now() >= due {
                return;
            }
            let _ = tokio::time::timeout_at(due, self.calm.notified()).await;
        }
    }

    fn now(&self) -> u64 {
        self.after_it_began(Instant::now())
    }

    fn after_it_began(&self, now: Instant) -> u64 {
        let after = now.saturating_duration_since(self.began);
        u64::try_from(after.as_millis()).unwrap_or(u64::MAX)
    }

    fn at(&self, moment: &AtomicU64) -> Instant {
        self.began + Duration::from_millis(moment.load(Ordering::Relaxed))
    }
}

/// A client's call that runs.
#[derive(Debug)]
pub(super) struct Running(Arc<Life>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.rested.store(self.0.now(), Ordering::Relaxed);
        if self.0.running.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.calm.notify_one();
        }
    }
}
