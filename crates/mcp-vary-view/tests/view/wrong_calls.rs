//! Forty wrong calls of recorded tools: each answer names the argument, and has its schema.

use std::fs;
use std::path::{Path, PathBuf};

use mcp_vary_view::{ArgumentCheck, DIRECTORY, PreparedTool, Style, ToolOverride};
use serde_json::{Value, json};

pub(crate) fn fixture(path: &str) -> Value {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let text = fs::read_to_string(folder.join(path)).expect("a fixture");
    serde_json::from_str(&text).expect("a fixture is JSON")
}

pub(crate) fn definition(list: &str, tool: &str) -> String {
    let list = fixture(&format!("tool-lists/{list}.json"));
    let mut tools = list["tools"].as_array().expect("of tools").iter();
    let found = tools.find(|listed| listed["name"] == tool);
    found.expect("a recorded tool").to_string()
}

/// The gateway's answers to the same calls: `variants/directory.rs` in `mcp-vary-gateway`.
#[test]
fn forty_wrong_calls_are_answered_with_the_argument_and_its_schema() {
    assert_eq!(DIRECTORY.check, ArgumentCheck::On);
    let calls = fixture("wrong-calls.json");
    let calls = calls.as_array().unwrap();
    assert_eq!(calls.len(), 40);
    for call in calls {
        let text = |key: &str| call[key].as_str().expect(key);
        let (tool, named) = (text("tool"), text("named"));
        let arguments = &call["arguments"].to_string();
        let definition = definition(text("list"), tool);
        let (prepared, _) =
            PreparedTool::new(&definition, &ToolOverride::default(), DIRECTORY).unwrap();
        let errors = prepared.arguments(arguments).expect_err(arguments);
        let answer = errors.iter().map(|error| format!("{error}\n"));
        let answer: String = answer.collect();
        assert!(answer.contains(named), "{tool} {arguments}: {answer}");
        let schema = prepared.schema_for_errors(&errors).expect("a schema");
        assert!(
            schema.contains(&format!("{}:{{", json!(named))),
            "{tool}: {schema}"
        );
        let server = Style {
            check: ArgumentCheck::Off,
            ..DIRECTORY
        };
        let (unchecked, _) =
            PreparedTool::new(&definition, &ToolOverride::default(), server).unwrap();
        assert!(
            unchecked.arguments(arguments).is_ok(),
            "without a check, {tool} is called"
        );
    }
}
