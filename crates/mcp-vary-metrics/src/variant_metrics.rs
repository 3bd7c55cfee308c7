//! The series of one variant.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::closed_list::{CODES, REASONS};
use crate::directory::Owner;
use crate::exposition::{Labels, Value};
use crate::histogram::{Counts, Histogram, OPERATION};
use crate::request_labels::RequestLabels;

/// The series of one variant.
#[derive(Debug)]
pub struct VariantMetrics {
    /// By method, era and outcome.
    requests: Counts,
    call_durations: Histogram,
    /// By what selected the variant.
    chosen: Counts,
    deprecated_uses: AtomicU64,
    /// The bytes of the results of tools, as servers wrote them and as clients got them.
    result_bytes: [AtomicU64; 2],
}

/// The bytes of a token, as figures of results estimate them.
pub const BYTES_PER_TOKEN: u64 = 4;

impl Default for VariantMetrics {
    fn default() -> Self {
        Self {
            requests: Counts::new(RequestLabels::SERIES),
            call_durations: Histogram::new(OPERATION),
            chosen: Counts::new(REASONS.len()),
            deprecated_uses: AtomicU64::new(0),
            result_bytes: Default::default(),
        }
    }
}

impl Owner for VariantMetrics {
    fn total(&self) -> u64 {
        self.requests.total()
    }
}

impl VariantMetrics {
    pub(crate) fn count(&self, position: usize) {
        self.requests.add(position);
    }

    pub(crate) fn observe_call(&self, duration: Duration) {
        self.call_durations.observe(duration);
    }

    pub(crate) fn choose(&self, reason: &str) {
        self.chosen.add(REASONS.position(reason));
    }

    pub(crate) fn use_deprecated(&self) {
        self.deprecated_uses.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a result: its bytes as the server wrote it, and as the client got it.
    pub(crate) fn add_result(&self, server: usize, client: usize) {
        for (total, bytes) in self.result_bytes.iter().zip([server, client]) {
            total.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    pub(crate) fn requests(&self, variant: &str) -> Vec<(Labels, Value)> {
        let used = self.requests.used().map(|(position, value)| {
            let (mut labels, code) = RequestLabels::of_series(position, "method");
            labels.push(("variant", variant.to_owned()));
            labels.push(("code", CODES.value(code).to_owned()));
            (labels, value)
        });
        used.collect()
    }

    pub(crate) fn call_durations(&self, variant: &str) -> Option<(Labels, Value)> {
        let is_used = self.call_durations.count() > 0;
        is_used.then(|| (of_variant(variant), self.call_durations.value()))
    }

    pub(crate) fn chosen(&self, variant: &str) -> Vec<(Labels, Value)> {
        let used = self.chosen.used().map(|(reason, value)| {
            let mut labels = of_variant(variant);
            labels.push(("why", REASONS.value(reason).to_owned()));
            (labels, value)
        });
        used.collect()
    }

    pub(crate) fn deprecated_uses(&self, variant: &str) -> Option<(Labels, Value)> {
        let uses = self.deprecated_uses.load(Ordering::Relaxed);
        (uses > 0).then(|| (of_variant(variant), Value::Counter(uses)))
    }

    pub(crate) fn result_tokens(&self, variant: &str) -> Vec<(Labels, Value)> {
        let stages = ["server", "client"].into_iter().zip(&self.result_bytes);
        let series = stages.map(|(stage, bytes)| {
            let mut labels = of_variant(variant);
            labels.push(("stage", stage.to_owned()));
            let tokens = bytes.load(Ordering::Relaxed) / BYTES_PER_TOKEN;
            (labels, Value::Counter(tokens))
        });
        let is_used = self.result_bytes[0].load(Ordering::Relaxed) > 0;
        series.filter(|_| is_used).collect()
    }
}

fn of_variant(variant: &str) -> Labels {
    vec![("variant", variant.to_owned())]
}
