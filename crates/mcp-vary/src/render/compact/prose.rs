//! The beginning of a text.

/// The end of a shortened text.
pub const ELLIPSIS: &str = "…";

/// The beginning of an author's text, with [`ELLIPSIS`], and the number of bytes retained; `None` if the text stays.
pub(crate) fn shorter_prose(text: &str, limit: usize) -> Option<(String, usize)> {
    let retained = shortened(text, limit).filter(|_| text.len() > limit)?;
    Some((format!("{retained}{ELLIPSIS}"), retained.len()))
}

/// The beginning of `text` up to the end of a line, sentence or word, at most `limit` bytes including the ellipsis;
/// `None` if there is no such end.
pub(super) fn shortened(text: &str, limit: usize) -> Option<&str> {
    let mut end = limit.saturating_sub(ELLIPSIS.len()).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let head = &text[..end];
    let after_sentence = [". ", "! ", "? ", "\n", "。", "！", "？"]
        .iter()
        .filter_map(|mark| head.rfind(mark).map(|at| at + mark.len()))
        .max();
    let after_word = || head.rfind(char::is_whitespace).map(|at| at + 1);
    let at_least = end / 3;
    let sentence_end = after_sentence.filter(|at| *at >= at_least);
    match sentence_end.or_else(after_word) {
        Some(at) if head.is_char_boundary(at) => Some(&text[..at]),
        _ if text.len() > MAX_WORD => Some(head),
        _ => None,
    }
}

/// Bytes of a word that stays complete, such as a URL: a truncated one is worse than none.
const MAX_WORD: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    /// CN-13: where a text is cut.
    #[track_caller]
    fn shortens(text: &str, limit: usize, expected: Option<&str>) {
        assert_eq!(shortened(text, limit), expected);
    }

    #[test]
    fn a_text_ends_with_a_sentence_a_line_or_a_word() {
        shortens("One two. Three four. Five", 20, Some("One two. "));
        shortens("One\nTwo three four five", 12, Some("One\n"));
        shortens("One two three four five", 12, Some("One two "));
        shortens("東京。大阪。名古屋", 16, Some("東京。"));
        shortens("abcdefghijklmnopqrstuvwxyz", 12, None);
        shortens("a b", 0, None);
        shortens(&"x".repeat(600), 12, Some("xxxxxxxxx"));
        shortens(&"é".repeat(600), 12, Some("éééé"));
    }

    #[test]
    fn a_sentence_that_is_less_than_a_third_is_no_end() {
        shortens("A. One two three four five", 20, Some("A. One two three "));
        shortens("One. Two three four five", 18, Some("One. "));
    }

    #[test]
    fn a_wide_space_and_a_word_that_is_not_the_longest_are_no_ends() {
        shortens("東京\u{3000}大阪\u{3000}名古屋", 18, None);
        shortens(&"x".repeat(512), 12, None);
        shortens(&"x".repeat(513), 12, Some("xxxxxxxxx"));
    }
}
