//! Experiments: variants that are compared with each other.

use mcp_vary_experiment::{Experiment, Metric};

/// One experiment of a configuration (SV-24).
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "the configuration builds it")]
pub struct ExperimentConfig {
    /// Its name and its arms, the control first.
    pub experiment: Experiment,
    /// Text that decides who gets which arm, together with the experiment's name. `None`: the gateway's key, so that the
    /// arms change with it.
    pub salt: Option<String>,
    /// The key of the hint by which a client takes part: with the value `true`, or the experiment's name. Without it,
    /// `status: experimental` is enough. Only experiments with an arm that is experimental need either.
    pub opt_in: Option<String>,
    /// The key of the hint by which a client does not take part: with the value `true`, the experiment's name or
    /// `kind`.
    pub opt_out: Option<String>,
    /// What clients may not want to take part in, such as `latency-sensitive`.
    pub kind: Option<String>,
    /// What decides.
    pub metric: Metric,
    /// The difference that is worth finding: see [`Report::of`](mcp_vary_experiment::Report::of).
    pub effect: f64,
}
