//! A day of the calendar.

use std::fmt;
use std::str::FromStr;

use jiff::{SignedDuration, civil};

/// A day, parsed from an RFC 3339 date or date and time.
///
/// Of a date and time, only the day as written counts, in its own offset.
///
/// # Examples
///
/// ```
/// use mcp_vary::variant::Date;
///
/// let removal: Date = "2027-03-01T00:00:00Z".parse()?;
/// assert_eq!(removal.days_since("2027-02-27".parse()?), 2);
/// assert_eq!(Date::from_unix(0).to_string(), "1970-01-01");
/// assert!("2027-02-29".parse::<Date>().is_err());
/// # Ok::<(), mcp_vary::variant::DateError>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Date(civil::Date);

/// The text is not a valid RFC 3339 date.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("not a date of the calendar; write it as 2027-01-31")]
#[non_exhaustive]
pub struct DateError;

impl Date {
    /// The UTC day of a Unix time in seconds. After the year 9999, its last day.
    #[must_use]
    pub fn from_unix(seconds: u64) -> Self {
        let since_1970 = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
        let day = civil::date(1970, 1, 1).checked_add(since_1970);
        Self(day.unwrap_or(civil::Date::MAX))
    }

    /// The number of days after `earlier`; negative if this day is before.
    #[must_use]
    pub fn days_since(self, earlier: Self) -> i64 {
        self.0.duration_since(earlier.0).as_secs() / SECONDS_PER_DAY
    }
}

impl FromStr for Date {
    type Err = DateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (date, remaining) = text.split_at_checked(10).ok_or(DateError)?;
        let is_rfc_3339 = matches!(date.as_bytes(), [_, _, _, _, b'-', _, _, b'-', _, _]);
        if !is_rfc_3339 || !(remaining.is_empty() || is_time(remaining)) {
            return Err(DateError);
        }
        // `jiff` also reads other forms of ISO 8601, so that the fields are taken one by one.
        let (year, month, day) = (field(date, 0, 4)?, field(date, 5, 2)?, field(date, 8, 2)?);
        let day = civil::Date::new(year, month as i8, day as i8);
        day.map(Self).map_err(|_| DateError)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Parses the `width` digits at `at`.
fn field(text: &str, at: usize, width: usize) -> Result<i16, DateError> {
    let digits = text.get(at..at + width).ok_or(DateError)?;
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(DateError);
    }
    digits.parse().map_err(|_| DateError)
}

/// `Thh:mm:ss[.f…](Z|±hh:mm)`
fn is_time(text: &str) -> bool {
    let below = |at, width, limit| field(text, at, width).is_ok_and(|n| n < limit);
    let bytes = text.as_bytes();
    let starts = matches!(bytes.first(), Some(b'T' | b't' | b' '));
    // A leap second is the 61st.
    let clock = below(1, 2, 24) && below(4, 2, 60) && below(7, 2, 61);
    let colons = bytes.get(3) == Some(&b':') && bytes.get(6) == Some(&b':');
    starts && clock && colons && text.get(9..).is_some_and(is_offset)
}

/// `[.f…](Z|±hh:mm)`
fn is_offset(text: &str) -> bool {
    let text = match text.strip_prefix('.') {
        Some(fraction) => match fraction.trim_start_matches(|c: char| c.is_ascii_digit()) {
            remaining if remaining.len() < fraction.len() => remaining,
            _ => return false,
        },
        None => text,
    };
    let below = |at, limit| field(text, at, 2).is_ok_and(|n| n < limit);
    match text.as_bytes() {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', _, _, b':', _, _] => below(1, 24) && below(4, 60),
        _ => false,
    }
}

const SECONDS_PER_DAY: i64 = 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> Date {
        text.parse().unwrap()
    }

    /// SV-1: the forms of RFC 3339, and only those.
    #[track_caller]
    fn reads(text: &str, expected: bool) {
        assert_eq!(text.parse::<Date>().is_ok(), expected, "{text}");
    }

    #[test]
    fn dates_and_times_are_read() {
        reads("2027-01-31", true);
        reads("0000-02-29", true);
        reads("9999-12-31", true);
        reads("2000-02-29", true);
        for time in [
            "T00:00:00Z",
            "t23:59:60z",
            " 12:30:00+23:59",
            "T12:30:00.5-00:00",
            "T12:30:00.123456789Z",
        ] {
            reads(&format!("2027-01-31{time}"), true);
        }
    }

    #[test]
    fn what_is_no_date_is_not_read() {
        for text in [
            "",
            "2027",
            "2027-1-31",
            "2027/01/31",
            "2027-01/31",
            "27-01-2031",
            "+027-01-31",
            "2027-01-+1",
            "2027-01-31Z",
            "2027-01-3\u{e4}",
            "\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}",
        ] {
            reads(text, false);
        }
        for day in [
            "2027-06-31",
            "2027-09-31",
            "2027-11-31",
            "2027-04-31",
            "2027-01-32",
            "1900-02-29",
            "2027-00-10",
            "2027-13-10",
            "2027-01-00",
        ] {
            reads(day, false);
        }
    }

    #[test]
    fn what_is_no_time_is_not_read() {
        for time in [
            "T",
            "T00:00",
            "T00:00:00",
            "X00:00:00Z",
            "T00-00:00Z",
            "T00:00-00Z",
            "T24:00:00Z",
            "T00:60:00Z",
            "T00:00:61Z",
            "T00:00:00.Z",
            "T00:00:00.5",
            "T00:00:00ZZ",
            "T00:00:00*00:00",
            "T00:00:00+24:00",
            "T00:00:00+00:60",
            "T00:00:00+0000",
            "T00:00:00+00:0",
            "T00:00:0\u{e4}Z",
        ] {
            reads(&format!("2027-01-31{time}"), false);
        }
    }

    #[test]
    fn days_are_counted_across_leap_years() {
        let between = |one, other| date(one).days_since(date(other));
        assert_eq!(between("2000-03-01", "2000-02-28"), 2);
        assert_eq!(between("1900-03-01", "1900-02-28"), 1);
        assert_eq!(between("2026-11-20", "2027-11-20"), -365);
        assert_eq!(between("2001-01-01", "2000-01-01"), 366);
        assert_eq!(between("0001-01-01", "0000-01-01"), 366);
        assert_eq!(between("2400-01-01", "2000-01-01"), 146_097);
    }

    #[test]
    fn the_clock_of_computers_is_read() {
        assert_eq!(Date::from_unix(86_399), date("1970-01-01"));
        assert_eq!(Date::from_unix(86_400), date("1970-01-02"));
        assert_eq!(Date::from_unix(951_782_400), date("2000-02-29"));
        assert_eq!(Date::from_unix(1_795_133_969), date("2026-11-20"));
        assert_eq!(Date::from_unix(u64::MAX), date("9999-12-31"));
        assert!(date("2026-11-20") < date("2026-12-01"));
        assert!(date("2026-12-31") < date("2027-01-01"));
    }
}
