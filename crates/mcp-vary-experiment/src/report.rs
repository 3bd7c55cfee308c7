//! What is known of an experiment.

use serde::Serialize;

use crate::metric::{Better, Metric};
use crate::statistics::{Difference, Ratio, needed, power, probability_of_shares};
use crate::totals::{ArmTotals, Totals};

/// Below this number of clients in each arm nothing is declared, whatever their variance: the intervals assume many.
pub const MIN_UNITS: f64 = 100.0;

/// The probability below which the shares of the arms are not by chance.
const UNEVEN: f64 = 0.001;

/// The probability below which a difference is declared before the clients are as many as needed. It is so small that
/// looking often finds hardly more differences that do not exist (Haybittle and Peto).
const EARLY: f64 = 0.001;

/// The probability of an error that operators accept, for all comparisons of an experiment together.
const LEVEL: f64 = 0.95;

/// The probability to find a difference that exists.
const POWER: f64 = 0.8;

/// A value and the interval that it is in, in 95 of 100 cases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// The lower end.
    pub from: f64,
    /// The upper end.
    pub to: f64,
}

/// What can be said of an arm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// Too few clients took part for a verdict. The interval of the difference says what they show or exclude already.
    TooFew {
        /// The clients of the smaller arm.
        have: f64,
        /// How many it needs.
        need: f64,
    },
    /// The arms have other shares of the clients than planned, so their clients are not alike: find out why.
    Uneven,
    /// A difference of the size that the experiment looks for would have been found, and was not.
    NoDifference,
    /// The arm is better than the control.
    Better,
    /// The arm is worse.
    Worse,
    /// The arm differs, and the metric does not say whether that is good.
    Different,
}

/// An arm beside the control, by one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Comparison {
    /// By which metric.
    pub metric: Metric,
    /// The arm's variant.
    pub variant: String,
    /// The control's value.
    pub control: Estimate,
    /// The arm's value.
    pub arm: Estimate,
    /// The arm's value less the control's. Its interval allows for the number of arms.
    pub difference: Estimate,
    /// How probable a difference of this size is if there is none.
    pub p: f64,
    /// How probable it is to find a difference of the size that the experiment looks for.
    pub power: f64,
    /// What is declared; only by the metric that the experiment is about.
    #[serde(flatten)]
    pub verdict: Option<Verdict>,
}

/// The clients of each arm, as planned and as they are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shares {
    /// For each arm its variant, its number of clients, and the number that its weight would give it.
    pub arms: Vec<(String, f64, f64)>,
    /// How probable shares as unequal as these are. Below 0.001 something is wrong with the assignment.
    pub p: f64,
}

impl Shares {
    /// Whether something is wrong with the assignment (a *sample ratio mismatch*).
    pub fn are_uneven(&self) -> bool {
        self.p < UNEVEN
    }
}

/// What is known of an experiment.
///
/// # Examples
///
/// ```
/// use mcp_vary_experiment::{Arm, Experiment, Metric, Report, Tally, Verdict};
///
/// let arm = |variant: &str| Arm { variant: variant.to_owned(), weight: 1 };
/// let tally = Tally::new(Experiment::new("words", vec![arm("control"), arm("verbose")])?);
/// let report = Report::of(&tally.totals(), Metric::Failed, 0.05);
///
/// // Nobody has called yet, so there is nothing to compare.
/// assert!(report.comparisons.is_empty());
/// assert_eq!(report.too_few(), Some((0.0, 100.0)));
/// # Ok::<(), mcp_vary_experiment::ExperimentError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// The experiment's name.
    pub name: String,
    /// The metric that decides.
    pub metric: Metric,
    /// The clients of the arms.
    pub shares: Shares,
    /// Each arm beside the control by each metric, as far as both have two clients.
    pub comparisons: Vec<Comparison>,
    #[serde(skip)]
    fewest: f64,
}

impl Report {
    /// The report of an experiment that is decided by `metric`.
    ///
    /// `effect` is the difference that is worth finding: of shares in absolute terms (0.05 are five calls of a hundred),
    /// of other metrics as a part of the control's value.
    pub fn of(totals: &Totals, metric: Metric, effect: f64) -> Self {
        let split = shares(totals);
        let takers = |arm: &ArmTotals| arm.sums(Metric::Calls).units;
        let fewest = totals.arms.iter().map(takers).fold(f64::INFINITY, f64::min);
        let mut comparisons = Vec::new();
        if let Some((control, arms)) = totals.arms.split_first() {
            let setting = Setting {
                effect,
                level: 1.0 - (1.0 - LEVEL) / compared(arms),
                decides: metric,
                is_uneven: split.are_uneven(),
            };
            for metric in Metric::ALL {
                let compared = arms.iter();
                comparisons
                    .extend(compared.filter_map(|arm| setting.compare(metric, control, arm)));
            }
        }
        Self {
            name: totals.name.clone(),
            metric,
            shares: split,
            comparisons,
            fewest,
        }
    }

    /// The clients of the smallest arm and the number that each needs at least, if that is more.
    pub fn too_few(&self) -> Option<(f64, f64)> {
        (self.fewest < MIN_UNITS).then_some((self.fewest, MIN_UNITS))
    }
}

fn shares(totals: &Totals) -> Shares {
    let units: Vec<f64> = totals
        .arms
        .iter()
        .map(|arm| arm.sums(Metric::Calls).units)
        .collect();
    let weights: Vec<f64> = totals
        .arms
        .iter()
        .map(|arm| f64::from(arm.weight))
        .collect();
    let p = probability_of_shares(&units, &weights);
    let all: f64 = units.iter().sum();
    let sum: f64 = weights.iter().sum();
    let counted = totals.arms.iter().zip(units.iter().zip(&weights));
    let arms =
        counted.map(|(arm, (units, weight))| (arm.variant.clone(), *units, all * weight / sum));
    Shares {
        arms: arms.collect(),
        p,
    }
}

/// What all comparisons of a report have in common.
struct Setting {
    effect: f64,
    level: f64,
    decides: Metric,
    is_uneven: bool,
}

impl Setting {
    fn compare(&self, metric: Metric, control: &ArmTotals, arm: &ArmTotals) -> Option<Comparison> {
        let variant = arm.variant.clone();
        let control = Ratio::of(&control.sums(metric))?;
        let arm = Ratio::of(&arm.sums(metric))?;
        let difference = Difference::between(&control, &arm, metric.is_share(), self.level);
        let effect = if metric.is_share() {
            self.effect
        } else {
            self.effect * control.value
        };
        let verdict = || self.verdict(metric, (&control, &arm), &difference, effect);
        Some(Comparison {
            metric,
            variant,
            control: estimate(metric, &control),
            arm: estimate(metric, &arm),
            difference: Estimate {
                value: difference.value,
                from: difference.interval.0,
                to: difference.interval.1,
            },
            p: difference.p,
            power: power(&control, &arm, effect, self.level),
            verdict: (metric == self.decides).then(verdict),
        })
    }

    fn verdict(
        &self,
        metric: Metric,
        (control, arm): (&Ratio, &Ratio),
        difference: &Difference,
        effect: f64,
    ) -> Verdict {
        let have = control.units.min(arm.units);
        let needed = needed(control, arm, effect, self.level, POWER);
        let finite = if needed.is_finite() { needed } else { 0.0 };
        let need = finite.ceil().max(MIN_UNITS);
        if self.is_uneven {
            return Verdict::Uneven;
        }
        // The comparisons share the error that is accepted.
        let error = 1.0 - self.level;
        let is_clear = have >= MIN_UNITS && difference.p < EARLY * error / (1.0 - LEVEL);
        if have < need && !is_clear {
            return Verdict::TooFew { have, need };
        }
        if difference.p >= error {
            return Verdict::NoDifference;
        }
        match (metric.better(), difference.value > 0.0) {
            (Better::Greater, true) | (Better::Smaller, false) => Verdict::Better,
            (Better::Greater, false) | (Better::Smaller, true) => Verdict::Worse,
            (Better::Neither, _) => Verdict::Different,
        }
    }
}

fn estimate(metric: Metric, ratio: &Ratio) -> Estimate {
    let (from, to) = if metric.is_share() {
        ratio.share_interval(LEVEL)
    } else {
        ratio.mean_interval(LEVEL)
    };
    Estimate {
        value: ratio.value,
        from,
        to,
    }
}

/// The number of comparisons by one metric: each has its part of the error that operators accept (Bonferroni).
fn compared(arms: &[ArmTotals]) -> f64 {
    u32::try_from(arms.len()).map_or(1.0, f64::from).max(1.0)
}
