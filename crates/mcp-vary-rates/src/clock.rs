//! The clock that a running gateway uses.

use std::sync::Arc;
use std::time::Instant;

use governor::clock::Clock;
use governor::nanos::Nanos;

/// The time since the clock was created, which never goes back. Tests use [`FakeRelativeClock`](crate::FakeRelativeClock).
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock(Instant);

impl MonotonicClock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for MonotonicClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        // 584 years fit.
        Nanos::from(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// A clock behind one type: the [`MonotonicClock`] of a running gateway, or the one of a test.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use mcp_vary_rates::{Clock, FakeRelativeClock, SharedClock};
///
/// let clock = FakeRelativeClock::default();
/// let shared = SharedClock::of(clock.clone());
/// clock.advance(Duration::from_secs(60));
/// // Clones show the same time.
/// assert_eq!(Duration::from(shared.clone().now()), Duration::from_secs(60));
/// ```
#[derive(Clone)]
pub struct SharedClock(Arc<dyn Fn() -> Nanos + Send + Sync>);

impl SharedClock {
    /// A clock that shows the time of `clock`.
    pub fn of(clock: impl Clock<Instant = Nanos> + Send + Sync + 'static) -> Self {
        Self(Arc::new(move || clock.now()))
    }
}

impl Clock for SharedClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        (self.0)()
    }
}

mcp_vary_base::debug_by_name!(SharedClock);
