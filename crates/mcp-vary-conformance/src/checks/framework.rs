//! The extension framework: how a server declares extensions, and how it treats what clients declare.

use serde_json::{Map, Value, json};

use crate::extension::is_identifier;
use crate::prelude::*;

pub(crate) const TEXTS: &str = include_str!("framework.json");

#[rustfmt::skip]
pub(crate) const TESTS: &[(&str, Test)] = &[
    ("EXT-1/prefixed-identifiers", Test::Survey(prefixed_identifiers)),
    ("EXT-1/prefixes-are-domains", Test::Survey(prefixes_are_domains)),
    ("EXT-2/declared-in-extensions", Test::Survey(declared_in_extensions)),
    ("EXT-2/extensions-are-a-map",
        Test::Member(Member::of(None, &["extensions"], Value::is_object)
            .or(IfAbsent::NotApplicable("the server declares no extensions")))),
    ("EXT-2/settings-are-objects", Test::Survey(settings_are_objects)),
    ("EXT-4/served-without-extensions", server!(served_without_extensions)),
    ("EXT-5/bad-settings-are-survived", server!(bad_settings_are_survived)),
    ("EXT-5/unknown-extensions-are-ignored", server!(unknown_extensions_are_ignored)),
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
    let declared = extensions(survey)?.iter();
    let invalid = declared.filter(|(_, settings)| !settings.is_object());
    let others: Vec<String> = invalid
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
    let with = probe
        .connect(json!({"com.example/unknown": {"enabled": true}}))
        .await?;
    let has_the_same = |other: &Client<'_>| other.capabilities == with.capabilities;
    let without = probe.connect_until(&json!({}), has_the_same).await?;
    let is_right = has_the_same(&without);
    let finding = "the server's capabilities became";
    requires(is_right, finding, &with.capabilities)
}
