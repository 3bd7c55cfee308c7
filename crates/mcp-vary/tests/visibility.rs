//! What holds of every result that is forwarded, and of those that real servers gave (TR-1).

use mcp_vary::json::{Json, string};
use mcp_vary::visibility::{Experience, Forward, forward};
use mcp_vary_testkit::recordings::results;
use proptest::prelude::*;

const EXPERIENCES: [Experience; 3] = [
    Experience::Conversation,
    Experience::Program,
    Experience::UserInterface,
];

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
