//! The clock that a running gateway uses.

use std::time::Instant;

use governor::clock::Clock;
use governor::nanos::Nanos;

/// The time since the clock was created, which never goes back. Tests use [`FakeRelativeClock`](crate::FakeRelativeClock).
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock(Instant);

impl MonotonicClock {
    /// A clock that starts now.
    #[must_use]
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
