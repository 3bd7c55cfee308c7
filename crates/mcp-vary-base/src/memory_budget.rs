//! A shared memory budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A number of bytes that can be leased.
///
/// # Properties
///
/// Never leases more than the limit at once. Leases of a sub-budget also count against its parent.
#[derive(Debug)]
pub struct MemoryBudget {
    limit: usize,
    used: AtomicUsize,
    parent: Option<Arc<Self>>,
}

/// A part of a budget, released on drop.
#[derive(Debug)]
pub struct Lease {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

/// The budget is exhausted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Exhausted;

impl MemoryBudget {
    /// A budget of `limit` bytes.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            used: AtomicUsize::new(0),
            parent: None,
        })
    }

    /// A sub-budget, for leases that can last long.
    pub fn sub_budget(self: &Arc<Self>, limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            used: AtomicUsize::new(0),
            parent: Some(Arc::clone(self)),
        })
    }

    /// Leases bytes.
    ///
    /// # Errors
    ///
    /// When the budget is exhausted.
    pub fn lease(self: &Arc<Self>, bytes: usize) -> Result<Lease, Exhausted> {
        let mut lease = self.empty_lease();
        lease.grow_to(bytes)?;
        Ok(lease)
    }

    /// An empty lease, to be grown.
    pub fn empty_lease(self: &Arc<Self>) -> Lease {
        Lease {
            budget: Arc::clone(self),
            bytes: 0,
        }
    }

    /// The number of leased bytes.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn reserve(&self, bytes: usize) -> Result<(), Exhausted> {
        let more = |used: usize| {
            let total = used.checked_add(bytes)?;
            (total <= self.limit).then_some(total)
        };
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .map_err(|_| Exhausted)?;
        let parent = self.parent.as_ref();
        let occupied = parent.map_or(Ok(()), |parent| parent.reserve(bytes));
        occupied.inspect_err(|_| {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
        })
    }

    fn release(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(within) = &self.parent {
            within.release(bytes);
        }
    }
}

impl Lease {
    /// Grows the lease to `bytes`; never shrinks it.
    ///
    /// # Errors
    ///
    /// When the budget is exhausted.
    pub fn grow_to(&mut self, bytes: usize) -> Result<(), Exhausted> {
        let more = bytes.saturating_sub(self.bytes);
        if more > 0 {
            self.budget.reserve(more)?;
            self.bytes = bytes;
        }
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.budget.release(self.bytes);
        }
    }
}

impl Exhausted {
    /// The reason that a client receives.
    pub const REASON: &str =
        "the gateway holds as much for its clients as `limits.memory` allows; try again later";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_leased_is_given_back() {
        let budget = MemoryBudget::new(100);
        let mut first = budget.lease(60).unwrap();
        assert_eq!(budget.lease(41).unwrap_err(), Exhausted);
        assert_eq!(first.grow_to(101), Err(Exhausted));
        first.grow_to(100).unwrap();
        // It does not shrink.
        first.grow_to(10).unwrap();
        assert_eq!(budget.used(), 100);
        drop(first);
        assert_eq!(budget.used(), 0);
        assert_eq!(budget.lease(usize::MAX).unwrap_err(), Exhausted);
    }

    #[test]
    fn a_part_is_bounded_by_itself_and_by_the_whole() {
        let whole = MemoryBudget::new(100);
        let part = whole.sub_budget(25);
        let leased = part.lease(20).unwrap();
        assert_eq!((part.used(), whole.used()), (20, 20));
        assert_eq!(part.lease(6).unwrap_err(), Exhausted);
        let other = whole.lease(78).unwrap();
        assert_eq!(part.lease(5).unwrap_err(), Exhausted);
        assert_eq!((part.used(), whole.used()), (20, 98));
        drop((leased, other));
        assert_eq!((part.used(), whole.used()), (0, 0));
    }

    #[test]
    fn threads_never_lease_more_than_there_is() {
        let budget = MemoryBudget::new(1_000);
        std::thread::scope(|scope| {
            for bytes in 1..9 {
                let budget = &budget;
                scope.spawn(move || {
                    for _ in 0..10_000 {
                        let lease = budget.lease(bytes * 40);
                        assert!(budget.used() <= 1_000);
                        drop(lease);
                    }
                });
            }
        });
        assert_eq!(budget.used(), 0);
    }
}
