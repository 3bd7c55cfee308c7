//! The activity of one connection, and how it ended.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::error::UpstreamError;

/// When a connection last received something, how many calls are in flight, and how it ended.
///
/// # Properties
///
/// A connection ends once; only the first reason counts.
#[derive(Debug)]
pub(super) struct Liveness {
    created_at: Instant,
    /// When something was last received, in milliseconds since creation.
    last_received: AtomicU64,
    /// When the last call ended, in milliseconds since creation.
    last_call_ended: AtomicU64,
    calls_in_flight: AtomicUsize,
    /// Notified when the last call in flight has ended.
    idle: Notify,
    /// Whether the server did not answer the `ping` of the handshake. Then silence proves nothing.
    ignores_ping: AtomicBool,
    suspected: Notify,
    replaced: Notify,
    end: OnceLock<UpstreamError>,
    ended: CancellationToken,
}

impl Liveness {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            created_at: Instant::now(),
            last_received: AtomicU64::new(0),
            last_call_ended: AtomicU64::new(0),
            calls_in_flight: AtomicUsize::new(0),
            idle: Notify::new(),
            ignores_ping: AtomicBool::new(false),
            suspected: Notify::new(),
            replaced: Notify::new(),
            end: OnceLock::new(),
            ended: CancellationToken::new(),
        })
    }

    /// Records that the server sent something.
    pub(super) fn touch(&self) {
        self.touch_at(Instant::now());
    }

    /// Records that the server sent something at `now`.
    pub(super) fn touch_at(&self, now: Instant) {
        // Zero means that nothing was received.
        self.last_received
            .store(self.millis_since_created(now).max(1), Ordering::Relaxed);
    }

    /// Whether the server has sent anything.
    pub(super) fn has_received(&self) -> bool {
        self.last_received.load(Ordering::Relaxed) > 0
    }

    /// When something was last received.
    pub(super) fn last_received(&self) -> Instant {
        self.instant(&self.last_received)
    }

    /// When something was last received, or the last call ended.
    pub(super) fn last_active(&self) -> Instant {
        self.last_received()
            .max(self.instant(&self.last_call_ended))
    }

    /// Counts a client's call as in flight until the guard is dropped.
    pub(super) fn begin_call(self: &Arc<Self>) -> CallGuard {
        self.calls_in_flight.fetch_add(1, Ordering::Relaxed);
        CallGuard(Arc::clone(self))
    }

    /// How many clients' calls are in flight.
    pub(super) fn calls_in_flight(&self) -> usize {
        self.calls_in_flight.load(Ordering::Relaxed)
    }

    /// Whether the server does not answer `ping`.
    pub(super) fn ignores_ping(&self) -> bool {
        self.ignores_ping.load(Ordering::Relaxed)
    }

    pub(super) fn set_ignores_ping(&self) {
        self.ignores_ping.store(true, Ordering::Relaxed);
    }

    /// Requests a health check: a failure suggests that the server is gone.
    pub(super) fn suspect(&self) {
        self.suspected.notify_one();
    }

    pub(super) async fn suspected(&self) {
        self.suspected.notified().await;
    }

    /// Records that the server reports another identity than at the handshake.
    pub(super) fn mark_replaced(&self) {
        self.replaced.notify_one();
    }

    pub(super) async fn replaced(&self) {
        self.replaced.notified().await;
    }

    /// Ends the connection; returns the reason that counts.
    pub(super) fn end(&self, error: UpstreamError) -> UpstreamError {
        let first = self.end.get_or_init(|| error).clone();
        self.ended.cancel();
        first
    }

    /// Why the connection ended, if it did.
    pub(super) fn end_reason(&self) -> Option<&UpstreamError> {
        self.end.get()
    }

    /// Waits until the connection ends; returns the reason.
    pub(super) async fn ended(&self) -> UpstreamError {
        loop {
            self.ended.cancelled().await;
            if let Some(error) = self.end_reason() {
                return error.clone();
            }
        }
    }

    /// Waits until nothing was received for `span`.
    pub(super) async fn silent_for(&self, span: Duration) {
        loop {
            let due = self.last_received() + span;
            if Instant::now() >= due {
                return;
            }
            tokio::time::sleep_until(due).await;
        }
    }

    /// Waits until no call is in flight, or nothing happens for `limit` from now on.
    pub(super) async fn drained(&self, limit: Duration) {
        let now = Instant::now();
        while self.calls_in_flight() > 0 {
            let due = self.last_active().max(now) + limit;
            if Instant::now() >= due {
                return;
            }
            let _ = tokio::time::timeout_at(due, self.idle.notified()).await;
        }
    }

    fn now_millis(&self) -> u64 {
        self.millis_since_created(Instant::now())
    }

    fn millis_since_created(&self, now: Instant) -> u64 {
        let after = now.saturating_duration_since(self.created_at);
        u64::try_from(after.as_millis()).unwrap_or(u64::MAX)
    }

    fn instant(&self, moment: &AtomicU64) -> Instant {
        self.created_at + Duration::from_millis(moment.load(Ordering::Relaxed))
    }
}

/// A client's call in flight.
#[derive(Debug)]
pub(super) struct CallGuard(Arc<Liveness>);

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.0
            .last_call_ended
            .store(self.0.now_millis(), Ordering::Relaxed);
        if self.0.calls_in_flight.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.idle.notify_one();
        }
    }
}
