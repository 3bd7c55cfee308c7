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
    arguments: Budget,
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
    /// Why the sink does not work at the moment.
    pub(crate) sink_error: Lock<Option<String>>,
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
struct Budget {
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

    fn try_acquire(&self, amount: usize) -> bool {
        let before = self.used.fetch_add(amount, Ordering::AcqRel);
        let fits = before
            .checked_add(amount)
            .is_some_and(|used| used <= self.capacity);
        if !fits {
            self.release(amount);
        }
        fits
    }

    fn release(&self, amount: usize) {
        self.used.fetch_sub(amount, Ordering::AcqRel);
    }
}

impl Queue {
    pub(crate) fn new(capacity: usize, arguments_capacity: usize) -> Self {
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
            sink_error: Lock::new(None),
        }
    }

    /// Takes a slot, if one is free.
    pub(crate) fn try_acquire(&self) -> bool {
        self.slots.try_acquire(1)
    }

    /// Takes a slot as soon as one is free; returns false if none was within `limit`.
    pub(crate) fn acquire_within(&self, limit: Duration) -> bool {
        if self.try_acquire() {
            return true;
        }
        let deadline = Instant::now().checked_add(limit);
        let mut waiting = self.waiting.lock();
        *waiting += 1;
        self.has_waiting.store(true, Ordering::SeqCst);
        let is_acquired = loop {
            if self.try_acquire() {
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

    /// Takes room for this many bytes of arguments, if there is some.
    pub(crate) fn try_acquire_arguments(&self, bytes: usize) -> bool {
        self.arguments.try_acquire(bytes)
    }

    pub(crate) fn release_arguments(&self, bytes: usize) {
        self.arguments.release(bytes);
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
