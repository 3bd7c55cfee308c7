//! How often a client may change its variant.

use std::time::Duration;

/// How often the variant may change.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use mcp_vary_rmcp::server::SwitchLimit;
///
/// let limit = SwitchLimit::new(3, Duration::from_secs(60));
/// assert_eq!((limit.most, limit.within.as_secs()), (3, 60));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct SwitchLimit {
    /// So many switches,
    pub most: usize,
    /// within this time.
    pub within: Duration,
}

impl SwitchLimit {
    /// At most `most` switches `within` a time.
    #[must_use]
    pub fn new(most: usize, within: Duration) -> Self {
        Self { most, within }
    }
}

impl Default for SwitchLimit {
    /// Twelve in a minute.
    fn default() -> Self {
        Self::new(12, Duration::from_secs(60))
    }
}
