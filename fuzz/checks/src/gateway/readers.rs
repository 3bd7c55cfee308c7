//! How servers read an object: what the gateway checked must be what each of them sees.

use std::fmt;
use std::sync::OnceLock;

use mcp_vary::json::Json;
use mcp_vary_view::{ArgumentOverride, PreparedTool, Style, ToolOverride};
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::locations::located;
use super::parsers::checked_params;

/// Whether a reader takes the first key, which was written, for the second, which it knows.
type Takes = fn(&str, &str) -> bool;

/// The ways in which keys are compared. They share nothing with the gateway's own folding.
const COMPARISONS: [Takes; 8] = [
    |key, known| key == known,
    // .NET's `OrdinalIgnoreCase`, as far as ASCII goes.
    |key, known| key.eq_ignore_ascii_case(known),
    |key, known| key.to_uppercase() == known.to_uppercase(),
    // Go's `EqualFold`, roughly.
    |key, known| key.to_lowercase() == known.to_lowercase(),
    // C strings.
    |key, known| key.split('\0').next() == Some(known),
    |key, known| key.trim_end_matches('\0').to_uppercase() == known.to_uppercase(),
    |key, known| key.trim_end_matches('\0').to_lowercase() == known.to_lowercase(),
    equals_ignore_case,
];

/// Java's `equalsIgnoreCase`.
fn equals_ignore_case(key: &str, known: &str) -> bool {
    let simple = |c: char| {
        let mut upper = c.to_uppercase();
        let upper = upper.next().filter(|_| upper.next().is_none()).unwrap_or(c);
        // Of U+0130 only the first character is compared.
        upper.to_lowercase().next().unwrap_or(upper)
    };
    key.chars().map(simple).eq(known.chars().map(simple))
}

/// What `known` is in `object` to each reader: one that takes the first such key, one that takes the last.
fn readings<'o>(object: &'o str, known: &str) -> Vec<Option<&'o str>> {
    let members = members_of(object);
    let mut all = Vec::new();
    for takes in COMPARISONS {
        let mut used = members.iter().filter(|(key, _)| takes(key, known));
        all.push(used.clone().next().map(|(_, value)| *value));
        all.push(used.next_back().map(|(_, value)| *value));
    }
    all
}

/// Panics unless every reader of `object` sees `expected` as its `known`.
#[track_caller]
pub(super) fn all_see(object: &str, known: &str, expected: Option<&str>) {
    for (reader, seen) in readings(object, known).into_iter().enumerate() {
        assert_eq!(seen, expected, "`{known}` of {object} to reader {reader}");
    }
}

/// Panics unless all readers see the same `known` in `object`, and returns it.
#[track_caller]
pub(super) fn seen_by_all<'o>(object: &'o str, known: &str) -> Option<&'o str> {
    let seen = readings(object, known)[0];
    all_see(object, known, seen);
    seen
}

/// Every member, those with the same key too.
fn members_of(object: &str) -> Vec<(String, &str)> {
    struct All;
    impl<'de> Visitor<'de> for All {
        type Value = Vec<(String, &'de str)>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut all = Vec::new();
            while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
                all.push((key, value.get()));
            }
            Ok(all)
        }
    }
    let mut reader = serde_json::Deserializer::from_str(object);
    (&mut reader).deserialize_map(All).unwrap_or_default()
}

/// The members of `params` that decide what a request reaches.
const KNOWN: [&str; 12] = [
    "name",
    "arguments",
    "uri",
    "ref",
    "argument",
    "context",
    "cursor",
    "level",
    "task",
    "taskId",
    "requestState",
    "inputResponses",
];

const META: [&str; 6] = [
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/logLevel",
    "io.modelcontextprotocol/server-variant",
];

/// What the gateway checked is what every reader sees: of params that are sent on, and of arguments that are bound.
///
/// So is where a reader of URIs finds what they name. The first line is a method, the rest its params, which are taken
/// for arguments, too.
pub fn members(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (method, params) = text.split_once('\n').unwrap_or(("tools/call", text));
    bound_arguments(params);
    for uri in uris_of(params) {
        located(&uri);
    }
    let Some(checked) = checked_params(method, params) else {
        return;
    };
    let is_of_the_protocol = method.split_once('/').is_some_and(|(first, _)| {
        let known = [
            "tools",
            "prompts",
            "resources",
            "completion",
            "tasks",
            "logging",
            "subscriptions",
        ];
        known.contains(&first)
    });
    for sent in &checked.sent {
        let meta = seen_by_all(sent, "_meta").unwrap_or("{}");
        for key in META {
            seen_by_all(meta, key);
        }
        if !is_of_the_protocol {
            continue;
        }
        for known in KNOWN {
            let read = checked.read.iter().find(|(key, _)| key == known);
            all_see(sent, known, read.map(|(_, value)| value.as_str()));
        }
        let nested: &[(&str, &[&str])] = match method {
            "completion/complete" => &[
                ("ref", &["type", "name", "uri"]),
                ("argument", &["name", "value"]),
                ("context", &["arguments"]),
            ],
            "tools/call" => &[("task", &["ttl"])],
            _ => &[],
        };
        for (key, known) in nested {
            let object = seen_by_all(sent, key).filter(|value| value.starts_with('{'));
            let object = object.unwrap_or("{}");
            for known in *known {
                seen_by_all(object, known);
            }
        }
    }
}

/// The URIs by which params name a resource.
fn uris_of(params: &str) -> Vec<String> {
    let read: Value = serde_json::from_str(params).unwrap_or_default();
    let named = [&read["uri"], &read["ref"]["uri"]];
    named
        .into_iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// No reader sees what a view hides, or another value of what it fixes.
fn bound_arguments(arguments: &str) {
    static TOOL: OnceLock<PreparedTool> = OnceLock::new();
    let tool = TOOL.get_or_init(|| {
        let mut change = ToolOverride::default();
        let mut bind = |name: &str, argument| change.arguments.insert(name.to_owned(), argument);
        let hidden = || ArgumentOverride {
            hidden: true,
            ..ArgumentOverride::default()
        };
        bind("limit", hidden());
        bind("uri", hidden());
        bind(
            "name",
            ArgumentOverride {
                fixed: Some(Json::String("acme".into())),
                ..ArgumentOverride::default()
            },
        );
        bind(
            "cursor",
            ArgumentOverride {
                name: Some("query".into()),
                ..ArgumentOverride::default()
            },
        );
        let tool = r#"{"name":"search","inputSchema":{"type":"object","properties":{"limit":{},"name":{},"cursor":{},"task":{}}}}"#;
        PreparedTool::new(tool, &change, Style::default()).expect("a tool").0
    });
    let Ok(sent) = tool.arguments(arguments) else {
        return;
    };
    all_see(&sent, "limit", None);
    all_see(&sent, "uri", None);
    all_see(&sent, "name", Some("\"acme\""));
    seen_by_all(&sent, "cursor");
    seen_by_all(&sent, "task");
}
