//! What holds of every value that is rendered (CN-10, CN-12); laws/main.rs has what holds of every result.

use mcp_vary::feature::Features;
use mcp_vary::json::Json;
use mcp_vary::render;
use mcp_vary::shape::{Policy, Shaped, ToolFacts, tool_result};
use proptest::prelude::*;
use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};

/// Texts with a meaning in markdown or in terminals.
fn awkward() -> Vec<String> {
    serde_json::from_str(include_str!("awkward_texts.json")).expect("the file is a list of texts")
}

/// Strings that markdown, tables and terminals trip over, and ordinary ones.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9 äß東😀_.-]{0,12}",
        "[-+*_\\[\\]()<>#|`~\\\\!&;:=.$@ \t\r\n1a東]{0,16}",
        "\\PC{0,8}",
        prop::sample::select(awkward()),
    ]
}

fn scalar() -> impl Strategy<Value = Json<'static>> {
    let number = prop_oneof!["-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,4})?([eE][+-]?[0-9]{1,2})?"];
    prop_oneof![
        1 => Just(Json::Null),
        1 => any::<bool>().prop_map(Json::Bool),
        3 => number.prop_map(|number| Json::Number(number.into())),
        5 => text().prop_map(|text| Json::String(text.into())),
    ]
}

fn object(
    keys: impl Strategy<Value = String>,
    values: impl Strategy<Value = Json<'static>>,
    most: usize,
) -> impl Strategy<Value = Json<'static>> {
    prop::collection::btree_map(keys, values, 0..most)
        .prop_map(|members| Json::Object(members.into_iter().map(|(k, v)| (k.into(), v)).collect()))
}

fn value() -> impl Strategy<Value = Json<'static>> {
    scalar().prop_recursive(6, 60, 6, |inner| {
        let row = object("[a-d]", inner.clone(), 5);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::Array),
            object(text(), inner, 6),
            prop::collection::vec(row, 0..5).prop_map(Json::Array),
        ]
    })
}

/// Calls `see` with every key and scalar, as text.
fn each_text(value: &Json<'_>, see: &mut impl FnMut(&str)) {
    match value {
        Json::Array(elements) => elements.iter().for_each(|element| each_text(element, see)),
        Json::Object(members) => members.iter().for_each(|(key, value)| {
            see(key);
            each_text(value, see);
        }),
        Json::String(text) => see(text),
        scalar => see(&scalar.to_json()),
    }
}

/// `text` without what a rendering may do to it: line breaks are marked, edges of space go.
fn squeezed(text: &str) -> String {
    let is_kept = |c: &char| !c.is_whitespace() && *c != '↵';
    text.replace('\0', "\u{fffd}")
        .chars()
        .filter(is_kept)
        .collect()
}

#[track_caller]
fn says_all(rendered: &str, value: &Json<'_>) {
    let rendered = squeezed(rendered);
    each_text(value, &mut |text| {
        assert!(
            rendered.contains(&squeezed(text)),
            "{text:?} is missing from {rendered:?}"
        );
    });
}

fn parse(markdown: &str) -> Parser<'_> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_GFM;
    Parser::new_ext(markdown, options)
}

/// The text that a reader of `markdown` sees; fails on markup that only data can have brought.
#[track_caller]
fn seen(markdown: &str, value: &Json<'_>) -> String {
    let mut urls = Vec::new();
    each_text(value, &mut |text| urls.push(text.to_owned()));
    let mut out = String::new();
    for event in parse(markdown) {
        match event {
            Event::Text(text) | Event::Code(text) => out.push_str(&text),
            Event::Start(Tag::Link {
                link_type,
                dest_url,
                ..
            }) => {
                assert_eq!(link_type, LinkType::Autolink, "{markdown}");
                assert!(
                    urls.iter().any(|url| url.contains(&*dest_url)),
                    "{markdown}"
                );
            }
            Event::Start(
                Tag::Paragraph
                | Tag::Heading { .. }
                | Tag::List(None)
                | Tag::Item
                | Tag::Strong
                | Tag::Table(_)
                | Tag::TableHead
                | Tag::TableRow
                | Tag::TableCell
                | Tag::CodeBlock(pulldown_cmark::CodeBlockKind::Fenced(_)),
            )
            | Event::End(_) => {}
            // Between two items of a loose list, or two lines: never inside a value.
            other => panic!("{other:?} in {markdown}"),
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn markdown_says_everything_and_nothing_else(value in value()) {
        let markdown = render::markdown(&value);
        says_all(&seen(&markdown, &value), &value);
    }

    #[test]
    fn text_says_everything(value in value()) {
        says_all(&render::text(&value), &value);
    }

    #[test]
    fn renderings_are_no_larger_than_a_multiple_of_the_value(value in value()) {
        let size = value.to_json().len();
        prop_assert!(render::markdown(&value).len() <= 40 * size + 100);
        prop_assert!(render::text(&value).len() <= 40 * size + 2000);
    }

    #[test]
    fn rows_of_scalars_are_one_table(
        rows in prop::collection::vec(object("[a-e]", scalar(), 6), 1..8)
    ) {
        let columns = {
            let keys = rows.iter().flat_map(|row| row.as_object().unwrap()).map(|(key, _)| key);
            keys.collect::<std::collections::BTreeSet<_>>().len()
        };
        prop_assume!(columns > 0);
        let (mut found, mut cells) = (0, 0);
        let value = Json::Array(rows.clone());
        let markdown = render::markdown(&value);
        for event in parse(&markdown) {
            found += usize::from(event == Event::End(TagEnd::TableRow));
            cells += usize::from(event == Event::End(TagEnd::TableCell));
        }
        prop_assert_eq!(found, rows.len(), "{}", markdown);
        prop_assert_eq!(cells, columns * (rows.len() + 1), "{}", markdown);
        // Columns without markup, or lines where they would be too wide.
        let lines = render::text(&value).lines().count();
        prop_assert!(lines >= rows.len());
    }
}

#[test]
fn the_deepest_value_is_rendered_and_a_deeper_one_is_passed() {
    let nested =
        |depth: usize, open: &str, close: &str| open.repeat(depth) + "1" + &close.repeat(depth);
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}"), (r#"[{"a":"#, "}]")] {
        let depth = 128 / open.matches(['[', '{']).count();
        let text = nested(depth, open, close);
        let value = Json::parse(&text).unwrap();
        assert!(render::markdown(&value).contains('1') && render::text(&value).contains('1'));
        let result = format!(
            r#"{{"content":[],"structuredContent":{}}}"#,
            nested(depth + 1, open, close)
        );
        let (features, _) = Features::from_tags(["human"]);
        let shaped = tool_result(&result, &features, ToolFacts::default(), &Policy::default());
        assert_eq!(shaped, Shaped::Unchanged);
    }
}
