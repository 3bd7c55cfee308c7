//! What a client gets when a limit is exceeded.

use std::time::Duration;

use serde_json::{Value, json};

/// A request was refused by a limit.
///
/// # Examples
///
/// ```
/// use mcp_vary_rates::{Caller, Counted, FakeRelativeClock, Limit, Operation, Per, RateLimiter};
///
/// let limit = Limit::new("calls", Per::Principal, Counted::Calls, "2/min".parse()?)?;
/// let limiter = RateLimiter::new(vec![limit], 1024, FakeRelativeClock::default())?;
/// let caller = Caller { principal: Some("alice"), key: None, address: None };
/// let call = Operation::CallTool { server: "git", tool: "push" };
/// assert!(limiter.check(&caller, &call).is_ok());
/// assert!(limiter.check(&caller, &call).is_ok());
/// let refusal = limiter.check(&caller, &call).unwrap_err();
/// assert_eq!(refusal.to_string(), "the limit `calls` is reached; retry after 30 s");
/// assert_eq!(refusal.data().to_string(), r#"{"limit":"calls","retryAfter":30}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the limit `{limit}` is reached; retry after {} s", self.retry_after())]
pub struct LimitExceeded<'a> {
    pub(crate) limit: &'a str,
    pub(crate) wait: Duration,
}

impl<'a> LimitExceeded<'a> {
    /// The name of the limit. Of several, it is the one that blocks the longest.
    pub fn limit(&self) -> &'a str {
        self.limit
    }

    /// The time after which the request would be allowed, if nothing else is counted until then.
    pub fn wait(&self) -> Duration {
        self.wait
    }

    /// The value of `Retry-After` (RFC 9110, section 10.2.3): whole seconds, rounded up, at least 1.
    pub fn retry_after(&self) -> u64 {
        let has_fraction = self.wait.subsec_nanos() > 0;
        (self.wait.as_secs() + u64::from(has_fraction)).max(1)
    }

    /// The `data` of the JSON-RPC error: the limit, and [`LimitExceeded::retry_after`] in seconds.
    ///
    /// Clients on stdio get no status and no header, so the data has both values.
    pub fn data(&self) -> Value {
        json!({"limit": self.limit, "retryAfter": self.retry_after()})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is_after(wait: Duration, seconds: u64) {
        let refusal = LimitExceeded { limit: "a", wait };
        assert_eq!(refusal.retry_after(), seconds, "{wait:?}");
    }

    #[test]
    fn seconds_are_rounded_up_so_that_the_retry_is_not_too_early() {
        is_after(Duration::ZERO, 1);
        is_after(Duration::from_nanos(1), 1);
        is_after(Duration::from_secs(1), 1);
        is_after(Duration::new(1, 1), 2);
        is_after(Duration::from_secs(86_400), 86_400);
    }
}
