//! What holds of every result that is forwarded or compared, and of those that real servers gave
//! (TR-1, TR-2).

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use mcp_vary::json::{Json, string};
use mcp_vary::render;
use mcp_vary::shape::ToolFacts;
use mcp_vary::visibility::{Experience, Finding, Forward, MAX_NAMED, compare, forward};
use mcp_vary_testkit::recordings::results;
use proptest::prelude::*;

const EXPERIENCES: [Experience; 3] = [
    Experience::Conversation,
    Experience::Program,
    Experience::UserInterface,
];

/// TR-2: what real servers say twice is equivalent, whatever their style.
#[test]
fn real_servers_say_the_same_in_both_fields() {
    for result in results() {
        let findings = compare(&result, ToolFacts::default()).unwrap();
        let kept: Vec<_> = findings
            .iter()
            .filter(|finding| !matches!(finding, Finding::Larger { .. }))
            .collect();
        assert!(kept.is_empty(), "{kept:?} in {result}");
    }
}

/// TR-2: a summary of a few lines beside kilobytes is worth a look, and nothing worse.
#[test]
fn a_field_ten_times_as_large_is_named() {
    let result = results().into_iter().next().unwrap();
    let findings = compare(&result, ToolFacts::default()).unwrap();
    assert_eq!(
        findings.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["`structuredContent` is 21 times as large as the other field"],
    );
    assert!(!findings[0].is_contradiction());
}

/// TR-2: what was found between a text and a structured value, as sentences.
#[track_caller]
fn finds(text: &str, structured: &str, expected: &[&str]) {
    let findings = compare(&result(&[text], &[], structured), ToolFacts::default()).unwrap();
    let reported: Vec<_> = findings.iter().map(ToString::to_string).collect();
    assert_eq!(reported, expected);
}

/// TR-2: a label, a number and a word longer than any that people write name nothing.
#[test]
fn what_is_longer_than_people_write_is_not_compared() {
    let denied = "`content` says `9` where `structuredContent` has `8` at `/temperature`";
    let added = "`content` says `9`, which `structuredContent` does not contain";
    let label = |length: usize| format!("{:*>length$}: 9", "Temperature");
    finds(&label(128), r#"{"temperature":8}"#, &[denied]);
    finds(&label(129), r#"{"temperature":8}"#, &[added]);

    let number = |length: usize| format!(r#"{{"n":{}}}"#, "1".repeat(length));
    let findings = compare(&result(&["N: 9"], &[], &number(128)), ToolFacts::default()).unwrap();
    assert!(findings.len() == 1 && findings[0].is_contradiction());
    finds("N: 9", &number(129), &[added]);

    let state = |length: usize| format!(r#"{{"status":"{}"}}"#, "a".repeat(length));
    let findings = compare(
        &result(&["Status: done"], &[], &state(128)),
        ToolFacts::default(),
    );
    assert!(findings.unwrap()[0].is_contradiction());
    finds("Status: done", &state(129), &[]);
}

/// TR-2: a value is named once, and no more than [`MAX_NAMED`] are.
#[test]
fn each_value_is_named_once_and_only_so_many() {
    let added = "`content` says `7`, which `structuredContent` does not contain";
    finds("7 and 7\nand 7 again", r#"{"n":100}"#, &[added]);
    let many: String = (200..300).map(|n| format!("{n} ")).collect();
    let findings = compare(&result(&[&many], &[], r#"{"n":1}"#), ToolFacts::default()).unwrap();
    let named = findings
        .iter()
        .filter(|f| matches!(f, Finding::Added { .. }));
    assert_eq!(named.count(), MAX_NAMED);
    let more: String = (0..MAX_NAMED).map(|n| format!(r#""m{n}":1,"#)).collect();
    let (said, holds) = (format!(r#"{{{more}"n":2}}"#), r#"{"n":1}"#);
    let findings = compare(&result(&[&said], &[], holds), ToolFacts::default()).unwrap();
    assert!(findings.len() == MAX_NAMED && !findings.iter().any(Finding::is_contradiction));
}

/// TR-1: real results reach every reader, images and links included.
#[test]
fn real_results_reach_every_reader() {
    for result in results() {
        for experience in EXPERIENCES {
            let forwarded = forward(&result, experience).unwrap();
            assert_ne!(forwarded, Forward::Nothing, "{result}");
        }
    }
}

/// TR-2: a peer cannot make a comparison long, or its findings many.
#[test]
fn a_hostile_result_is_compared_within_limits() {
    let key = "k".repeat(100_000);
    let value = format!(
        r#"{{"{key}":[{}], "a": "{key}"}}"#,
        vec!["1"; 50_000].join(",")
    );
    let prose = "a: 7, b: 9\n".repeat(50_000) + &"x 12345 ".repeat(50_000);
    let numbers: String = (100..50_000).map(|n| format!("{n} ")).collect();
    let json = value.replace('1', "2").replace("\"a\"", "\"b\"");
    for text in [prose, numbers, json] {
        let result = format!(
            r#"{{"content":[{{"type":"text","text":{}}}],"structuredContent":{value}}}"#,
            string(&text)
        );
        let findings = compare(&result, ToolFacts::default()).unwrap();
        assert!(!findings.is_empty() && findings.len() <= MAX_NAMED + 2);
        assert!(
            findings
                .iter()
                .all(|finding| finding.to_string().len() < 500)
        );
    }
}

fn plain_value() -> impl Strategy<Value = Json<'static>> {
    let scalar = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        "-?(0|[1-9][0-9]{0,9})(\\.[0-9]{1,4})?".prop_map(|number| Json::Number(number.into())),
        "[a-zA-Z0-9 äß東_.-]{0,12}".prop_map(|text| Json::String(text.into())),
    ];
    scalar.prop_recursive(4, 40, 5, |inner| {
        let member = ("[a-z_]{1,6}", inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(Json::Array),
            prop::collection::vec(member, 0..5).prop_map(|mut members| {
                members.sort_by(|a, b| a.0.cmp(&b.0));
                members.dedup_by(|a, b| a.0 == b.0);
                Json::Object(members.into_iter().map(|(k, v)| (k.into(), v)).collect())
            }),
        ]
    })
}

fn result(texts: &[&str], others: &[&str], structured: &str) -> String {
    let texts = texts
        .iter()
        .map(|text| format!(r#"{{"type":"text","text":{}}}"#, string(text)));
    let blocks: Vec<_> = texts
        .chain(others.iter().map(|o| (*o).to_owned()))
        .collect();
    format!(
        r#"{{"content":[{}],"structuredContent":{structured}}}"#,
        blocks.join(",")
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// TR-2: what we render never contradicts what it was rendered from.
    #[test]
    fn renderings_agree_with_their_value(value in plain_value()) {
        let json = value.to_json();
        for text in [json.clone(), render::markdown(&value), render::text(&value)] {
            let findings = compare(&result(&[&text], &[], &json), ToolFacts::default()).unwrap();
            let denied: Vec<_> = findings.iter().filter(|f| f.is_contradiction()).collect();
            prop_assert!(denied.is_empty(), "{:?} in {}", denied, text);
        }
    }

    /// TR-2: a changed number in a JSON text is found, wherever it is.
    #[test]
    fn another_number_is_found(before in plain_value(), number in 0..1000_u32, after in plain_value()) {
        let document = |n: u32| format!(r#"{{"p":{},"q":[{{"r":{n}}}],"s":{}}}"#, before.to_json(), after.to_json());
        let findings = compare(&result(&[&document(number + 1)], &[], &document(number)), ToolFacts::default()).unwrap();
        let expected = format!("`content` says `{}` where `structuredContent` has `{number}` at `/q/0/r`", number + 1);
        prop_assert_eq!(findings.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
    }

    /// TR-1: never both verbatim, and never less than the other kinds of content.
    #[test]
    fn one_field_is_forwarded_and_no_image_is_lost(
        text in prop::option::of("\\PC{0,8}"), images in 0..3_usize, value in plain_value()
    ) {
        let image = r#"{"type":"image","data":"aGk=","mimeType":"image/png"}"#;
        let texts: Vec<_> = text.iter().map(String::as_str).collect();
        let result = result(&texts, &vec![image; images], &value.to_json());
        for experience in EXPERIENCES {
            let blocks = match forward(&result, experience).unwrap() {
                Forward::Content(blocks) => blocks,
                Forward::Structured { others, .. } => {
                    prop_assert!(!others.iter().any(|block| block.contains(r#""type":"text""#)));
                    others
                }
                Forward::Nothing => Vec::new(),
            };
            prop_assert_eq!(blocks.iter().filter(|block| **block == image).count(), images);
        }
    }
}
