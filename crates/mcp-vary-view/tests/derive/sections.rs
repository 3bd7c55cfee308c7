//! Descriptions with headings, labels and lists, as real servers write them: `fixtures/sections.json`.

use std::fs;
use std::path::Path;

use mcp_vary_view::derive::{compact_tool, first_sentence};
use mcp_vary_view::{DIRECTORY, PreparedTool, ToolOverride};
use serde_json::Value;

use super::{tools, value};

/// What a view lists of the tool called `name`.
#[track_caller]
fn listed(name: &str, view: impl Fn(&str) -> String) -> Value {
    let lists = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sections.json");
    let list = fs::read_to_string(lists).expect("the list");
    let tools = tools(&list);
    let tool = tools.iter().find(|tool| value(tool)["name"] == *name);
    value(&view(tool.expect("a tool of the list")))
}

fn compact(name: &str) -> Value {
    listed(name, |tool| compact_tool(tool).expect("a tool"))
}

#[track_caller]
fn describes(name: &str, in_directory: &str, in_compact: &str) {
    let directory = listed(name, |tool| {
        let prepared = PreparedTool::new(tool, &ToolOverride::default(), DIRECTORY);
        let (tool, _) = prepared.expect("a tool");
        tool.json().expect("a changed tool").to_owned()
    });
    assert_eq!(
        directory["description"], in_directory,
        "{name} in `directory`"
    );
    assert_eq!(
        compact(name)["description"],
        in_compact,
        "{name} in `compact`"
    );
}

#[test]
fn a_description_that_begins_with_a_label_keeps_what_it_says() {
    describes(
        "crm-list-records",
        "Retrieves a paginated list of records of one type.",
        "Retrieves paginated list of records of one type. Usage Guidance: \
        Use crm-search-records for targeted queries when structure is known. \
        Use crm-batch-read-records to retrieve records by their IDs. Use crm-list-links to list links.",
    );
    describes(
        "crm-create-property",
        "Creates new custom properties for record types in the propertyGroup.",
        "Creates new custom properties for record types in propertyGroup. Guardrails: Data Modification Warning: This tool modifies data. \
        Only use when user has explicitly requested it. Both names are required. Prerequisites: \
        Use crm-get-user tool to get OwnerId if you don't have that already.",
    );
    describes(
        "crm-get-user",
        "Analyzes the current access token, providing context about the user's permissions.",
        "Analyzes current access token, providing context about user's permissions. Usage Guidance: \
        This tool must be used before any other tool of this server.",
    );
    describes(
        "crm-feedback",
        "Use this tool when user wants to submit feedback.",
        "Use this tool when user wants to submit feedback.",
    );
}

#[test]
fn an_introduction_stays_with_its_list_or_is_cut() {
    describes(
        "get_file_info",
        "Retrieve detailed metadata about a file or directory",
        "Retrieve detailed metadata about file or directory including: \
        lastLine (zero-indexed number of last line, for text files)",
    );
    for case in [
        "Gets a summary, including the following:\n- a\n- b => Gets a summary",
        "Finds files by:\n* name => Finds files",
        "Takes one of the following:\n* name => Takes one of the following:",
        "Purpose: => Purpose:",
        "🎯 Purpose: => 🎯 Purpose:",
        "**Usage:**\nFinds files. => Finds files.",
        "Slow.\n\nSummary:\nFinds files. => Slow.",
        "Notes:\n- Slow.\n\nSummary:\n- Finds files. => Finds files.",
    ] {
        let (text, first) = case.split_once(" => ").unwrap();
        assert_eq!(first_sentence(text), first, "of {text:?}");
    }
}

#[test]
fn items_stay_with_what_they_belong_to() {
    describes(
        "read_document",
        "Reads documents.",
        "Reads documents. FORMAT HANDLING (by extension): PDF: Extracts text content as markdown \
        offset/length work as page pagination (0-based) \
        DOCX (.docx): Two modes depending on parameters: \
        DEFAULT (no offset/length): Returns outline. \
        WITH offset/length: Returns raw XML. \
        IMPORTANT: offset MUST be non-zero to get raw XML.",
    );
    describes(
        "start_search",
        "Start a search.",
        "Start search. WHEN TO USE literalSearch=true: Use literal search when searching for code with special characters: \
        Any pattern containing: . * + ? ^ $ { } [ ] | \\ ( ) \
        WHEN UNSURE OR THE REQUEST IS AMBIGUOUS: Run TWO searches in parallel.",
    );
    describes(
        "create_hub",
        "Creates a hub.",
        "Creates hub. Required options: name of hub resource group",
    );
}

#[test]
fn limits_positions_and_meanings_of_values_stay() {
    describes(
        "generate_map",
        "Generates maps of regions.",
        "Generates maps of regions. It is not suitable for distribution of specific locations. \
        This tool is limited to maps within China.",
    );
    describes(
        "annotate",
        "Annotates a document.",
        "Annotates document. Each needs: id (unique string), type, page (1-indexed). \
        COORDINATE SYSTEM: points (1pt = 1/72in), origin at page TOP-LEFT corner. \
        Rectangle x,y is TOP-LEFT corner. For highlights, each rect's y is TOP of highlighted region. \
        must_have: name",
    );
    describes(
        "search_events",
        "Search events.",
        "Search events. Datasets: errors: Exception/crash events, usually grouped into issues \
        logs: Application log entries spans: Raw trace events for performance",
    );
    describes(
        "list_files",
        "Lists files.",
        "Lists files. CONTEXT OVERFLOW PROTECTION: Nested directories are limited to 100 items.",
    );
}

#[test]
fn of_an_argument_what_null_a_default_and_a_state_mean_stays() {
    let described = |tool: &str, argument: &str| {
        let path = format!("/inputSchema/properties/{argument}/description");
        compact(tool)
            .pointer(&path)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    assert_eq!(
        described("search_events", "fields").as_deref(),
        Some("Leave null for dataset='replays'.")
    );
    assert_eq!(
        described("search_events", "path").as_deref(),
        Some("Defaults to session's directory, set via set_working_dir.")
    );
    assert_eq!(described("search_events", "limit"), None);
    assert_eq!(
        described("search_events", "selector").as_deref(),
        Some(
            "Field selector to filter pods by field values (e.g. 'status.phase=Running'). \
            CrashLoopBackOff is container state, not pod phase, so it cannot be filtered directly."
        )
    );
}
