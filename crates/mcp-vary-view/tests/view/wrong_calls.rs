//! Forty wrong calls of recorded tools: each answer names the argument, and has its schema.

use std::fs;
use std::path::Path;

use mcp_vary_view::{ArgumentCheck, DIRECTORY, PreparedTool, Style, ToolOverride};
use serde_json::{Value, json};

/// List, tool, arguments, and what the errors and the schema have to name.
const WRONG: [(&str, &str, &str, &str); 40] = [
    ("everything", "echo", r#"{}"#, "message"),
    ("everything", "echo", r#"{"message": 7}"#, "message"),
    (
        "everything",
        "echo",
        r#"{"mesage": "x", "message": "x"}"#,
        "message",
    ),
    ("everything", "get-sum", r#"{"a": 1}"#, "b"),
    ("everything", "get-sum", r#"{"a": "1", "b": 2}"#, "a"),
    (
        "everything",
        "get-resource-links",
        r#"{"count": 11}"#,
        "count",
    ),
    (
        "everything",
        "get-resource-links",
        r#"{"count": 0}"#,
        "count",
    ),
    (
        "everything",
        "get-annotated-message",
        r#"{"messageType": "info"}"#,
        "messageType",
    ),
    ("filesystem", "read_text_file", r#"{"file": "a"}"#, "path"),
    (
        "filesystem",
        "read_text_file",
        r#"{"path": "a", "head": "ten"}"#,
        "head",
    ),
    (
        "filesystem",
        "read_text_file",
        r#"{"path": "a", "heads": 3}"#,
        "head",
    ),
    (
        "filesystem",
        "edit_file",
        r#"{"path": "a", "edits": [], "dry_run": true}"#,
        "dryRun",
    ),
    (
        "filesystem",
        "edit_file",
        r#"{"path": "a", "edits": [{"oldText": "x"}]}"#,
        "newText",
    ),
    (
        "filesystem",
        "edit_file",
        r#"{"path": "a", "edits": {"oldText": "x", "newText": "y"}}"#,
        "edits",
    ),
    (
        "filesystem",
        "list_directory_with_sizes",
        r#"{"path": "a", "sortBy": "date"}"#,
        "sortBy",
    ),
    (
        "filesystem",
        "read_multiple_files",
        r#"{"paths": []}"#,
        "paths",
    ),
    (
        "filesystem",
        "read_multiple_files",
        r#"{"paths": "a"}"#,
        "paths",
    ),
    (
        "filesystem",
        "move_file",
        r#"{"source": "a"}"#,
        "destination",
    ),
    ("git", "git_commit", r#"{"repo_path": "."}"#, "message"),
    (
        "git",
        "git_add",
        r#"{"repo_path": ".", "files": "a"}"#,
        "files",
    ),
    (
        "git",
        "git_log",
        r#"{"repo_path": ".", "max_count": "ten"}"#,
        "max_count",
    ),
    (
        "git",
        "git_log",
        r#"{"repo_path": ".", "maxCount": 3}"#,
        "max_count",
    ),
    (
        "git",
        "git_log",
        r#"{"repo_path": ".", "start_timestamp": 5}"#,
        "start_timestamp",
    ),
    (
        "memory",
        "create_entities",
        r#"{"entities": [{"name": "a"}]}"#,
        "entityType",
    ),
    (
        "memory",
        "delete_entities",
        r#"{"entityNames": ["a", 5]}"#,
        "entityNames",
    ),
    (
        "mongo",
        "find",
        r#"{"connectionId": "x", "database": "d"}"#,
        "collection",
    ),
    (
        "mongo",
        "find",
        r#"{"connectionId": "x", "database": "d", "collection": "c", "filters": {}}"#,
        "filter",
    ),
    (
        "mongo",
        "count",
        r#"{"connectionId": "x", "database": "d", "collection": "c", "query": "{}"}"#,
        "query",
    ),
    (
        "mongo",
        "mongodb-logs",
        r#"{"connectionId": "x", "limit": 5000}"#,
        "limit",
    ),
    (
        "mongo",
        "mongodb-logs",
        r#"{"connectionId": "x", "type": "all"}"#,
        "type",
    ),
    (
        "mongo",
        "search-knowledge",
        r#"{"query": "q", "limit": 101}"#,
        "limit",
    ),
    ("notion", "API-get-user", r#"{"userId": "x"}"#, "user_id"),
    (
        "notion",
        "API-post-search",
        r#"{"page_size": 1.5}"#,
        "page_size",
    ),
    (
        "notion",
        "API-update-page-markdown",
        r#"{"page_id": "x", "type": "append"}"#,
        "type",
    ),
    (
        "playwright",
        "browser_click",
        r#"{"target": "e1", "button": "top"}"#,
        "button",
    ),
    (
        "playwright",
        "browser_network_request",
        r#"{"index": 0}"#,
        "index",
    ),
    (
        "playwright",
        "browser_tabs",
        r#"{"action": "open"}"#,
        "action",
    ),
    (
        "playwright",
        "browser_type",
        r#"{"target": "e1", "text": "x", "submit": "yes"}"#,
        "submit",
    ),
    (
        "time",
        "convert_time",
        r#"{"source_timezone": "UTC", "time": "12:00"}"#,
        "target_timezone",
    ),
    ("sqlite", "read_query", r#"{"sql": "SELECT 1"}"#, "query"),
];

fn definition(list: &str, tool: &str) -> String {
    let lists = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tool-lists");
    let text = fs::read_to_string(lists.join(format!("{list}.json"))).expect("a recorded list");
    let list: Value = serde_json::from_str(&text).expect("a list is JSON");
    let mut tools = list["tools"].as_array().expect("of tools").iter();
    let found = tools.find(|listed| listed["name"] == tool);
    found.expect("a recorded tool").to_string()
}

#[test]
fn forty_wrong_calls_are_answered_with_the_argument_and_its_schema() {
    assert_eq!(DIRECTORY.check, ArgumentCheck::On);
    for (list, tool, arguments, named) in WRONG {
        let definition = definition(list, tool);
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
