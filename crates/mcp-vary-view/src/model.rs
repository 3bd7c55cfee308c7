//! What a model gets of a tool: clients forward a part of its definition.

use mcp_vary::json::{Json, Members};
use mcp_vary::render::tokens;

/// The tool as clients forward it to a model: its `name`, `description` and `inputSchema`, as compact JSON.
///
/// Titles, annotations, output schemas and `_meta` stay in the client. A tool that cannot be read is returned as it is.
///
/// # Examples
///
/// ```
/// use mcp_vary_view::model_tool;
///
/// let tool = r#"{"name": "add", "title": "Add", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}"#;
/// assert_eq!(model_tool(tool), r#"{"name":"add","inputSchema":{"type":"object"}}"#);
/// ```
#[must_use]
pub fn model_tool(tool: &str) -> String {
    let Ok(definition) = Members::parse(tool) else {
        return tool.to_owned();
    };
    let mut forwarded = Members::default();
    for key in ["name", "description", "inputSchema"] {
        if let Some(value) = definition.get(key) {
            forwarded.set(key, value.to_owned());
        }
    }
    let text = forwarded.to_json();
    Json::parse(&text).map_or(text.clone(), |json| json.to_json())
}

/// An estimate of the tokens that a model reads of the tool. It depends on nothing but the text.
pub(super) fn model_tokens(tool: &str) -> usize {
    tokens(&model_tool(tool))
}
