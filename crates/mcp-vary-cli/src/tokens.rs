//! The cost of text in tokens.

use mcp_vary::json::Json;
pub(crate) use mcp_vary_tokens::count;
use mcp_vary_tokens::count_array;
use mcp_vary_view::model_tool;

/// The tokens that a model gets of a list of tools: their names, descriptions and input schemas.
pub(crate) fn count_tools<T: AsRef<str>>(tools: &[T]) -> usize {
    let texts: Vec<String> = tools.iter().map(|tool| model_tool(tool.as_ref())).collect();
    count_array(&texts)
}

/// The tokens that a model gets of one tool.
pub(crate) fn count_tool(tool: &str) -> usize {
    count(&model_tool(tool))
}

/// The tokens of the items as one array, without white space between them.
pub(crate) fn count_whole<T: AsRef<str>>(items: &[T]) -> usize {
    let compact =
        |text: &str| Json::parse(text).map_or_else(|_| text.to_owned(), |json| json.to_json());
    let texts: Vec<String> = items.iter().map(|item| compact(item.as_ref())).collect();
    count_array(&texts)
}

/// `part` of `whole` in percent, rounded.
pub(crate) fn percent(part: usize, whole: usize) -> usize {
    (part * 200 + whole) / (whole * 2).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The gateway has no encoding: what it counts is about the same, and rather more.
    #[test]
    fn the_estimate_is_near() {
        let fixtures = "../mcp-vary/tests/fixtures";
        for folder in ["rows", "tool-results"] {
            for file in std::fs::read_dir(format!("{fixtures}/{folder}")).unwrap() {
                let path = file.unwrap().path();
                let text = std::fs::read_to_string(&path).unwrap();
                let value = Json::parse(&text).unwrap();
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
