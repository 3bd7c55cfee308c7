//! A mutex without poisoning, which debug builds can trace.

use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// A mutex that ignores poisoning: a panic must not leave a partial change in the value that it protects.
///
/// # Properties
///
/// A `Lock` counts as *global*: every request of the gateway may wait for it. A [`ScopedLock`] belongs to one session,
/// connection, request or shard. Debug builds can [record](trace) where global locks are acquired, so that a test can
/// show that no request takes one. Release builds record nothing: there it is a plain mutex.
pub struct Lock<T: ?Sized, S = Global> {
    scope: PhantomData<S>,
    mutex: Mutex<T>,
}

/// A lock that is not global: each session, connection, request or shard has its own.
pub type ScopedLock<T> = Lock<T, Scoped>;

/// The requests that may wait for a lock.
pub trait Scope {
    /// Whether every request of the gateway may wait for it.
    const IS_GLOBAL: bool;
}

/// The scope of a lock that exists once in the gateway.
#[derive(Debug)]
#[non_exhaustive]
pub struct Global;

/// The scope of a lock that exists once in each session, connection, request or shard.
#[derive(Debug)]
#[non_exhaustive]
pub struct Scoped;

impl Scope for Global {
    const IS_GLOBAL: bool = true;
}

impl Scope for Scoped {
    const IS_GLOBAL: bool = false;
}

impl<T, S> Lock<T, S> {
    /// An unlocked lock.
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self {
            scope: PhantomData,
            mutex: Mutex::new(value),
        }
    }
}

impl<T: Default, S> Default for Lock<T, S> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized, S: Scope> Lock<T, S> {
    /// Waits until no other thread holds the lock, and acquires it.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        #[cfg(debug_assertions)]
        if S::IS_GLOBAL {
            trace::record_global();
        }
        self.mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value, which nobody else can use.
    pub fn get_mut(&mut self) -> &mut T {
        self.mutex.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acquires the lock, unless it is held at the moment.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.mutex.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// Shows the value, unless the lock is held at the moment.
impl<T: ?Sized + std::fmt::Debug, S> std::fmt::Debug for Lock<T, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.mutex.fmt(f)
    }
}

/// Records the global locks that this thread acquires; only in debug builds.
#[cfg(debug_assertions)]
pub mod trace {
    use std::cell::RefCell;
    use std::panic::Location;

    thread_local! {
        static ACQUIRED: RefCell<Option<Vec<&'static Location<'static>>>> = const { RefCell::new(None) };
    }

    /// Starts to record where this thread acquires global locks.
    pub fn start() {
        ACQUIRED.set(Some(Vec::new()));
    }

    /// Stops recording. Returns the places in the source where global locks were acquired since [`start`], in order.
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
    fn debugging_shows_the_value_unless_it_is_locked() {
        let lock: Lock<_> = Lock::new(7);
        assert!(format!("{lock:?}").contains("data: 7"));
        let _guard = lock.lock();
        assert!(format!("{lock:?}").contains("<locked>"));
    }

    #[test]
    fn a_panic_does_not_poison() {
        let lock: Lock<_> = Lock::new(1);
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
        let lock: ScopedLock<_> = Lock::new(1);
        let guard = lock.lock();
        assert!(lock.try_lock().is_none());
        drop(guard);
        assert_eq!(lock.try_lock().as_deref(), Some(&1));
    }

    #[cfg(debug_assertions)]
    #[test]
    fn only_global_locks_are_recorded_and_only_of_this_thread() {
        let (global, scoped) = (Lock::<u8>::default(), ScopedLock::<u8>::default());
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
