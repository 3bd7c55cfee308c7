//! The bounds of the queue, and what was counted.

use std::sync::Condvar;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mcp_vary_base::lock::Lock;

use crate::encode::Losses;

/// What requests and the writer share.
///
/// A record needs a slot before it is sent to the writer, so a request can reserve one before it does anything that must
/// be recorded.
#[derive(Debug)]
pub(crate) struct Queue {
    slots: Budget,
    pub(crate) arguments: Budget,
    /// How many requests wait for a slot.
    waiting: Lock<usize>,
    has_waiting: AtomicBool,
    freed: Condvar,
    /// Not yet reported in the stream.
    lost: AtomicU64,
    refused: AtomicU64,
    pub(crate) totals: Totals,
    pub(crate) is_closing: AtomicBool,
    pub(crate) needs_reopen: AtomicBool,
    pub(crate) sink: SinkHealth,
}

/// Whether the sink works, as far as its latest writes show.
#[derive(Debug)]
pub(crate) struct SinkHealth {
    is_failing: AtomicBool,
    /// The latest failure since the last success.
    error: Lock<Option<String>>,
    created: Instant,
    /// When the write that is under way began: in milliseconds since `created`, plus one; 0 if none is.
    write_began: AtomicU64,
    write_timeout: Duration,
}

impl SinkHealth {
    fn new(write_timeout: Duration) -> Self {
        Self {
            is_failing: AtomicBool::new(false),
            error: Lock::new(None),
            created: Instant::now(),
            write_began: AtomicU64::new(0),
            write_timeout,
        }
    }

    /// Whether the latest write failed, or does not return.
    fn is_down(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
            || match self.write_began.load(Ordering::Relaxed) {
                0 => false,
                began => {
                    let began = Duration::from_millis(began - 1);
                    self.created.elapsed().saturating_sub(began) > self.write_timeout
                }
            }
    }

    pub(crate) fn begin_write(&self) {
        let now = u64::try_from(self.created.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
        self.write_began.store(now + 1, Ordering::Relaxed);
    }

    pub(crate) fn end_write(&self) {
        self.write_began.store(0, Ordering::Relaxed);
    }

    /// Returns whether there was an error before.
    pub(crate) fn succeed(&self) -> bool {
        self.is_failing.store(false, Ordering::Relaxed);
        self.error.lock().take().is_some()
    }

    /// A write failed.
    pub(crate) fn fail(&self) {
        self.is_failing.store(true, Ordering::Relaxed);
    }

    pub(crate) fn set_error(&self, error: String) {
        *self.error.lock() = Some(error);
    }

    /// Why the sink does not work at the moment; `None` if it does.
    pub(crate) fn error(&self) -> Option<String> {
        let stalled = || {
            self.is_down()
                .then(|| "it does not take what is written to it".to_owned())
        };
        self.error.lock().clone().or_else(stalled)
    }
}

/// Counts since the start.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) written: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) failures: AtomicU64,
}

/// A number of slots or bytes, some of which are in use.
#[derive(Debug)]
pub(crate) struct Budget {
    capacity: usize,
    used: AtomicUsize,
}

impl Budget {
    const fn new(capacity: usize) -> Self {
        Self {
            capacity,
            used: AtomicUsize::new(0),
        }
    }

    pub(crate) fn try_acquire(&self, amount: usize) -> bool {
        let before = self.used.fetch_add(amount, Ordering::AcqRel);
        let fits = before
            .checked_add(amount)
            .is_some_and(|used| used <= self.capacity);
        if !fits {
            self.release(amount);
        }
        fits
    }

    pub(crate) fn release(&self, amount: usize) {
        self.used.fetch_sub(amount, Ordering::AcqRel);
    }
}

impl Queue {
    pub(crate) fn new(capacity: usize, arguments_capacity: usize, write_timeout: Duration) -> Self {
        Self {
            slots: Budget::new(capacity),
            arguments: Budget::new(arguments_capacity),
            waiting: Lock::new(0),
            has_waiting: AtomicBool::new(false),
            freed: Condvar::new(),
            lost: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            totals: Totals::default(),
            is_closing: AtomicBool::new(false),
            needs_reopen: AtomicBool::new(false),
            sink: SinkHealth::new(write_timeout),
        }
    }

    /// Takes a slot, if one is free.
    pub(crate) fn try_acquire(&self) -> bool {
        self.slots.try_acquire(1)
    }

    /// Takes a slot, if one is free and the sink works: what is accepted then will most likely be written.
    pub(crate) fn try_acquire_writable(&self) -> bool {
        !self.sink.is_down() && self.try_acquire()
    }

    /// Takes a slot as soon as one is free and the sink works; returns false if that was not so within `limit`.
    pub(crate) fn acquire_within(&self, limit: Duration) -> bool {
        if self.try_acquire_writable() {
            return true;
        }
        let deadline = Instant::now().checked_add(limit);
        let mut waiting = self.waiting.lock();
        *waiting += 1;
        self.has_waiting.store(true, Ordering::SeqCst);
        let is_acquired = loop {
            if self.try_acquire_writable() {
                break true;
            }
            let left = deadline.map_or(POLL, |at| at.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                break false;
            }
            let woken = self.freed.wait_timeout(waiting, left.min(POLL));
            (waiting, _) = woken.unwrap_or_else(PoisonError::into_inner);
        };
        *waiting -= 1;
        self.has_waiting.store(*waiting > 0, Ordering::SeqCst);
        is_acquired
    }

    /// Frees a slot.
    pub(crate) fn release(&self) {
        self.slots.release(1);
        if self.has_waiting.load(Ordering::SeqCst) {
            // With the lock, so that nobody is between the check and the wait.
            drop(self.waiting.lock());
            self.freed.notify_one();
        }
    }

    /// The number of records that wait, and of slots that are reserved.
    pub(crate) fn used(&self) -> usize {
        self.slots.used.load(Ordering::Relaxed)
    }

    pub(crate) fn add_lost(&self, records: u64) {
        self.lost.fetch_add(records, Ordering::Relaxed);
        self.totals.lost.fetch_add(records, Ordering::Relaxed);
    }

    pub(crate) fn add_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.totals.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// What is to be reported, which then counts as reported.
    pub(crate) fn take_losses(&self) -> Option<Losses> {
        let losses = Losses {
            lost: self.lost.swap(0, Ordering::Relaxed),
            refused: self.refused.swap(0, Ordering::Relaxed),
        };
        (losses != Losses::default()).then_some(losses)
    }

    /// Reports losses later, since the report was not written.
    pub(crate) fn put_back(&self, losses: Losses) {
        self.lost.fetch_add(losses.lost, Ordering::Relaxed);
        self.refused.fetch_add(losses.refused, Ordering::Relaxed);
    }
}

/// A request that waits looks again after this time, whatever happens.
const POLL: Duration = Duration::from_millis(20);
