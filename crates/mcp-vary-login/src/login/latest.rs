//! The login that was read last, for those who do not wait for a refresh.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{LoginCredentials, Shared, State};
use crate::store::{Login, LoginSummary, Version};

/// A login, and its version in the store.
#[derive(Debug, Default)]
pub(super) struct Latest {
    version: Option<Version>,
    login: Option<Login>,
}

impl LoginCredentials {
    /// The login as it was read last, without waiting; `None` if nobody was logged in.
    pub fn latest(&self) -> Option<LoginSummary> {
        let now = (self.0.environment.now)();
        let latest = self.0.latest.lock();
        Some(latest.login.as_ref()?.summary(now))
    }

    /// Ends when the store has another login than the one that was read last.
    pub async fn renewed(&self) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let version = self.0.store.version(&self.0.key);
            if version.is_some() && version != self.0.latest.lock().version {
                return;
            }
        }
    }
}

impl Shared {
    /// Shows the login of `state` to those who do not wait.
    pub(super) fn publish(&self, state: &State) {
        self.absent_at.store(u64::MAX, Ordering::Relaxed);
        *self.latest.lock() = Latest {
            version: state.version,
            login: state.login.clone(),
        };
    }
}

/// How often the store is looked at.
const INTERVAL: Duration = Duration::from_secs(1);
