//! The extension framework: how a server declares extensions, and how it treats what clients declare.

use serde_json::{Map, Value, json};

use crate::check::{
    BOTH, Check, Level, Objection, Scope, Test, Verdict, not_applicable, require, violation,
};
use crate::client::{Client, KINDS, NEGOTIATION, VARIANTS};
use crate::json::{at, brief};
use crate::probe::Probe;
use crate::source;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "EXT-1/prefixed-identifiers",
        level: Level::Must,
        source: source::EXTENSIONS,
        sentence: "The names follow the same rules as the _meta keys, except that the prefix is mandatory.",
        does: "Reads the keys of `capabilities.extensions`.",
        scope: Scope::Any,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(prefixed_identifiers(probe))),
    },
    Check {
        id: "EXT-2/extensions-are-a-map",
        level: Level::Must,
        source: source::NEGOTIATION_OF_EXTENSIONS,
        sentence: "A new “extensions” field will be introduced to each that is a map of extension identifiers to per-extension settings objects.",
        does: "Reads `capabilities.extensions`: it is an object or absent.",
        scope: Scope::Any,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(extensions_are_a_map(probe))),
    },
    Check {
        id: "EXT-2/settings-are-objects",
        level: Level::Must,
        source: source::NEGOTIATION_OF_EXTENSIONS,
        sentence: "Each extension specifies the schema of its settings object; an empty object indicates no settings.",
        does: "Reads the values in `capabilities.extensions`: each is an object.",
        scope: Scope::Any,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(settings_are_objects(probe))),
    },
    Check {
        id: "EXT-4/served-without-extensions",
        level: Level::Must,
        source: source::DEGRADATION,
        sentence: "If one party supports an extension but the other does not, the supporting party MUST either revert to core protocol behavior or reject the request with an appropriate error if the extension is mandatory.",
        does: "Connects without any extension and reads a list: the answer is a result, or an error that is not an internal one.",
        scope: Scope::Any,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(served_without_extensions(probe))),
    },
    Check {
        id: "EXT-5/bad-settings-are-survived",
        level: Level::Should,
        source: source::SECURITY_OF_EXTENSIONS,
        sentence: "Clients and servers SHOULD treat any new fields or data introduced as part of an extension as untrusted and SHOULD comprehensively validate them.",
        does: "Declares both extensions with settings of wrong types: each is answered, with a result or an error, and an ordinary client is served afterwards.",
        scope: Scope::Any,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(bad_settings_are_survived(probe))),
    },
    Check {
        id: "EXT-5/unknown-extensions-are-ignored",
        level: Level::Decision,
        source: source::DECISION,
        sentence: "An extension that a server does not know has no effect.",
        does: "Declares `com.example/unknown` with settings: the server's capabilities are the same as without.",
        scope: Scope::Any,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(unknown_extensions_are_ignored(probe))),
    },
];

fn extensions<'a>(probe: &Probe<'a>) -> Result<&'a Map<String, Value>, Objection> {
    match at(&probe.survey().capabilities, &["extensions"]).and_then(Value::as_object) {
        Some(extensions) => Ok(extensions),
        None => not_applicable("the server declares no extensions"),
    }
}

async fn prefixed_identifiers(probe: &Probe<'_>) -> Verdict {
    let identifiers = extensions(probe)?.keys();
    let unreadable: Vec<&String> = identifiers.filter(|key| !is_identifier(key)).collect();
    require(unreadable.is_empty(), || {
        format!(
            "not `prefix/name` by the rules of `_meta` keys: {}",
            brief(&json!(unreadable))
        )
    })
}

/// `prefix/name`: dotted labels that start with a letter and end with a letter or digit; a name that starts and ends with
/// a letter or digit.
pub(crate) fn is_identifier(key: &str) -> bool {
    let is_label = |label: &str| {
        label.starts_with(|first: char| first.is_ascii_alphabetic())
            && label.ends_with(|last: char| last.is_ascii_alphanumeric())
            && label
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
    };
    key.split_once('/').is_some_and(|(prefix, name)| {
        prefix.split('.').all(is_label)
            && name.starts_with(|first: char| first.is_ascii_alphanumeric())
            && name.ends_with(|last: char| last.is_ascii_alphanumeric())
            && name
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter))
    })
}

async fn extensions_are_a_map(probe: &Probe<'_>) -> Verdict {
    match at(&probe.survey().capabilities, &["extensions"]) {
        None => not_applicable("the server declares no extensions"),
        Some(Value::Object(_)) => Ok(()),
        Some(other) => violation(format!("`extensions` is {}", brief(other))),
    }
}

async fn settings_are_objects(probe: &Probe<'_>) -> Verdict {
    let others = extensions(probe)?
        .iter()
        .filter(|(_, settings)| !settings.is_object());
    let others: Vec<String> = others
        .map(|(key, settings)| format!("{key}: {}", brief(settings)))
        .collect();
    require(others.is_empty(), || {
        format!("settings that are not objects: {}", others.join(", "))
    })
}

async fn served_without_extensions(probe: &Probe<'_>) -> Verdict {
    const INTERNAL_ERROR: i64 = -32603;
    let is_appropriate = |code: Option<i64>| code.is_some_and(|code| code != INTERNAL_ERROR);
    match Client::try_connect(probe, json!({})).await? {
        Ok(client) => {
            for kind in KINDS.into_iter().filter(|kind| client.has(kind)) {
                client.list(kind, None).await?;
            }
            Ok(())
        }
        Err(error) => require(is_appropriate(error.code), || {
            format!(
                "a client without extensions was refused with {}",
                error.describe()
            )
        }),
    }
}

async fn bad_settings_are_survived(probe: &Probe<'_>) -> Verdict {
    let settings = [
        json!({"variantHints": 7, "features": "agent", "version": 1}),
        json!({"variantHints": {"hints": [1], "description": {}}, "features": [1, null, {}]}),
        json!({"variantHints": {"hints": {"contextSize": {"a": [[]]}}}, "features": {"agent": true}}),
        json!("yes"),
        json!([]),
    ];
    for settings in settings {
        let extensions = json!({"extensions": {VARIANTS: settings, NEGOTIATION: settings}});
        if let Err(Objection::NoAnswer(reason)) = Client::try_connect(probe, extensions).await {
            return violation(format!("the settings {}: {reason}", brief(&settings)));
        }
    }
    probe.connect_with_variants().await.map(|_| ())
}

async fn unknown_extensions_are_ignored(probe: &Probe<'_>) -> Verdict {
    let without = probe.connect(json!({})).await?;
    let with = probe
        .connect(json!({"com.example/unknown": {"enabled": true}}))
        .await?;
    require(with.capabilities == without.capabilities, || {
        format!(
            "the server's capabilities became {}",
            brief(&with.capabilities)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_have_a_prefix_and_a_name() {
        for right in ["io.modelcontextprotocol/ui", "com.example/a_b.c-d", "a/1"] {
            assert!(is_identifier(right), "{right}");
        }
        for wrong in [
            "ui", "/ui", "a/", "1a/b", "a-/b", "a..b/c", "a/b/c", "a b/c", "a/-b",
        ] {
            assert!(!is_identifier(wrong), "{wrong}");
        }
    }
}
