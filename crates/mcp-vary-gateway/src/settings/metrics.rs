//! Metrics and probes.

/// What metrics need of the program. A gateway measures nothing without it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MetricsSettings {
    /// The number of tokens of a text, in the encoding o200k.
    pub count_tokens: fn(&str) -> usize,
}

impl MetricsSettings {
    /// Metrics whose tokens are counted by this function.
    #[must_use]
    pub const fn new(count_tokens: fn(&str) -> usize) -> Self {
        Self { count_tokens }
    }
}

/// How many servers must be up for the gateway to be ready.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Readiness {
    /// At least one.
    #[default]
    Any,
    /// Each of them.
    All,
    /// The gateway is ready without them.
    None,
}
