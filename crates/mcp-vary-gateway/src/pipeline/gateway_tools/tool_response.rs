//! How results of the gateway's tools are written.

use mcp_vary::json;

use crate::pipeline::request_context::{Dispatch, ViewScope};

/// The response of a tool: a block for each text, or a text about its failure that a model can act on.
///
/// > Tool Execution Errors contain actionable feedback that language models can use to self-correct.
/// > (MCP 2025-11-25, server/tools, "Error Handling")
pub(crate) fn tool_response(
    scope: ViewScope<'_>,
    outcome: Result<Vec<String>, String>,
) -> Dispatch {
    let (texts, error) = match outcome {
        Ok(texts) => (texts, ""),
        Err(why) => (vec![why], r#","isError":true"#),
    };
    let block = |text: &String| format!(r#"{{"type":"text","text":{}}}"#, json::string(text));
    let blocks: Vec<_> = texts.iter().map(block).collect();
    let result = format!(r#"{{"content":[{}]{error}}}"#, blocks.join(","));
    scope.answer(&result)
}
