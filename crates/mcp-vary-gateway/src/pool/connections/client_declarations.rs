//! The feature tags of clients, which reach servers with `passthrough`
//! ([0047](../../../../../docs/decisions/0047-passthrough.md)).
//!
//! A connection with sessions declares them once, so clients with the same tags share it. A server without sessions gets
//! them with each request, so clients share one connection whatever they declare.

use std::borrow::Cow;

use mcp_vary::extension::CONTENT_NEGOTIATION;
use mcp_vary::feature::{FeatureTag, Features};
use mcp_vary::json::{to_map, to_value};
use mcp_vary_upstream::UpstreamConfig;
use serde_json::Value;

use mcp_vary_session::BASE_CLASS;

/// Whether the feature tags of clients are forwarded to the server.
pub(crate) fn forwards_features(config: &UpstreamConfig) -> bool {
    let mut forwarded = config.forwarded_extensions.iter();
    forwarded.any(|id| id == CONTENT_NEGOTIATION)
}

/// The settings with which a client declares `features`, with the tags sorted by key: only the order of values of one key
/// has a meaning, so clients that declare the same in another order share connections.
pub(super) fn canonical_settings(features: &Features) -> Value {
    let mut tags: Vec<&FeatureTag> = features.tags().collect();
    tags.sort_by_key(|tag| tag.key());
    let sorted: Features = tags.into_iter().cloned().collect();
    sorted.to_settings()
}

/// Whether `capabilities`, JSON text, declare exactly these features.
pub(crate) fn declare_features(capabilities: &str, features: &Features) -> bool {
    let capabilities = to_value(capabilities).unwrap_or_default();
    let extensions = capabilities.get("extensions");
    let declared = extensions.and_then(|extensions| extensions.get(CONTENT_NEGOTIATION));
    declared.is_some_and(|declared| *declared == canonical_settings(features))
}

/// `capabilities`, JSON text, without feature tags.
pub(super) fn without_features(capabilities: &str) -> Cow<'_, str> {
    let mut value = to_map(capabilities).unwrap_or_default();
    let extensions = value.get_mut("extensions").and_then(Value::as_object_mut);
    let Some(extensions) = extensions else {
        return Cow::Borrowed(capabilities);
    };
    if extensions.shift_remove(CONTENT_NEGOTIATION).is_none() {
        return Cow::Borrowed(capabilities);
    }
    if extensions.is_empty() {
        value.shift_remove("extensions");
    }
    if value.is_empty() {
        Cow::Borrowed(BASE_CLASS)
    } else {
        Cow::Owned(Value::Object(value).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_removed_for_connections_that_have_them_in_each_request() {
        let without = |text: &str| without_features(text).into_owned();
        let tags = r#""io.modelcontextprotocol/content-negotiation":{"version":"1.0","features":["agent"]}"#;
        let alone = format!(r#"{{"extensions":{{{tags}}}}}"#);
        assert_eq!(without(&alone), BASE_CLASS);
        let others = format!(r#"{{"sampling":{{}},"extensions":{{{tags},"x/y":{{}}}}}}"#);
        let expected = r#"{"sampling":{},"extensions":{"x/y":{}}}"#;
        assert_eq!(without(&others), expected);
        assert_eq!(without(expected), expected);
    }
}
