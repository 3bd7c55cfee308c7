//! What a response says about the outcome of its request.

use std::sync::LazyLock;

use mcp_vary::json::edit;
use mcp_vary_audit::Outcome;
use mcp_vary_metrics::Code;
use mcp_vary_wire::envelope::Message;
use memchr::memmem::Finder;
use serde::Deserialize;

/// The longest start of a response, before its result or error: the id has at most 1,024 bytes.
const START: usize = 1100;

// To prepare a search takes longer than to search an ordinary response.
static RESULT: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#","result":"#));
static ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#","error":"#));
static IS_ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"isError"));

/// The outcome of a request, and the code of its error, by the `response` that the gateway wrote.
///
/// `is_call`: whether the result of a tool is expected, which can report a failure.
pub(crate) fn outcome(response: &[u8], is_call: bool) -> (Outcome, Option<i64>) {
    let start = response.get(..START).unwrap_or(response);
    // In the id, quotes are escaped, so these are the members of the response.
    let result = RESULT.find(start);
    let error = ERROR.find(start);
    let is_error = error.is_some_and(|error| result.is_none_or(|result| error < result));
    if is_error {
        return (Outcome::Error, code(response));
    }
    if is_call && reports_failure(response) {
        (Outcome::ToolError, None)
    } else {
        (Outcome::Allowed, None)
    }
}

/// What a client reads of an error, or of a tool that failed: its message or its first text.
pub(crate) fn failure_text(response: &[u8], outcome: Outcome) -> Option<String> {
    let message = || Message::read(response).ok();
    match outcome {
        Outcome::Error => {
            let written = edit::get(message()?.error?, "message")?;
            serde_json::from_str(written).ok()
        }
        Outcome::ToolError => {
            let written = edit::get(message()?.result?, "content")?;
            let content: Vec<Content> = serde_json::from_str(written).ok()?;
            content.into_iter().find_map(|item| item.text)
        }
        _ => None,
    }
}

/// A content of a result, as far as it is a text.
#[derive(Deserialize)]
struct Content {
    text: Option<String>,
}

/// The outcome of a request as a label of metrics, by the `response` that the gateway wrote.
pub(super) fn metrics_code(response: &[u8], is_call: bool) -> Code {
    let (outcome, code) = outcome(response, is_call);
    code_of(outcome, code)
}

/// An outcome, with the code of an error, as a label of metrics.
pub(super) fn code_of(outcome: Outcome, code: Option<i64>) -> Code {
    match outcome {
        Outcome::Allowed => Code::OK,
        Outcome::ToolError => Code::TOOL_ERROR,
        _ => Code::of_error(code.unwrap_or_default()),
    }
}

/// The outcome of a request as spans have it, by the `response` that the gateway wrote.
pub(super) fn span_outcome(response: &[u8]) -> mcp_vary_traces::Outcome {
    match outcome(response, true) {
        (Outcome::Allowed, _) => mcp_vary_traces::Outcome::Result,
        (Outcome::ToolError, _) => mcp_vary_traces::Outcome::ToolError,
        (_, code) => mcp_vary_traces::Outcome::Error(code.unwrap_or_default()),
    }
}

/// The length of the result in a response as models get it; `None` for errors.
pub(super) fn result_length(response: &[u8]) -> Option<usize> {
    let start = response.get(..START).unwrap_or(response);
    let at = RESULT.find(start)?;
    // After it comes the brace that ends the response.
    let result = response.get(at + RESULT.needle().len()..response.len() - 1)?;
    Some(length_for_models(result))
}

/// The length of a result without the member that only the protocol needs, which Vary writes first for modern clients.
pub(super) fn length_for_models(result: &[u8]) -> usize {
    const RESULT_TYPE: &[u8] = br#"{"resultType":"complete","#;
    match result.strip_prefix(RESULT_TYPE) {
        Some(others) => others.len() + 1,
        None => result.len(),
    }
}

fn code(response: &[u8]) -> Option<i64> {
    let message = Message::read(response).ok()?;
    edit::get(message.error?, "code")?.parse().ok()
}

/// Whether the result of a tool has `isError`. Most have not, or have it with `false`, and are not parsed.
fn reports_failure(response: &[u8]) -> bool {
    let is_true = |at| is_true_after(response, at + IS_ERROR.needle().len());
    if !IS_ERROR.find_iter(response).any(is_true) {
        return false;
    }
    let message = Message::read(response).ok();
    let result = message.and_then(|message| message.result);
    result.and_then(|result| edit::get(result, "isError")) == Some("true")
}

/// Whether the key that ends `at` this place has the value `true`.
fn is_true_after(response: &[u8], at: usize) -> bool {
    let value = response.get(at..).and_then(|end| {
        let colon = end.strip_prefix(b"\"")?.trim_ascii_start();
        Some(colon.strip_prefix(b":")?.trim_ascii_start())
    });
    value.is_some_and(|value| value.starts_with(b"true"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is(response: &str, expected: Outcome, code: Option<i64>) {
        let found = outcome(response.as_bytes(), true);
        assert_eq!(found, (expected, code), "{response}");
    }

    #[test]
    fn the_outcome_is_what_the_client_reads() {
        let result = |result: &str| format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#);
        is(&result("{}"), Outcome::Allowed, None);
        is(&result(r#"{"isError":true}"#), Outcome::ToolError, None);
        is(&result("{\"isError\" :\n\ttrue}"), Outcome::ToolError, None);
        is(&result(r#"{"isError":false}"#), Outcome::Allowed, None);
        // Of several, the last one counts.
        is(
            &result(r#"{"isError":false,"isError":true}"#),
            Outcome::ToolError,
            None,
        );
        // The same word elsewhere is not the tool's.
        is(
            &result(r#"{"structuredContent":{"isError":true,"error":1}}"#),
            Outcome::Allowed,
            None,
        );
        is(
            r#"{"jsonrpc":"2.0","id":"\",\"result\":","error":{"code":-32602,"message":"x"}}"#,
            Outcome::Error,
            Some(-32602),
        );
        is(
            r#"{"jsonrpc":"2.0","id":8,"error":{"code":7,"message":"x","data":{"a":1,"result":2}}}"#,
            Outcome::Error,
            Some(7),
        );
    }

    #[test]
    fn the_text_of_a_failure_is_what_the_client_reads() {
        let is = |response: &str, outcome, expected: Option<&str>| {
            let found = failure_text(response.as_bytes(), outcome);
            assert_eq!(found.as_deref(), expected, "{response}");
        };
        let error = r#"{"jsonrpc":"2.0","id":8,"error":{"code":7,"message":"no \"x\""}}"#;
        is(error, Outcome::Error, Some("no \"x\""));
        is(error, Outcome::Allowed, None);
        let result = |content: &str| {
            let result = format!(r#"{{"content":{content},"isError":true}}"#);
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#)
        };
        let image = r#"{"type":"image","data":"AA=="}"#;
        let text = r#"{"type":"text","text":"disk full"}"#;
        let several = result(&format!("[{image},{text}]"));
        is(&several, Outcome::ToolError, Some("disk full"));
        is(&result(&format!("[{image}]")), Outcome::ToolError, None);
        is(&result("7"), Outcome::ToolError, None);
    }

    #[test]
    fn the_length_of_a_result_is_without_its_envelope() {
        let response = br#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#;
        assert_eq!(result_length(response), Some(br#"{"a":1}"#.len()));
        let error = br#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}"#;
        assert_eq!(result_length(error), None);
        assert_eq!(result_length(br#","result":"#), None);
        // Clients read `resultType`, and do not pass it on to a model.
        let modern = br#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","a":1}}"#;
        assert_eq!(result_length(modern), Some(br#"{"a":1}"#.len()));
    }

    #[test]
    fn a_result_that_is_not_a_tools_reports_no_failure() {
        let response = br#"{"jsonrpc":"2.0","id":7,"result":{"isError":true}}"#;
        assert_eq!(outcome(response, false), (Outcome::Allowed, None));
    }
}
