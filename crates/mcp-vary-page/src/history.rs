//! The histories of experiments: the counts, the difference and the verdict of each arm at points in time.

use std::collections::BTreeMap;
use std::iter::zip;

use mcp_vary_base::lock::Lock;
use mcp_vary_experiment::{Estimate, Metric, Report, Totals, Verdict};
use serde::Serialize;

/// The histories of experiments, by their names.
///
/// # Properties
///
/// - An experiment has at most [`MAX_POINTS`] points, from its first client until now. Two of them are at least a minute apart,
///   and further if that is needed to keep the first ones.
/// - Only those who read add points, so that a request costs nothing here.
/// - An experiment whose arms or metric have changed begins again, as its counts do.
#[derive(Debug, Default)]
pub(crate) struct Histories(Lock<BTreeMap<String, History>>);

/// The history of one experiment.
#[derive(Debug)]
struct History {
    setting: Setting,
    points: Vec<Point>,
    /// The seconds between two points.
    interval: u64,
}

/// What the points of a history have in common: the arms with their weights, and the metric.
type Setting = (Vec<(String, u32)>, Metric);

/// An experiment at a moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Point {
    /// The moment, in seconds since 1970-01-01 UTC.
    at: u64,
    arms: Vec<ArmPoint>,
}

/// An arm at a moment, by the metric that decides.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct ArmPoint {
    clients: f64,
    calls: f64,
    /// The arm's value less the control's; `None` for the control, and as long as there are too few clients.
    difference: Option<Estimate>,
    #[serde(flatten)]
    verdict: Option<Verdict>,
}

impl Histories {
    /// The points of an experiment until now, the last one now. It becomes a part of the history if it is due.
    pub(crate) fn add(&self, totals: &Totals, report: &Report, now: u64) -> Vec<Point> {
        let arms = totals.arms.iter();
        let setting = arms.map(|arm| (arm.variant.clone(), arm.weight)).collect();
        let setting = (setting, report.metric);
        let point = Point::of(totals, report, now);
        let mut histories = self.0.lock();
        let entry = histories.entry(totals.name.clone());
        let history = entry.or_insert_with(|| History::new(setting.clone()));
        if history.setting != setting {
            *history = History::new(setting);
        }
        history.add(&point);
        let mut points = history.points.clone();
        points.extend(
            points
                .last()
                .is_none_or(|last| !last.is_like(&point))
                .then_some(point),
        );
        points
    }

    /// Forgets experiments with other names than these.
    pub(crate) fn retain(&self, is_known: impl Fn(&str) -> bool) {
        self.0.lock().retain(|name, _| is_known(name));
    }
}

impl History {
    const fn new(setting: Setting) -> Self {
        Self {
            setting,
            points: Vec::new(),
            interval: INTERVAL,
        }
    }

    fn add(&mut self, point: &Point) {
        if let Some(last) = self.points.last()
            && (last.is_like(point) || point.at < last.at + self.interval)
        {
            return;
        }
        if self.points.len() == MAX_POINTS {
            // Every second point, so that the history still begins with the first one.
            let mut is_kept = false;
            self.points.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.interval *= 2;
        }
        self.points.push(point.clone());
    }
}

impl Point {
    fn of(totals: &Totals, report: &Report, at: u64) -> Self {
        let arms = zip(&report.shares.arms, &totals.arms).map(|((variant, clients, _), sums)| {
            let mut comparisons = report.comparisons.iter();
            let compared =
                comparisons.find(|it| it.metric == report.metric && it.variant == *variant);
            ArmPoint {
                clients: *clients,
                calls: sums.sums(Metric::Calls).x,
                difference: compared.map(|compared| compared.difference),
                verdict: compared.and_then(|compared| compared.verdict),
            }
        });
        Self {
            at,
            arms: arms.collect(),
        }
    }

    /// Whether nothing was counted between the two.
    fn is_like(&self, other: &Self) -> bool {
        self.arms == other.arms
    }
}

/// The most points of an experiment.
pub(crate) const MAX_POINTS: usize = 240;
/// The fewest seconds between two points.
pub(crate) const INTERVAL: u64 = 60;

#[cfg(test)]
mod tests {
    use mcp_vary_experiment::{Arm, Experiment, Tally};

    use super::*;

    /// The times of the points after a client is counted for two arms of these weights.
    fn times_of_experiment(histories: &Histories, weights: [u32; 2], now: u64) -> Vec<u64> {
        let arms = ["control", "verbose"].into_iter().zip(weights);
        let arms = arms.map(|(variant, weight)| Arm {
            variant: variant.to_owned(),
            weight,
        });
        let tally = Tally::new(Experiment::new("words", arms.collect()).unwrap());
        tally.take_part(Experiment::unit(b"key", "words", b"somebody"), 0);
        let totals = tally.totals();
        let report = Report::of(&totals, Metric::Failed, 0.05);
        let points = histories.add(&totals, &report, now);
        points.iter().map(|point| point.at).collect()
    }

    #[test]
    fn an_experiment_with_other_weights_begins_again() {
        let histories = Histories::default();
        assert_eq!(times_of_experiment(&histories, [1, 1], 5), [5]);
        assert_eq!(times_of_experiment(&histories, [1, 2], 500), [500]);
        histories.retain(|name| name != "words");
        assert_eq!(times_of_experiment(&histories, [1, 2], 900), [900]);
    }

    fn point(at: u64, clients: f64) -> Point {
        let arm = ArmPoint {
            clients,
            calls: clients,
            difference: None,
            verdict: None,
        };
        Point {
            at,
            arms: vec![arm],
        }
    }

    fn times(points: &[(u64, f64)]) -> Vec<u64> {
        let mut history = History::new((Vec::new(), Metric::Failed));
        for (at, clients) in points {
            history.add(&point(*at, *clients));
        }
        history.points.iter().map(|point| point.at).collect()
    }

    #[test]
    fn a_point_is_added_when_counts_have_changed_and_a_minute_has_passed() {
        let added = times(&[(0, 1.0), (59, 2.0), (60, 3.0), (200, 3.0), (201, 4.0)]);
        assert_eq!(added, [0, 60, 201]);
    }

    #[test]
    fn a_long_history_has_fewer_points_of_each_hour_and_all_of_the_time() {
        let minutes = 0..5_000_u32;
        let counted: Vec<_> = minutes
            .map(|minute| (u64::from(minute) * 60, f64::from(minute)))
            .collect();
        let points = times(&counted);
        assert!(
            points.len() <= MAX_POINTS && points.len() > MAX_POINTS / 2,
            "{points:?}"
        );
        assert_eq!(points.first(), Some(&0));
        let mut steps = points.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(steps.all(|step| step == 32 * 60), "{points:?}");
    }
}
