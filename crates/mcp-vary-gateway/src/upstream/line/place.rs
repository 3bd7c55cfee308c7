//! How many calls a server has at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::upstream::config::Limits;
use crate::upstream::error::UpstreamError;

/// The places of calls at one server. Whoever waits longest is next.
#[derive(Debug)]
pub(super) struct Places {
    free: Arc<Semaphore>,
    limit: usize,
    waiting: AtomicUsize,
    patience: Duration,
}

impl Places {
    pub(super) fn new(limits: &Limits) -> Self {
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
