//! The extension framework: how a server declares extensions, and how it treats what clients declare.

use serde_json::{Map, Value, json};

use crate::extension::is_identifier;
use crate::prelude::*;

#[rustfmt::skip]
pub(crate) const CHECKS: &[Check] = &[
    Check { id: "EXT-1/prefixed-identifiers", level: Level::Must, source: source::EXTENSIONS,
        sentence: "The names follow the same rules as the _meta keys, except that the prefix is mandatory.",
        does: "Reads the keys of `capabilities.extensions`.",
        scope: Scope::Any, eras: BOTH, test: Test::Survey(prefixed_identifiers) },
    Check { id: "EXT-1/prefixes-are-domains", level: Level::Should, source: source::EXTENSIONS,
        sentence: "To prevent identifier collisions, the vendor prefix SHOULD be a reversed domain name that the extension author owns or controls (similar to Java package naming conventions).",
        does: "Reads the keys of `capabilities.extensions`: each prefix has at least two labels.",
        scope: Scope::Any, eras: BOTH, test: Test::Survey(prefixes_are_domains) },
    Check { id: "EXT-2/declared-in-extensions", level: Level::Must, source: source::NEGOTIATION_OF_EXTENSIONS,
        sentence: "Clients and servers advertise their support for extensions in the ClientCapabilities and ServerCapabilities fields … A new “extensions” field will be introduced to each",
        does: "Reads the capabilities: neither extension is declared in `experimental` alone. One that is there is checked all the same.",
        scope: Scope::Any, eras: BOTH, test: Test::Survey(declared_in_extensions) },
    Check { id: "EXT-2/extensions-are-a-map", level: Level::Must, source: source::NEGOTIATION_OF_EXTENSIONS,
        sentence: "A new “extensions” field will be introduced to each that is a map of extension identifiers to per-extension settings objects.",
        does: "Reads `capabilities.extensions`: it is an object or absent.",
        scope: Scope::Any, eras: BOTH, test: Test::Member(Member {
            extension: None, path: &["extensions"], is_right: Value::is_object,
            if_absent: IfAbsent::NotApplicable("the server declares no extensions"),
        }) },
    Check { id: "EXT-2/settings-are-objects", level: Level::Must, source: source::NEGOTIATION_OF_EXTENSIONS,
        sentence: "Each extension specifies the schema of its settings object; an empty object indicates no settings.",
        does: "Reads the values in `capabilities.extensions`: each is an object.",
        scope: Scope::Any, eras: BOTH, test: Test::Survey(settings_are_objects) },
    Check { id: "EXT-4/served-without-extensions", level: Level::Must, source: source::DEGRADATION,
        sentence: "If one party supports an extension but the other does not, the supporting party MUST either revert to core protocol behavior or reject the request with an appropriate error if the extension is mandatory.",
        does: "Connects without any extension and reads each list: the answer is a result, or the error that a client with both extensions gets, too. A refused connection has an error that is not an internal one.",
        scope: Scope::Any, eras: BOTH, test: Test::Server(|probe| Box::pin(served_without_extensions(probe))) },
    Check { id: "EXT-5/bad-settings-are-survived", level: Level::Should, source: source::SECURITY_OF_EXTENSIONS,
        sentence: "Clients and servers SHOULD treat any new fields or data introduced as part of an extension as untrusted and SHOULD comprehensively validate them.",
        does: "Declares both extensions with settings of wrong types: each is answered, with a result or an error, and an ordinary client is served afterwards.",
        scope: Scope::Any, eras: BOTH, test: Test::Server(|probe| Box::pin(bad_settings_are_survived(probe))) },
    Check { id: "EXT-5/unknown-extensions-are-ignored", level: Level::Decision, source: source::DECISION,
        sentence: "An extension that a server does not know has no effect.",
        does: "Declares `com.example/unknown` with settings: the server's capabilities are the same as without.",
        scope: Scope::Any, eras: BOTH, test: Test::Server(|probe| Box::pin(unknown_extensions_are_ignored(probe))) },
];

fn extensions(survey: &Survey) -> Result<&Map<String, Value>, Objection> {
    match at(&survey.capabilities, &["extensions"]).and_then(Value::as_object) {
        Some(extensions) => Ok(extensions),
        None => not_applicable("the server declares no extensions"),
    }
}

fn prefixed_identifiers(survey: &Survey) -> Verdict {
    let identifiers = extensions(survey)?.keys();
    let unreadable: Vec<&String> = identifiers.filter(|key| !is_identifier(key)).collect();
    let finding = "not `prefix/name` by the rules of `_meta` keys:";
    requires(unreadable.is_empty(), finding, &json!(unreadable))
}

fn prefixes_are_domains(survey: &Survey) -> Verdict {
    let identifiers = extensions(survey)?.keys();
    let prefixes = identifiers.filter_map(|key| Some(key.split_once('/')?.0));
    let others: Vec<&str> = prefixes.filter(|prefix| !prefix.contains('.')).collect();
    let finding = "not reversed domain names:";
    requires(others.is_empty(), finding, &json!(others))
}

fn declared_in_extensions(survey: &Survey) -> Verdict {
    ensure!(
        !survey.is_experimental(),
        "the server declares the extension in `experimental`; clients look for it in `extensions`"
    );
    Ok(())
}

fn settings_are_objects(survey: &Survey) -> Verdict {
    let extensions = extensions(survey)?.iter();
    let others = extensions.filter(|(_, settings)| !settings.is_object());
    let others: Vec<String> = others
        .map(|(key, settings)| format!("{key}: {}", brief(settings)))
        .collect();
    ensure!(
        others.is_empty(),
        "settings that are not objects: {}",
        others.join(", ")
    );
    Ok(())
}

async fn served_without_extensions(probe: &Probe<'_>) -> Verdict {
    const INTERNAL_ERROR: i64 = -32603;
    match Client::try_connect(&probe.connections, json!({})).await? {
        Ok(client) => {
            for kind in client.lists() {
                let Err(objection) = client.list(kind, None).await else {
                    continue;
                };
                // An error that does not depend on the extensions is not about them.
                let is_violation = matches!(objection, Objection::Violation(_));
                if !is_violation || lists_with_extensions(probe, kind).await? {
                    return Err(objection);
                }
            }
        }
        Err(error) => ensure!(
            error.code.is_some_and(|code| code != INTERNAL_ERROR),
            "a client without extensions was refused with {}",
            error.describe()
        ),
    }
    Ok(())
}

/// Whether a client that declares both extensions can read a list.
async fn lists_with_extensions(probe: &Probe<'_>, kind: &ListKind) -> Result<bool, Objection> {
    let both = json!({NEGOTIATION: {"version": "1.0", "features": []}, VARIANTS: {}});
    let client = probe.connect(both).await?;
    Ok(client.list(kind, None).await.is_ok())
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
        if let Err(Objection::NoAnswer(reason)) =
            Client::try_connect(&probe.connections, extensions).await
        {
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
    let is_right = with.capabilities == without.capabilities;
    let finding = "the server's capabilities became";
    requires(is_right, finding, &with.capabilities)
}
