//! The cost of text in tokens.

use mcp_vary_view::model_tool;

/// The number of tokens of `text` in the encoding o200k. Special tokens count as plain text.
///
/// Long text is counted in pieces, so that the count may be one token too high at each cut.
pub(crate) fn count(text: &str) -> usize {
    let encoding = tiktoken_rs::o200k_base_singleton();
    let mut remaining = text;
    let mut tokens = 0;
    while !remaining.is_empty() {
        let (piece, after) = remaining.split_at(remaining.floor_char_boundary(LONGEST_PIECE));
        tokens += encoding.count_ordinary(piece);
        remaining = after;
    }
    tokens
}

/// The tokens of JSON texts as one compact array.
pub(crate) fn count_array<T: AsRef<str>>(items: &[T]) -> usize {
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    count(&format!("[{}]", items.join(",")))
}

/// The tokens that a model gets of a list of tools: their names, descriptions and input schemas.
pub(crate) fn count_tools<T: AsRef<str>>(tools: &[T]) -> usize {
    let tools: Vec<String> = tools.iter().map(|tool| model_tool(tool.as_ref())).collect();
    count_array(&tools)
}

/// The tokens that a model gets of one tool.
pub(crate) fn count_tool(tool: &str) -> usize {
    count(&model_tool(tool))
}

/// `part` of `whole` in percent, rounded.
pub(crate) fn percent(part: usize, whole: usize) -> usize {
    (part * 200 + whole) / (whole * 2).max(1)
}

/// The encoding's pattern panics after a million backtracking steps. That can happen in long text of one kind, such as
/// spaces.
const LONGEST_PIECE: usize = 100_000;

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
    fn any_text_of_a_peer_is_counted() {
        for unit in [" ", "A", "世"] {
            let text = format!("x{}y", unit.repeat(1_100_000 / unit.len()));
            assert!(count(&text) > 1000, "{unit:?}");
        }
    }

    /// The gateway has no encoding: what it counts is about the same, and rather more.
    #[test]
    fn the_estimate_is_near() {
        let fixtures = "../mcp-vary/tests/fixtures";
        for folder in ["rows", "tool-results"] {
            for file in std::fs::read_dir(format!("{fixtures}/{folder}")).unwrap() {
                let path = file.unwrap().path();
                let text = std::fs::read_to_string(&path).unwrap();
                let value = mcp_vary::json::Json::parse(&text).unwrap();
                for text in [
                    value.to_json(),
                    mcp_vary::render::markdown(&value),
                    mcp_vary::render::text(&value),
                ] {
                    let (exact, about) = (count(&text), mcp_vary::render::tokens(&text));
                    let share = percent(about, exact);
                    let path = path.display();
                    assert!((90..=150).contains(&share), "{path}: {about} of {exact}");
                }
            }
        }
    }

    #[test]
    fn percentages_are_rounded() {
        assert_eq!([percent(1, 3), percent(2, 3), percent(0, 0)], [33, 67, 0]);
    }
}
