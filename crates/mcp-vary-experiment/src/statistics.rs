//! Ratios of sums over clients, their variance, and tests of their differences.

use statrs::distribution::{ChiSquared, ContinuousCDF, Normal, StudentsT};
use statrs::function::factorial::ln_factorial;

use crate::totals::Sums;

/// A ratio with the variance of its estimate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratio {
    pub(crate) value: f64,
    pub(crate) variance: f64,
    pub(crate) units: f64,
}

impl Ratio {
    /// `None` below two clients, of which no variance can be known.
    ///
    /// The variance is that of a ratio of two means over independent clients, by the delta method.
    pub(crate) fn of(sums: &Sums) -> Option<Self> {
        let all = [sums.units, sums.n, sums.x, sums.nn, sums.xx, sums.nx];
        if all.iter().any(|it| !it.is_finite() || *it < 0.0) || sums.units < 2.0 || sums.n <= 0.0 {
            return None;
        }
        let value = sums.x / sums.n;
        let squares = sums.xx - 2.0 * value * sums.nx + value * value * sums.nn;
        let variance = squares.max(0.0) / (sums.n * sums.n) * sums.units / (sums.units - 1.0);
        Some(Self {
            value,
            variance,
            units: sums.units,
        })
    }

    /// The variance of one client's contribution.
    fn unit_variance(&self) -> f64 {
        self.variance * self.units
    }

    /// The interval of a share (Wilson), for as many independent calls as would have this variance.
    pub(crate) fn share_interval(&self, level: f64) -> (f64, f64) {
        let spread = self.value * (1.0 - self.value);
        let n = if self.variance > 0.0 {
            spread / self.variance
        } else {
            self.units
        };
        let z = normal_quantile(1.0 - (1.0 - level) / 2.0);
        let center = (self.value + z * z / (2.0 * n)) / (1.0 + z * z / n);
        let half = z / (1.0 + z * z / n) * (spread / n + z * z / (4.0 * n * n)).sqrt();
        ((center - half).max(0.0), (center + half).min(1.0))
    }

    /// The interval of a mean.
    pub(crate) fn mean_interval(&self, level: f64) -> (f64, f64) {
        let t = t_quantile(1.0 - (1.0 - level) / 2.0, self.units - 1.0);
        let half = t * self.variance.sqrt();
        ((self.value - half).max(0.0), self.value + half)
    }
}

/// The difference of two ratios, and how certain it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Difference {
    pub(crate) value: f64,
    pub(crate) interval: (f64, f64),
    pub(crate) p: f64,
}

impl Difference {
    /// Welch's test: the variances of the arms may differ. Without any variance, Fisher's exact test.
    pub(crate) fn between(control: &Ratio, arm: &Ratio, is_share: bool, level: f64) -> Self {
        let value = arm.value - control.value;
        let variance = control.variance + arm.variance;
        let part = |ratio: &Ratio| ratio.variance * ratio.variance / (ratio.units - 1.0);
        let parts = part(control) + part(arm);
        if variance <= 0.0 || parts <= 0.0 {
            return Self::without_variance(control, arm, is_share, level);
        }
        let freedom = variance * variance / parts;
        let error = variance.sqrt();
        let half = t_quantile(1.0 - (1.0 - level) / 2.0, freedom) * error;
        let beyond = StudentsT::new(0.0, 1.0, freedom).map(|t| t.sf((value / error).abs()));
        // Two shares differ by 1 at most, however few clients there are.
        let most = if is_share { 1.0 } else { f64::INFINITY };
        Self {
            value,
            interval: ((value - half).max(-most), (value + half).min(most)),
            p: (2.0 * beyond.unwrap_or(0.5)).min(1.0),
        }
    }

    /// The difference where all clients of an arm have the same value: that all calls of one arm fail and none of the
    /// other, for example. The interval of a share is Newcombe's, of the intervals of both arms (Wilson).
    fn without_variance(control: &Ratio, arm: &Ratio, is_share: bool, level: f64) -> Self {
        let value = arm.value - control.value;
        let (from, to) = if is_share {
            let (least, most) = control.share_interval(level);
            let (arm_least, arm_most) = arm.share_interval(level);
            let below = (arm.value - arm_least).hypot(most - control.value);
            let above = (arm_most - arm.value).hypot(control.value - least);
            (value - below, value + above)
        } else {
            (value, value)
        };
        let p = if value == 0.0 {
            1.0
        } else {
            probability_of_separation(control.units, arm.units)
        };
        Self {
            value,
            interval: (from, to),
            p,
        }
    }
}

/// The probability that chance separates clients of two kinds as far as possible: all of one kind in one arm, all of the
/// other in the other one (Fisher's exact test).
fn probability_of_separation(control: f64, arm: f64) -> f64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of clients"
    )]
    let ln_factorial = |units: f64| ln_factorial(units.round() as u64);
    let orders = ln_factorial(control + arm) - ln_factorial(control) - ln_factorial(arm);
    // In arms of one size, the opposite is as improbable.
    let ways = if control == arm { 2.0 } else { 1.0 };
    (ways * (-orders).exp()).min(1.0)
}

/// How many clients each arm needs for a difference of `effect` to be found with probability `power`.
pub(crate) fn needed(control: &Ratio, arm: &Ratio, effect: f64, level: f64, power: f64) -> f64 {
    let z = normal_quantile(1.0 - (1.0 - level) / 2.0) + normal_quantile(power);
    z * z * (control.unit_variance() + arm.unit_variance()) / (effect * effect)
}

/// The probability to find a difference of `effect` with the clients that there are.
pub(crate) fn power(control: &Ratio, arm: &Ratio, effect: f64, level: f64) -> f64 {
    let error = (control.variance + arm.variance).sqrt();
    if error <= 0.0 {
        return 1.0;
    }
    normal(effect / error - normal_quantile(1.0 - (1.0 - level) / 2.0))
}

/// The probability of shares as unequal as these if clients are assigned by `weights` (χ²).
///
/// 1 if fewer than two arms have a weight, or nobody was assigned.
pub(crate) fn probability_of_shares(units: &[f64], weights: &[f64]) -> f64 {
    let weighted = || {
        units
            .iter()
            .zip(weights)
            .filter(|(_, weight)| **weight > 0.0)
    };
    let all: f64 = weighted().map(|(units, _)| units).sum();
    let sum: f64 = weighted().map(|(_, weight)| weight).sum();
    let mut arms = 0.0;
    let mut squares = 0.0;
    for (units, weight) in weighted() {
        let expected = all * weight / sum;
        arms += 1.0;
        squares += (units - expected) * (units - expected) / expected;
    }
    if arms < 2.0 || all <= 0.0 || !squares.is_finite() {
        return 1.0;
    }
    ChiSquared::new(arms - 1.0).map_or(1.0, |distribution| distribution.sf(squares))
}

fn normal(at: f64) -> f64 {
    Normal::standard().cdf(at)
}

fn normal_quantile(at: f64) -> f64 {
    Normal::standard().inverse_cdf(at)
}

/// Beyond a thousand degrees of freedom it is the normal one's, and quicker to compute.
fn t_quantile(at: f64, freedom: f64) -> f64 {
    if freedom > 1_000.0 {
        return normal_quantile(at);
    }
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |t| t.inverse_cdf(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is_near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-3, "{found}, not {expected}");
    }

    /// `units` clients with a call each, of which `x` failed.
    fn sums(units: f64, x: f64) -> Sums {
        Sums {
            units,
            n: units,
            x,
            nn: units,
            xx: x,
            nx: x,
        }
    }

    fn difference(control: Sums, arm: Sums) -> Difference {
        let [control, arm] = [control, arm].map(|sums| Ratio::of(&sums).unwrap());
        Difference::between(&control, &arm, true, 0.95)
    }

    /// Quantiles of a table of Student's t.
    #[test]
    fn few_degrees_of_freedom_have_wide_intervals() {
        is_near(t_quantile(0.975, 1.0), 12.706);
        is_near(t_quantile(0.975, 10.0), 2.228);
        is_near(t_quantile(0.975, 100.0), 1.984);
        is_near(t_quantile(0.975, 1_000.0), 1.9623);
        is_near(t_quantile(0.975, 1_001.0), 1.95996);
        let ten = Ratio::of(&sums(10.0, 5.0)).unwrap();
        let half = (0.25_f64 / 9.0).sqrt() * 2.2622;
        is_near(ten.mean_interval(0.95).1, 0.5 + half);
    }

    #[test]
    fn a_difference_of_shares_is_at_most_one_and_that_of_means_is_not_bounded() {
        let [control, arm] = [sums(2.0, 1.0), sums(2.0, 2.0)].map(|sums| Ratio::of(&sums).unwrap());
        let between = |is_share| Difference::between(&control, &arm, is_share, 0.95).interval;
        let shares = between(true);
        is_near(shares.0, -1.0);
        is_near(shares.1, 1.0);
        // With one degree of freedom, 12.706 times the error, which is 0.5.
        let means = between(false);
        is_near(means.0, 0.5 - 6.353);
        is_near(means.1, 0.5 + 6.353);
    }

    #[test]
    fn fewer_than_two_clients_have_no_variance() {
        assert!(Ratio::of(&sums(0.0, 0.0)).is_none());
        assert!(Ratio::of(&sums(1.0, 1.0)).is_none());
        assert!(Ratio::of(&sums(1.9, 1.0)).is_none());
        let two = Ratio::of(&sums(2.0, 1.0)).unwrap();
        is_near(two.value, 0.5);
        is_near(two.variance, 0.25);
    }

    #[test]
    fn all_failures_of_one_arm_and_none_of_the_other_are_no_chance() {
        // Of 20 orders of 3 and 3 clients, two separate them.
        is_near(difference(sums(3.0, 0.0), sums(3.0, 3.0)).p, 0.1);
        // Of 10 orders of 2 and 3 clients, one does.
        is_near(difference(sums(2.0, 2.0), sums(3.0, 0.0)).p, 0.1);
        let hundred = difference(sums(100.0, 0.0), sums(100.0, 100.0));
        assert!(hundred.p < 1e-50, "{}", hundred.p);
        is_near(hundred.value, 1.0);
        // Each interval of Wilson has 3.7 points.
        is_near(hundred.interval.0, 1.0 - 0.037_f64.hypot(0.037));
        is_near(hundred.interval.1, 1.0);
        let equal = difference(sums(100.0, 0.0), sums(80.0, 0.0));
        is_near(equal.p, 1.0);
        is_near(equal.interval.0, -0.037);
        is_near(equal.interval.1, 0.0458);
    }
}
