//! What is compared between arms.

use serde::{Deserialize, Serialize};

/// Which values of a metric are better.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Better {
    /// Greater ones.
    Greater,
    /// Smaller ones.
    Smaller,
    /// Neither: more calls can be more use or more attempts.
    Neither,
}

/// A ratio over all clients of an arm: the sum of its numerators by the sum of its denominators.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// The share of the calls that failed, whatever the reason.
    Failed,
    /// The share of the calls whose arguments were refused.
    InvalidArguments,
    /// The share of the failed calls after which the client called the same tool with other arguments, with success,
    /// within [`REPAIR_TIME`](crate::REPAIR_TIME).
    Repaired,
    /// The mean duration of a call, in milliseconds.
    Duration,
    /// The mean length of a result, in tokens.
    Tokens,
    /// The mean number of calls of a client.
    Calls,
}

impl Metric {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 6] = [
        Self::Failed,
        Self::InvalidArguments,
        Self::Repaired,
        Self::Duration,
        Self::Tokens,
        Self::Calls,
    ];

    /// Whether values are shares, between 0 and 1.
    pub const fn is_share(self) -> bool {
        matches!(self, Self::Failed | Self::InvalidArguments | Self::Repaired)
    }

    /// Which values are better.
    pub const fn better(self) -> Better {
        match self {
            Self::Repaired => Better::Greater,
            Self::Calls => Better::Neither,
            Self::Failed | Self::InvalidArguments | Self::Duration | Self::Tokens => {
                Better::Smaller
            }
        }
    }

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::InvalidArguments => "invalid-arguments",
            Self::Repaired => "repaired",
            Self::Duration => "duration",
            Self::Tokens => "tokens",
            Self::Calls => "calls",
        }
    }
}
