//! Whether one ranking finds more than another, query by query.

use std::fmt;

use super::figures::as_float;

/// The queries that only one of two rankings answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Comparison {
    only_first: usize,
    only_second: usize,
}

impl Comparison {
    /// Compares the hits of two rankings of the same queries.
    pub(super) fn new(first: &[bool], second: &[bool]) -> Self {
        let count = |wanted: (bool, bool)| {
            let pairs = first.iter().copied().zip(second.iter().copied());
            pairs.filter(|pair| *pair == wanted).count()
        };
        Self {
            only_first: count((true, false)),
            only_second: count((false, true)),
        }
    }

    /// The two-sided p-value of McNemar's exact test: how likely rankings that are equally good differ as much.
    pub(super) fn p_value(self) -> f64 {
        let trials = self.only_first + self.only_second;
        let least = self.only_first.min(self.only_second);
        let mut log_ways = 0.0;
        let mut tail = 0.0;
        for successes in 0..=least {
            if successes > 0 {
                log_ways += (as_float(trials - successes + 1) / as_float(successes)).ln();
            }
            tail += (log_ways - as_float(trials) * 2.0_f64.ln()).exp();
        }
        (2.0 * tail).min(1.0)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} queries more, {} fewer, p = {:.4} (McNemar, exact, two-sided)",
            self.only_first,
            self.only_second,
            self.p_value()
        )
    }
}
