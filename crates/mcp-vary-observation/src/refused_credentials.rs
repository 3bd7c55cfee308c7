//! The credentials that were refused.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// The number of credentials that were refused since the start, and the time of the last one. It has nothing of any of them.
#[derive(Debug, Default)]
pub struct RefusedCredentials {
    count: AtomicU64,
    /// In seconds since 1970-01-01 UTC.
    last: AtomicU64,
}

/// How many credentials were refused, and when.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RefusedCredentialsStatus {
    /// Since the start of the gateway.
    pub count: u64,
    /// How long ago the last one was, in seconds.
    pub last_seconds_ago: u64,
}

impl RefusedCredentials {
    /// Counts one that is refused at `now`, in seconds since 1970-01-01 UTC.
    pub fn add(&self, now: u64) {
        self.last.fetch_max(now, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Those until `now`; `None` if there are none.
    pub fn status(&self, now: u64) -> Option<RefusedCredentialsStatus> {
        let count = self.count.load(Ordering::Relaxed);
        (count > 0).then(|| RefusedCredentialsStatus {
            count,
            last_seconds_ago: now.saturating_sub(self.last.load(Ordering::Relaxed)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_credentials_are_counted_with_the_time_since_the_last_one() {
        let refused = RefusedCredentials::default();
        assert_eq!(refused.status(9), None);
        for now in [10, 30] {
            refused.add(now);
        }
        let expected = RefusedCredentialsStatus {
            count: 2,
            last_seconds_ago: 12,
        };
        assert_eq!(refused.status(42), Some(expected));
        assert_eq!(refused.status(29).map(|it| it.last_seconds_ago), Some(0));
    }
}
