//! What holds of every answer to every client (CN-9, CN-14, TR-2 to TR-4).

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use mcp_vary::feature::{Features, Format};
use mcp_vary::shape::{Answer, Policy, Shaped, ToolFacts, tool_result};
use mcp_vary_testkit::defaults::default_with;
use proptest::prelude::*;
use serde_json::{Value, json};

const TAGS: &[&str] = &[
    "agent",
    "human",
    "sampling",
    "format=json",
    "format=markdown",
    "format=text",
    "format!=json",
];

#[derive(Clone, Debug)]
struct Case {
    value: Value,
    hints: Vec<String>,
    /// Whether the schema, if there is one, declares the hints.
    schema: Option<bool>,
    tags: Vec<&'static str>,
    always_both: bool,
}

impl Case {
    fn features(&self) -> Features {
        Features::from_tags(self.tags.iter().copied()).0
    }

    fn tool(&self) -> ToolFacts {
        ToolFacts {
            output_schema: self.schema.is_some(),
            ui: false,
        }
    }

    fn policy(&self) -> Policy<'static> {
        default_with::<Policy<'_>>(|it| it.always_both = self.always_both)
    }

    /// A schema that the value meets, and with hints only when it declares them.
    fn output_schema(&self) -> Option<Value> {
        let mut properties = serde_json::Map::new();
        for (key, value) in self.value.as_object().into_iter().flatten() {
            properties.insert(key.clone(), json!({"const": value}));
        }
        if self.schema? {
            let hints = json!({"type": "array", "items": {"type": "string"}});
            properties.entry("hints").or_insert(hints);
        }
        Some(json!({"type": "object", "properties": properties, "additionalProperties": false}))
    }

    fn text(&self) -> String {
        let mut answer = Answer::new(&self.value).unwrap();
        for hint in &self.hints {
            answer = answer.with_hint(hint);
        }
        let schema = self.output_schema();
        answer.to_result(
            &self.features(),
            self.tool(),
            schema.as_ref(),
            &self.policy(),
        )
    }

    fn result(&self) -> Value {
        serde_json::from_str(&self.text()).unwrap()
    }
}

fn case() -> impl Strategy<Value = Case> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<i32>().prop_map(Value::from),
        "[a-z äß]{0,8}".prop_map(Value::from),
    ];
    let inner = prop_oneof![
        3 => scalar.clone(),
        1 => prop::collection::vec(scalar, 0..4).prop_map(Value::from),
    ];
    let key = prop_oneof![5 => "[a-c]", 1 => Just("hints".to_owned())];
    let object = prop::collection::btree_map(key, inner.clone(), 0..4)
        .prop_map(|members| Value::Object(members.into_iter().collect()));
    let value = prop_oneof![4 => object, 1 => inner];
    let tags = prop::sample::subsequence(TAGS, 0..4).prop_shuffle();
    let hints = prop::collection::vec("[a-z\"\n]{0,8}", 0..3);
    let remaining = (any::<Option<bool>>(), any::<bool>());
    (value, hints, tags, remaining).prop_map(|(value, hints, tags, (schema, always_both))| Case {
        schema: schema.filter(|_| value.is_object()),
        value,
        hints,
        tags,
        always_both,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// TR-3, CN-9, CN-14: there is a text for everybody but the agent that asked for none, unless its hints have no
    /// place in the value.
    #[test]
    fn an_answer_says_something_in_content(case in case()) {
        let result = case.result();
        let is_empty = result["content"].as_array().unwrap().is_empty();
        let features = case.features();
        let is_strict = features.agent() && features.format() == Some(Format::Json);
        let has_hints = features.sampling() && !case.hints.is_empty() && result["structuredContent"] == case.value;
        let is_bare = is_strict && case.value.is_object() && !case.always_both;
        prop_assert_eq!(is_empty, is_bare && !has_hints);
        prop_assert!(!is_empty || result["structuredContent"].is_object());
    }

    /// CN-14, TR-4: with hints or without, a structured value meets the schema that the client was given.
    #[test]
    fn an_answer_is_valid_under_its_schema(case in case()) {
        let result = case.result();
        if let Some(schema) = case.output_schema() {
            let validator = jsonschema::validator_for(&schema).unwrap();
            prop_assert!(validator.is_valid(&result["structuredContent"]), "{} {}", schema, result);
        }
    }

    /// CN-14: the structured value is the author's; only hints that were asked for are added.
    #[test]
    fn an_answer_adds_nothing_but_hints(case in case()) {
        let mut structured = case.result()["structuredContent"].clone();
        prop_assume!(!structured.is_null());
        if structured != case.value {
            prop_assert!(case.features().sampling());
            let hints = structured.as_object_mut().unwrap().remove("hints");
            prop_assert_eq!(hints, Some(json!(case.hints)));
            prop_assert_eq!(structured, case.value);
        }
    }

    /// TR-2: a text of an answer that is JSON is its value, with the hints that were asked for or without.
    #[test]
    fn an_answer_never_contradicts_itself(case in case()) {
        let result = case.result();
        for block in result["content"].as_array().unwrap() {
            let document = serde_json::from_str(block["text"].as_str().unwrap());
            let document = document.ok().filter(|it: &Value| it.is_object() && !result["structuredContent"].is_null());
            prop_assert!(document.is_none_or(|it| it == case.value || it == result["structuredContent"]), "{}", result);
        }
    }

    /// CN-19: what was answered as JSON is not shaped to JSON again.
    #[test]
    fn an_answer_in_json_is_as_it_should_be(mut case in case()) {
        case.tags = if case.always_both { vec!["format=json"] } else { vec!["agent", "format=json"] };
        let text = case.text();
        let shaped = tool_result(&text, &case.features(), case.tool(), &case.policy());
        if case.value.is_object() {
            prop_assert_eq!(shaped, Shaped::Unchanged);
        }
    }
}

/// CN-9: a value that cannot be read back is refused when the answer is made.
#[test]
fn an_answer_is_a_value_that_can_be_read() {
    let deep = "[".repeat(200) + &"]".repeat(200);
    assert!(Answer::from_json(&deep).is_err());
    assert!(Answer::from_json(r#"{"a":1,"a":2}"#).is_err());
    let keys = std::collections::BTreeMap::from([((1, 2), 3)]);
    assert!(Answer::new(&keys).is_err(), "a key is a string");
    assert!(Answer::new("prose").unwrap().with_block("[]").is_err());
    assert!(Answer::new("prose").unwrap().with_meta("a", "{").is_err());
    let answer = Answer::from_json("{\"n\": 1.10}").unwrap();
    let result = answer.to_result(
        &Features::default(),
        ToolFacts::default(),
        None,
        &Policy::default(),
    );
    assert!(result.ends_with(r#""structuredContent":{"n":1.10}}"#));
}

/// CN-10: `null` is no structured value, but where a schema may ask for it; then it is said in words.
#[test]
fn an_answer_of_nothing_is_no_structured_value() {
    let answer = Answer::new(&Value::Null).unwrap();
    let (features, _) = Features::from_tags(["agent", "format=json"]);
    let told = |tool: ToolFacts, non_object_structured: bool| {
        let policy =
            default_with::<Policy<'_>>(|it| it.non_object_structured = non_object_structured);
        answer.to_result(&features, tool, None, &policy)
    };
    let bound = ToolFacts {
        output_schema: true,
        ui: false,
    };
    let words = r#"{"content":[{"type":"text","text":"null"}]}"#;
    assert_eq!(told(ToolFacts::default(), true), words);
    assert_eq!(told(bound, false), words);
    let value = r#"{"content":[],"structuredContent":null}"#;
    assert_eq!(told(bound, true), value);
}
