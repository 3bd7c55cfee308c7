//! The capabilities that Vary declares to servers: what the operator configured and what may be forwarded of the
//! client's, in canonical form.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mcp_vary::extension::{CONTENT_NEGOTIATION, EXTENSIONS};
use mcp_vary::feature::Features;
use mcp_vary::json::{to_map, to_value};
use mcp_vary_settings::config::OnlyClient;
use mcp_vary_upstream::{Processes, UpstreamConfig};
use mcp_vary_wire::server_request_support;
use serde_json::{Map, Value, json};
use tracing::warn;

use super::client_declarations::canonical_settings;
use mcp_vary_session::BASE_CLASS;

/// The capabilities to declare to a server: the configured ones, and the forwardable ones of the class.
pub(super) fn capabilities_for_server(
    configured: &str,
    class: &str,
    forwarded: &[String],
) -> String {
    let read = |text| to_map(text).unwrap_or_default();
    let mut class = read(class);
    let mut extensions = match class.shift_remove("extensions") {
        Some(Value::Object(extensions)) => extensions,
        _ => Map::new(),
    };
    extensions.retain(|id, _| forwarded.contains(id));
    if extensions.is_empty() && class.is_empty() {
        return configured.to_owned();
    }
    let mut declared = read(configured);
    declared.extend(class);
    match declared
        .get_mut("extensions")
        .and_then(Value::as_object_mut)
    {
        Some(known) => known.extend(extensions),
        None if extensions.is_empty() => {}
        None => drop(declared.insert("extensions".to_owned(), Value::Object(extensions))),
    }
    Value::Object(declared).to_string()
}

/// Has each server get the capabilities of the only client, and those with one process for many clients what any of them may
/// have. Returns the capabilities of the base class.
pub(crate) fn declare_to_all(
    servers: &mut [UpstreamConfig],
    only_client: Option<&OnlyClient>,
) -> Arc<str> {
    let base: Arc<str> = match only_client {
        None => BASE_CLASS.into(),
        Some(client) => {
            let capabilities = to_value(&client.capabilities).unwrap_or_default();
            // What the servers declare is not known before they get this.
            for server in &mut *servers {
                forward_all(&mut server.forwarded_extensions, &capabilities);
            }
            let extensions = servers.iter().flat_map(|it| &it.forwarded_extensions);
            let allowed = extensions.cloned().collect();
            forwardable_capabilities(&capabilities, None, &allowed)
        }
    };
    for server in servers {
        if let Some(client) = only_client {
            server.processes = Processes::OneClient {
                has_session: client.has_session,
                is_only: server.processes == Processes::One,
            };
        }
        let configured = &server.capabilities;
        let forwarded = &server.forwarded_extensions;
        if server.has_one_process() && only_client.is_none() {
            server.capabilities = capabilities_for_server(configured, ONE_PROCESS, &[]);
        } else {
            server.capabilities = capabilities_for_server(configured, &base, forwarded);
        }
    }
    base
}

/// Adds the extensions of a client that the gateway does not negotiate itself.
fn forward_all(forwarded: &mut Vec<String>, capabilities: &Value) {
    let declared = capabilities.get("extensions").and_then(Value::as_object);
    for id in declared.into_iter().flat_map(Map::keys) {
        let is_negotiated = EXTENSIONS.iter().any(|extension| extension.id == id);
        if !is_negotiated && !forwarded.contains(id) {
            forwarded.push(id.clone());
        }
    }
}

/// What a process declares that many clients share. Roots are not among it: a server would use those of one client for all.
const ONE_PROCESS: &str = r#"{"sampling":{},"elicitation":{}}"#;

/// Whether the capabilities `whole` include all of the capabilities `part`; both are JSON text.
pub(crate) fn is_part_of(part: &str, whole: &str) -> bool {
    fn is_in(part: &Value, whole: &Value) -> bool {
        match (part, whole) {
            (Value::Object(part), Value::Object(whole)) => {
                let mut members = part.iter();
                members.all(|(key, part)| whole.get(key).is_some_and(|whole| is_in(part, whole)))
            }
            _ => part == whole,
        }
    }
    let read = |text| to_value(text).unwrap_or_default();
    is_in(&read(part), &read(whole))
}

/// The capabilities of a client that may be forwarded: those for server requests, and the settings of the `allowed`
/// extensions, in canonical form. `features` are the client's feature tags, if it negotiates content.
pub(crate) fn forwardable_capabilities(
    capabilities: &Value,
    features: Option<&Features>,
    allowed: &BTreeSet<String>,
) -> Arc<str> {
    let requests = server_request_support::forwardable_capabilities(capabilities);
    let declared = capabilities.get("extensions").and_then(Value::as_object);
    let mut extensions = Map::new();
    for id in allowed {
        let settings = match id.as_str() {
            CONTENT_NEGOTIATION => features.map(canonical_settings),
            _ => {
                let declared_settings = declared.and_then(|declared| declared.get(id));
                let settings = declared_settings.filter(|settings| settings.is_object());
                settings.map(|settings| sanitized(settings, 0).unwrap_or_default())
            }
        };
        let Some(settings) = settings else {
            continue;
        };
        extensions.insert(id.clone(), settings);
        if class_capabilities(&requests, &extensions).len() > MAX_CLASS_CAPABILITIES {
            extensions.remove(id);
            let extension = id.as_str();
            warn!(
                extension,
                "settings of a client are too long to be forwarded"
            );
        }
    }
    class_capabilities(&requests, &extensions).into()
}

fn class_capabilities(requests: &Map<String, Value>, extensions: &Map<String, Value>) -> String {
    if requests.is_empty() && extensions.is_empty() {
        return BASE_CLASS.to_owned();
    }
    let mut class = requests.clone();
    if !extensions.is_empty() {
        class.insert("extensions".to_owned(), json!(extensions));
    }
    Value::Object(class).to_string()
}

/// A client's value in canonical form, without parts that no setting needs: deep, long or empty ones.
fn sanitized(value: &Value, depth: usize) -> Option<Value> {
    const DEEPEST: usize = 4;
    const MOST: usize = 16;
    const LONGEST: usize = 128;
    let plain = |text: &str| text.len() <= LONGEST && !text.contains(char::is_control);
    match value {
        _ if depth > DEEPEST => None,
        Value::Null => None,
        Value::Bool(_) | Value::Number(_) => Some(value.clone()),
        Value::String(text) => plain(text).then(|| value.clone()),
        Value::Array(items) => {
            let first = items.iter().take(MOST);
            let plain_items = first.filter_map(|item| sanitized(item, depth + 1));
            Some(Value::Array(plain_items.collect()))
        }
        Value::Object(members) => {
            let sorted: BTreeMap<_, _> = members.iter().filter(|(key, _)| plain(key)).collect();
            let first = sorted.into_iter().take(MOST);
            let plain_members =
                first.filter_map(|(key, value)| Some((key.clone(), sanitized(value, depth + 1)?)));
            Some(Value::Object(plain_members.collect()))
        }
    }
}

/// The longest text of forwarded capabilities: it travels in session ids.
const MAX_CLASS_CAPABILITIES: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::connections::client_declarations::declare_features;

    const UI: &str = "io.modelcontextprotocol/ui";

    #[track_caller]
    fn is_mirrored(capabilities: &Value, expected: &str) {
        let allowed = BTreeSet::from([UI.to_owned()]);
        assert_eq!(
            &*forwardable_capabilities(capabilities, None, &allowed),
            expected
        );
    }

    #[test]
    fn servers_learn_of_a_client_what_the_operator_lets_through() {
        is_mirrored(&json!({"tasks": {}, "extensions": {"x/y": {}}}), "{}");
        is_mirrored(
            &json!({"extensions": {UI: {}}, "sampling": {}}),
            r#"{"sampling":{},"extensions":{"io.modelcontextprotocol/ui":{}}}"#,
        );
        is_mirrored(&json!({"extensions": {UI: 7}}), "{}");
        let text =
            r#"{"extensions":{"io.modelcontextprotocol/ui":{"a":[1],"mimeTypes":["text/html"]}}}"#;
        is_mirrored(
            &json!({"extensions": {UI: {"mimeTypes": ["text/html", "x".repeat(200)], "a": [1, null]}}}),
            text,
        );
        is_mirrored(
            &json!({"extensions": {UI: {"a": [1], "b": "\u{1b}[2J", "mimeTypes": ["text/html"]}}}),
            text,
        );
        let long: Vec<_> = (0..16).map(|n| format!("{n}{}", "x".repeat(100))).collect();
        is_mirrored(&json!({"extensions": {UI: {"mimeTypes": long}}}), "{}");
    }

    /// An object stays an object, whatever keys it has.
    #[test]
    fn an_object_is_declared_as_the_client_wrote_it() {
        let object = r#"{"$serde_json::private::RawValue":"7"}"#;
        let class = format!(r#"{{"extensions":{{"{UI}":{{"a":{object}}}}}}}"#);
        let declared = capabilities_for_server("{}", &class, &[UI.to_owned()]);
        assert_eq!(declared, class);
        let seven = class.replace(object, "7");
        assert!(is_part_of(&class, &class) && !is_part_of(&class, &seven));
        assert_eq!(capabilities_for_server("{}", object, &[]), object);
    }

    #[test]
    fn a_class_that_can_do_a_part_fits() {
        for (part, whole, fits) in [
            ("{}", r#"{"sampling":{}}"#, true),
            (r#"{"sampling":{}}"#, r#"{"sampling":{"tools":{}}}"#, true),
            (r#"{"sampling":{"tools":{}}}"#, r#"{"sampling":{}}"#, false),
            (r#"{"roots":{}}"#, r#"{"sampling":{}}"#, false),
            (
                r#"{"roots":{"listChanged":true}}"#,
                r#"{"roots":{}}"#,
                false,
            ),
        ] {
            assert_eq!(is_part_of(part, whole), fits, "{part} {whole}");
        }
    }

    #[test]
    fn a_server_is_told_what_it_may_know_beside_what_it_is_told_anyway() {
        let class = r#"{"extensions":{"io.modelcontextprotocol/ui":{"a":1}}}"#;
        let for_server = |configured, forwarded: &[String]| {
            capabilities_for_server(configured, class, forwarded)
        };
        assert_eq!(for_server(r#"{"roots":{ }}"#, &[]), r#"{"roots":{ }}"#);
        assert_eq!(
            for_server(r#"{"extensions":{"x/y":{}}}"#, &[UI.to_owned()]),
            r#"{"extensions":{"x/y":{},"io.modelcontextprotocol/ui":{"a":1}}}"#
        );
        let requests = capabilities_for_server(r#"{"roots":{}}"#, r#"{"sampling":{}}"#, &[]);
        assert_eq!(requests, r#"{"roots":{},"sampling":{}}"#);
    }

    /// EXT-9: clients with the same tags in another order share connections; the order of one key's values stays.
    #[test]
    fn tags_are_declared_in_canonical_form() {
        let allowed = BTreeSet::from([CONTENT_NEGOTIATION.to_owned()]);
        let forwardable = |tags: &str| {
            let (features, _) = Features::from_tags(tags.split(','));
            forwardable_capabilities(&json!({}), Some(&features), &allowed)
        };
        let expected = r#"{"extensions":{"io.modelcontextprotocol/content-negotiation":{"version":"1.0","features":["agent","format=text","format=json","!interactive"]}}}"#;
        for tags in [
            "!interactive,format=text,agent,format=json",
            "agent,!interactive,format=text,format=json",
        ] {
            assert_eq!(&*forwardable(tags), expected);
        }
        let declared = |tags: &str| {
            let (features, _) = Features::from_tags(tags.split(','));
            declare_features(expected, &features)
        };
        assert!(declared("agent,!interactive,format=text,format=json"));
        assert!(!declared("agent,!interactive,format=json,format=text"));
        assert!(!declared("agent"));
        let long: Vec<_> = (0..8)
            .map(|n| format!("x-{n}={}", "v".repeat(80)))
            .collect();
        assert_eq!(&*forwardable(&long.join(",")), BASE_CLASS);
        let none = forwardable_capabilities(&json!({}), None, &allowed);
        assert_eq!(&*none, BASE_CLASS);
    }
}
