//! Forwarding: selects the one field of a tool result that its reader gets.
//!
//! Source: the tool result clarification, "Client selection guidance".

use mcp_vary::visibility::{self, Experience, Forward};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

/// The field of a tool result that its reader gets; never both.
///
/// [`mcp_vary::visibility::forward`] documents the rules.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a result has only two fields")]
pub enum Forwarded {
    /// The blocks of `content`.
    Content(Vec<ContentBlock>),
    /// The structured value.
    Structured {
        /// `structuredContent`.
        value: Value,
        /// The blocks of `content` that a structured value cannot express: images, audio, links.
        others: Vec<ContentBlock>,
    },
    /// The result is empty.
    Nothing,
}

impl Forwarded {
    /// The result as one text for a model: the text blocks, separated by line breaks, or compact
    /// JSON.
    ///
    /// Images, audio and links are in [`blocks`](Self::blocks).
    #[must_use]
    pub fn text(&self) -> String {
        let mut texts = match self {
            Self::Structured { value, .. } => vec![value.to_string()],
            Self::Content(_) | Self::Nothing => Vec::new(),
        };
        let blocks = self.blocks().iter().filter_map(ContentBlock::as_text);
        texts.extend(blocks.map(|block| block.text.clone()));
        texts.join("\n")
    }

    /// The blocks of `content` that the reader gets.
    #[must_use]
    pub fn blocks(&self) -> &[ContentBlock] {
        match self {
            Self::Content(blocks) | Self::Structured { others: blocks, .. } => blocks,
            Self::Nothing => &[],
        }
    }
}

/// Selects the field of `result` that its reader gets.
///
/// # Examples
///
/// ```
/// use mcp_vary_rmcp::client::{Experience, forward};
/// use rmcp::model::{CallToolResult, ContentBlock};
/// use serde_json::json;
///
/// let mut result = CallToolResult::success(vec![ContentBlock::text("8 °C in Oslo")]);
/// result.structured_content = Some(json!({"celsius": 8, "city": "Oslo"}));
/// assert_eq!(forward(&result, Experience::Conversation).text(), "8 °C in Oslo");
/// assert_eq!(forward(&result, Experience::Program).text(), r#"{"celsius":8,"city":"Oslo"}"#);
///
/// // A result negotiated as JSON has no content to read.
/// result.content.clear();
/// let forwarded = forward(&result, Experience::Conversation);
/// assert_eq!(forwarded.text(), r#"{"celsius":8,"city":"Oslo"}"#);
/// ```
#[must_use]
pub fn forward(result: &CallToolResult, experience: Experience) -> Forwarded {
    // A received result can always be serialized; if not, the reader gets `content`.
    select_field(result, experience).unwrap_or_else(|| Forwarded::Content(result.content.clone()))
}

fn select_field(result: &CallToolResult, experience: Experience) -> Option<Forwarded> {
    let written = serde_json::to_string(result).ok()?;
    Some(match visibility::forward(&written, experience).ok()? {
        Forward::Content(blocks) => Forwarded::Content(parse_blocks(&blocks)?),
        Forward::Structured { others, .. } => Forwarded::Structured {
            value: result.structured_content.clone()?,
            others: parse_blocks(&others)?,
        },
        Forward::Nothing => Forwarded::Nothing,
    })
}

fn parse_blocks(blocks: &[&str]) -> Option<Vec<ContentBlock>> {
    let read = |block: &&str| serde_json::from_str(block).ok();
    blocks.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The kinds of blocks and the text that the reader of `result` gets.
    #[track_caller]
    fn gets(result: &Value, experience: Experience, text: &str, blocks: &[&str]) {
        let result: CallToolResult = serde_json::from_value(result.clone()).unwrap();
        let forwarded = forward(&result, experience);
        assert_eq!(forwarded.text(), text);
        let of_type = |block: &ContentBlock| json!(block)["type"].as_str().unwrap().to_owned();
        let kinds: Vec<_> = forwarded.blocks().iter().map(of_type).collect();
        assert_eq!(kinds, blocks);
    }

    /// TR-1: one field by the reader's experience; images and errors are never lost.
    #[test]
    fn one_field_is_forwarded() {
        use Experience::{Conversation, Program, UserInterface};
        let text = json!({"type": "text", "text": "8 °C"});
        let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
        let both = json!({"content": [text, image], "structuredContent": {"b": 8.0, "a": null}});
        gets(&both, Conversation, "8 °C", &["text", "image"]);
        gets(&both, Program, r#"{"b":8.0,"a":null}"#, &["image"]);
        gets(&both, UserInterface, r#"{"b":8.0,"a":null}"#, &["image"]);
        let content = json!({"content": [text]});
        gets(&content, Program, "8 °C", &["text"]);
        let structured = json!({"content": [], "structuredContent": [1, 2]});
        gets(&structured, Conversation, "[1,2]", &[]);
        let error = json!({"content": [text], "structuredContent": {"code": 1}, "isError": true});
        gets(&error, Program, "8 °C", &["text"]);
        gets(&json!({"content": []}), Conversation, "", &[]);
    }
}
