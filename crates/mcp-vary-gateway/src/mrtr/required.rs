//! A result that asks for input, read from what a server wrote.

use std::borrow::Cow;

use mcp_vary::json::{Members, edit, may_contain};
use mcp_vary_wire::server_request_support::{ELICIT, ServerRequestSupport};

pub(crate) const REQUEST_STATE: &str = "requestState";
pub(crate) const INPUT_REQUESTS: &str = "inputRequests";
pub(crate) const INPUT_RESPONSES: &str = "inputResponses";

/// Whether a result asks for input (MCP 2026-07-28, basic/patterns/mrtr).
pub(crate) fn is_input_required(result: &str) -> bool {
    if !may_contain(result, "input_required") {
        return false;
    }
    let kind = edit::get(result, "resultType").and_then(|kind| serde_json::from_str(kind).ok());
    kind.is_some_and(|kind: String| kind == "input_required")
}

/// The input requests of one result.
#[derive(Debug)]
pub(crate) struct InputRequired {
    /// Each request under the server's key.
    pub(crate) requests: Vec<(String, InputRequest)>,
    pub(crate) state: Option<String>,
}

/// One request of a server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct InputRequest {
    pub(crate) method: String,
    /// JSON text of an object.
    pub(crate) params: String,
}

impl InputRequired {
    /// Reads a result that [asks for input](is_input_required).
    ///
    /// # Errors
    ///
    /// The server's fault, in words that follow its name.
    ///
    /// > Servers MUST include at least one of `inputRequests` or `requestState` in every `InputRequiredResult`
    /// > response. (MCP 2026-07-28, basic/patterns/mrtr, "Server Requirements")
    pub(crate) fn read(result: &str) -> Result<Self, String> {
        let requests = match edit::get(result, INPUT_REQUESTS) {
            Some(text) => requests(text).ok_or("asks for input that cannot be read")?,
            None => Vec::new(),
        };
        let state = match edit::get(result, REQUEST_STATE) {
            Some(text) => {
                let state = serde_json::from_str(text);
                Some(state.map_err(|_| "asks for input with a state that is not a string")?)
            }
            None => None,
        };
        if requests.is_empty() && state.is_none() {
            return Err("asks for input without saying which".to_owned());
        }
        Ok(Self { requests, state })
    }

    /// > Servers MUST NOT send an `inputRequests` that the client has not declared support for in its
    /// > capabilities. (MCP 2026-07-28, basic/patterns/mrtr, "Server Requirements")
    pub(crate) fn ensure_supported(&self, askable: ServerRequestSupport) -> Result<(), String> {
        for (_, request) in &self.requests {
            askable
                .ensure_supported(&request.method, &request.params)
                .map_err(|why| {
                    let cut: String = request.method.chars().take(60).collect();
                    format!("asks for `{cut}`: {}", why.message())
                })?;
        }
        Ok(())
    }
}

/// The params of an elicitation for modern clients.
///
/// > Removed […] the `elicitationId` field of URL mode elicitation requests (MCP 2026-07-28, changelog)
pub(super) fn without_elicitation_id<'a>(
    method: &str,
    written: Option<&'a str>,
) -> Option<Cow<'a, str>> {
    let params = written?;
    Some(match method {
        ELICIT => edit::remove(params, ELICITATION_ID),
        _ => Cow::Borrowed(params),
    })
}

/// The params of an elicitation for legacy clients: those with a URL to visit have an id.
pub(crate) fn with_elicitation_id(
    request: &InputRequest,
    id: impl FnOnce() -> String,
) -> Cow<'_, str> {
    let is_visit =
        request.method == ELICIT && edit::get(&request.params, "mode") == Some("\"url\"");
    if is_visit && edit::get(&request.params, ELICITATION_ID).is_none() {
        edit::set(
            &request.params,
            ELICITATION_ID,
            &mcp_vary::json::string(&id()),
        )
    } else {
        Cow::Borrowed(&request.params)
    }
}

const ELICITATION_ID: &str = "elicitationId";

fn requests(text: &str) -> Option<Vec<(String, InputRequest)>> {
    let members = Members::parse(text).ok()?;
    let requests = members.iter().map(|(key, request)| {
        let request = Members::parse(request).ok()?;
        let params = request.get("params").unwrap_or("{}");
        let request = InputRequest {
            method: request.get_str("method")?,
            params: params.starts_with('{').then(|| params.to_owned())?,
        };
        Some((key.to_owned(), request))
    });
    requests.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is_faulty(result: &str, expected: &str) {
        assert!(is_input_required(result));
        let read = InputRequired::read(result).and_then(|read| {
            read.ensure_supported(ServerRequestSupport::from_capabilities(r#"{"roots":{}}"#))
        });
        assert_eq!(read.unwrap_err(), expected);
    }

    #[test]
    fn a_server_that_asks_badly_is_told_from_one_that_asks() {
        let plain = r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},"requestState":"\u0041"}"#;
        let read = InputRequired::read(plain).unwrap();
        assert_eq!(read.state.as_deref(), Some("A"));
        assert_eq!(read.requests[0].1.params, "{}");
        assert!(
            read.ensure_supported(ServerRequestSupport::from_capabilities(r#"{"roots":{}}"#))
                .is_ok()
        );
        is_faulty(
            r#"{"resultType":"input_required"}"#,
            "asks for input without saying which",
        );
        is_faulty(
            r#"{"resultType":"input\u005frequired","inputRequests":{}}"#,
            "asks for input without saying which",
        );
        is_faulty(
            r#"{"resultType":"input_required","requestState":7}"#,
            "asks for input with a state that is not a string",
        );
        for bad in [
            "7",
            r#"{"a":7}"#,
            r#"{"a":{}}"#,
            r#"{"a":{"method":7}}"#,
            r#"{"a":{"method":"roots/list","params":[]}}"#,
            r#"{"a":{"method":"roots/list"},"a":{"method":"roots/list"}}"#,
        ] {
            is_faulty(
                &format!(r#"{{"resultType":"input_required","inputRequests":{bad}}}"#),
                "asks for input that cannot be read",
            );
        }
        is_faulty(
            r#"{"resultType":"input_required","inputRequests":{"a":{"method":"sampling/createMessage"}}}"#,
            "asks for `sampling/createMessage`: the client declared no `sampling`",
        );
        assert!(!is_input_required(
            r#"{"content":[{"text":"input_required"}]}"#
        ));
    }
}
