//! Wraps lines.

use unicode_width::UnicodeWidthChar as _;

/// The lines of `text`, each at most `width` columns wide.
///
/// Continuation lines are indented like their line, and a little more in lists and indented text.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    text.lines()
        .flat_map(|line| wrap_line(line.trim_end(), width.max(8)))
        .collect()
}

fn wrap_line(line: &str, width: usize) -> Vec<String> {
    let blank = (line.len() - line.trim_start_matches(' ').len()).min(width / 2);
    let mut remaining = line.trim_start_matches(' ');
    let hanging = if blank > 0 || remaining.starts_with("- ") {
        blank + 2
    } else {
        0
    };
    let mut lines = Vec::new();
    let mut indent = blank;
    // The text that remains is not measured as a whole, which would take quadratic time.
    while let Some((head, tail)) = cut(remaining, width - indent) {
        lines.push(format!("{:indent$}{}", "", head.trim_end()));
        remaining = tail.trim_start_matches(' ');
        indent = hanging;
    }
    lines.push(format!("{:indent$}{remaining}", ""));
    lines
}

/// Splits `text` after at most `width` columns: after a space or comma if that fills a good part of the line, else
/// within a word, preferably after `_`, `-` or `/`. `None` if it fits into one line.
fn cut(text: &str, width: usize) -> Option<(&str, &str)> {
    let (mut used, mut between, mut within) = (0, 0, 0);
    let mut hard = None;
    for (at, c) in text.char_indices() {
        used += columns(c);
        if used > width && at > 0 {
            hard = Some(at);
            // A line can also end at a space just after the last column.
            if c == ' ' {
                between = at;
            }
            break;
        }
        match c {
            ' ' | ',' => between = at + c.len_utf8(),
            '_' | '-' | '/' => within = at + c.len_utf8(),
            _ => {}
        }
    }
    let limit = hard?;
    let mut softer = [between, within].into_iter();
    Some(text.split_at(softer.find(|at| *at > limit / 3).unwrap_or(limit)))
}

/// The columns of one character.
fn columns(c: char) -> usize {
    #[cfg(test)]
    tests::MEASURED.set(tests::MEASURED.get() + 1);
    c.width().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use unicode_width::UnicodeWidthStr as _;

    use super::*;

    thread_local! {
        /// How many characters were measured.
        pub(super) static MEASURED: Cell<usize> = const { Cell::new(0) };
    }

    #[track_caller]
    fn wraps(text: &str, width: usize, expected: &[&str]) {
        let lines = wrap(text, width);
        assert_eq!(lines, expected);
        assert!(lines.iter().all(|line| line.width() <= width));
    }

    #[test]
    fn lines_break_at_spaces_and_keep_their_indentation() {
        wraps("one two three", 9, &["one two", "three"]);
        wraps("  one two three", 9, &["  one two", "    three"]);
        wraps("- one two three", 9, &["- one two", "  three"]);
        wraps("a\n\nb", 9, &["a", "", "b"]);
    }

    /// Each character is measured a few times, however long the line is.
    #[test]
    fn the_work_grows_with_the_text_and_no_faster() {
        for line in [
            "word ",
            "a",
            "a_",
            "{\"id\":1},",
            "世",
            "aaaaaaaaaaaaaaaaaaa ",
        ] {
            let text = line.repeat(100_000 / line.len());
            let before = MEASURED.get();
            assert!(wrap(&text, 80).len() > 800);
            let measured = MEASURED.get() - before;
            assert!(measured < 4 * text.len(), "{line}: {measured}");
        }
    }

    #[test]
    fn a_word_that_is_too_long_is_cut() {
        wraps("abcdefghijkl", 8, &["abcdefgh", "ijkl"]);
        wraps("- some_long_name: 1", 12, &["- some_long_", "  name: 1"]);
        wraps("世界世界世界", 8, &["世界世界", "世界"]);
        wraps(r#"{"a":1,"b":2}"#, 9, &[r#"{"a":1,"#, r#""b":2}"#]);
    }
}
