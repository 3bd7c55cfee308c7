//! What always holds of an index.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use mcp_vary_search::{MAX_RESULTS, Query, Tool, ToolIndex, argument_names, terms};
use proptest::prelude::*;
use serde_json::Value;

/// A tool as a test writes it: name, server, title, summary, description.
type Texts = [String; 5];

/// A change of the tool at a position: another one, or none.
type Change = (usize, Option<Texts>);

/// Words that tools often share, so that they have the same terms.
fn text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("read"),
        Just("write"),
        Just("file"),
        Just("filesystem"),
        Just("gitHub"),
        Just("issue_list"),
        Just("the"),
        Just("tool"),
        Just("检索文件"),
        Just("Straße"),
        Just("a1b2"),
        Just(","),
    ];
    proptest::collection::vec(word, 0..6).prop_map(|terms| terms.join(" "))
}

fn texts() -> impl Strategy<Value = Texts> {
    let server = prop_oneof![Just("git".to_owned()), Just("fs".to_owned()), text()];
    (text(), server, text(), text(), text()).prop_map(|(a, b, c, d, e)| [a, b, c, d, e])
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    proptest::collection::vec((0..12_usize, proptest::option::of(texts())), 0..20)
}

fn tool([name, server, title, summary, description]: &Texts) -> Tool<'_> {
    let tool = Tool::new(name, server).title(title).summary(summary);
    tool.description(description)
}

/// The index of `tools`, with a gap for each that is missing.
fn built(tools: &[Option<Texts>]) -> ToolIndex {
    let mut index = ToolIndex::new();
    for (position, texts) in tools.iter().enumerate() {
        let placeholder = Texts::default();
        index.push(&tool(texts.as_ref().unwrap_or(&placeholder)));
        if texts.is_none() {
            index.remove(position).unwrap();
        }
    }
    index
}

proptest! {
    #[test]
    fn changes_give_the_index_that_would_be_built(
        first in proptest::collection::vec(texts(), 1..12),
        changes in changes(),
        query in text(),
    ) {
        let mut tools: Vec<Option<Texts>> = first.into_iter().map(Some).collect();
        let mut index = built(&tools);
        for (position, texts) in changes {
            let position = position % tools.len();
            match &texts {
                Some(texts) => index.replace(position, &tool(texts)).unwrap(),
                None => index.remove(position).unwrap(),
            }
            tools[position] = texts;
        }
        if let Ok(query) = Query::new(&query) {
            prop_assert_eq!(index.search(&query, 12), built(&tools).search(&query, 12));
        }
    }

    #[test]
    fn any_text_can_be_indexed_and_searched_for(texts in any::<Texts>(), query in any::<String>(), limit: usize) {
        let mut index = ToolIndex::new();
        index.push(&tool(&texts));
        index.push(&Tool::new(&query, "s"));
        if let Ok(parsed) = Query::new(&query) {
            let found = index.search(&parsed, limit);
            prop_assert!(found.len() <= limit.min(MAX_RESULTS));
            prop_assert!(found.iter().all(|result| result.score.is_finite() && result.score > 0.0));
            prop_assert!(found.is_sorted_by(|left, right| left.score >= right.score));
        }
    }

    #[test]
    fn a_name_finds_its_tool(texts in any::<Texts>()) {
        let mut index = ToolIndex::new();
        index.push(&tool(&texts));
        if let Ok(query) = Query::new(&texts[0]) {
            prop_assert_eq!(index.search(&query, 1).len(), 1);
        }
    }

    #[test]
    fn terms_depend_on_neither_case_nor_composition(text in any::<String>()) {
        let lower: String = text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect();
        let decomposed: String = unicode_normalization::UnicodeNormalization::nfd(lower.as_str()).collect();
        prop_assert_eq!(terms(&lower), terms(&decomposed));
    }

    #[test]
    fn any_json_has_argument_names(json in json()) {
        prop_assert!(argument_names(&json).len() <= mcp_vary_search::MAX_ARGUMENTS);
    }
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        ".*".prop_map(Value::String)
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        let key = prop_oneof![
            Just("properties".to_owned()),
            Just("items".to_owned()),
            ".*"
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            proptest::collection::vec((key, inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}
