//! Limits how often repeated events are logged.

use std::time::Duration;

use crate::lock::Lock;
use tokio::time::Instant;

/// Selects the events of one kind to log: the first few, then ever more rarely.
///
/// # Properties
///
/// Of n events in a burst, at most 8 + log2(n) are selected. A burst ends after a minute without events.
#[derive(Debug, Default)]
pub struct LogBackoff(Lock<Option<Burst>>);

#[derive(Debug)]
struct Burst {
    count: u64,
    latest: Instant,
}

impl LogBackoff {
    /// Counts an event; returns its number in the burst if it should be logged.
    pub fn next(&self) -> Option<u64> {
        let now = Instant::now();
        let mut burst = self.0.lock();
        let before = burst
            .as_ref()
            .filter(|burst| now.duration_since(burst.latest) < QUIET);
        let count = before.map_or(0, |burst| burst.count) + 1;
        *burst = Some(Burst { count, latest: now });
        is_logged(count).then_some(count)
    }
}

/// Whether to log the event with this number, counted from 1: the first eight, and then each whose number is a power of
/// two.
pub const fn is_logged(count: u64) -> bool {
    count <= FIRST || count.is_power_of_two()
}

const FIRST: u64 = 8;
const QUIET: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_eight_and_the_powers_of_two_are_logged() {
        let logged: Vec<_> = (1..=40).filter(|count| is_logged(*count)).collect();
        assert_eq!(logged, [1, 2, 3, 4, 5, 6, 7, 8, 16, 32]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_logged_ever_more_rarely_and_the_next_one_anew() {
        let backoff = LogBackoff::default();
        let logged: Vec<_> = (0..100).filter_map(|_| backoff.next()).collect();
        assert_eq!(logged, [1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64]);
        tokio::time::advance(QUIET).await;
        assert_eq!(backoff.next(), Some(1));
    }
}
