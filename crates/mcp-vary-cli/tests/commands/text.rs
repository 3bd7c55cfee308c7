//! Checks of what the program printed.

/// Checks that `text` contains each of `parts`.
#[track_caller]
pub(crate) fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing: {text}");
    }
}

/// Checks that `text` contains none of `parts`.
#[track_caller]
pub(crate) fn assert_lacks(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(!text.contains(part), "`{part}` is there: {text}");
    }
}

/// Checks that `text` starts with `start`.
#[track_caller]
pub(crate) fn assert_starts(text: &str, start: &str) {
    assert!(
        text.starts_with(start),
        "it does not start with `{start}`: {text}"
    );
}

/// Checks that `text` ends with `end`.
#[track_caller]
pub(crate) fn assert_ends(text: &str, end: &str) {
    assert!(text.ends_with(end), "it does not end with `{end}`: {text}");
}
