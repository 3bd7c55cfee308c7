//! What is said of a variant that will go.

/// What to use instead, and how long it will be there; empty when neither is known.
pub(crate) fn deprecation_notice(
    replacement: Option<&str>,
    date: Option<&str>,
    left: Option<i64>,
) -> String {
    let instead = replacement.map(|id| format!("use `{id}` instead"));
    let date = date.unwrap_or_default();
    let when = left.map(|left| match left {
        1 => format!("1 day left ({date})"),
        0 => format!("goes today ({date})"),
        -1 => format!("should be gone since 1 day ({date})"),
        left if left < 0 => format!("should be gone since {} days ({date})", left.unsigned_abs()),
        left => format!("{left} days left ({date})"),
    });
    let parts: Vec<_> = instead.into_iter().chain(when).collect();
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::deprecation_notice;

    /// SV-25
    #[test]
    fn a_farewell_says_what_to_use_and_how_long() {
        let on = Some("2027-01-31");
        for (replacement, date, left, expected) in [
            (
                Some("b"),
                on,
                Some(9),
                "use `b` instead · 9 days left (2027-01-31)",
            ),
            (None, on, Some(1), "1 day left (2027-01-31)"),
            (None, on, Some(0), "goes today (2027-01-31)"),
            (
                Some("b"),
                on,
                Some(-1),
                "use `b` instead · should be gone since 1 day (2027-01-31)",
            ),
            (
                None,
                on,
                Some(-40),
                "should be gone since 40 days (2027-01-31)",
            ),
            (Some("b"), None, None, "use `b` instead"),
            (None, None, None, ""),
        ] {
            assert_eq!(deprecation_notice(replacement, date, left), expected);
        }
    }
}
