//! The rules of the dialects, as a reader apart from the writer.

use mcp_vary_view::Dialect;
use serde_json::{Map, Value, json};

/// Asserts that a tool's input schema is in the dialect.
#[track_caller]
pub(crate) fn hold(dialect: Dialect, schema: &Value) {
    let root = schema.as_object().expect("the root is an object");
    assert_eq!(root["type"], "object", "{schema}");
    assert!(!root.contains_key("anyOf"), "{schema}");
    keywords(dialect, schema, true);
}

#[track_caller]
fn keywords(dialect: Dialect, schema: &Value, root: bool) {
    let members = schema
        .as_object()
        .unwrap_or_else(|| panic!("no object: {schema}"));
    for keyword in members.keys() {
        assert!(
            dialect.keywords().contains(&keyword.as_str()),
            "{keyword} in {schema}"
        );
    }
    match dialect {
        Dialect::Gemini => gemini(members, schema),
        _ => strict(members, schema, root),
    }
    for named in ["properties", "$defs"] {
        for part in members
            .get(named)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            keywords(dialect, part.1, false);
        }
    }
    if let Some(items) = members.get("items") {
        keywords(dialect, items, false);
    }
    for branch in members
        .get("anyOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        keywords(dialect, branch, false);
    }
}

#[track_caller]
fn gemini(members: &Map<String, Value>, schema: &Value) {
    if members.contains_key("anyOf") {
        assert_eq!(members.len(), 1, "{schema}");
        return;
    }
    let kind = members["type"].as_str().expect("one type");
    for (keyword, only) in [
        ("properties", "object"),
        ("required", "object"),
        ("items", "array"),
        ("minItems", "array"),
        ("enum", "string"),
        ("pattern", "string"),
        ("format", "string"),
    ] {
        assert!(
            !members.contains_key(keyword) || kind == only,
            "{keyword} of {schema}"
        );
    }
    assert_eq!(kind == "array", members.contains_key("items"), "{schema}");
    assert!(
        members
            .get("format")
            .is_none_or(|format| format == "date-time"),
        "{schema}"
    );
    for value in members
        .get("enum")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        assert!(
            value.as_str().is_some_and(|text| !text.is_empty()),
            "{schema}"
        );
    }
    for name in members
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        assert!(
            schema["properties"].get(name.as_str().unwrap()).is_some(),
            "{schema}"
        );
    }
}

#[track_caller]
fn strict(members: &Map<String, Value>, schema: &Value, root: bool) {
    if members.contains_key("$ref") {
        assert_eq!(members.len(), 1, "{schema}");
        return;
    }
    assert!(root || !members.contains_key("$defs"), "{schema}");
    assert!(
        members.contains_key("type") != members.contains_key("anyOf"),
        "{schema}"
    );
    let is = |kind: &str| {
        members
            .get("type")
            .is_some_and(|t| *t == json!(kind) || *t == json!([kind, "null"]))
    };
    if is("object") {
        assert_eq!(schema["additionalProperties"], false, "{schema}");
        let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(schema["required"], json!(names), "{schema}");
    }
    assert_eq!(is("array"), members.contains_key("items"), "{schema}");
    let formats = [
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "uuid",
    ];
    let format = members.get("format").and_then(Value::as_str);
    assert!(
        format.is_none_or(|format| formats.contains(&format)),
        "{schema}"
    );
    let pattern = members
        .get("pattern")
        .and_then(Value::as_str)
        .unwrap_or_default();
    assert!(
        !pattern.contains("(?=") && !pattern.contains("(?!") && !pattern.contains("(?<"),
        "{schema}"
    );
}
