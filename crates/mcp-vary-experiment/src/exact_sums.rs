//! The sums over clients as integers.

use crate::metric::Metric;
use crate::totals::Sums;

/// The sums of an arm, for each metric.
pub(crate) type ArmSums = [ExactSums; 6];

/// Replaces the values of a client in all sums.
pub(crate) fn replace(sums: &mut ArmSums, before: [(u64, u64); 6], after: [(u64, u64); 6]) {
    for (sums, (before, after)) in sums.iter_mut().zip(before.into_iter().zip(after)) {
        sums.change(before, after);
    }
}

/// The sums as integers: they are changed with each call, and must not drift.
#[derive(Clone, Copy, Default)]
pub(crate) struct ExactSums {
    units: u64,
    n: u128,
    x: u128,
    nn: u128,
    xx: u128,
    nx: u128,
}

impl ExactSums {
    /// Replaces a client's values, which are a part of each sum.
    fn change(&mut self, (x, n): (u64, u64), (new_x, new_n): (u64, u64)) {
        self.units = self.units + u64::from(new_n > 0) - u64::from(n > 0);
        let [x, n, new_x, new_n] = [x, n, new_x, new_n].map(u128::from);
        self.n = self.n + new_n - n;
        self.x = self.x + new_x - x;
        self.nn = self.nn + new_n * new_n - n * n;
        self.xx = self.xx + new_x * new_x - x * x;
        self.nx = self.nx + new_n * new_x - n * x;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.units += other.units;
        self.n += other.n;
        self.x += other.x;
        self.nn += other.nn;
        self.xx += other.xx;
        self.nx += other.nx;
    }

    /// Durations are counted in microseconds and reported in milliseconds.
    #[expect(
        clippy::cast_precision_loss,
        reason = "an error in the sixteenth digit changes no interval"
    )]
    pub(crate) fn in_units_of(&self, metric: Metric) -> Sums {
        let scale = if metric == Metric::Duration {
            1_000.0
        } else {
            1.0
        };
        Sums {
            units: self.units as f64,
            n: self.n as f64,
            x: self.x as f64 / scale,
            nn: self.nn as f64,
            xx: self.xx as f64 / (scale * scale),
            nx: self.nx as f64 / scale,
        }
    }
}
