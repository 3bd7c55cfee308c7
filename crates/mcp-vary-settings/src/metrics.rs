//! Metrics and probes.

pub use mcp_vary_operator::Readiness;

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
