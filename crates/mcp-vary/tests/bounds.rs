//! Results within an operator's limits (CN-20, TR-4).

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use mcp_vary::feature::Features;
use mcp_vary::json::Json;
use mcp_vary::render::{Contract, META_LEFT_OUT, read, tokens};
use mcp_vary::shape::{
    Bounds, Compacted, Compaction, CustomText, Policy, Shaped, ToolFacts, Whole,
    compact_tool_result, tool_result,
};
use mcp_vary_testkit::defaults::default_with;
use mcp_vary_testkit::recordings::{ROWS, Rows};
use serde_json::{Value, json};

/// What real servers answered.
const RECORDED: &[&str] = &[
    include_str!("fixtures/tool-results/everything.json"),
    include_str!("fixtures/tool-results/git.json"),
];

const TAGS: &[&[&str]] = &[
    &[],
    &["agent", "format=json"],
    &["format=json"],
    &["human"],
    &["format=text"],
    &["verbosity=compact"],
    &["agent", "format=json", "verbosity=compact"],
    &["human", "verbosity=compact"],
];

const URI: &str = "vary://result/x";

fn within(result: &str, tags: &[&str], bounds: Bounds, schema: Option<&Value>) -> Compacted {
    let (features, _) = Features::from_tags(tags.iter().copied());
    let tool = ToolFacts {
        output_schema: schema.is_some(),
        ui: false,
    };
    let compaction = Compaction {
        bounds,
        contract: schema.map_or(Contract::default(), Contract::of),
        whole: Some(Whole {
            uri: URI,
            is_linked: true,
        }),
        ..Compaction::default()
    };
    compact_tool_result(result, &features, tool, &Policy::default(), &compaction)
}

/// At most `tokens`, and no other bound.
fn at_most(tokens: usize) -> Bounds {
    default_with::<Bounds>(|it| it.tokens = Some(tokens))
}

fn said(compacted: &Compacted) -> Option<Value> {
    match &compacted.shaped {
        Shaped::Changed { result, .. } => Some(serde_json::from_str(result).unwrap()),
        Shaped::Unchanged => None,
    }
}

fn texts(result: &Value) -> Vec<&str> {
    let blocks = result["content"].as_array().unwrap().iter();
    blocks.filter_map(|block| block["text"].as_str()).collect()
}

/// The number of images in `result`.
fn images(result: &Value) -> usize {
    let blocks = result["content"].as_array().unwrap().iter();
    blocks.filter(|block| block["type"] == "image").count()
}

/// What `result` costs: its texts together, or its structured value.
fn cost(result: &Value) -> usize {
    let structured = result.get("structuredContent");
    let structured = structured.map_or(0, |value| tokens(&value.to_string()));
    structured.max(texts(result).iter().map(|text| tokens(text)).sum())
}

fn rows() -> impl Iterator<Item = (Value, String)> {
    let sets = ROWS
        .iter()
        .filter(|(name, _)| ["issues", "staff"].contains(name));
    let sets = sets.map(|(_, text)| Rows::of(text));
    sets.map(|set| (set.value, set.list))
}

/// `value` as servers give it.
fn forms(value: &Value) -> [Value; 4] {
    let text = json!({"type": "text", "text": value.to_string()});
    let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
    let prose = json!({"type": "text", "text": "One sentence. ".repeat(2000)});
    [
        json!({"content": [text, image], "structuredContent": value}),
        json!({"content": [image, text]}),
        json!({"content": [image], "structuredContent": value}),
        json!({"content": [prose, image], "structuredContent": value}),
    ]
}

/// The operator's tokens are what a model reads at most, in whatever form; images stay, the rest is counted and linked.
#[test]
fn a_result_costs_no_more_than_it_may() {
    for (value, list) in rows() {
        for result in forms(&value) {
            for tags in TAGS {
                for most in [300, 3000] {
                    let short = within(&result.to_string(), tags, at_most(most), None);
                    let told = said(&short).unwrap();
                    let about = format!("{list} {tags:?} {most}: {told}");
                    assert!(cost(&told) <= most, "{} {about}", cost(&told));
                    assert_eq!(images(&told), images(&result), "{about}");
                    assert!(told.to_string().contains(URI), "{about}");
                    for (all, left_out) in [(&short.whole, &short.left_out)] {
                        let Some(all) = all else { continue };
                        let all = Json::parse(all).unwrap();
                        for one in left_out {
                            assert!(read(&all, &one.part()).is_ok(), "{one:?}");
                        }
                    }
                }
            }
        }
    }
}

/// Of rows, as many whole ones stay as there is room for.
#[test]
fn tokens_are_spent_on_whole_rows() {
    for (value, list) in rows() {
        let result = json!({"content": [{"type": "text", "text": value.to_string()}]});
        let told = said(&within(&result.to_string(), &[], at_most(2000), None)).unwrap();
        let left: Value = serde_json::from_str(texts(&told)[0]).unwrap();
        let [kept, all] = [&left, &value].map(|it| it[&list].as_array().unwrap());
        assert!(kept.len() > 3 && all.starts_with(kept), "{list}: {left}");
        assert!(cost(&told) > 1000, "{list}: {}", cost(&told));
        for (key, member) in value.as_object().unwrap() {
            assert!(*key == list || left[key] == *member, "{list}: {key}");
        }
    }
}

/// CN-7: a result within its bounds stays as the bytes that it was.
#[test]
fn what_is_within_its_bounds_stays() {
    let bounds = Bounds {
        elements: Some(1_000_000),
        depth: Some(100),
        tokens: Some(1_000_000),
    };
    for recording in RECORDED {
        let calls: Value = serde_json::from_str(recording).unwrap();
        for call in calls.as_array().unwrap() {
            let result = call["reply"]["result"].to_string();
            let terse = "verbosity=compact";
            for tags in TAGS.iter().filter(|tags| !tags.contains(&terse)) {
                let (features, _) = Features::from_tags(tags.iter().copied());
                let (tool, policy) = (ToolFacts::default(), Policy::default());
                let plain = tool_result(&result, &features, tool, &policy);
                let bounded = within(&result, tags, bounds, None);
                assert_eq!(bounded.shaped, plain);
                assert!(!bounded.is_shorter);
            }
        }
    }
}

/// TR-4: where the schema does not let rows go, the text alone is cut.
#[test]
fn a_schema_keeps_its_rows() {
    let value = json!({"rows": (0..20).collect::<Vec<_>>()});
    let bounds = default_with::<Bounds>(|it| it.elements = Some(3));
    let result = forms(&value)[0].to_string();
    for (rows, kept) in [(json!({"minItems": 20}), 20), (json!({"type": "array"}), 3)] {
        let schema = json!({"type": "object", "properties": {"rows": rows}});
        let told = said(&within(&result, &["format=json"], bounds, Some(&schema))).unwrap();
        let structured = &told["structuredContent"];
        assert_eq!(structured["rows"].as_array().unwrap().len(), kept);
        assert_eq!(structured.get(META_LEFT_OUT).is_some(), kept == 3);
        assert_eq!(texts(&told)[0], r#"{"rows":[0,1,2]}"#);
        let left_out = "/rows: 3 of 20 elements; vary://result/x?pointer=/rows&offset=3";
        assert_eq!(texts(&told)[1], left_out);
    }
}

/// What nests deeper is a sign in a text, and an empty container for programs.
#[test]
fn what_nests_deeper_is_counted() {
    let result = forms(&json!({"a": {"b": {"c": 1}}, "d": [[1]]}))[0].to_string();
    let bounds = default_with::<Bounds>(|it| it.depth = Some(2));
    let told = said(&within(&result, &[], bounds, None)).unwrap();
    assert_eq!(
        texts(&told),
        [
            r#"{"a":{"b":"…"},"d":["…"]}"#,
            "/a/b: nested deeper than is shown; vary://result/x?pointer=/a/b\n\
             /d/*: nested deeper than is shown; vary://result/x?pointer=/d/0",
        ]
    );
    let structured = json!({"a": {"b": {}}, "d": [[]]});
    for (key, value) in structured.as_object().unwrap() {
        assert_eq!(told["structuredContent"][key], *value, "{key}");
    }
}

/// Several texts share the tokens: documents stay documents, and what is left out of them is read apart.
#[test]
fn several_texts_share_the_room() {
    let document = json!((0..500).collect::<Vec<_>>()).to_string();
    let prose = "One sentence. ".repeat(500);
    let result = json!({"content": [
        {"type": "text", "text": "short"}, {"type": "text", "text": document}, {"type": "text", "text": prose},
    ]});
    let short = within(&result.to_string(), &[], at_most(400), None);
    let told = said(&short).unwrap();
    let said = texts(&told);
    assert_eq!(said[0], "short");
    let left: Vec<u32> = serde_json::from_str(said[1]).unwrap();
    assert!(left.len() > 10 && left.len() < 500, "{}", left.len());
    assert!(prose.starts_with(said[2].strip_suffix("…").unwrap()));
    let shown = left.len();
    let rows =
        format!("/1: {shown} of 500 elements; vary://result/x/texts?pointer=/1&offset={shown}");
    assert!(said[3].starts_with(&rows), "{}", said[3]);
    assert_eq!(short.whole, None);
    let all: Value = serde_json::from_str(&short.texts.unwrap()).unwrap();
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(all, json!(["short", document, prose]));
    assert_eq!(told["content"][4]["uri"], "vary://result/x/texts");
}

/// The words of a template say what is left, in those words.
#[test]
fn a_template_says_what_is_left() {
    let value = json!({"names": (0..100).map(|at| format!("name {at}")).collect::<Vec<_>>()});
    let say = |value: &Json<'_>| {
        let names = value.get("names")?.as_array()?;
        let names: Vec<_> = names.iter().filter_map(|name| name.as_str()).collect();
        Some(format!("Names: {}", names.join("; ")))
    };
    let written = value.to_string();
    let text = say(&Json::parse(&written).unwrap()).unwrap();
    let result = json!({"content": [{"type": "text", "text": text}]}).to_string();
    let compaction = Compaction {
        bounds: default_with::<Bounds>(|it| it.elements = Some(2)),
        custom_text: Some(CustomText {
            value: &written,
            text: Some(&text),
            render: &say,
        }),
        ..Compaction::default()
    };
    let (features, tool) = (Features::default(), ToolFacts::default());
    let short = compact_tool_result(&result, &features, tool, &Policy::default(), &compaction);
    let told = said(&short).unwrap();
    let expected = ["Names: name 0; name 1", "/names: 2 of 100 elements"];
    assert_eq!(texts(&told), expected);
    assert_eq!(short.whole.as_deref(), Some(written.as_str()));
}

/// CN-8: an error says all of it.
#[test]
fn an_error_is_never_cut() {
    let error = json!({"content": [{"type": "text", "text": "no ".repeat(5000)}], "isError": true});
    let short = within(&error.to_string(), &["human"], at_most(100), None);
    assert_eq!(short.shaped, Shaped::Unchanged);
}
