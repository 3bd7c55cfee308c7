//! Lists of words and phrases. Each list is a text file with one entry a line.

/// The lines of a file beside the source.
macro_rules! word_list {
    ($file:literal) => {
        &$crate::word_list::lines::<{ $crate::word_list::count(include_str!($file)) }>(
            include_str!($file),
        )
    };
}

pub(crate) use word_list;

/// The number of lines in `text`.
pub(crate) const fn count(text: &str) -> usize {
    let mut count = 0;
    let mut at = 0;
    while at < text.len() {
        if text.as_bytes()[at] == b'\n' {
            count += 1;
        }
        at += 1;
    }
    count
}

/// The `N` lines of `text`, each of which ends with a line break.
pub(crate) const fn lines<const N: usize>(mut text: &'static str) -> [&'static str; N] {
    let mut lines = [""; N];
    let mut index = 0;
    let mut length = 0;
    while index < N {
        if text.as_bytes()[length] == b'\n' {
            let (line, others) = text.split_at(length);
            lines[index] = line;
            text = others.split_at(1).1;
            index += 1;
            length = 0;
        } else {
            length += 1;
        }
    }
    lines
}
