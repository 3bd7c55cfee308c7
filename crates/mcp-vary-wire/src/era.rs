//! Translates requests and results between the eras.
//!
//! Only the members that an era requires are changed; everything else stays as written.

use std::borrow::Cow;

use bytes::Bytes;
use mcp_vary::error::Era;
use mcp_vary::extension::EXTENSIONS;
use mcp_vary::json::edit;
use mcp_vary::json::{self, Members};

use crate::meta::{
    CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION, SERVER_INFO, SUBSCRIPTION_ID, client_info,
};
pub use crate::meta::{LOG_LEVEL, PROGRESS_TOKEN};
use crate::params::Params;
use crate::revision::Revision;

/// The tokens of one request's progress, JSON text.
#[derive(Clone, Debug)]
pub struct ProgressTokens {
    /// The gateway's own, towards the server.
    pub upstream: String,
    /// The client's.
    pub client: String,
}

/// How a request is translated for its server.
#[derive(Debug)]
pub struct UpstreamContext<'a> {
    /// The revision of the connection to the server.
    pub revision: Revision,
    /// The client capabilities for a modern server, JSON text.
    pub capabilities: &'a str,
    /// The progress token for the server, if the client requested progress.
    pub progress_token: Option<&'a str>,
    /// The log level that a legacy client set, by name.
    pub log_level: Option<&'static str>,
}

/// The params to send to the server.
///
/// Removes the selector and everything addressed to the gateway, and adds what the server's era requires. `params`
/// without changes stay byte for byte.
pub fn to_upstream_params(params: &mut Params<'_>, upward: &UpstreamContext<'_>) -> String {
    let Params { members, meta } = params;
    let before = meta.len();
    for key in EXTENSIONS.iter().flat_map(|extension| extension.meta) {
        meta.remove(key);
    }
    match upward.revision.era() {
        Era::Legacy => {
            for key in [
                PROTOCOL_VERSION,
                CLIENT_INFO,
                CLIENT_CAPABILITIES,
                LOG_LEVEL,
            ] {
                meta.remove(key);
            }
        }
        Era::Modern => make_modern(meta, upward),
    }
    if let Some(token) = upward.progress_token {
        meta.set(PROGRESS_TOKEN, token.to_owned());
    }
    if !meta.is_empty() {
        members.set("_meta", meta.to_json());
    } else if before > 0 {
        members.remove("_meta");
    }
    members.to_json()
}

/// Adds the metadata of a modern request, with the client capabilities that the gateway can forward.
fn make_modern(meta: &mut Members<'_>, upward: &UpstreamContext<'_>) {
    meta.set(PROTOCOL_VERSION, json::string(upward.revision.as_str()));
    meta.set(CLIENT_CAPABILITIES, upward.capabilities.to_owned());
    if !meta.contains(CLIENT_INFO) {
        meta.set(CLIENT_INFO, client_info());
    }
    let is_missing = !meta.contains(LOG_LEVEL);
    if is_missing && let Some(level) = upward.log_level {
        meta.set(LOG_LEVEL, json::string(level));
    }
}

/// How a client may cache a result: `ttlMs` and `cacheScope`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Caching {
    /// The result of a method that is not cacheable.
    #[default]
    None,
    /// As the server declared; not at all without a declaration.
    AsDeclared,
    /// Not at all: SDK caches ignore what the result depends on (SV-17).
    Never,
}

/// The result to send to a client of `era`.
///
/// A legacy client gets the bytes unchanged. A modern one gets `resultType`, and the caching hints if its revision
/// requires them.
pub fn to_client_result(result: &str, era: Era, caching: Caching) -> Cow<'_, str> {
    if era == Era::Legacy {
        return Cow::Borrowed(result);
    }
    if caching == Caching::None {
        return with_result_type(result);
    }
    Cow::Owned(cacheable(result, caching))
}

/// The same in two parts, so that a long result is copied only once.
pub fn to_client_result_parts(
    result: &str,
    era: Era,
    caching: Caching,
) -> (&'static str, Cow<'_, str>) {
    if era == Era::Modern && caching == Caching::None {
        let (start, remaining) = split_result_type(result);
        return (start, Cow::Borrowed(remaining));
    }
    ("", to_client_result(result, era, caching))
}

/// `result` with `resultType` and the caching hints that modern clients require.
pub fn cacheable(result: &str, caching: Caching) -> String {
    let mut out = with_result_type(result).into_owned();
    for (key, default) in [("ttlMs", "0"), ("cacheScope", r#""private""#)] {
        if caching == Caching::Never || edit::get(&out, key).is_none() {
            out = edit::set(&out, key, default).into_owned();
        }
    }
    out
}

/// Adds `resultType` at the start, unless it exists.
fn with_result_type(result: &str) -> Cow<'_, str> {
    match split_result_type(result) {
        ("", result) => Cow::Borrowed(result),
        (start, remaining) => Cow::Owned(format!("{start}{remaining}")),
    }
}

/// The same in two parts: the added start, and the remainder.
fn split_result_type(result: &str) -> (&'static str, &str) {
    // Most servers write it first; the object is read only if the word occurs.
    if result.starts_with(r#"{"resultType":"#) || edit::get(result, "resultType").is_some() {
        return ("", result);
    }
    match result.strip_prefix('{') {
        Some(remaining) if remaining.trim_start().starts_with('}') => {
            (r#"{"resultType":"complete""#, remaining)
        }
        Some(remaining) => (r#"{"resultType":"complete","#, remaining),
        None => ("", result),
    }
}

/// The result of a modern server for clients of earlier revisions: without `resultType`, the caching hints, and the
/// keys that servers of 2026-07-28 add to `_meta`.
pub fn without_modern_members(result: &str) -> Cow<'_, str> {
    let mut out = Cow::Borrowed(result);
    // Other result types belong to extensions that the client declared, and the `ttlMs` of a task is the task's.
    let kind = edit::get(result, RESULT_TYPE);
    let is_other = kind.is_some_and(|kind| kind != r#""complete""#);
    if !is_other && edit::get(result, "taskId").is_none() {
        for key in [RESULT_TYPE, "ttlMs", "cacheScope"] {
            if edit::get(&out, key).is_some() {
                out = Cow::Owned(edit::remove(&out, key).into_owned());
            }
        }
    }
    let meta = edit::get(&out, "_meta").unwrap_or("{}");
    let known = MODERN_META
        .iter()
        .filter(|key| edit::get(meta, key).is_some());
    let mut remaining = Cow::Borrowed(meta);
    for key in known {
        remaining = Cow::Owned(edit::remove(&remaining, key).into_owned());
    }
    let Cow::Owned(remaining) = remaining else {
        return out;
    };
    let is_empty = edit::members(&remaining).next().is_none();
    Cow::Owned(if is_empty {
        edit::remove(&out, "_meta").into_owned()
    } else {
        edit::set(&out, "_meta", &remaining).into_owned()
    })
}

/// A page of a list for a legacy client, without the members of modern servers.
pub fn to_legacy_page(result: &str) -> Cow<'_, str> {
    match edit::get(result, RESULT_TYPE) {
        Some(_) => without_modern_members(result),
        None => Cow::Borrowed(result),
    }
}

/// A member of every result of 2026-07-28, and of none before.
const RESULT_TYPE: &str = "resultType";

/// The keys that 2026-07-28 added to `_meta`.
const MODERN_META: [&str; 6] = [
    PROTOCOL_VERSION,
    CLIENT_INFO,
    CLIENT_CAPABILITIES,
    SERVER_INFO,
    SUBSCRIPTION_ID,
    LOG_LEVEL,
];

/// Drops a `structuredContent` that is not an object, which legacy clients do not support. `content` then has its
/// value: as the server's own text, or else as JSON.
pub fn drop_unsupported_structured_content(result: &str) -> Cow<'_, str> {
    match edit::get(result, STRUCTURED_CONTENT) {
        Some(value) if !value.starts_with('{') => drop_structured_content(result),
        _ => Cow::Borrowed(result),
    }
}

/// The result without `structuredContent`. `content` then has its value: as the server's own text, or else as JSON.
pub fn drop_structured_content(result: &str) -> Cow<'_, str> {
    match edit::get(result, STRUCTURED_CONTENT) {
        Some(_) => {
            Cow::Owned(edit::remove(&with_text_content(result), STRUCTURED_CONTENT).into_owned())
        }
        None => Cow::Borrowed(result),
    }
}

/// The result with the value of `structuredContent` also in `content`: as the server's own text, or else as JSON.
pub fn with_text_content(result: &str) -> Cow<'_, str> {
    let Some(value) = edit::get(result, STRUCTURED_CONTENT).filter(|value| *value != "null") else {
        return Cow::Borrowed(result);
    };
    let content = edit::get(result, "content").unwrap_or("[]");
    let blocks = json::elements(content).unwrap_or_default();
    if blocks.iter().any(|block| is_text(block)) {
        return Cow::Borrowed(result);
    }
    let text = format!(r#"{{"type":"text","text":{}}}"#, json::string(value));
    let all: Vec<_> = blocks.into_iter().chain([text.as_str()]).collect();
    let content = format!("[{}]", all.join(","));
    edit::set(result, "content", &content)
}

/// The key of a structured result.
pub const STRUCTURED_CONTENT: &str = "structuredContent";

/// Whether a block of content is a readable text.
pub fn is_text(block: &str) -> bool {
    let Ok(block) = Members::parse(block) else {
        return false;
    };
    block.get_str("type").as_deref() == Some("text") && block.get_str("text").is_some()
}

/// The progress notification with the client's token in place of the gateway's.
pub fn to_client_progress(params: &str, token: &str) -> Bytes {
    progress_notification(&edit::set(params, PROGRESS_TOKEN, token))
}

/// The progress notification with these params.
pub fn progress_notification(params: &str) -> Bytes {
    let progress =
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#);
    progress.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn upward(params: &str, revision: Revision, expected: &str) {
        let mut params = Params::read(Some(params)).unwrap();
        let upward = UpstreamContext {
            revision,
            capabilities: "{}",
            progress_token: None,
            log_level: None,
        };
        assert_eq!(to_upstream_params(&mut params, &upward), expected);
    }

    #[test]
    fn what_is_said_to_the_gateway_does_not_travel_on() {
        upward(
            r#"{"name":"a","_meta":{"io.modelcontextprotocol/server-variant":"compact","x":1.0}}"#,
            Revision::V2025_11_25,
            r#"{"name":"a","_meta":{"x":1.0}}"#,
        );
        upward(
            r#"{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"sampling":{}}}}"#,
            Revision::V2025_11_25,
            r#"{"name":"a"}"#,
        );
        let params = r#"{"name":"a","_meta":{}}"#;
        upward(params, Revision::V2025_11_25, r#"{"name":"a","_meta":{}}"#);
    }

    #[test]
    fn a_modern_server_is_told_what_the_gateway_can_do() {
        upward(
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"sampling":{}},"io.modelcontextprotocol/clientInfo":{"name":"c"}}}"#,
            Revision::V2026_07_28,
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c"}}}"#,
        );
    }

    #[track_caller]
    fn downward(result: &str, caching: Caching, expected: &str) {
        assert_eq!(to_client_result(result, Era::Modern, caching), expected);
        assert_eq!(to_client_result(result, Era::Legacy, caching), result);
    }

    #[test]
    fn a_modern_client_gets_what_its_revision_requires() {
        downward("{}", Caching::None, r#"{"resultType":"complete"}"#);
        let expected = r#"{"resultType":"complete", "a": 1.0 }"#;
        downward(r#"{ "a": 1.0 }"#, Caching::None, expected);
        let result = r#"{"resultType":"x"}"#;
        downward(result, Caching::None, r#"{"resultType":"x"}"#);
        let expected = r#"{"resultType":"complete","a":{"resultType":1}}"#;
        downward(r#"{"a":{"resultType":1}}"#, Caching::None, expected);
        downward(
            r#"{"contents":[],"ttlMs":5}"#,
            Caching::AsDeclared,
            r#"{"resultType":"complete","contents":[],"ttlMs":5,"cacheScope":"private"}"#,
        );
        downward(
            r#"{"contents":[],"ttlMs":5,"cacheScope":"public"}"#,
            Caching::Never,
            r#"{"resultType":"complete","contents":[],"ttlMs":0,"cacheScope":"private"}"#,
        );
    }

    /// CN-7
    #[test]
    fn a_legacy_client_gets_no_members_that_only_a_modern_one_knows() {
        for (told, expected) in [
            (
                r#"{"resultType":"complete","content":[ ],"x":1.0}"#,
                r#"{"content":[ ],"x":1.0}"#,
            ),
            (
                r#"{"content":[],"ttlMs":5,"cacheScope":"public","resultType":"complete"}"#,
                r#"{"content":[]}"#,
            ),
            (
                r#"{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}"#,
                r#"{"content":[]}"#,
            ),
            (
                r#"{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{},"mine":1.0}}"#,
                r#"{"content":[],"_meta":{"mine":1.0}}"#,
            ),
            (
                r#"{"content":[],"structuredContent":{"resultType":1},"_meta":{ }}"#,
                r#"{"content":[],"structuredContent":{"resultType":1},"_meta":{ }}"#,
            ),
            (
                r#"{"resultType":"task","taskId":"1","ttlMs":1.5}"#,
                r#"{"resultType":"task","taskId":"1","ttlMs":1.5}"#,
            ),
            (
                r#"{"resultType":"complete","taskId":"1","status":"working","ttlMs":null}"#,
                r#"{"resultType":"complete","taskId":"1","status":"working","ttlMs":null}"#,
            ),
        ] {
            assert_eq!(without_modern_members(told), expected);
        }
        // A list of a legacy server may have members of its own.
        let told = r#"{"tools":[],"ttlMs":5}"#;
        assert_eq!(to_legacy_page(told), told);
    }

    #[test]
    fn a_legacy_client_gets_no_structure_that_it_cannot_read() {
        for (told, expected) in [
            (
                r#"{"content":[{"type":"text","text":"one"}],"structuredContent":[1]}"#,
                r#"{"content":[{"type":"text","text":"one"}]}"#,
            ),
            (
                r#"{"content":[{"type":"image"}],"structuredContent":[1.0]}"#,
                r#"{"content":[{"type":"image"},{"type":"text","text":"[1.0]"}]}"#,
            ),
            (
                r#"{"structuredContent":"a\"b"}"#,
                r#"{"content":[{"type":"text","text":"\"a\\\"b\""}]}"#,
            ),
            (
                r#"{"content":[],"structuredContent":null}"#,
                r#"{"content":[]}"#,
            ),
        ] {
            assert_eq!(drop_unsupported_structured_content(told), expected);
        }
        let told = r#"{"content":[], "structuredContent":{"a":[1]}}"#;
        assert_eq!(drop_unsupported_structured_content(told), told);
    }
}
