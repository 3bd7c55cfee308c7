//! One value, said in the way that each client wants it.

use mcp_vary::error::Era;
use mcp_vary::feature::Format;
use mcp_vary::shape::{Policy, Shaped, ToolFacts, tool_result};
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::Value;

use super::features::Features;

/// What a tool has to say: one value, and the author's own words for it where there are some.
///
/// # Properties
///
/// A client that negotiates nothing gets the value as JSON, in `content` and in
/// `structuredContent`: what `CallToolResult::structured` gives it. The value is never altered.
/// Where the author gave no markdown or text, it is rendered from the value.
///
/// # Examples
///
/// ```
/// use mcp_vary_rmcp::server::Answer;
/// use serde_json::json;
///
/// let answer = Answer::new(json!({"celsius": 8}))?.with_markdown("**8 °C**");
///
/// // What has no JSON is the server's fault, and the client is told no more than that.
/// let keys_are_no_strings = std::collections::BTreeMap::from([((1, 2), 3)]);
/// assert!(Answer::new(keys_are_no_strings).is_err());
/// # Ok::<(), mcp_vary_rmcp::server::AnswerError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    value: Value,
    markdown: Option<String>,
    text: Option<String>,
    tool: ToolFacts,
}

impl Answer {
    /// The answer that consists of `value`.
    ///
    /// # Errors
    ///
    /// When `value` cannot be written as JSON.
    pub fn new(value: impl Serialize) -> Result<Self, AnswerError> {
        Ok(Self {
            value: serde_json::to_value(value).map_err(AnswerError)?,
            markdown: None,
            text: None,
            tool: ToolFacts::default(),
        })
    }

    /// What a client reads that wants markdown.
    #[must_use]
    pub fn with_markdown(mut self, markdown: impl Into<String>) -> Self {
        self.markdown = Some(markdown.into());
        self
    }

    /// What a client reads that wants plain text.
    #[must_use]
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// What the list says of the tool. With an `outputSchema` or a user interface the value is
    /// never left out.
    #[must_use]
    pub fn of_tool(mut self, tool: ToolFacts) -> Self {
        self.tool = tool;
        self
    }

    /// The value.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    pub(super) fn shape(&self, features: &Features, variant: Option<&str>) -> CallToolResult {
        let is_modern = features.era() == Era::Modern;
        let plain = self.plain(features.choose_format(&Format::ALL), is_modern);
        let Ok(written) = serde_json::to_string(&plain) else {
            return plain;
        };
        let policy = Policy {
            non_object_structured: is_modern,
            report: features.is_negotiated(),
            variant,
            ..Policy::default()
        };
        match tool_result(&written, features, self.tool, &policy) {
            Shaped::Changed { result, applied } => {
                tracing::debug!(?applied, "result shaped");
                serde_json::from_str(&result).unwrap_or(plain)
            }
            Shaped::Unchanged => plain,
        }
    }

    /// The value, with the author's words for `format` or its JSON beside it.
    fn plain(&self, format: Option<Format>, is_modern: bool) -> CallToolResult {
        let mut result = CallToolResult::structured(self.value.clone());
        // Before 2026-07-28 the structured value is an object, or is not there.
        if !is_modern && !self.value.is_object() {
            result.structured_content = None;
        }
        let words = match format {
            Some(Format::Markdown) => self.markdown.as_ref(),
            Some(Format::Text) => self.text.as_ref(),
            _ => None,
        };
        if let Some(words) = words {
            result.content = vec![ContentBlock::text(words)];
        }
        result
    }
}

/// A value has no JSON.
#[derive(Debug, thiserror::Error)]
#[error("the answer cannot be written as JSON: {0}")]
pub struct AnswerError(serde_json::Error);

/// An internal error: its cause is the server's, and stays there.
impl From<AnswerError> for ErrorData {
    fn from(error: AnswerError) -> Self {
        tracing::error!(%error, "an answer could not be written");
        Self::internal_error("the answer cannot be written as JSON", None)
    }
}
