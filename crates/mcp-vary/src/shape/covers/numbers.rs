//! Finds the numbers in prose.

/// A number in prose, without its sign.
pub(super) struct Number {
    pub(super) value: f64,
    decimals: i32,
    pub(super) is_negative: bool,
    /// Whether a percent sign follows.
    pub(super) is_percentage: bool,
}

impl Number {
    /// The range of values that round to the number.
    pub(super) fn bounds(&self) -> (f64, f64) {
        let half = 0.5 * 10_f64.powi(-self.decimals);
        let slack = half * 1e-6 + self.value * 1e-12;
        (self.value - half - slack, self.value + half + slack)
    }
}

/// The numbers in `text`, except those that are part of a word (`h264`, `0f28`) or in thousands (`12k`).
pub(super) fn numbers(text: &str) -> impl Iterator<Item = Number> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let remaining = &text[at..];
            let start = at + remaining.find(|c: char| c.is_ascii_digit())?;
            let mut before = text[..start].chars().rev();
            let (last, last_but_one) = (before.next(), before.next());
            let goes_on = last == Some('.') && last_but_one.is_some_and(|c| c.is_ascii_digit());
            let written = spelling(&text[start..], goes_on);
            let end = start + written.len();
            at = end + word_length(&text[end..]);
            let is_inside = last.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '#');
            if is_inside || is_part_of_word(&text[end..at]) {
                continue;
            }
            let digits: String = written
                .chars()
                .filter(|c| c.is_ascii_digit() || *c == '.')
                .collect();
            let decimals = digits.split_once('.').map_or(0, |(_, d)| d.len());
            let Ok(value) = digits.parse() else { continue };
            return Some(Number {
                value,
                decimals: i32::try_from(decimals).unwrap_or(i32::MAX),
                is_negative: matches!(last, Some('-' | '−'))
                    && last_but_one.is_none_or(|c| c.is_whitespace() || c == '('),
                is_percentage: text[end..].trim_start_matches(SPACES).starts_with('%'),
            });
        }
    })
}

/// Characters between a number and its percent sign.
const SPACES: [char; 3] = [' ', '\u{202f}', '\u{a0}'];

/// The magnitudes that may express a number: itself, and as a percentage.
pub(super) fn magnitudes(spelling: &str) -> impl Iterator<Item = f64> {
    let value = spelling.parse::<f64>().ok().map(f64::abs);
    let percentage = value
        .filter(|value| *value <= 1.0)
        .map(|value| value * 100.0);
    value.into_iter().chain(percentage)
}

/// The runs of digits in `text`, which are the parts of dates, versions and addresses.
pub(super) fn digits(text: &str) -> impl Iterator<Item = f64> {
    text.split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
}

/// The number at the start of `text`: digits, groups of three, a fraction.
///
/// 20.11.2026 is a date and 1.2.3 a version: each is three numbers. `goes_on`: such a part precedes `text`.
fn spelling(text: &str, goes_on: bool) -> &str {
    let digits = |at: usize| {
        let remaining = text.as_bytes().get(at..).unwrap_or_default();
        remaining.iter().take_while(|b| b.is_ascii_digit()).count()
    };
    let mut end = digits(0);
    if goes_on {
        return &text[..end];
    }
    while end <= 24 {
        let separator = text[end..].chars().next();
        let Some(separator) = separator.filter(|c| ",'’\u{202f}\u{a0}".contains(*c)) else {
            break;
        };
        let after = end + separator.len_utf8();
        if digits(after) != 3 {
            break;
        }
        end = after + 3;
    }
    let fraction = digits(end + 1);
    let after = text
        .as_bytes()
        .get(end + 1 + fraction..)
        .unwrap_or_default();
    let is_first_of_more = matches!(after, [b'.', digit, ..] if digit.is_ascii_digit());
    if text[end..].starts_with('.') && fraction > 0 && !is_first_of_more {
        end += 1 + fraction;
    }
    &text[..end]
}

/// The length of the word at the start of `text`, in bytes.
fn word_length(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric())
        .unwrap_or(text.len())
}

/// Whether the text after the digits makes them part of a word, or counts thousands.
fn is_part_of_word(after: &str) -> bool {
    let scales = [
        "k", "K", "M", "G", "B", "KB", "kB", "MB", "GB", "KiB", "MiB", "GiB",
    ];
    after.contains(|c: char| c.is_ascii_digit()) || scales.contains(&after)
}
