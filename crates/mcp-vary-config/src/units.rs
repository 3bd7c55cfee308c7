//! Durations and sizes as people write them.

use std::time::Duration;

/// Parses `30s`, `500ms`, `1h30m`, or a number of seconds.
///
/// # Errors
///
/// If the value is invalid. The error is the message and the fix.
///
/// # Examples
///
/// `1.5m` is 90 seconds. `5000` is rejected, since it is unclear whether it is meant in seconds or in milliseconds.
pub(super) fn duration(raw: &str) -> Result<Duration, (String, String)> {
    let unusable = || {
        let fix = "write it like `30s`, `500ms` or `2m`, or as a number of seconds";
        ("is not a duration".to_owned(), fix.to_owned())
    };
    let text = raw.trim();
    if let Some(number) = number(text) {
        if number < UNIT_NEEDED {
            return milliseconds(number * 1000.0);
        }
        let fix = format!("write `{text}ms` or `{text}s`");
        return Err(("has no unit".to_owned(), fix));
    }
    let mut sum = 0.0;
    let mut remaining = text;
    while !remaining.is_empty() {
        let end = remaining.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (digits, tail) = remaining.split_at(end.unwrap_or(remaining.len()));
        let from_unit = tail.trim_start();
        let end = from_unit.find(|c: char| !c.is_ascii_alphabetic());
        let (unit, after) = from_unit.split_at(end.unwrap_or(from_unit.len()));
        let factor = DURATIONS.iter().find(|(name, _)| *name == unit);
        let (_, factor) = factor.ok_or_else(unusable)?;
        sum += number(digits).ok_or_else(unusable)? * factor;
        remaining = after.trim_start();
    }
    if text.is_empty() {
        return Err(unusable());
    }
    milliseconds(sum)
}

fn milliseconds(sum: f64) -> Result<Duration, (String, String)> {
    let range = |fix: &str| ("is out of range".to_owned(), fix.to_owned());
    if sum < 1.0 {
        return Err(range("the shortest is `1ms`"));
    }
    if sum > LONGEST.as_secs_f64() * 1000.0 {
        return Err(range("the longest is `30d`"));
    }
    Ok(Duration::from_millis(sum.round() as u64))
}

/// Parses `16 MiB`, `64kB`, or a number of bytes.
///
/// # Errors
///
/// If the value is invalid. The error is the message and the fix.
///
/// # Examples
///
/// `1 MB` is 1,000,000 bytes, `1 MiB` is 1,048,576.
pub(super) fn size(raw: &str) -> Result<usize, (String, String)> {
    let unusable = || {
        let fix = "write it like `16 MiB` or `64 kB`, or as a number of bytes";
        ("is not a size".to_owned(), fix.to_owned())
    };
    let text = raw.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (digits, tail) = text.split_at(end.unwrap_or(text.len()));
    let unit = tail.trim().to_ascii_lowercase();
    let factor = SIZES.iter().find(|(name, _)| *name == unit);
    let (_, factor) = factor.ok_or_else(unusable)?;
    let bytes = number(digits).ok_or_else(unusable)? * factor;
    if (SMALLEST..=LARGEST).contains(&bytes) {
        return Ok(bytes as usize);
    }
    let fix = "it lies between `1 KiB` and `1 GiB`".to_owned();
    Err(("is out of range".to_owned(), fix))
}

/// Parses digits with at most one decimal point.
fn number(text: &str) -> Option<f64> {
    let plain = text.starts_with(|c: char| c.is_ascii_digit())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
    plain.then(|| text.parse().ok()).flatten()
}

/// The units of durations, in milliseconds.
pub(super) const DURATIONS: &[(&str, f64)] = &[
    ("ms", 1.0),
    ("s", 1e3),
    ("m", 60e3),
    ("h", 3600e3),
    ("d", 86400e3),
];

/// In bytes.
pub(super) const SIZES: &[(&str, f64)] = &[
    ("", 1.0),
    ("b", 1.0),
    ("kb", 1e3),
    ("mb", 1e6),
    ("gb", 1e9),
    ("kib", 1024.0),
    ("mib", 1024.0 * 1024.0),
    ("gib", 1024.0 * 1024.0 * 1024.0),
];

/// From this number on, a value without a unit is more likely meant in milliseconds.
pub(super) const UNIT_NEEDED: f64 = 1000.0;

/// The maximum duration, so that adding it to the time cannot overflow.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// In bytes. A smaller limit has no room for `initialize`.
pub(super) const SMALLEST: f64 = 1024.0;

/// In bytes.
pub(super) const LARGEST: f64 = 1024.0 * 1024.0 * 1024.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn lasts(text: &str, milliseconds: u64) {
        assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)));
    }

    #[track_caller]
    fn is_no_duration(text: &str, expected: &str) {
        let (what, fix) = duration(text).unwrap_err();
        assert_eq!(format!("{what}; {fix}"), expected, "{text}");
    }

    #[track_caller]
    fn has(text: &str, bytes: usize) {
        assert_eq!(size(text), Ok(bytes));
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        lasts("30s", 30_000);
        lasts("500ms", 500);
        lasts("1h30m", 5_400_000);
        lasts(" 1.5 m ", 90_000);
        lasts("30", 30_000);
        lasts("0.25", 250);
        lasts("1d", 86_400_000);
    }

    #[test]
    fn what_is_no_duration_says_what_to_write() {
        let unusable =
            "is not a duration; write it like `30s`, `500ms` or `2m`, or as a number of seconds";
        for text in [
            "", "soon", "s", "1x", "-1s", "1s2", "1..5s", "1e3", "∞s", "5 5s",
        ] {
            is_no_duration(text, unusable);
        }
        is_no_duration("5000", "has no unit; write `5000ms` or `5000s`");
        is_no_duration("0s", "is out of range; the shortest is `1ms`");
        is_no_duration("31d", "is out of range; the longest is `30d`");
        is_no_duration(
            &format!("{}s", "9".repeat(400)),
            "is out of range; the longest is `30d`",
        );
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        has("16 MiB", 16 << 20);
        has("64kB", 64_000);
        has("1.5 mib", 3 << 19);
        has("4096", 4096);
        has("4096 B", 4096);
    }

    #[test]
    fn what_is_no_size_says_what_to_write() {
        for text in ["", "big", "16 M", "-1 MiB", "1 MiB 2", "."] {
            assert_eq!(size(text).unwrap_err().0, "is not a size", "{text}");
        }
        for text in ["0", "2 GiB", "99999999999999999999 GiB"] {
            assert_eq!(size(text).unwrap_err().0, "is out of range", "{text}");
        }
    }
}
