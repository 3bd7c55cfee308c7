//! The feature tags and variant hints of clients that reach servers: those whose own variants clients select
//! ([0047](../../../../../docs/decisions/0047-passthrough.md)).
//!
//! A connection with sessions declares them once, so clients with the same tags and hints share it. A server without
//! sessions gets them with each request, so clients share one connection whatever they declare.

use std::borrow::Cow;

use mcp_vary::extension::{CONTENT_NEGOTIATION, SERVER_VARIANTS};
use mcp_vary::feature::{FeatureTag, Features};
use mcp_vary::hints::VariantHints;
use mcp_vary::json::{to_map, to_value};
use mcp_vary_upstream::UpstreamConfig;
use serde_json::{Map, Value, json};

use mcp_vary_session::BASE_CLASS;

/// What a client declares of the extensions that the gateway negotiates itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientDeclarations<'a> {
    /// The feature tags, if the client negotiates content.
    pub(crate) features: Option<&'a Features>,
    pub(crate) hints: &'a VariantHints,
}

/// Whether the feature tags of clients are forwarded to the server.
pub(crate) fn forwards_features(config: &UpstreamConfig) -> bool {
    forwards(config, CONTENT_NEGOTIATION)
}

pub(super) fn forwards(config: &UpstreamConfig, extension: &str) -> bool {
    let mut forwarded = config.forwarded_extensions.iter();
    forwarded.any(|id| id == extension)
}

/// The settings with which a client declares `features`, with the tags sorted by key: only the order of values of one key
/// has a meaning, so clients that declare the same in another order share connections.
pub(super) fn canonical_settings(features: &Features) -> Value {
    let mut tags: Vec<&FeatureTag> = features.tags().collect();
    tags.sort_by_key(|tag| tag.key());
    let sorted: Features = tags.into_iter().cloned().collect();
    sorted.to_settings()
}

/// The settings with which a client declares `hints`, sorted by key: with its description, and without. Text with
/// control characters is left out. None if the client declares no hints.
pub(super) fn hint_settings(hints: &VariantHints) -> impl Iterator<Item = Value> {
    let plain = |text: &&str| !text.contains(char::is_control);
    let values = |values: &[String]| -> Vec<String> {
        let values = values.iter().filter(|value| plain(&value.as_str()));
        values.cloned().collect()
    };
    let keys = hints.iter().filter(|(key, _)| plain(key));
    let keys = keys.map(|(key, all)| (key.to_owned(), values(all)));
    let keys = keys.filter(|(_, values)| !values.is_empty());
    let keys: Map<String, Value> = keys.map(|(key, values)| (key, json!(values))).collect();
    let mut short = Map::new();
    if !keys.is_empty() {
        short.insert("hints".to_owned(), json!(keys));
    }
    let description = hints.description().filter(plain);
    let whole = description.map(|description| {
        let mut whole = Map::from_iter([("description".to_owned(), json!(description))]);
        whole.extend(short.clone());
        whole
    });
    let all = [whole, (!short.is_empty()).then_some(short)];
    all.into_iter()
        .flatten()
        .map(|hints| json!({"variantHints": hints}))
}

/// Whether `capabilities`, JSON text, declare exactly these features.
pub(crate) fn declare_features(capabilities: &str, features: &Features) -> bool {
    let capabilities = to_value(capabilities).unwrap_or_default();
    let declared = capabilities.get("extensions");
    let declared = declared.and_then(|declared| declared.get(CONTENT_NEGOTIATION));
    declared.is_some_and(|declared| *declared == canonical_settings(features))
}

/// `capabilities`, JSON text, without what they declare of this extension.
pub(super) fn without_extension<'a>(capabilities: &'a str, extension: &str) -> Cow<'a, str> {
    let mut value = to_map(capabilities).unwrap_or_default();
    let extensions = value.get_mut("extensions").and_then(Value::as_object_mut);
    let Some(extensions) = extensions else {
        return Cow::Borrowed(capabilities);
    };
    if extensions.shift_remove(extension).is_none() {
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

/// The extensions that the gateway negotiates itself: what clients declare of them reaches a server only under the
/// variants that it offers itself.
pub(super) const NEGOTIATED: [&str; 2] = [CONTENT_NEGOTIATION, SERVER_VARIANTS];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_removed_for_connections_that_have_them_in_each_request() {
        let without = |text: &str| without_extension(text, CONTENT_NEGOTIATION).into_owned();
        let tags = r#""io.modelcontextprotocol/content-negotiation":{"version":"1.0","features":["agent"]}"#;
        let alone = format!(r#"{{"extensions":{{{tags}}}}}"#);
        assert_eq!(without(&alone), BASE_CLASS);
        let others = format!(r#"{{"sampling":{{}},"extensions":{{{tags},"x/y":{{}}}}}}"#);
        let expected = r#"{"sampling":{},"extensions":{"x/y":{}}}"#;
        assert_eq!(without(&others), expected);
        assert_eq!(without(expected), expected);
    }

    /// EXT-5, EXT-9: hints are forwarded with the description and without it, in one order, and without text that could
    /// write a line of a log.
    #[test]
    fn hints_are_declared_in_canonical_form() {
        let settings = |declared: Value| {
            let (hints, _) = VariantHints::read(&json!({"variantHints": declared}));
            let all = hint_settings(&hints).map(|settings| settings["variantHints"].to_string());
            all.collect::<Vec<_>>()
        };
        let declared = json!({
            "hints": {"useCase": "chat", "a": ["y", "x", "z\u{1b}[2J"], "b\n": "v", "c": "\u{7}"},
            "description": "Plans trips.",
        });
        let expected = [
            r#"{"description":"Plans trips.","hints":{"a":["y","x"],"useCase":["chat"]}}"#,
            r#"{"hints":{"a":["y","x"],"useCase":["chat"]}}"#,
        ];
        assert_eq!(settings(declared), expected);
        let only = settings(json!({"description": "Plans trips."}));
        assert_eq!(only, [r#"{"description":"Plans trips."}"#]);
        let none: [&str; 0] = [];
        assert_eq!(settings(json!({})), none);
        assert_eq!(settings(json!({"description": "\u{1b}[2J"})), none);
    }
}
