//! How often something may happen.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use governor::Quota;

/// The largest number of operations in a rate, and the largest burst.
pub const MAX_COUNT: u32 = 1_000_000;

/// The longest time in which a burst may become available again.
pub const MAX_REPLENISH_TIME: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// A number of operations in a period, and how many of them may come at once.
///
/// # Grammar
///
/// `COUNT/PERIOD`, where the period is `s`, `min`, `h` or `day`. The burst is set by [`Rate::with_burst`]; by default it
/// is the count.
///
/// # Properties
///
/// In any span of time, at most `burst + span / interval` operations are allowed, where the interval is the period
/// divided by the count. Operations become available one by one, not all at the end of the period.
///
/// # Examples
///
/// ```
/// use mcp_vary_rates::Rate;
///
/// let rate: Rate = "600/min".parse()?;
/// assert_eq!(rate.with_burst(60)?.to_string(), "600/min, burst 60");
///
/// // A whole day's operations may come in the first second, unless the burst is smaller.
/// assert_eq!("5000/day".parse::<Rate>()?.burst(), 5000);
/// # Ok::<(), mcp_vary_rates::RateError>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rate {
    count: NonZeroU32,
    period: Period,
    burst: NonZeroU32,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Period {
    name: &'static str,
    seconds: u64,
}

const PERIODS: [Period; 4] = [
    Period {
        name: "s",
        seconds: 1,
    },
    Period {
        name: "min",
        seconds: 60,
    },
    Period {
        name: "h",
        seconds: 60 * 60,
    },
    Period {
        name: "day",
        seconds: 24 * 60 * 60,
    },
];

/// A text or a burst does not make a [`Rate`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RateError {
    /// The text does not have the form of a rate.
    #[error("write a rate as `COUNT/PERIOD` with `s`, `min`, `h` or `day`, for example `600/min`")]
    Form,
    /// A count or burst is zero or too large.
    #[error("the {what} must be a number from 1 to {MAX_COUNT}")]
    Count {
        /// `count` or `burst`.
        what: &'static str,
    },
    /// The burst would take more than a year to become available again.
    #[error(
        "a burst of {burst} would take {days} days to become available again; at most 366 are allowed"
    )]
    Replenish {
        /// The burst.
        burst: u32,
        /// The time in days, rounded down.
        days: u64,
    },
}

impl Rate {
    /// The same rate with another burst: how many operations may come at once.
    ///
    /// # Errors
    ///
    /// If `burst` is 0 or more than [`MAX_COUNT`], or becomes available again only after [`MAX_REPLENISH_TIME`].
    pub fn with_burst(self, burst: u32) -> Result<Self, RateError> {
        let burst = count(burst, "burst")?;
        let rate = Self { burst, ..self };
        let replenish_time = rate.interval() * burst.get();
        if replenish_time > MAX_REPLENISH_TIME {
            return Err(RateError::Replenish {
                burst: burst.get(),
                days: replenish_time.as_secs() / (24 * 60 * 60),
            });
        }
        Ok(rate)
    }

    /// How many operations may come at once.
    pub fn burst(self) -> u32 {
        self.burst.get()
    }

    /// The time after which one more operation is available.
    pub fn interval(self) -> Duration {
        Duration::from_secs(self.period.seconds) / self.count.get()
    }

    /// The rate for governor. `None` never occurs: an interval of zero needs a count beyond [`MAX_COUNT`].
    pub(crate) fn quota(self) -> Option<Quota> {
        Some(Quota::with_period(self.interval())?.allow_burst(self.burst))
    }
}

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let (number, period) = text.split_once('/').ok_or(RateError::Form)?;
        let known = PERIODS.iter().find(|known| known.name == period);
        let period = *known.ok_or(RateError::Form)?;
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(RateError::Form);
        }
        let parsed = number.parse().map_err(|_| too_large("count"))?;
        let number = count(parsed, "count")?;
        Ok(Self {
            count: number,
            period,
            burst: number,
        })
    }
}

fn count(number: u32, what: &'static str) -> Result<NonZeroU32, RateError> {
    let in_range = NonZeroU32::new(number).filter(|number| number.get() <= MAX_COUNT);
    in_range.ok_or_else(|| too_large(what))
}

fn too_large(what: &'static str) -> RateError {
    RateError::Count { what }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.period.name)?;
        if self.burst == self.count {
            return Ok(());
        }
        write!(f, ", burst {}", self.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is_refused(text: &str, message: &str) {
        let error = text.parse::<Rate>().unwrap_err();
        assert_eq!(error.to_string(), message, "{text}");
    }

    #[test]
    fn a_rate_is_printed_as_it_was_written() {
        for text in ["1/s", "600/min", "1000000/h", "7/day"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_not_a_rate_gets_the_form_of_one() {
        let form =
            "write a rate as `COUNT/PERIOD` with `s`, `min`, `h` or `day`, for example `600/min`";
        for text in [
            "", "600", "/s", "600/", "600/m", "+6/s", "-6/s", "6 /s", "６/s", "6/s/s",
        ] {
            is_refused(text, form);
        }
    }

    #[test]
    fn counts_and_bursts_have_a_range() {
        let message = "the count must be a number from 1 to 1000000";
        for text in ["0/s", "1000001/s", "99999999999999999999/s"] {
            is_refused(text, message);
        }
        let rate: Rate = "1/s".parse().unwrap();
        for burst in [0, 1_000_001] {
            let error = rate.with_burst(burst).unwrap_err();
            assert_eq!(error, RateError::Count { what: "burst" });
        }
    }

    #[test]
    fn a_burst_that_takes_years_to_become_available_is_refused() {
        let rate: Rate = "1/day".parse().unwrap();
        assert!(rate.with_burst(366).is_ok());
        let error = rate.with_burst(367).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a burst of 367 would take 367 days to become available again; at most 366 are allowed"
        );
    }
}
