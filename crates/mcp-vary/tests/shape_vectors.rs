//! `spec/vectors/shaping.json` holds (CN-5 to CN-12, CN-19, TR-3 to TR-5).

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use mcp_vary::feature::Features;
use mcp_vary::json::{Json, Members, elements};
use mcp_vary::shape::{Policy, Shaped, ToolFacts, tool_result};

const VECTORS: &str = include_str!("../../../spec/vectors/shaping.json");

fn flag(members: Option<&str>, name: &str) -> Option<bool> {
    let members = Members::parse(members?).unwrap();
    members.get(name).map(|value| value == "true")
}

#[track_caller]
fn holds(case: &Members<'_>) {
    let tags: Vec<String> = serde_json::from_str(case.get("features").unwrap()).unwrap();
    let (features, _) = Features::from_tags(tags.iter().map(String::as_str));
    let (tool, policy) = (case.get("tool"), case.get("policy"));
    let text = |key| policy.and_then(|policy| Members::parse(policy).unwrap().get_str(key));
    let (variant, whole) = (text("variant"), text("whole"));
    let default = Policy::default();
    let shaped = tool_result(
        case.get("result").unwrap(),
        &features,
        ToolFacts {
            output_schema: flag(tool, "output_schema").unwrap_or_default(),
            ui: flag(tool, "ui").unwrap_or_default(),
        },
        &Policy {
            whole: whole.as_deref(),
            always_both: flag(policy, "always_both").unwrap_or(default.always_both),
            lift: flag(policy, "lift").unwrap_or(default.lift),
            text_only: flag(policy, "text_only").unwrap_or(default.text_only),
            non_object_structured: flag(policy, "non_object_structured")
                .unwrap_or(default.non_object_structured),
            report: flag(policy, "report").unwrap_or(default.report),
            variant: variant.as_deref(),
        },
    );
    let shaped = match shaped {
        Shaped::Changed { result, .. } => result,
        Shaped::Unchanged => r#""unchanged""#.to_owned(),
    };
    let compact = |text: &str| Json::parse(text).unwrap().to_json();
    let expected = compact(case.get("shaped").unwrap());
    assert_eq!(
        compact(&shaped),
        expected,
        "{}",
        case.get_str("name").unwrap()
    );
}

#[test]
fn every_vector_holds() {
    let vectors = Members::parse(VECTORS).unwrap();
    let cases = elements(vectors.get("cases").unwrap()).unwrap();
    assert!(cases.len() > 60);
    for case in cases {
        holds(&Members::parse(case).unwrap());
    }
}

#[test]
fn vectors_have_names_of_their_own_and_a_requirement() {
    let vectors = Members::parse(VECTORS).unwrap();
    let mut names = std::collections::BTreeSet::new();
    for case in elements(vectors.get("cases").unwrap()).unwrap() {
        let case = Members::parse(case).unwrap();
        assert!(names.insert(case.get_str("name").unwrap()));
        let requirement = case.get_str("requirement").unwrap();
        assert!(requirement.starts_with("CN-") || requirement.starts_with("TR-"));
    }
}
