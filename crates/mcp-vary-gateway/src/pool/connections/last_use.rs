//! The time of the last use of a connection or class.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// The time of the last use, which requests record without waiting for each other.
#[derive(Debug)]
pub(crate) struct LastUse {
    created: Instant,
    /// Nanoseconds after the creation.
    latest: AtomicU64,
}

impl LastUse {
    /// Used now.
    pub(crate) fn now() -> Self {
        Self {
            created: Instant::now(),
            latest: AtomicU64::new(0),
        }
    }

    /// Counts as used until `time` from now.
    pub(crate) fn extend(&self, time: Duration) {
        let latest = self.created.elapsed().saturating_add(time);
        let latest = u64::try_from(latest.as_nanos()).unwrap_or(u64::MAX);
        self.latest.fetch_max(latest, Ordering::SeqCst);
    }

    /// The time since the last use.
    pub(crate) fn elapsed(&self) -> Duration {
        let latest = Duration::from_nanos(self.latest.load(Ordering::SeqCst));
        self.created.elapsed().saturating_sub(latest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_latest_use_counts() {
        let used = LastUse::now();
        let second = Duration::from_secs(1);
        tokio::time::advance(3 * second).await;
        assert_eq!(used.elapsed(), 3 * second);
        used.extend(2 * second);
        used.extend(Duration::ZERO);
        assert_eq!(used.elapsed(), Duration::ZERO);
        tokio::time::advance(5 * second).await;
        assert_eq!(used.elapsed(), 3 * second);
    }
}
