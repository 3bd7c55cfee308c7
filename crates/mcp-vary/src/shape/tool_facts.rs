//! What a tool list declares about a tool, as far as results depend on it.

use super::applied::meta;
use crate::json::Members;

/// What the client's tool list declares about a tool.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "callers spell out both facts")]
pub struct ToolFacts {
    /// The list has an `outputSchema`, so the client expects a `structuredContent`.
    pub output_schema: bool,
    /// The tool drives a user interface (`_meta.ui`), which reads `structuredContent`.
    pub ui: bool,
}

impl ToolFacts {
    /// Reads `tool`, an element of `tools/list`; all false if it cannot be read.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary::shape::ToolFacts;
    ///
    /// let facts = ToolFacts::listed(r#"{"name": "map", "_meta": {"ui": {"resourceUri": "ui://map"}}}"#);
    /// assert_eq!(facts, ToolFacts { output_schema: false, ui: true });
    ///
    /// // The key in earlier versions of MCP Apps.
    /// assert!(ToolFacts::listed(r#"{"_meta": {"ui/resourceUri": "ui://map"}}"#).ui);
    /// ```
    #[must_use]
    pub fn listed(tool: &str) -> Self {
        let members = Members::parse(tool).unwrap_or_default();
        let metadata = meta(&members).unwrap_or_default();
        Self {
            output_schema: members.contains("outputSchema"),
            ui: metadata.contains("ui") || metadata.contains("ui/resourceUri"),
        }
    }
}
