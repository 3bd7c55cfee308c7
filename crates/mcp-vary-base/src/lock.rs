//! A mutex without poisoning, which debug builds can trace.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A mutex that ignores poisoning: what it protects holds no half-done change that a panic could leave behind.
///
/// # Properties
///
/// A lock made by [`new`](Self::new) or by `Default` is *global*: it counts as one that every request of the gateway may
/// wait for. One made by [`scoped`](Self::scoped) belongs to one session, connection, request or shard. Debug builds
/// [record](trace) where global locks are acquired, so that a test can show that no request takes one. Release builds
/// record nothing: there it is a plain mutex.
#[derive(Default)]
pub struct Lock<T: ?Sized> {
    #[cfg(debug_assertions)]
    is_scoped: bool,
    mutex: Mutex<T>,
}

impl<T> Lock<T> {
    /// A global lock: one for the whole gateway.
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self {
            #[cfg(debug_assertions)]
            is_scoped: false,
            mutex: Mutex::new(value),
        }
    }

    /// One lock of many: each session, connection, request or shard has its own.
    #[must_use]
    pub const fn scoped(value: T) -> Self {
        Self {
            #[cfg(debug_assertions)]
            is_scoped: true,
            mutex: Mutex::new(value),
        }
    }

    /// The value, when nobody else uses the lock any more.
    pub fn into_inner(self) -> T {
        self.mutex
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Lock<T> {
    /// Waits until nobody else has the value, and gives access to it.
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        #[cfg(debug_assertions)]
        if !self.is_scoped {
            trace::record_global();
        }
        self.mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Access to the value, unless somebody has it at the moment.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.mutex.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }
}

/// Without the value: printing must not wait for it.
impl<T: ?Sized> std::fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lock").finish_non_exhaustive()
    }
}

/// Which global locks this thread acquires; in debug builds only.
#[cfg(debug_assertions)]
pub mod trace {
    use std::cell::RefCell;
    use std::panic::Location;

    thread_local! {
        static ACQUIRED: RefCell<Option<Vec<&'static Location<'static>>>> = const { RefCell::new(None) };
    }

    /// Records from now on where this thread acquires global locks.
    pub fn start() {
        ACQUIRED.set(Some(Vec::new()));
    }

    /// Stops recording. The places in the source where global locks were acquired since [`start`], in that order.
    pub fn stop() -> Vec<&'static Location<'static>> {
        ACQUIRED.take().unwrap_or_default()
    }

    #[track_caller]
    pub(super) fn record_global() {
        let caller = Location::caller();
        ACQUIRED.with_borrow_mut(|acquired| {
            if let Some(acquired) = acquired {
                acquired.push(caller);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_does_not_poison() {
        let lock = Lock::new(1);
        let panicked = std::thread::scope(|scope| {
            let holder = scope.spawn(|| {
                let _guard = lock.lock();
                panic!("while the lock is held");
            });
            holder.join().is_err()
        });
        assert!(panicked);
        assert_eq!(*lock.lock(), 1);
        assert!(lock.try_lock().is_some());
    }

    #[test]
    fn a_lock_that_is_held_is_not_given_twice() {
        let lock = Lock::scoped(1);
        let guard = lock.lock();
        assert!(lock.try_lock().is_none());
        drop(guard);
        assert_eq!(lock.into_inner(), 1);
    }

    #[cfg(debug_assertions)]
    #[test]
    fn only_global_locks_are_recorded_and_only_of_this_thread() {
        let (global, scoped) = (Lock::<u8>::default(), Lock::scoped(0));
        drop(global.lock());
        trace::start();
        drop(scoped.lock());
        drop(global.lock());
        std::thread::scope(|scope| scope.spawn(|| drop(global.lock())).join().unwrap());
        let acquired = trace::stop();
        assert_eq!(acquired.len(), 1);
        assert!(acquired[0].file().ends_with("lock.rs"));
        drop(global.lock());
        assert_eq!(trace::stop(), Vec::<&std::panic::Location<'_>>::new());
    }
}
