//! What a report declares, as sentences for a person.

use crate::metric::Metric;
use crate::report::{Comparison, Estimate, Report, Verdict};

impl Report {
    /// What is declared, a sentence for each arm; one sentence if nothing is declared yet. `effect` is that of the report.
    pub fn sentences(&self, effect: f64) -> Vec<String> {
        if self.shares.are_uneven() {
            let p = match probability(self.shares.p) {
                small if small.starts_with('<') => small,
                p => format!("= {p}"),
            };
            return vec![format!(
                "Nothing is declared: the arms do not have the clients that were planned (p {p}). Look for what loses \
                 clients of one arm."
            )];
        }
        let decided = self.comparisons.iter();
        let sentences: Vec<_> = decided
            .filter_map(|compared| Some(sentence(compared, compared.verdict?, effect)))
            .collect();
        if !sentences.is_empty() {
            return sentences;
        }
        let (have, need) = self.too_few().unwrap_or_default();
        vec![format!(
            "Too early: {have:.0} clients in the smallest arm, and each needs {need:.0} or more."
        )]
    }
}

impl Metric {
    /// A value, as reports show it: shares in percent.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Duration => format!("{value:.1} ms"),
            _ if self.is_share() => format!("{:.1} %", value * 100.0),
            _ => format!("{value:.1}"),
        }
    }

    /// A difference with its sign; of shares in percentage points.
    pub fn show_difference(self, difference: f64) -> String {
        match self {
            Self::Duration => format!("{difference:+.1} ms"),
            _ if self.is_share() => format!("{:+.1}", difference * 100.0),
            _ => format!("{difference:+.1}"),
        }
    }
}

/// A probability, as reports show it.
pub fn probability(p: f64) -> String {
    if p < 0.001 {
        "<0.001".to_owned()
    } else {
        format!("{p:.3}")
    }
}

fn sentence(compared: &Comparison, verdict: Verdict, effect: f64) -> String {
    let variant = &compared.variant;
    let metric = compared.metric.name();
    let difference = sought(compared.metric, effect);
    match verdict {
        Verdict::TooFew { have, need, .. } => format!(
            "{variant}: too early: {have:.0} clients in the smaller arm; to find a difference of {difference} in `{metric}`, each arm \
             needs {need:.0}. So far: {}.",
            so_far(compared)
        ),
        Verdict::NoDifference => {
            format!("{variant}: no difference of {difference} or more in `{metric}`.")
        }
        Verdict::Better => format!("{variant}: better than the control by `{metric}`."),
        Verdict::Worse => format!("{variant}: worse than the control by `{metric}`."),
        Verdict::Different => format!("{variant}: differs from the control in `{metric}`."),
        Verdict::Uneven => format!("{variant}: nothing is declared."),
    }
}

/// What the interval of the difference shows and excludes.
fn so_far(compared: &Comparison) -> String {
    let Estimate { from, to, .. } = compared.difference;
    let shown = |difference: f64| compared.metric.show_difference(difference);
    let least = shown(from);
    let most = shown(to);
    if from > 0.0 || to < 0.0 {
        format!("a difference between {least} and {most}")
    } else {
        format!("no difference below {least} or above {most}")
    }
}

/// The difference that the experiment looks for.
fn sought(metric: Metric, effect: f64) -> String {
    let percent = effect * 100.0;
    if metric.is_share() {
        format!("{percent:.0} points")
    } else {
        format!("{percent:.0} %")
    }
}
