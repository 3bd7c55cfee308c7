//! Sums over the clients of each arm, from which everything else is computed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::metric::Metric;

/// Sums over the clients of one arm, for one metric: `x` is a client's numerator, `n` its denominator.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Sums {
    /// The number of clients with a denominator above 0.
    pub units: f64,
    /// Σ n.
    pub n: f64,
    /// Σ x.
    pub x: f64,
    /// Σ n².
    pub nn: f64,
    /// Σ x².
    pub xx: f64,
    /// Σ n·x.
    pub nx: f64,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.units += other.units;
        self.n += other.n;
        self.x += other.x;
        self.nn += other.nn;
        self.xx += other.xx;
        self.nx += other.nx;
    }
}

/// The sums of one arm.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ArmTotals {
    /// The id of its variant.
    pub variant: String,
    /// Its weight.
    pub weight: u32,
    /// By the name of the metric.
    pub metrics: BTreeMap<String, Sums>,
}

impl ArmTotals {
    /// The sums of a metric; zeros if there are none.
    pub fn sums(&self, metric: Metric) -> Sums {
        self.metrics.get(metric.name()).copied().unwrap_or_default()
    }
}

/// The sums of an experiment.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Totals {
    /// The experiment's name.
    pub name: String,
    /// The control first.
    pub arms: Vec<ArmTotals>,
    /// If replicas share the counts, what they share: totals with the same text here are of the same clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<String>,
}

/// Two totals are not of the same experiment: names, arms or weights differ.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error(
    "the replicas run different experiments: `{0}` and `{1}`; give them the same configuration"
)]
pub struct TotalsError(pub String, pub String);

impl Totals {
    /// Adds what another replica counted. If both [share](Self::shared) their counts, nothing is added: those of more
    /// clients are taken. So of several replicas, first join those that share.
    ///
    /// Without that, a client whose calls went to several replicas counts as several clients, which makes intervals
    /// slightly narrower than they should be.
    ///
    /// # Errors
    ///
    /// If the other replica has another name, other arms or other weights. Nothing is added
    /// then.
    pub fn add(&mut self, other: &Self) -> Result<(), TotalsError> {
        let arms = |totals: &Self| -> Vec<_> {
            let arms = totals.arms.iter();
            arms.map(|arm| (arm.variant.clone(), arm.weight)).collect()
        };
        if self.name != other.name || arms(self) != arms(other) {
            let shown = |totals: &Self| {
                let listed = totals.arms.iter();
                let arms: Vec<_> = listed
                    .map(|arm| format!("{}: {}", arm.variant, arm.weight))
                    .collect();
                format!("{} ({})", totals.name, arms.join(", "))
            };
            return Err(TotalsError(shown(self), shown(other)));
        }
        if self.shared.is_some() && self.shared == other.shared {
            if self.clients_and_calls() < other.clients_and_calls() {
                other.clone_into(self);
            }
            return Ok(());
        }
        for (mine, others) in self.arms.iter_mut().zip(&other.arms) {
            for (metric, sums) in &others.metrics {
                mine.metrics.entry(metric.clone()).or_default().add(sums);
            }
        }
        Ok(())
    }

    fn clients_and_calls(&self) -> (f64, f64) {
        let sums = self.arms.iter().map(|arm| arm.sums(Metric::Calls));
        sums.fold((0.0, 0.0), |(clients, calls), sums| {
            (clients + sums.units, calls + sums.x)
        })
    }
}
