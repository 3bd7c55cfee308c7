//! What clients that make classes of schemas need of a `directory`: a type for every argument.

use std::fs;
use std::path::Path;

use mcp_vary_view::{DIRECTORY, PreparedTool, ToolOverride, directory};
use serde_json::{Value, json};

use super::{tools, value};

/// Whether AutoGen takes the schema of an argument: a type by its name, a choice of such, values, or a reference.
fn is_typed(schema: &Value) -> bool {
    let branches = |keyword| schema[keyword].as_array();
    match branches("anyOf").or(branches("oneOf")) {
        Some(branches) => branches.iter().all(is_typed),
        None => {
            let has = |keyword| schema.get(keyword).is_some();
            schema["type"].is_string() || has("enum") || has("$ref") || has("allOf")
        }
    }
}

/// The paths of the arguments in `schema` that have no type, and of lists whose elements are not described.
fn untyped(schema: &Value, path: &str, found: &mut Vec<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}/{name}");
        if !is_typed(property) {
            found.push(format!("{path}: {property}"));
        }
        if property["type"] == "array" && property.get("items").is_none() {
            found.push(format!("{path}: {property}"));
        }
        untyped(property, &path, found);
        untyped(&property["items"], &path, found);
    }
}

fn untyped_in(listed: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for tool in listed {
        let tool = value(tool);
        let name = tool["name"].as_str().unwrap_or_default();
        untyped(&tool["inputSchema"], name, &mut found);
    }
    found
}

#[test]
fn every_argument_of_a_directory_has_a_type_in_every_recorded_list() {
    let lists = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tool-lists");
    let mut count = 0;
    for file in fs::read_dir(lists).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        let listed = directory(&tools(&text), DIRECTORY).unwrap();
        count += listed.len();
        assert_eq!(untyped_in(&listed), [""; 0]);
    }
    assert!(count > 300);
}

/// In a short list, tools keep their compact form.
#[test]
fn every_argument_of_a_tool_in_its_compact_form_has_a_type() {
    let schema = json!({"type": "object", "properties": {
        "any": {"description": "Anything"}, "text": {"type": ["string", "null"]}, "all": true,
        "same": {"const": "x"}, "rows": {"type": "array"}, "optional": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "nested": {"type": "object", "properties": {"any": {}, "list": {"type": ["array", "null"], "items": {"properties": {"x": {}}}}}},
        "values": {"enum": ["a", 1]}, "named": {"$ref": "#/$defs/named"},
    }, "$defs": {"named": {"type": "object", "properties": {"x": {}, "y": {"$ref": "#/$defs/named"}}}}});
    let tool = json!({"name": "t", "description": "Does.", "inputSchema": schema}).to_string();
    let (short, _) = PreparedTool::compact(&tool, &ToolOverride::default(), DIRECTORY).unwrap();
    let mut listed = directory(&[tool], DIRECTORY).unwrap();
    listed.push(short.json().unwrap().to_owned());
    assert_eq!(untyped_in(&listed), [""; 0]);
    assert!(!listed.concat().contains("[\"string\""), "{listed:?}");
}
