//! The limit on how often a client may change its variant.

use std::time::Duration;

/// Limits how often a client may change its variant.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use mcp_vary_rmcp::client::SwitchLimit;
///
/// let limit = SwitchLimit::new(3, Duration::from_secs(60));
/// assert_eq!((limit.max_switches, limit.window.as_secs()), (3, 60));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct SwitchLimit {
    /// The largest number of switches
    pub max_switches: usize,
    /// within this time.
    pub window: Duration,
}

impl SwitchLimit {
    /// Allows at most `max_switches` within `window`.
    #[must_use]
    pub fn new(max_switches: usize, window: Duration) -> Self {
        Self {
            max_switches,
            window,
        }
    }
}

impl Default for SwitchLimit {
    /// Twelve switches in a minute.
    fn default() -> Self {
        Self::new(12, Duration::from_secs(60))
    }
}
