//! What text costs a model.

/// The tokens of `text` in the encoding o200k, special tokens taken as plain text.
pub(crate) fn count(text: &str) -> usize {
    tiktoken_rs::o200k_base_singleton().count_ordinary(text)
}

/// The tokens of JSON texts as one compact array.
pub(crate) fn count_array<T: AsRef<str>>(items: &[T]) -> usize {
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    count(&format!("[{}]", items.join(",")))
}

/// `part` of `whole` in percent, rounded.
pub(crate) fn percent(part: usize, whole: usize) -> usize {
    (part * 200 + whole) / (whole * 2).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_those_of_o200k() {
        assert_eq!(count(""), 0);
        assert_eq!(count("hello world"), 2);
        assert_eq!(count_array(&["1", "2"]), count("[1,2]"));
        assert!(count("<|endoftext|>") > 1);
    }

    #[test]
    fn percentages_are_rounded() {
        assert_eq!([percent(1, 3), percent(2, 3), percent(0, 0)], [33, 67, 0]);
    }
}
