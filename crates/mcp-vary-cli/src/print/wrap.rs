//! Wraps lines.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

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
    while remaining.width() + indent > width {
        let (head, tail) = cut(remaining, width - indent);
        lines.push(format!("{:indent$}{}", "", head.trim_end()));
        remaining = tail.trim_start_matches(' ');
        indent = hanging;
    }
    lines.push(format!("{:indent$}{remaining}", ""));
    lines
}

/// Splits `text` after at most `width` columns: after a space or comma if that fills a good part of the line, else
/// within a word, preferably after `_`, `-` or `/`.
fn cut(text: &str, width: usize) -> (&str, &str) {
    let (mut used, mut between, mut within) = (0, 0, 0);
    let mut hard = text.len();
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > width && at > 0 {
            hard = at;
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
    let enough = hard / 3;
    text.split_at(
        [between, within]
            .into_iter()
            .find(|at| *at > enough)
            .unwrap_or(hard),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_word_that_is_too_long_is_cut() {
        wraps("abcdefghijkl", 8, &["abcdefgh", "ijkl"]);
        wraps("- some_long_name: 1", 12, &["- some_long_", "  name: 1"]);
        wraps("世界世界世界", 8, &["世界世界", "世界"]);
        wraps(r#"{"a":1,"b":2}"#, 9, &[r#"{"a":1,"#, r#""b":2}"#]);
    }
}
