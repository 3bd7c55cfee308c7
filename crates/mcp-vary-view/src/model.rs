//! What a model gets of a tool: clients forward a part of its definition, and of its results.

use mcp_vary::json::{Json, Members};
use mcp_vary::render::tokens;
use mcp_vary::visibility::{Experience, Forward, forward};

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

/// The texts that clients forward to a model of the result of a tool; `None` if it cannot be read.
///
/// # Examples
///
/// ```
/// use mcp_vary_view::model_result;
///
/// let result = r#"{"content": [{"type": "text", "text": "sunny"}], "_meta": {"a": 1}}"#;
/// assert_eq!(model_result(result).unwrap(), ["sunny"]);
/// ```
pub fn model_result(result: &str) -> Option<Vec<String>> {
    let (value, blocks) = match forward(result, Experience::Conversation).ok()? {
        Forward::Content(blocks) => (None, blocks),
        Forward::Structured { value, others } => (Some(value), others),
        Forward::Nothing => return Some(Vec::new()),
    };
    // In the compact form, as the field itself is counted.
    let compact =
        |value: &str| Json::parse(value).map_or_else(|_| value.to_owned(), |json| json.to_json());
    let shown = blocks.iter().map(|block| model_block(block));
    Some(value.map(compact).into_iter().chain(shown).collect())
}

/// A block of content as a model gets it: the text of a text block, or else its JSON without binary data, which does not cost
/// tokens of text.
pub fn model_block(block: &str) -> String {
    let Ok(mut json) = Json::parse(block) else {
        return block.to_owned();
    };
    if json.get("type").and_then(Json::as_str) == Some("text")
        && let Some(text) = json.get("text").and_then(Json::as_str)
    {
        return text.to_owned();
    }
    leave_out_binary(&mut json);
    json.to_json()
}

fn leave_out_binary(json: &mut Json<'_>) {
    let Json::Object(members) = json else {
        return;
    };
    for (key, value) in members {
        match value {
            Json::String(data) if matches!(key.as_ref(), "data" | "blob") => {
                *data = format!("{} characters of base64", data.len()).into();
            }
            other => leave_out_binary(other),
        }
    }
}

/// An estimate of the tokens that a model reads of the tool. It depends on nothing but the text.
pub(super) fn model_tokens(tool: &str) -> usize {
    tokens(&model_tool(tool))
}
