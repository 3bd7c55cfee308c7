//! Counts failures of the operator's rules.

use std::sync::atomic::{AtomicU64, Ordering};

use mcp_vary_base::log_backoff::is_logged;
use tracing::{debug, warn};

/// Counts how often a rule could not be applied.
#[derive(Debug, Default)]
pub struct RuleFailures(AtomicU64);

impl RuleFailures {
    /// Counts a failure, and logs it the first few times, then less and less often. `why` may contain parts of the
    /// server's result.
    pub fn record(&self, server: &str, what: &str, part: &str, why: &str) {
        let count = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        debug!(server, what, part, why, "result not rewritten");
        if is_logged(count) {
            warn!(
                server,
                what,
                part,
                count,
                "result not rewritten, sent as the server returned it; the level debug has the reason"
            );
        }
    }

    /// How often a rule failed.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
