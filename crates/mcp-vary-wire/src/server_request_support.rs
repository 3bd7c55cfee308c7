//! The server requests that a client supports: forms, URLs to visit, sampling, roots.
//!
//! Source: MCP 2025-11-25, client/elicitation, client/sampling and client/roots; 2026-07-28 has the same requests as
//! parts of results.

use std::borrow::Cow;

use mcp_vary::json::edit;
use mcp_vary::json::{self, Members, elements};
use serde_json::{Map, Value, json};

use crate::raw_envelope::present;
use crate::response::RpcError;
use crate::sanitize::excerpt;

/// The server asks the user for input.
pub const ELICIT: &str = "elicitation/create";
/// The server asks the client's model.
pub const SAMPLE: &str = "sampling/createMessage";
/// The server asks for the client's roots.
pub const LIST_ROOTS: &str = "roots/list";

/// The server requests that a client supports.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ServerRequestSupport {
    form: bool,
    url: bool,
    sampling: bool,
    /// Whether the client supports sampling with tools.
    tools: bool,
    roots: bool,
}

impl ServerRequestSupport {
    /// Reads the capabilities of a client, JSON text.
    pub fn from_capabilities(capabilities: &str) -> Self {
        let sampling = object(capabilities, "sampling");
        let elicitation = object(capabilities, "elicitation");
        let mode = |mode| elicitation.is_some_and(|it| present(edit::get(it, mode)).is_some());
        Self {
            // > For backwards compatibility, an empty capabilities object is equivalent to declaring support
            // > for `form` mode only. (MCP 2025-11-25, client/elicitation, "Capabilities")
            form: elicitation.is_some() && (mode("form") || !mode("url")),
            url: mode("url"),
            sampling: sampling.is_some(),
            tools: sampling.is_some_and(|members| object(members, "tools").is_some()),
            roots: object(capabilities, "roots").is_some(),
        }
    }

    /// Whether the client supports any server request.
    pub const fn is_any(self) -> bool {
        self.form || self.url || self.sampling || self.roots
    }

    /// Rejects a request that the client does not support, with the client's error.
    ///
    /// # Errors
    ///
    /// `-32601` for a missing capability, `-32602` for a missing part of one.
    pub fn ensure_supported(self, method: &str, params: &str) -> Result<(), RpcError> {
        let lacks =
            |what: &str| RpcError::method_not_found(format!("the client declared no {what}"));
        let lacks_part =
            |what: &str| RpcError::invalid_params(format!("the client did not declare {what}"));
        match method {
            ELICIT if !self.form && !self.url => Err(lacks("`elicitation`")),
            ELICIT => match mode(params).as_deref() {
                Some("form") if self.form => Ok(()),
                Some("url") if self.url => Ok(()),
                Some("form") => Err(lacks_part("`elicitation.form`")),
                Some("url") => Err(lacks_part("`elicitation.url`")),
                _ => Err(lacks_part("elicitation of this `mode`")),
            },
            SAMPLE if !self.sampling => Err(lacks("`sampling`")),
            SAMPLE if !self.tools && uses_tools(params) => Err(lacks_part("`sampling.tools`")),
            SAMPLE => Ok(()),
            LIST_ROOTS if self.roots => Ok(()),
            LIST_ROOTS => Err(lacks("`roots`")),
            _ => {
                let method = excerpt(method.as_bytes(), 60);
                let why = format!("the client declared no extension that has `{method}`");
                Err(RpcError::method_not_found(why))
            }
        }
    }
}

/// The member `key` when it is an object.
fn object<'a>(capabilities: &'a str, key: &str) -> Option<&'a str> {
    edit::get(capabilities, key).filter(|value| value.starts_with('{'))
}

/// The mode of an elicitation; `None` if it is not a string.
///
/// > For backwards compatibility, servers MAY omit the `mode` field for form mode elicitation requests.
/// > Clients MUST treat requests without a `mode` field as form mode.
/// > (MCP 2025-11-25, client/elicitation, "Elicitation Requests")
fn mode(params: &str) -> Option<String> {
    match present(edit::get(params, "mode")) {
        None => Some("form".to_owned()),
        Some(mode) => serde_json::from_str(mode).ok(),
    }
}

/// > Servers MUST NOT send tool-enabled sampling requests to Clients that have not declared support for tool
/// > use via the `sampling.tools` capability. (MCP 2025-11-25, client/sampling, "Capabilities")
fn uses_tools(params: &str) -> bool {
    let members = Members::parse(params).unwrap_or_default();
    let has = |key| present(members.get(key)).is_some();
    has("tools") || has("toolChoice")
}

/// The params of a request from `asker`, with its name before the text that a person reads: with several servers,
/// the person must know which one asks. All other members stay as written.
pub fn with_server_name<'a>(asker: Option<&str>, method: &str, params: &'a str) -> Cow<'a, str> {
    let Some(asker) = asker else {
        return Cow::Borrowed(params);
    };
    let named = match method {
        ELICIT => named_text(asker, params, "message"),
        SAMPLE => named_sampling(asker, params),
        _ => None,
    };
    named.map_or(Cow::Borrowed(params), Cow::Owned)
}

/// `object` with the name before the text of `key`, if there is one.
fn named_text(asker: &str, object: &str, key: &str) -> Option<String> {
    let text: String = serde_json::from_str(edit::get(object, key)?).ok()?;
    let text = json::string(&format!("[{asker}] {text}"));
    Some(edit::set(object, key, &text).into_owned())
}

/// The same for sampling: the name comes before the first text of the messages.
fn named_sampling(asker: &str, params: &str) -> Option<String> {
    let written = edit::get(params, "messages")?;
    let messages = elements(written).ok()?;
    let named = messages.iter().enumerate().find_map(|(at, message)| {
        let content = edit::get(message, "content")?;
        let content = match elements(content) {
            Ok(blocks) => {
                let mut indexed = blocks.iter().enumerate();
                let (at, block) = indexed
                    .find_map(|(at, block)| Some((at, named_text(asker, block, "text")?)))?;
                with_element(content, at, &block)?
            }
            Err(_) => named_text(asker, content, "text")?,
        };
        let message = edit::set(message, "content", &content);
        with_element(written, at, &message)
    });
    Some(edit::set(params, "messages", &named?).into_owned())
}

/// The array `written` with the element at `at` replaced.
fn with_element(written: &str, at: usize, element: &str) -> Option<String> {
    let mut all = elements(written).ok()?;
    *all.get_mut(at)? = element;
    Some(format!("[{}]", all.join(",")))
}

/// The capabilities for server requests that the gateway forwards to servers, in canonical form, without members
/// that do not distinguish kinds of requests.
pub fn forwardable_capabilities(capabilities: &Value) -> Map<String, Value> {
    const PARTS: &[(&str, &[&str])] = &[
        ("elicitation", &["form", "url"]),
        ("roots", &[]),
        ("sampling", &["context", "tools"]),
    ];
    let mut forwardable = Map::new();
    for (capability, parts) in PARTS {
        let Some(declared) = capabilities.get(capability).and_then(Value::as_object) else {
            continue;
        };
        let has = |part: &&&str| declared.get(**part).is_some_and(Value::is_object);
        let known = parts.iter().filter(has);
        let mut parts: Map<_, _> = known.map(|part| ((*part).to_owned(), json!({}))).collect();
        if *capability == "roots" && declared.get("listChanged") == Some(&Value::Bool(true)) {
            parts.insert("listChanged".to_owned(), Value::Bool(true));
        }
        // Without modes, which older servers understand, it means the same.
        if *capability == "elicitation" && !parts.contains_key("url") {
            parts.clear();
        }
        forwardable.insert((*capability).to_owned(), Value::Object(parts));
    }
    forwardable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn may_ask(capabilities: &Value, method: &str, params: &Value, expected: Result<(), i64>) {
        let askable = ServerRequestSupport::from_capabilities(&capabilities.to_string());
        let checked = askable.ensure_supported(method, &params.to_string());
        let checked = checked.map_err(|failure| failure.code());
        assert_eq!(checked, expected, "{capabilities} {method} {params}");
    }

    #[test]
    fn a_client_is_asked_what_it_declared_and_nothing_else() {
        let all =
            json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}});
        for (method, params) in [
            (ELICIT, json!({})),
            (ELICIT, json!({"mode": "form"})),
            (ELICIT, json!({"mode": "url"})),
            (SAMPLE, json!({"tools": []})),
            (LIST_ROOTS, json!({})),
        ] {
            may_ask(&all, method, &params, Ok(()));
            may_ask(&json!({}), method, &params, Err(-32601));
        }
        may_ask(&all, "tasks/get", &json!({}), Err(-32601));
        may_ask(&all, ELICIT, &json!({"mode": "dance"}), Err(-32602));
        may_ask(&all, ELICIT, &json!({"mode": 7}), Err(-32602));
        may_ask(&json!({"elicitation": 7}), ELICIT, &json!({}), Err(-32601));
    }

    #[test]
    fn a_part_of_a_capability_is_not_the_whole() {
        let url = json!({"mode": "url"});
        may_ask(&json!({"elicitation": {}}), ELICIT, &json!({}), Ok(()));
        may_ask(&json!({"elicitation": {}}), ELICIT, &url, Err(-32602));
        let only_url = json!({"elicitation": {"url": {}}});
        may_ask(&only_url, ELICIT, &url, Ok(()));
        may_ask(&only_url, ELICIT, &json!({}), Err(-32602));
        let plain = json!({"sampling": {}});
        may_ask(&plain, SAMPLE, &json!({"messages": []}), Ok(()));
        may_ask(&plain, SAMPLE, &json!({"tools": []}), Err(-32602));
        may_ask(&plain, SAMPLE, &json!({"toolChoice": {}}), Err(-32602));
    }

    #[test]
    fn a_part_that_is_null_is_absent() {
        let form = json!({"elicitation": {"form": {}, "url": null}});
        may_ask(&form, ELICIT, &json!({"mode": null}), Ok(()));
        may_ask(&form, ELICIT, &json!({"mode": "url"}), Err(-32602));
        let plain = json!({"sampling": {"tools": null}});
        let asked = json!({"tools": null, "toolChoice": null});
        may_ask(&plain, SAMPLE, &asked, Ok(()));
    }

    #[test]
    fn a_question_names_its_server_and_changes_nothing_else() {
        for (method, params, named) in [
            (
                ELICIT,
                r#"{"x":1.0, "message":"Who?","requestedSchema":{"type": "object"}}"#,
                r#"{"x":1.0, "message":"[files] Who?","requestedSchema":{"type": "object"}}"#,
            ),
            (ELICIT, r#"{"message":7}"#, r#"{"message":7}"#),
            (
                SAMPLE,
                r#"{"messages":[{"role":"user","content":{"type":"text","text":"Hi","y":1e2}},{"content":{"text":"b"}}]}"#,
                r#"{"messages":[{"role":"user","content":{"type":"text","text":"[files] Hi","y":1e2}},{"content":{"text":"b"}}]}"#,
            ),
            (
                SAMPLE,
                r#"{"messages":[{"content":[{"type":"image"},{"type":"text","text":"Hi"}]}]}"#,
                r#"{"messages":[{"content":[{"type":"image"},{"type":"text","text":"[files] Hi"}]}]}"#,
            ),
            (SAMPLE, r#"{"messages":[]}"#, r#"{"messages":[]}"#),
            (LIST_ROOTS, "{}", "{}"),
        ] {
            assert_eq!(with_server_name(Some("files"), method, params), named);
            assert_eq!(with_server_name(None, method, params), params);
        }
    }

    #[track_caller]
    fn is_told(capabilities: &Value, expected: &str) {
        let told = Value::Object(forwardable_capabilities(capabilities)).to_string();
        assert_eq!(told, expected);
        // The forwarded capabilities mean the same as the declared ones.
        assert_eq!(
            ServerRequestSupport::from_capabilities(&told),
            ServerRequestSupport::from_capabilities(&capabilities.to_string())
        );
    }

    #[test]
    fn servers_are_told_in_one_spelling() {
        is_told(&json!({"tools": {}, "sampling": 7}), "{}");
        is_told(
            &json!({"sampling": {"x": 1}, "elicitation": {"form": {"y": 1}}, "roots": {"listChanged": true}}),
            r#"{"elicitation":{},"roots":{"listChanged":true},"sampling":{}}"#,
        );
        is_told(
            &json!({"roots": {"listChanged": false}, "elicitation": {"url": {}}, "sampling": {"tools": {}, "context": {}}}),
            r#"{"elicitation":{"url":{}},"roots":{},"sampling":{"context":{},"tools":{}}}"#,
        );
    }
}
