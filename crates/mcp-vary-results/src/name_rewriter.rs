//! Replaces the server's names in error messages with those of a view.
//!
//! A model that was shown `find` and `q` cannot act on an error about `search_issues` and `query`.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_vary::json::edit;
use mcp_vary::json::{elements, string};

/// The names that a view changes, as pairs of the server's name and the view's name.
#[derive(Clone, Debug, Default)]
pub struct NameRewriter {
    /// The name of the tool or prompt.
    pub item: Option<(Arc<str>, Arc<str>)>,
    /// The names of its arguments.
    pub arguments: Arc<[(String, String)]>,
}

impl NameRewriter {
    /// Whether the view renames nothing.
    pub fn is_empty(&self) -> bool {
        self.item.is_none() && self.arguments.is_empty()
    }

    /// Replaces the server's names in `text` with the view's names.
    ///
    /// # Properties
    ///
    /// A name is only replaced where it is clearly a name: in quotes, alone on a line, or after the word `tool` or
    /// `prompt`. Each name is replaced once, so two names can be swapped.
    pub fn rewrite<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut out = String::new();
        let mut copied = 0;
        for (at, context) in name_starts(text) {
            let after = &text[at..];
            let found = self.pairs(context).filter(|(upstream_name, _)| {
                after
                    .strip_prefix(upstream_name)
                    .is_some_and(|after| is_name_end(context, after.chars().next()))
            });
            // One name may be a prefix of another, so the longest match wins.
            if let (Some((upstream_name, shown)), true) = (
                found.max_by_key(|(upstream_name, _)| upstream_name.len()),
                at >= copied,
            ) {
                out.push_str(&text[copied..at]);
                out.push_str(shown);
                copied = at + upstream_name.len();
            }
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        out.push_str(&text[copied..]);
        Cow::Owned(out)
    }

    /// Replaces names in the texts of a failed call. Other results stay unchanged.
    pub fn rewrite_failed_result<'t>(&self, result: &'t str) -> Cow<'t, str> {
        if edit::get(result, "isError") != Some("true") {
            return Cow::Borrowed(result);
        }
        let content = edit::get(result, "content").and_then(|text| elements(text).ok());
        let blocks = content.unwrap_or_default();
        let rewritten: Vec<_> = blocks
            .iter()
            .map(|block| self.rewrite_block(block))
            .collect();
        if rewritten.iter().any(|block| matches!(block, Cow::Owned(_))) {
            edit::set(result, "content", &format!("[{}]", rewritten.join(",")))
        } else {
            Cow::Borrowed(result)
        }
    }

    fn rewrite_block<'t>(&self, block: &'t str) -> Cow<'t, str> {
        let read = edit::get(block, "text").and_then(|text| serde_json::from_str(text).ok());
        let text: String = read.unwrap_or_default();
        match self.rewrite(&text) {
            Cow::Owned(reported) => edit::set(block, "text", &string(&reported)),
            Cow::Borrowed(_) => Cow::Borrowed(block),
        }
    }

    fn pairs(&self, context: NameContext) -> impl Iterator<Item = (&str, &str)> {
        let item = self
            .item
            .iter()
            .map(|(upstream_name, shown)| (&**upstream_name, &**shown));
        let arguments = self.arguments.iter();
        let renamed = arguments
            .filter(move |_| context != NameContext::KindWord)
            .map(|(upstream_name, shown)| (upstream_name.as_str(), shown.as_str()));
        item.chain(renamed)
            .filter(|(upstream_name, _)| !upstream_name.is_empty())
    }
}

/// What precedes a name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum NameContext {
    Quote(char),
    Line,
    /// `tool` or `prompt`, perhaps with a colon.
    KindWord,
}

/// The positions at which names may start.
fn name_starts(text: &str) -> impl Iterator<Item = (usize, NameContext)> {
    let first = std::iter::once((0, NameContext::Line));
    let others = text.char_indices().filter_map(|(at, c)| {
        let context = match c {
            '"' | '\'' | '`' => NameContext::Quote(c),
            '\n' => NameContext::Line,
            ' ' if ends_with_kind_word(&text[..at]) => NameContext::KindWord,
            _ => return None,
        };
        Some((at + c.len_utf8(), context))
    });
    first.chain(others)
}

fn ends_with_kind_word(before: &str) -> bool {
    let phrase = before.strip_suffix(':').unwrap_or(before);
    let word = phrase.rsplit(|c: char| !c.is_alphabetic()).next();
    word.is_some_and(|word| {
        word.eq_ignore_ascii_case("tool") || word.eq_ignore_ascii_case("prompt")
    })
}

fn is_name_end(context: NameContext, next: Option<char>) -> bool {
    match (context, next) {
        (NameContext::Quote(quote), next) => next == Some(quote),
        (NameContext::Line, next) => next.is_none_or(|c| matches!(c, '\n' | '\r')),
        (NameContext::KindWord, next) => {
            next.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '/'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn says(server: &str, view: &str) {
        let pairs = [("query", "q"), ("a", "b"), ("b", "a"), ("queries", "qs")];
        let rewriter = NameRewriter {
            item: Some(("search_issues".into(), "find".into())),
            arguments: pairs.map(|(own, shown)| (own.into(), shown.into())).into(),
        };
        assert_eq!(rewriter.rewrite(server), view);
    }

    #[test]
    fn a_name_is_replaced_where_it_is_sure_to_be_one() {
        says("missing \"query\" or 'queries'", "missing \"q\" or 'qs'");
        says("`query`, `a` and `b`", "`q`, `b` and `a`");
        says("Tool search_issues not found", "Tool find not found");
        says("Unknown tool: search_issues", "Unknown tool: find");
        let server = "2 errors\nquery\n  Field required\r\na";
        says(server, "2 errors\nq\n  Field required\r\nb");
        says("query", "q");
        says("[{\"path\":[\"query\"]}]", "[{\"path\":[\"q\"]}]");
    }

    #[test]
    fn what_may_be_a_word_stays() {
        for text in [
            "the query is too long",
            "a tool for queries",
            "tool query",
            "'queryx' \"query'",
            "Tool search_issues_all is gone",
            "toolsearch_issues",
            "",
        ] {
            says(text, text);
        }
    }
}
