//! Durations in buckets.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::directory::Owner;
use crate::exposition::Value;

/// The upper bounds of buckets, in nanoseconds.
pub(crate) type Bounds = &'static [u64];

/// The buckets of the semantic conventions: 10 ms to 5 minutes.
pub(crate) const OPERATION: Bounds = &[
    10 * MS,
    20 * MS,
    50 * MS,
    100 * MS,
    200 * MS,
    500 * MS,
    S,
    2 * S,
    5 * S,
    10 * S,
    30 * S,
    60 * S,
    120 * S,
    300 * S,
];

/// What a gateway itself takes: 10 µs to 100 ms.
pub(crate) const OWN: Bounds = &[
    10 * US,
    20 * US,
    50 * US,
    100 * US,
    200 * US,
    500 * US,
    MS,
    2 * MS,
    5 * MS,
    10 * MS,
    20 * MS,
    50 * MS,
    100 * MS,
];

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// The durations of one series.
///
/// # Properties
///
/// An observation is two atomic additions. That of `prometheus-client` takes a lock.
#[derive(Debug)]
pub(crate) struct Histogram {
    bounds: Bounds,
    /// How many durations each bucket has; the last one is for those above all bounds.
    counts: Box<[AtomicU64]>,
    nanoseconds: AtomicU64,
}

impl Histogram {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            counts: zeros(bounds.len() + 1),
            nanoseconds: AtomicU64::new(0),
        }
    }

    /// Counts a duration. A bound belongs to its bucket.
    pub(crate) fn observe(&self, duration: Duration) {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let bucket = self.bounds.partition_point(|bound| *bound < nanoseconds);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// How many durations were observed.
    pub(crate) fn count(&self) -> u64 {
        self.counts
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
            .sum()
    }

    pub(crate) fn value(&self) -> Value {
        let bounds = self.bounds.iter().map(|bound| seconds(*bound));
        let counts = self.counts.iter().map(|it| it.load(Ordering::Relaxed));
        Value::Histogram {
            sum: seconds(self.nanoseconds.load(Ordering::Relaxed)),
            buckets: bounds.chain([f64::INFINITY]).zip(counts).collect(),
        }
    }
}

/// Histograms that are created when they are first used.
#[derive(Debug)]
pub(crate) struct Histograms {
    bounds: Bounds,
    series: Box<[OnceLock<Histogram>]>,
}

impl Histograms {
    pub(crate) fn new(bounds: Bounds, count: usize) -> Self {
        Self {
            bounds,
            series: (0..count).map(|_| OnceLock::new()).collect(),
        }
    }

    pub(crate) fn observe(&self, position: usize, duration: Duration) {
        if let Some(series) = self.series.get(position) {
            let histogram = series.get_or_init(|| Histogram::new(self.bounds));
            histogram.observe(duration);
        }
    }

    fn histograms(&self) -> impl Iterator<Item = (usize, &Histogram)> {
        let series = self.series.iter().enumerate();
        series.filter_map(|(position, series)| Some((position, series.get()?)))
    }

    /// Those that are used, with their positions.
    pub(crate) fn used(&self) -> impl Iterator<Item = (usize, Value)> {
        self.histograms()
            .map(|(position, it)| (position, it.value()))
    }

    /// How many durations each of them has.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (usize, Value)> {
        self.histograms()
            .map(|(position, it)| (position, Value::Counter(it.count())))
    }
}

impl Owner for Histograms {
    fn total(&self) -> u64 {
        self.histograms().map(|(_, it)| it.count()).sum()
    }
}

/// Counters that are shown once they are above zero.
#[derive(Debug)]
pub(crate) struct Counts(Box<[AtomicU64]>);

impl Counts {
    pub(crate) fn new(count: usize) -> Self {
        Self(zeros(count))
    }

    pub(crate) fn add(&self, position: usize) {
        if let Some(count) = self.0.get(position) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Those above zero, with their positions.
    pub(crate) fn used(&self) -> impl Iterator<Item = (usize, Value)> {
        let counters = self.0.iter().enumerate();
        let counts = counters.map(|(position, count)| (position, count.load(Ordering::Relaxed)));
        let used = counts.filter(|(_, count)| *count > 0);
        used.map(|(position, count)| (position, Value::Counter(count)))
    }
}

impl Owner for Counts {
    fn total(&self) -> u64 {
        self.0.iter().map(|it| it.load(Ordering::Relaxed)).sum()
    }
}

fn zeros(count: usize) -> Box<[AtomicU64]> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "2^53 nanoseconds are 104 days; of a larger sum the last digits do not matter"
)]
fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / S as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        let histogram = Histogram::new(OWN);
        for nanoseconds in [
            0,
            10 * US,
            10 * US + 1,
            100 * MS,
            100 * MS + 1,
            u64::MAX / 4,
        ] {
            histogram.observe(Duration::from_nanos(nanoseconds));
        }
        let Value::Histogram { buckets, .. } = histogram.value() else {
            panic!("not a histogram")
        };
        let counts: Vec<u64> = buckets.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(buckets[0].0, 0.000_01);
        assert_eq!(buckets[13].0, f64::INFINITY);
    }

    #[test]
    fn what_was_never_used_is_not_shown() {
        let counts = Counts::new(3);
        counts.add(1);
        counts.add(9);
        assert_eq!(counts.used().count(), 1);
        let histograms = Histograms::new(OPERATION, 2);
        histograms.observe(1, Duration::from_millis(7));
        let positions: Vec<usize> = histograms.used().map(|(at, _)| at).collect();
        assert_eq!(positions, [1]);
    }
}
