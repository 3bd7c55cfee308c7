//! How many calls a server has at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::Limits;
use crate::error::UpstreamError;

/// The places of calls at one server. Whoever waits longest is next.
#[derive(Debug)]
pub struct Places {
    free: Arc<Semaphore>,
    limit: usize,
    waiting: AtomicUsize,
    patience: Duration,
}

impl Places {
    /// The permits that `limits` allow.
    pub fn new(limits: &Limits) -> Self {
        let limit = limits.concurrency.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            free: Arc::new(Semaphore::new(limit)),
            limit,
            waiting: AtomicUsize::new(0),
            patience: limits.patience,
        }
    }

    /// A place for one call, until the permit is dropped.
    ///
    /// # Errors
    ///
    /// [`UpstreamError::Crowded`] when none became free in time, or when too many wait for one already.
    pub(super) async fn take(&self, server: &str) -> Result<OwnedSemaphorePermit, UpstreamError> {
        // Whoever waits already is served first, so that nothing is free then.
        if let Ok(place) = Arc::clone(&self.free).try_acquire_owned() {
            return Ok(place);
        }
        let Some(_waiting) = Waiting::join(&self.waiting, self.limit.saturating_mul(QUEUE)) else {
            return Err(self.crowded(server, None));
        };
        let place = Arc::clone(&self.free).acquire_owned();
        match tokio::time::timeout(self.patience, place).await {
            Ok(Ok(place)) => Ok(place),
            // It is never closed, so that this is the time that ran out.
            _ => Err(self.crowded(server, Some(self.patience))),
        }
    }

    fn crowded(&self, server: &str, patience: Option<Duration>) -> UpstreamError {
        UpstreamError::Crowded {
            server: server.into(),
            limit: self.limit,
            patience,
        }
    }
}

/// One that waits.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    /// `None` when `most` wait already.
    fn join(waiting: &'a AtomicUsize, most: usize) -> Option<Self> {
        if waiting.fetch_add(1, Ordering::Relaxed) < most {
            return Some(Self(waiting));
        }
        waiting.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many calls may wait for each that runs: with more of them nobody would get a turn in time.
const QUEUE: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn places(concurrency: usize) -> Arc<Places> {
        Arc::new(Places::new(&Limits {
            concurrency,
            patience: Duration::from_secs(10),
            ..Limits::default()
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_longest_is_next() {
        let places = places(1);
        let first = places.take("x").await.unwrap();
        let (sender, mut turns) = tokio::sync::mpsc::unbounded_channel();
        for number in 0..3 {
            let (places, sender) = (Arc::clone(&places), sender.clone());
            tokio::spawn(async move {
                let _place = places.take("x").await.unwrap();
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
        let _two = (places.take("x").await, places.take("x").await);
        let began = tokio::time::Instant::now();
        let error = places.take("x").await.unwrap_err();
        assert_eq!(began.elapsed().as_secs(), 10);
        assert_eq!(
            error.to_string(),
            "server `x` works at as many calls as it may (2), and this one did not get its turn within 10s"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_that_is_too_long_is_refused_at_once() {
        let places = places(1);
        let held = places.take("x").await.unwrap();
        let mut waiting = tokio::task::JoinSet::new();
        for _ in 0..QUEUE {
            let places = Arc::clone(&places);
            waiting.spawn(async move { places.take("x").await.is_ok() });
            tokio::task::yield_now().await;
        }
        let began = tokio::time::Instant::now();
        let error = places.take("x").await.unwrap_err();
        assert!(began.elapsed().is_zero());
        assert_eq!(
            error.to_string(),
            "server `x` works at as many calls as it may (1), and too many wait for their turn already"
        );
        // Whoever waits is served all the same, and then there is room again.
        drop(held);
        assert_eq!(waiting.join_all().await, [true; QUEUE]);
        assert!(places.take("x").await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_stops_waiting_leaves_its_turn_to_the_next() {
        let places = places(1);
        let held = places.take("x").await.unwrap();
        let gone = tokio::time::timeout(Duration::from_secs(1), places.take("x"));
        assert!(gone.await.is_err());
        drop(held);
        assert!(places.take("x").await.is_ok());
        assert_eq!(places.waiting.load(Ordering::Relaxed), 0);
    }
}
