//! What clients see of results that real servers gave (CN-9, CN-10, CN-12).

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use mcp_vary::feature::Features;
use mcp_vary::json::{Json, Members, elements};
use mcp_vary::render::{self, Limits};
use mcp_vary::shape::{Policy, Shaped, ToolFacts, tool_result};

/// The `result` members of a recording, each under the name of its call.
fn results(recording: &str) -> Vec<(String, String)> {
    let calls = elements(recording).unwrap();
    calls
        .into_iter()
        .map(|call| {
            let call = Members::parse(call).unwrap();
            let reply = Members::parse(call.get("reply").unwrap()).unwrap();
            let result = Json::parse(reply.get("result").unwrap()).unwrap();
            (call.get_str("call").unwrap(), result.to_json())
        })
        .collect()
}

fn shaped(result: &str, tags: &str) -> String {
    let (features, _) = Features::from_tags(tags.split(','));
    match tool_result(result, &features, ToolFacts::default(), &Policy::default()) {
        Shaped::Changed { result, .. } => result,
        Shaped::Unchanged => "unchanged".to_owned(),
    }
}

/// The texts as a reader sees them, everything else as JSON cut short.
fn seen(result: &str) -> String {
    let Ok(result) = Members::parse(result) else {
        return result.to_owned();
    };
    let mut out = String::new();
    for block in elements(result.get("content").unwrap()).unwrap() {
        match Members::parse(block).unwrap().get_str("text") {
            Some(text) => out.push_str(&text),
            None => out.extend(block.chars().take(60)),
        }
        out.push('\n');
    }
    if let Some(structured) = result.get("structuredContent") {
        out.push_str("structuredContent: ");
        out.extend(structured.chars().take(100));
    }
    out.trim_end().to_owned()
}

fn views(recording: &str) -> String {
    let mut out = String::new();
    for (call, result) in results(recording) {
        for tags in [
            "agent,format=json",
            "agent",
            "human,format=markdown",
            "format=text",
        ] {
            let seen = seen(&shaped(&result, tags));
            out.push_str(&format!("── {call} · {tags}\n{seen}\n\n"));
        }
    }
    out
}

macro_rules! recordings {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            let recording = include_str!(concat!("fixtures/tool-results/", stringify!($name), ".json"));
            insta::assert_snapshot!(views(recording));
        }
    )*};
}

recordings!(budget everything filesystem git memory sqlite time);

#[test]
fn rows_are_tables_or_sections() {
    let rows = Json::parse(include_str!("fixtures/rows.json")).unwrap();
    for (name, value) in rows.as_object().unwrap() {
        insta::assert_snapshot!(format!("{name}_markdown"), render::markdown(value));
        insta::assert_snapshot!(format!("{name}_text"), render::text(value));
    }
}

/// CN-10, CN-12, CN-13: the structured value of a real tool, as a person reads it, and in few words.
#[test]
fn a_structured_value_reads_well() {
    let (_, result) = results(include_str!("fixtures/tool-results/budget.json")).remove(0);
    let result = Members::parse(&result).unwrap();
    let value = Json::parse(result.get("structuredContent").unwrap()).unwrap();
    insta::assert_snapshot!("budget_markdown", render::markdown(&value));
    insta::assert_snapshot!("budget_text", render::text(&value));
    let limits = Limits::default();
    for (name, short) in [
        (
            "markdown",
            render::compact_markdown as fn(&Json<'_>, &Limits) -> _,
        ),
        ("text", render::compact_text),
    ] {
        let (text, left_out) = short(&value, &limits);
        let notice = render::notice(&left_out, Some("vary://result/x")).join("\n");
        insta::assert_snapshot!(
            format!("budget_few_words_{name}"),
            format!("{text}\n\n{notice}")
        );
    }
}

/// CN-9: what an author says of his text does not hold for the value that stands in its place.
#[test]
fn annotations_stay_with_a_text_that_said_the_same() {
    let result = |text: &str| {
        let block = format!(r#"{{"type":"text","text":"{text}","annotations":{{"priority":1}}}}"#);
        format!(r#"{{"content":[{block}],"structuredContent":{{"a": 1}}}}"#)
    };
    let has_annotations = |text: &str| {
        let shaped = shaped(&result(text), "format=json");
        let result = Members::parse(&shaped).unwrap();
        let blocks = elements(result.get("content").unwrap()).unwrap();
        let block = Members::parse(blocks[0]).unwrap();
        assert_eq!(block.get_str("text").as_deref(), Some(r#"{"a":1}"#));
        block.contains("annotations")
    };
    assert!(has_annotations(r#"{ \"a\": 1 }"#));
    assert!(!has_annotations("One of them."));
}
