//! A client's declarations, as the server receives them.

use crate::prelude::*;
use mcp_vary::extension::{CONTENT_NEGOTIATION, declared};
use mcp_vary::feature::Features;
use mcp_vary::hints::VariantHints;
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation};
use rmcp::service::Service as _;

fn features(tags: &str) -> Features {
    Features::from_tags(tags.split(',')).0
}

/// The declarations of a client with `capabilities`, as JSON.
fn says(capabilities: Value, tags: Option<&str>) -> Value {
    let capabilities: ClientCapabilities = serde_json::from_value(capabilities).unwrap();
    let handler = ClientConfig::new(capabilities, Implementation::new("a", "1"));
    let mut declaring = DeclaringClient::new(handler);
    if let Some(tags) = tags {
        declaring = declaring.with_features(features(tags));
    }
    let extensions = declaring.get_info().capabilities.extensions.unwrap();
    serde_json::to_value(extensions).unwrap()
}

#[track_caller]
fn tags(capabilities: Value, native: &str, expected: Value) {
    let reported = says(capabilities, Some(native));
    assert_eq!(reported[CONTENT_NEGOTIATION]["features"], expected);
}

/// CN-17: the client's capabilities become tags, after the application's own.
#[test]
fn capabilities_become_tags() {
    let all = json!({
        "sampling": {}, "elicitation": {}, "roots": {},
        "extensions": {"io.modelcontextprotocol/tasks": {}},
    });
    let expected = json!(["agent", "sampling", "elicitation", "roots", "tasks"]);
    tags(all, "agent", expected);
    let expected = json!(["agent", "format=json"]);
    tags(json!({}), "agent,format=json", expected);
    tags(json!({"sampling": {}}), "sampling", json!(["sampling"]));
    // Only tags that the application declares absent are absent: a missing capability declares
    // nothing.
    let expected = json!(["!sampling", "sampling"]);
    tags(json!({"sampling": {}}), "!sampling", expected);
}

/// EXT-3: a client without tags does not negotiate content.
#[test]
fn content_is_negotiated_on_request() {
    let found = says(json!({"sampling": {}}), None);
    assert_eq!(found, json!({SERVER_VARIANTS: {}}));
}

/// CN-17: settings that the handler declares itself take precedence.
#[test]
fn a_handlers_own_declaration_stays() {
    let own = json!({CONTENT_NEGOTIATION: {"features": ["human"]}, "com.example/x": {"a": 1}});
    let said = says(json!({"extensions": own}), Some("agent"));
    assert_eq!(said[CONTENT_NEGOTIATION], json!({"features": ["human"]}));
    assert_eq!(said["com.example/x"], json!({"a": 1}));
    assert_eq!(said[SERVER_VARIANTS], json!({}));
}

/// SV-4, CN-17: hints and tags arrive unchanged, in either era and over either transport.
#[tokio::test]
async fn a_server_reads_what_was_declared() {
    for way in each(WAYS) {
        let (hints, _) =
            VariantHints::from_pairs([("useCase", "planning"), ("useCase", "execution")]);
        let connected = Connected::declaring(way, Scripted::with_variants(), |declaring| {
            declaring
                .with_features(features("agent,format=json"))
                .with_hints(hints.clone())
        })
        .await;
        connected.client.default_variant().tools().await.unwrap();
        let capabilities = serde_json::to_value(connected.server.declared()).unwrap();
        assert_eq!(declared::<VariantHints>(&capabilities).value, hints);
        let read = declared::<Features>(&capabilities).value;
        assert_eq!(read, features("agent,format=json,sampling,elicitation"));
    }
}
