//! The notice about a deprecated variant.

/// The replacement, and the time until removal; empty when neither is known.
pub(crate) fn deprecation_notice(
    replacement: Option<&str>,
    removal: Option<&str>,
    left: Option<i64>,
) -> String {
    let instead = replacement.map(|id| format!("use `{id}` instead"));
    let date = removal.unwrap_or_default();
    let when = left.map(|left| match left {
        1 => format!("1 day left ({date})"),
        0 => format!("removal is today ({date})"),
        -1 => format!("removal is 1 day overdue ({date})"),
        left if left < 0 => format!("removal is {} days overdue ({date})", left.unsigned_abs()),
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
    fn a_notice_names_the_replacement_and_the_time_left() {
        let on = Some("2027-01-31");
        for (replacement, date, left, expected) in [
            (
                Some("b"),
                on,
                Some(9),
                "use `b` instead · 9 days left (2027-01-31)",
            ),
            (None, on, Some(1), "1 day left (2027-01-31)"),
            (None, on, Some(0), "removal is today (2027-01-31)"),
            (
                Some("b"),
                on,
                Some(-1),
                "use `b` instead · removal is 1 day overdue (2027-01-31)",
            ),
            (
                None,
                on,
                Some(-40),
                "removal is 40 days overdue (2027-01-31)",
            ),
            (Some("b"), None, None, "use `b` instead"),
            (None, None, None, ""),
        ] {
            assert_eq!(deprecation_notice(replacement, date, left), expected);
        }
    }
}
