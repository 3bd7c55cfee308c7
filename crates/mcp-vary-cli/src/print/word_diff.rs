//! Compares two texts word by word.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffTag, capture_diff_slices_deadline};

use super::sanitize;

/// The lines of [`word_diff`] that changed, with two lines before and after each; dots stand for the others.
pub(crate) fn changed_lines(before: &str, after: &str, has_color: bool) -> String {
    let diff = word_diff(before, after, has_color);
    let lines: Vec<&str> = diff.split_inclusive('\n').collect();
    let opening = marks(has_color).map(|(open, _)| open);
    let is_changed = |line: &&str| opening.iter().any(|mark| line.contains(mark));
    let mut out = String::new();
    for (at, line) in lines.iter().enumerate() {
        let around = at.saturating_sub(CONTEXT)..(at + CONTEXT + 1).min(lines.len());
        let is_near = lines.get(around).unwrap_or_default().iter().any(is_changed);
        match is_near {
            true => out.push_str(line),
            false if out.ends_with(OMITTED) => {}
            false => out.push_str(OMITTED),
        }
    }
    out
}

/// The lines that are shown before and after a changed one.
const CONTEXT: usize = 2;
/// What stands for lines that are the same.
const OMITTED: &str = "...\n";

/// What opens and closes removed text, then added text.
const fn marks(has_color: bool) -> [(&'static str, &'static str); 2] {
    if has_color {
        [("\x1b[31m", "\x1b[0m"), ("\x1b[32m", "\x1b[0m")]
    } else {
        [("[-", "-]"), ("{+", "+}")]
    }
}

/// `after` with what was removed from `before` and added to it: in red and green, or without `has_color` as
/// `[-removed-]` and `{+added+}`. Invisible characters are escaped.
fn word_diff(before: &str, after: &str, has_color: bool) -> String {
    let plain_before = sanitize(before);
    let plain_after = sanitize(after);
    let old = split_at_spaces(&plain_before);
    let new = split_at_spaces(&plain_after);
    let deadline = Instant::now() + LONGEST;
    let operations = capture_diff_slices_deadline(Algorithm::Patience, &old, &new, Some(deadline));
    let mut out = String::new();
    for operation in operations {
        let removed = old.get(operation.old_range()).unwrap_or_default().concat();
        let added = new.get(operation.new_range()).unwrap_or_default().concat();
        if operation.tag() == DiffTag::Equal {
            out.push_str(&added);
            continue;
        }
        for (text, (open, close)) in [removed, added].iter().zip(marks(has_color)) {
            mark(&mut out, text, open, close);
        }
    }
    out
}

/// Marks each line of `text` by itself, without the white space around it.
fn mark(out: &mut String, text: &str, open: &str, close: &str) {
    for line in text.split_inclusive('\n') {
        let marked = line.trim();
        if marked.is_empty() {
            out.push_str(line);
            continue;
        }
        let start = line.len() - line.trim_start().len();
        let (blank, after) = line.split_at(start);
        let (_, end) = after.split_at(marked.len());
        let _ = write!(out, "{blank}{open}{marked}{close}{end}");
    }
}

/// Words, runs of white space, and every other character by itself.
fn split_at_spaces(text: &str) -> Vec<&str> {
    let class = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' => 0,
        c if c.is_whitespace() => 1,
        _ => 2,
    };
    let mut all = Vec::new();
    let mut start = 0;
    let mut before = None;
    for (at, c) in text.char_indices() {
        if before.is_some_and(|before| before == 2 || before != class(c)) {
            all.push(text.get(start..at).unwrap_or_default());
            start = at;
        }
        before = Some(class(c));
    }
    all.extend(text.get(start..).filter(|last| !last.is_empty()));
    all
}

/// How long two texts are compared; the rest then counts as replaced.
const LONGEST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn differs(before: &str, after: &str, expected: &str) {
        assert_eq!(word_diff(before, after, false), expected);
    }

    #[test]
    fn changed_words_are_marked() {
        differs("same text", "same text", "same text");
        differs("the old text", "the new text", "the [-old-]{+new+} text");
        differs("a b", "a b c", "a b {+c+}");
        differs("one\ntwo\nthree\n", "one\nthree\n", "one\n[-two-]\nthree\n");
        differs("\"type\": 1", "\"type\": 2", "\"type\": [-1-]{+2+}");
        differs("", "x", "{+x+}");
    }

    #[test]
    fn two_lines_stand_around_each_change_and_dots_for_the_others() {
        let before = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\n";
        let after = before.replace('d', "D").replace('l', "L");
        let expected = "...\nb\nc\n[-d-]{+D+}\ne\nf\n...\nj\nk\n[-l-]{+L+}\n";
        assert_eq!(changed_lines(before, &after, false), expected);
        let near = before.replace('d', "D").replace('i', "I");
        let expected = "...\nb\nc\n[-d-]{+D+}\ne\nf\ng\nh\n[-i-]{+I+}\nj\nk\n...\n";
        assert_eq!(changed_lines(before, &near, false), expected);
    }

    #[test]
    fn colors_replace_the_marks_and_a_server_cannot_set_its_own() {
        let shown = word_diff("a \x1b[1m", "b \x1b[1m", true);
        assert_eq!(shown, "\x1b[31ma\x1b[0m\x1b[32mb\x1b[0m \\u{1b}[1m");
    }
}
