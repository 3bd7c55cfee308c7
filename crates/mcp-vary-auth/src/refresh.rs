//! When the keys of an issuer are fetched again, as a state machine over given instants.

use std::sync::Arc;

use crate::jwks::KeySet;

/// Keys are fetched again after this many seconds, unless [`IssuerKeys::set_refresh_after`] says otherwise.
pub const REFRESH_AFTER: u64 = 3600;

/// Tokens with unknown key ids cause at most one fetch that succeeds in this many seconds.
pub const UNKNOWN_KEY_PAUSE: u64 = 30;

/// After a failed fetch for an unknown key, the next one waits a second; after each further failure twice as long, up to
/// this many seconds.
pub const MAX_UNKNOWN_KEY_RETRY: u64 = 4;

/// After a failure the next attempt waits this many seconds.
pub const RETRY_PAUSE: u64 = 10;

/// The last good keys are used for this many seconds, if no newer ones can be fetched.
pub const USABLE_FOR: u64 = 24 * 3600;

/// A fetch that did not report its end after this many seconds is taken for lost.
pub const LOST_AFTER: u64 = 60;

/// The keys of one issuer, and when they are to be fetched.
///
/// The caller fetches: it asks [`begin`](Self::begin), fetches if that returns true, and reports with
/// [`succeed`](Self::succeed) or [`fail`](Self::fail).
///
/// Instants are seconds of a clock that does not go back, such as the time since the process started. If it does go
/// back, nothing is fetched until it has caught up.
///
/// # Properties
///
/// - One fetch at a time.
/// - However many tokens name unknown keys, they cause one fetch in [`UNKNOWN_KEY_PAUSE`] at most. A scheduled fetch
///   does not delay them, so that the tokens of a new key are accepted at once. Nor does a failed fetch, but for the
///   pause that grows to [`MAX_UNKNOWN_KEY_RETRY`]: when an issuer comes back with a new key, its tokens are accepted
///   at most that much later.
/// - A failed fetch never removes keys before they are [`USABLE_FOR`] old.
///
/// # Examples
///
/// ```
/// use mcp_vary_auth::refresh::{FetchReason, IssuerKeys, KeysUnavailable};
///
/// let mut keys = IssuerKeys::default();
/// assert_eq!(keys.usable(0).unwrap_err(), KeysUnavailable::NeverLoaded);
/// assert!(keys.begin(0, FetchReason::Schedule));
/// assert!(!keys.begin(1, FetchReason::Schedule), "one fetch at a time");
///
/// // Without any keys, the next attempt still waits after a failure.
/// keys.fail(2);
/// assert!(!keys.begin(3, FetchReason::Schedule));
/// assert!(keys.begin(12, FetchReason::Schedule));
/// ```
#[derive(Clone, Debug)]
pub struct IssuerKeys {
    refresh_after: u64,
    loaded: Option<Loaded>,
    /// The end of the last attempt, if it failed.
    failed_at: Option<u64>,
    /// The attempts since the last that succeeded.
    failures: u32,
    /// The start of the last fetch for an unknown key, if it succeeded.
    unknown_key_at: Option<u64>,
    /// The fetch that is under way, and its start.
    under_way: Option<(FetchReason, u64)>,
    fetches: u64,
    failed_fetches: u64,
}

impl Default for IssuerKeys {
    fn default() -> Self {
        Self {
            refresh_after: REFRESH_AFTER,
            loaded: None,
            failed_at: None,
            failures: 0,
            unknown_key_at: None,
            under_way: None,
            fetches: 0,
            failed_fetches: 0,
        }
    }
}

#[derive(Clone, Debug)]
struct Loaded {
    set: Arc<KeySet>,
    at: u64,
}

/// The status of the keys of an issuer.
#[derive(Clone, Copy, Debug)]
pub struct KeyStatus {
    /// The seconds since they were fetched; `None` if they never were.
    pub age: Option<u64>,
    /// The fetches that succeeded, or are under way.
    pub fetched: u64,
    /// The fetches that failed.
    pub failed: u64,
}

/// Why keys should be fetched.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FetchReason {
    /// There are none, or it is time.
    Schedule,
    /// A token names a key that is not in the set.
    UnknownKey,
    /// The operator asks for it, so it does not wait.
    Reload,
}

/// Why no token of the issuer can be verified now. The answer is 503, not 401: clients throw their tokens away at 401.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum KeysUnavailable {
    /// The keys could never be fetched.
    #[error("the keys of the issuer were never loaded")]
    NeverLoaded,
    /// The keys are older than [`USABLE_FOR`].
    #[error("the keys of the issuer could not be fetched for 24 hours")]
    TooOld,
}

impl IssuerKeys {
    /// Sets the seconds after which keys are fetched again: a withdrawn key is accepted no longer than this, as long as
    /// the keys can be fetched.
    pub const fn set_refresh_after(&mut self, seconds: u64) {
        self.refresh_after = seconds;
    }

    /// The keys to verify with.
    ///
    /// # Errors
    ///
    /// When there are none, or they are too old.
    pub fn usable(&self, now: u64) -> Result<&Arc<KeySet>, KeysUnavailable> {
        let loaded = self.loaded.as_ref().ok_or(KeysUnavailable::NeverLoaded)?;
        let is_usable = elapsed(loaded.at, now) < USABLE_FOR;
        is_usable
            .then_some(&loaded.set)
            .ok_or(KeysUnavailable::TooOld)
    }

    /// Whether to fetch now. If so, the fetch is under way from now on.
    pub fn begin(&mut self, now: u64, reason: FetchReason) -> bool {
        let is_under_way = self
            .under_way
            .is_some_and(|(_, began)| elapsed(began, now) < LOST_AFTER);
        if is_under_way || !self.is_due(now, reason) {
            return false;
        }
        self.under_way = Some((reason, now));
        self.fetches += 1;
        true
    }

    fn is_due(&self, now: u64, reason: FetchReason) -> bool {
        let is_past = |at: Option<u64>, pause: u64| at.is_none_or(|at| elapsed(at, now) >= pause);
        match reason {
            FetchReason::UnknownKey => {
                let retry = 1 << self.failures.saturating_sub(1).min(2);
                is_past(self.unknown_key_at, UNKNOWN_KEY_PAUSE)
                    && is_past(self.failed_at, retry.min(MAX_UNKNOWN_KEY_RETRY))
            }
            FetchReason::Reload => true,
            FetchReason::Schedule => {
                let loaded_at = self.loaded.as_ref().map(|loaded| loaded.at);
                is_past(loaded_at, self.refresh_after) && is_past(self.failed_at, RETRY_PAUSE)
            }
        }
    }

    /// The fetch succeeded.
    pub fn succeed(&mut self, now: u64, set: Arc<KeySet>) {
        self.loaded = Some(Loaded { set, at: now });
        self.failed_at = None;
        self.failures = 0;
        if let Some((FetchReason::UnknownKey, began)) = self.under_way.take() {
            self.unknown_key_at = Some(began);
        }
    }

    /// The fetch failed: no answer, or not a usable set. The keys stay.
    pub fn fail(&mut self, now: u64) {
        self.failed_at = Some(now);
        self.failures = self.failures.saturating_add(1);
        self.failed_fetches += 1;
        self.under_way = None;
    }

    /// The number of fetches that were begun.
    pub const fn fetches(&self) -> u64 {
        self.fetches
    }

    /// The status of the keys.
    pub fn status(&self, now: u64) -> KeyStatus {
        KeyStatus {
            age: self.loaded.as_ref().map(|loaded| elapsed(loaded.at, now)),
            fetched: self.fetches - self.failed_fetches,
            failed: self.failed_fetches,
        }
    }
}

const fn elapsed(since: u64, now: u64) -> u64 {
    now.saturating_sub(since)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set() -> Arc<KeySet> {
        let x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
        let text = format!(r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519","x":"{x}"}}]}}"#);
        Arc::new(KeySet::parse(text.as_bytes()).unwrap())
    }

    fn loaded_at(now: u64) -> IssuerKeys {
        let mut keys = IssuerKeys::default();
        assert!(keys.begin(now, FetchReason::Schedule));
        keys.succeed(now, set());
        keys
    }

    #[test]
    fn keys_are_fetched_at_start_and_every_hour() {
        let mut keys = loaded_at(100);
        assert!(!keys.begin(3699, FetchReason::Schedule));
        assert!(keys.begin(3700, FetchReason::Schedule));
    }

    #[test]
    fn a_thousand_unknown_keys_cause_one_fetch_in_30_seconds() {
        let mut keys = loaded_at(0);
        for now in (0..1000).map(|step| 10 + step / 34) {
            if keys.begin(now, FetchReason::UnknownKey) {
                keys.succeed(now, set());
            }
        }
        let found = keys.fetches();
        assert_eq!(found, 2, "the first at the start, one for all unknown keys");
        assert!(keys.begin(40, FetchReason::UnknownKey));
    }

    #[test]
    fn an_unknown_key_is_looked_for_at_once_after_a_scheduled_fetch() {
        let mut keys = loaded_at(0);
        assert!(keys.begin(0, FetchReason::UnknownKey));
    }

    #[test]
    fn a_dead_issuer_that_comes_back_with_a_new_key_is_asked_within_seconds() {
        for back_at in 100..160 {
            let mut keys = loaded_at(0);
            let new_key_at = (100..).find(|&now| {
                let begins = keys.begin(now, FetchReason::UnknownKey);
                match now < back_at {
                    true if begins => keys.fail(now),
                    _ if begins => keys.succeed(now, set()),
                    _ => {}
                }
                begins && now >= back_at
            });
            let delay = new_key_at.unwrap() - back_at;
            assert!(delay < MAX_UNKNOWN_KEY_RETRY, "{delay} s after {back_at}");
        }
    }

    #[test]
    fn a_thousand_unknown_keys_ask_a_dead_issuer_now_and_then() {
        let mut keys = loaded_at(0);
        let asked: Vec<u64> = (0..1000)
            .map(|step| 100 + step / 60)
            .filter(|&now| {
                let begins = keys.begin(now, FetchReason::UnknownKey);
                if begins {
                    keys.fail(now);
                }
                begins
            })
            .collect();
        assert_eq!(asked, [100, 101, 103, 107, 111, 115]);
    }

    #[test]
    fn a_failure_does_not_make_unknown_keys_ask_twice_in_30_seconds() {
        let mut keys = loaded_at(0);
        assert!(keys.begin(100, FetchReason::UnknownKey));
        keys.succeed(100, set());
        assert!(!keys.begin(129, FetchReason::UnknownKey));
        assert!(keys.begin(130, FetchReason::UnknownKey));
        keys.fail(130);
        assert!(keys.begin(131, FetchReason::UnknownKey));
        keys.succeed(131, set());
        assert!(!keys.begin(160, FetchReason::UnknownKey));
        assert!(keys.begin(161, FetchReason::UnknownKey));
    }

    #[test]
    fn only_one_fetch_is_under_way() {
        let mut keys = loaded_at(0);
        assert!(keys.begin(5000, FetchReason::Schedule));
        assert!(!keys.begin(5001, FetchReason::UnknownKey));
        assert!(!keys.begin(5059, FetchReason::Schedule));
        assert!(keys.begin(5060, FetchReason::Schedule), "the first is lost");
    }

    #[test]
    fn the_last_good_keys_are_used_for_24_hours() {
        let mut keys = loaded_at(0);
        for now in (3600..USABLE_FOR).step_by(3600) {
            assert!(keys.begin(now, FetchReason::Schedule));
            keys.fail(now);
            assert!(keys.usable(now).is_ok());
        }
        assert!(keys.usable(USABLE_FOR - 1).is_ok());
        let found = keys.usable(USABLE_FOR).unwrap_err();
        assert_eq!(found, KeysUnavailable::TooOld);
        assert!(keys.begin(USABLE_FOR, FetchReason::Schedule));
        keys.succeed(USABLE_FOR, set());
        assert!(keys.usable(USABLE_FOR).is_ok());
    }

    #[test]
    fn after_a_failure_the_next_attempt_waits() {
        let mut keys = IssuerKeys::default();
        assert!(keys.begin(0, FetchReason::Schedule));
        keys.fail(5);
        assert!(!keys.begin(14, FetchReason::Schedule));
        assert!(keys.begin(15, FetchReason::Schedule));
        assert_eq!(keys.usable(15).unwrap_err(), KeysUnavailable::NeverLoaded);
    }

    #[test]
    fn keys_are_fetched_as_often_as_the_operator_says_and_whenever_he_asks() {
        let mut keys = loaded_at(100);
        keys.set_refresh_after(60);
        assert!(!keys.begin(159, FetchReason::Schedule));
        assert!(keys.begin(159, FetchReason::Reload));
        assert!(!keys.begin(159, FetchReason::Reload), "one fetch at a time");
        keys.fail(159);
        assert!(
            keys.begin(159, FetchReason::Reload),
            "a failure does not delay it"
        );
    }

    #[test]
    fn a_clock_that_goes_back_causes_no_fetch() {
        let mut keys = loaded_at(10_000);
        assert!(!keys.begin(0, FetchReason::Schedule));
        assert!(keys.usable(0).is_ok());
    }
}
