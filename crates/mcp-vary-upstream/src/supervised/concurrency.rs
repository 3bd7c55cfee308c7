//! The limit on concurrent calls to one server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::Limits;
use crate::error::UpstreamError;

/// Limits the concurrent calls to one server; queued calls are served in order.
#[derive(Debug)]
pub struct ConcurrencyLimit {
    permits: Arc<Semaphore>,
    limit: usize,
    queued: AtomicUsize,
    timeout: Duration,
}

impl ConcurrencyLimit {
    /// Creates the limit that `limits.concurrency` configures.
    pub fn new(limits: &Limits) -> Self {
        let limit = limits.concurrency.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            permits: Arc::new(Semaphore::new(limit)),
            limit,
            queued: AtomicUsize::new(0),
            timeout: limits.ready_timeout,
        }
    }

    /// Acquires a permit for one call; waits for at most `limits.ready_timeout`.
    ///
    /// # Errors
    ///
    /// [`UpstreamError::Overloaded`] when no permit became free in time, or when too many calls are queued already.
    pub(super) async fn acquire(
        &self,
        server: &str,
    ) -> Result<OwnedSemaphorePermit, UpstreamError> {
        // The semaphore is fair: while calls are queued, no permit is free.
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Ok(permit);
        }
        let Some(_waiting) = QueuedCall::join(
            &self.queued,
            self.limit.saturating_mul(MAX_QUEUED_PER_PERMIT),
        ) else {
            return Err(self.overloaded(server, None));
        };
        let permit = Arc::clone(&self.permits).acquire_owned();
        match tokio::time::timeout(self.timeout, permit).await {
            Ok(Ok(permit)) => Ok(permit),
            // The semaphore is never closed, so this is the timeout.
            _ => Err(self.overloaded(server, Some(self.timeout))),
        }
    }

    fn overloaded(&self, server: &str, waited: Option<Duration>) -> UpstreamError {
        UpstreamError::Overloaded {
            server: server.into(),
            limit: self.limit,
            waited,
        }
    }
}

/// Counts one queued call.
struct QueuedCall<'a>(&'a AtomicUsize);

impl<'a> QueuedCall<'a> {
    /// `None` when `most` calls are queued already.
    fn join(waiting: &'a AtomicUsize, most: usize) -> Option<Self> {
        if waiting.fetch_add(1, Ordering::Relaxed) < most {
            return Some(Self(waiting));
        }
        waiting.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

impl Drop for QueuedCall<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many calls may be queued per permit: with more, none would get its permit in time.
const MAX_QUEUED_PER_PERMIT: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn places(concurrency: usize) -> Arc<ConcurrencyLimit> {
        Arc::new(ConcurrencyLimit::new(&Limits {
            concurrency,
            ready_timeout: Duration::from_secs(10),
            ..Limits::default()
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_longest_is_next() {
        let places = places(1);
        let first = places.acquire("x").await.unwrap();
        let (sender, mut turns) = tokio::sync::mpsc::unbounded_channel();
        for number in 0..3 {
            let (places, sender) = (Arc::clone(&places), sender.clone());
            tokio::spawn(async move {
                let _place = places.acquire("x").await.unwrap();
                sender.send(number).unwrap();
            });
            tokio::task::yield_now().await;
        }
        drop((first, sender));
        let mut order = Vec::new();
        while let Some(number) = turns.recv().await {
            order.push(number);
        }
        assert_eq!(order, [0, 1, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_waits_for_its_turn_no_longer_than_its_patience() {
        let places = places(2);
        let _two = (places.acquire("x").await, places.acquire("x").await);
        let began = tokio::time::Instant::now();
        let error = places.acquire("x").await.unwrap_err();
        assert_eq!(began.elapsed().as_secs(), 10);
        assert_eq!(
            error.to_string(),
            "server `x` has reached its concurrency limit (2), and this one waited for 10s"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_that_is_too_long_is_refused_at_once() {
        let places = places(1);
        let held = places.acquire("x").await.unwrap();
        let mut waiting = tokio::task::JoinSet::new();
        for _ in 0..MAX_QUEUED_PER_PERMIT {
            let places = Arc::clone(&places);
            waiting.spawn(async move { places.acquire("x").await.is_ok() });
            tokio::task::yield_now().await;
        }
        let began = tokio::time::Instant::now();
        let error = places.acquire("x").await.unwrap_err();
        assert!(began.elapsed().is_zero());
        assert_eq!(
            error.to_string(),
            "server `x` has reached its concurrency limit (1), and too many others wait"
        );
        // Whoever waits is served all the same, and then there is room again.
        drop(held);
        assert_eq!(waiting.join_all().await, [true; MAX_QUEUED_PER_PERMIT]);
        assert!(places.acquire("x").await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_stops_waiting_leaves_its_turn_to_the_next() {
        let places = places(1);
        let held = places.acquire("x").await.unwrap();
        let gone = tokio::time::timeout(Duration::from_secs(1), places.acquire("x"));
        assert!(gone.await.is_err());
        drop(held);
        assert!(places.acquire("x").await.is_ok());
        assert_eq!(places.queued.load(Ordering::Relaxed), 0);
    }
}
