//! The evictions of connections to one server.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tracing::warn;

/// The connections of one kind to one server.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ConnectionStatus {
    /// How many are open.
    pub open: usize,
    /// How many may be open, `connections` or `dedicated-connections`.
    pub limit: usize,
    /// How many were closed for another client since the server was configured.
    pub evicted: u64,
}

/// The evictions of one kind of connections to one server, by the keys of the connections.
#[derive(Debug)]
pub(crate) struct Evictions<K> {
    total: u64,
    left_out: u64,
    /// When connections were evicted, those of the last minute.
    recent: BTreeMap<K, Instant>,
    /// How many of them were opened again, without a minute in between.
    returned: u64,
    last_returned: Option<Instant>,
}

impl<K> Default for Evictions<K> {
    fn default() -> Self {
        Self {
            total: 0,
            left_out: 0,
            recent: BTreeMap::new(),
            returned: 0,
            last_returned: None,
        }
    }
}

impl<K: Ord> Evictions<K> {
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    /// Notes that a connection was evicted.
    pub(crate) fn note_evicted(&mut self, key: K) {
        self.total += 1;
        self.recent.retain(|_, since| since.elapsed() < RECENT);
        self.recent.insert(key, Instant::now());
    }

    /// Notes that the server was left out for a client. Returns how often.
    pub(super) const fn note_left_out(&mut self) -> u64 {
        self.left_out += 1;
        self.left_out
    }

    /// Notes that a connection was opened. If evicted ones return all the time, the log says so, ever more rarely.
    pub(crate) fn note_opened(&mut self, key: &K, server: &str, setting: &Setting) {
        let evicted = self.recent.remove(key);
        if evicted.is_none_or(|since| since.elapsed() >= RECENT) {
            return;
        }
        if !self.has_recent_return() {
            self.returned = 0;
        }
        self.returned += 1;
        self.last_returned = Some(Instant::now());
        if self.is_thrashing() && self.returned.is_power_of_two() {
            let Setting {
                name,
                value,
                advice,
            } = setting;
            let returned = self.returned;
            warn!(
                server,
                connections = value,
                returned,
                "connections are closed for other clients and opened again within a minute; raise its `{name}`, or {advice}"
            );
        }
    }

    fn has_recent_return(&self) -> bool {
        let last = self.last_returned;
        last.is_some_and(|last| last.elapsed() < RECENT)
    }

    fn is_thrashing(&self) -> bool {
        self.returned >= THRASHING && self.has_recent_return()
    }

    /// How long a connection must be idle before it is evicted: longer if evicted ones return all the time, so that
    /// clients wait and programs are not started in circles.
    pub(super) fn idle_time(&self) -> Duration {
        if self.is_thrashing() {
            THRASHING_IDLE_TIME
        } else {
            IDLE_TIME
        }
    }
}

/// The setting that limits connections of one kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    pub(crate) value: usize,
    /// What helps but a higher value.
    pub(crate) advice: &'static str,
}

/// How long a connection must be idle before it makes room.
const IDLE_TIME: Duration = Duration::from_secs(3);
/// The same while evicted connections return.
const THRASHING_IDLE_TIME: Duration = Duration::from_secs(15);
/// The time within which an evicted connection returns.
const RECENT: Duration = Duration::from_secs(60);
/// So many returns are not chance.
const THRASHING: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_vary_testkit::captured_log::CapturedLog;

    const SETTING: Setting = Setting {
        name: "connections",
        value: 1,
        advice: "share them",
    };

    #[tokio::test(start_paused = true)]
    async fn connections_that_return_all_the_time_stay_longer_and_are_logged_ever_more_rarely() {
        let (log, _guard) = CapturedLog::listen("mcp_vary", tracing::Level::WARN);
        let mut evictions = Evictions::default();
        let mut warned = Vec::new();
        for returned in 1..=20 {
            assert_eq!(evictions.idle_time() == IDLE_TIME, returned <= 4);
            evictions.note_evicted("ann");
            evictions.note_opened(&"ann", "git", &SETTING);
            if log.take().concat().contains("opened again within a minute") {
                warned.push(returned);
            }
            tokio::time::advance(Duration::from_secs(2)).await;
        }
        assert_eq!((warned, evictions.total()), (vec![4, 8, 16], 20));
        tokio::time::advance(RECENT).await;
        assert_eq!(evictions.idle_time(), IDLE_TIME);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_returns_later_is_no_sign_of_too_few() {
        let mut evictions = Evictions::default();
        for _ in 0..9 {
            evictions.note_evicted("ann");
            tokio::time::advance(RECENT).await;
            evictions.note_opened(&"ann", "git", &SETTING);
            evictions.note_opened(&"eve", "git", &SETTING);
        }
        assert_eq!(evictions.idle_time(), IDLE_TIME);
    }
}
