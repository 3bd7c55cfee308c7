//! Arguments of recorded tools through the gateway in each dialect: what is valid arrives as it was meant.

use std::fs;

use replay_server::ARRIVED;
use serde_json::{Value, json};

use crate::front::{Front, root};
use mcp_vary_testkit::generate::values::Values;

/// A gateway in front of a recorded list, with a variant for each dialect.
fn configuration(list: &str) -> String {
    let program = env!("CARGO_BIN_EXE_replay-server");
    format!(
        "servers:\n  recorded: {{command: {program:?}, args: [{list:?}]}}\nvariants:\n  plain: {{}}\n  \
         gemini: {{dialect: gemini}}\n  openai-strict: {{dialect: openai-strict}}\n"
    )
}

/// Calls of each tool in each variant.
const CALLS: usize = 6;

/// SV-11: arguments that are valid for a recorded tool pass a dialect's variant and arrive letter by letter where
/// the dialect has a word for all of them.
#[tokio::test]
async fn valid_arguments_of_recorded_tools_arrive_letter_by_letter() {
    let lists = root().join("crates/mcp-vary-view/tests/fixtures/tool-lists");
    let mut arrived = 0;
    for entry in fs::read_dir(lists).unwrap() {
        let path = entry.unwrap().path();
        let list = path.to_str().unwrap();
        let mut front = Front::with("recorded.yaml", &configuration(list)).await;
        for tool in front.list("plain", "tools").await {
            let schema = &tool["inputSchema"];
            let validator = jsonschema::validator_for(schema).unwrap();
            let mut values = Values::new(schema, 3);
            let made: Vec<Value> = (0..CALLS * 8).map(|_| values.value()).collect();
            let valid = made.into_iter().filter(|value| validator.is_valid(value));
            for arguments in valid.take(CALLS) {
                for variant in ["plain", "gemini", "openai-strict"] {
                    let Some(sent) = sent_arguments(variant, schema, &arguments) else {
                        continue;
                    };
                    arrives(&mut front, variant, &tool, &sent, &arguments).await;
                    arrived += 1;
                }
            }
        }
        front.gateway.close().await;
    }
    assert!(arrived > 1_000, "{arrived}");
}

/// What a client of the variant says when it means `arguments`, where that is plain: in `openai-strict`, where
/// whatever is left out is `null`, of arguments that are neither objects nor lists.
fn sent_arguments(variant: &str, schema: &Value, arguments: &Value) -> Option<Value> {
    let mut sent = arguments.clone();
    if variant == "openai-strict" {
        let plain = |value: &Value| value.is_string() || value.is_number() || value.is_boolean();
        let given = sent.as_object_mut()?;
        let properties = schema["properties"].as_object()?;
        if !given
            .iter()
            .all(|(name, value)| properties.contains_key(name) && plain(value))
        {
            return None;
        }
        for name in properties.keys() {
            given.entry(name).or_insert(Value::Null);
        }
    }
    Some(sent)
}

async fn arrives(front: &mut Front, variant: &str, tool: &Value, sent: &Value, meant: &Value) {
    let name = &tool["name"];
    let params = json!({"name": name, "arguments": sent});
    let answer = front.ask_under(Some(variant), "tools/call", params).await;
    let answer = answer.unwrap_or_else(|error| panic!("{name} in {variant}: {error} of {sent}"));
    let sent = format!("{{\"name\":{name},\"arguments\":{meant}}}");
    assert_eq!(answer["_meta"][ARRIVED], sent, "{variant}: {answer}");
}
