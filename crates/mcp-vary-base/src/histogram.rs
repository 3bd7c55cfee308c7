//! A bounded histogram of durations.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts durations in buckets, of which each power of two of microseconds has sixteen.
///
/// # Properties
///
/// - Recording takes no lock: it increments one counter.
/// - A percentile is at most 4 % away from the exact one. Durations of more than 19 hours count as 19 hours.
/// - The size does not depend on what is recorded: about 4 KiB.
pub struct Histogram {
    buckets: Box<[AtomicU64]>,
}

impl Histogram {
    /// Counts one duration.
    pub fn record(&self, duration: Duration) {
        let microseconds = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = bucket_of(microseconds).min(BUCKETS - 1);
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The duration that `percent` percent of the recorded ones do not exceed; `None` if nothing was recorded.
    pub fn percentile(&self, percent: u64) -> Option<Duration> {
        let load = |bucket: &AtomicU64| bucket.load(Ordering::Relaxed);
        let counts: Vec<_> = self.buckets.iter().map(load).collect();
        let total: u64 = counts.iter().sum();
        let rank = total.saturating_mul(percent).div_ceil(100).max(1);
        let mut seen = 0;
        let bucket = counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(Duration::from_micros(middle_of(bucket)))
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

/// Shows the median instead of hundreds of counters.
impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("median", &self.percentile(50))
            .finish_non_exhaustive()
    }
}

/// The bucket of a number of microseconds: below sixteen, each number has its own.
fn bucket_of(microseconds: u64) -> usize {
    let power = microseconds.checked_ilog2().unwrap_or(0);
    if power < BITS {
        return usize::try_from(microseconds).unwrap_or(0);
    }
    let shift = power - BITS;
    let within = (microseconds >> shift) as usize % PER_POWER;
    (shift as usize + 1) * PER_POWER + within
}

/// The number in the middle of a bucket.
fn middle_of(bucket: usize) -> u64 {
    if bucket < PER_POWER {
        return bucket as u64;
    }
    let shift = bucket / PER_POWER - 1;
    let lowest = ((PER_POWER + bucket % PER_POWER) as u64) << shift;
    lowest + (1 << shift) / 2
}

/// How many bits of a number choose the bucket within its power of two.
const BITS: u32 = 4;
const PER_POWER: usize = 1 << BITS;
/// Up to 2^36 microseconds.
const BUCKETS: usize = 33 * PER_POWER;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_recorded_has_no_percentile() {
        assert_eq!(Histogram::default().percentile(50), None);
    }

    #[test]
    fn each_duration_is_found_again_within_four_percent() {
        let mut microseconds: u64 = 1;
        while microseconds < 1 << 36 {
            for duration in [microseconds, microseconds + microseconds / 3] {
                let histogram = Histogram::default();
                histogram.record(Duration::from_micros(duration));
                let found = histogram.percentile(95).unwrap().as_micros();
                let off = u64::try_from(found).unwrap().abs_diff(duration);
                assert!(off * 25 <= duration, "{duration} is shown as {found}");
            }
            microseconds *= 2;
        }
    }

    #[test]
    fn a_bucket_is_shown_as_the_number_in_its_middle() {
        // Buckets of one number up to 31, then of two up to 63, and so on.
        for (duration, shown) in [
            (15, 15),
            (16, 16),
            (31, 31),
            (40, 41),
            (63, 63),
            (1000, 1008),
        ] {
            let histogram = Histogram::default();
            histogram.record(Duration::from_micros(duration));
            let found = histogram.percentile(50);
            assert_eq!(found, Some(Duration::from_micros(shown)), "{duration}");
        }
    }

    #[test]
    fn debugging_shows_the_median() {
        let histogram = Histogram::default();
        histogram.record(Duration::from_micros(7));
        let shown = format!("{histogram:?}");
        assert_eq!(shown, "Histogram { median: Some(7µs), .. }");
    }

    #[test]
    fn percentiles_count_from_the_shortest_duration() {
        let histogram = Histogram::default();
        for ms in 1..=100 {
            histogram.record(Duration::from_millis(ms));
        }
        for (percent, expected) in [(1, 1), (50, 50), (95, 95), (100, 100)] {
            let found = histogram.percentile(percent).unwrap();
            let off = found.abs_diff(Duration::from_millis(expected));
            assert!(off * 25 <= found, "{percent}: {found:?}");
        }
    }

    #[test]
    fn a_duration_beyond_the_last_bucket_counts_in_the_last_bucket() {
        let histogram = Histogram::default();
        histogram.record(Duration::MAX);
        let found = histogram.percentile(50).unwrap();
        assert!(found > Duration::from_secs(18 * 3600), "{found:?}");
        assert!(found < Duration::from_secs(20 * 3600), "{found:?}");
    }
}
