//! Server variants: what hints do, and what they must not do.

use serde_json::{Map, Value, json};

use crate::era::Era;
use crate::extension::EXPERIMENTAL;
use crate::prelude::*;

use super::offers::is_stable;

pub(crate) const TEXTS: &str = include_str!("hints.json");

#[rustfmt::skip]
pub(crate) const TESTS: &[(&str, Test)] = &[
    ("SV-4/hints-are-optional", server!(hints_are_optional)),
    ("SV-4/unknown-hints-are-ignored", server!(unknown_hints_are_ignored)),
    ("SV-4/text-or-array", server!(text_or_array)),
    ("SV-4/descriptions-are-accepted", server!(descriptions_are_accepted)),
    ("SV-4/bad-hints-are-ignored-alone", server!(bad_hints_are_ignored_alone)),
    ("SV-3/hints-leave-the-first-stable", server!(hints_leave_the_first_stable)),
    ("SV-5/hints-rank", server!(hints_rank)),
    ("SV-11/capabilities-do-not-depend-on-variants", server!(capabilities_do_not_depend_on_variants)),
];

/// The keys of SEP-2053's common hint vocabulary. What other keys ask for only their server knows.
const VOCABULARY: [&str; 5] = [
    "modelFamily",
    "useCase",
    "contextSize",
    "renderingCapabilities",
    "languageOptimization",
];

/// The hints of `variant` that are of the common vocabulary.
fn common_hints(variant: &Value) -> Map<String, Value> {
    let mut hints = object_at(variant, &["hints"]).cloned().unwrap_or_default();
    hints.retain(|key, value| VOCABULARY.contains(&key.as_str()) && value.is_string());
    hints
}

/// A hint that an offered variant has; if there is one, of a stable variant that is not the first without hints.
fn any_hint(probe: &Probe<'_>) -> Result<(String, Value), Objection> {
    let variants = probe.survey().offered();
    let rising = variants.iter().skip(1).filter(|variant| is_stable(variant));
    match rising.chain(variants).flat_map(common_hints).next() {
        Some(hint) => Ok(hint),
        None => not_applicable("no variant has a hint of the common vocabulary"),
    }
}

/// The settings of a client with these hints.
fn hinting(hints: &Value) -> Value {
    json!({"variantHints": {"hints": hints}})
}

/// Objects unless a client with `settings` is offered the same variants in the same order as one with `others`.
async fn same_offers(probe: &Probe<'_>, settings: Value, others: Value) -> Verdict {
    let client = probe.connect(json!({ VARIANTS: settings })).await?;
    let others = json!({ VARIANTS: others });
    let has_the_same = |other: &Client<'_>| other.variants() == client.variants();
    let other = probe.connect_until(&others, has_the_same).await?;
    let found = client.variants();
    let wanted = other.variants();
    ensure!(
        found == wanted,
        "offered {}, instead of {}",
        brief(&json!(found)),
        brief(&json!(wanted))
    );
    Ok(())
}

async fn hints_are_optional(probe: &Probe<'_>) -> Verdict {
    probe.connect_with_variants().await.map(|_| ())
}

async fn unknown_hints_are_ignored(probe: &Probe<'_>) -> Verdict {
    let hints = json!({"com.example/nobody": "1", "com.example/many": ["compact", "1"]});
    same_offers(probe, hinting(&hints), json!({})).await
}

async fn text_or_array(probe: &Probe<'_>) -> Verdict {
    let (key, value) = any_hint(probe)?;
    let array = hinting(&json!({ &key: [value] }));
    same_offers(probe, array, hinting(&json!({ &key: value }))).await
}

async fn descriptions_are_accepted(probe: &Probe<'_>) -> Verdict {
    let hints = json!({"description": "An agent that plans before it acts."});
    let settings = json!({"variantHints": hints});
    let client = probe.connect(json!({ VARIANTS: settings })).await?;
    ensure!(!client.offered().is_empty(), "no variant is offered");
    Ok(())
}

async fn bad_hints_are_ignored_alone(probe: &Probe<'_>) -> Verdict {
    let (key, value) = any_hint(probe)?;
    let beside = json!({&key: value, "com.example/number": 7, "com.example/object": {"a": []}, "com.example/array": [1, null]});
    same_offers(probe, hinting(&beside), hinting(&json!({ &key: value }))).await
}

async fn hints_leave_the_first_stable(probe: &Probe<'_>) -> Verdict {
    for variant in probe.survey().offered() {
        let hints = Value::Object(common_hints(variant));
        let client = probe.connect_with_hints(hints.clone()).await?;
        let first = client.offered().first();
        ensure!(
            first.is_some_and(is_stable),
            "with the hints {hints}, the first variant is {}",
            brief(&json!(first))
        );
    }
    Ok(())
}

async fn hints_rank(probe: &Probe<'_>) -> Verdict {
    let variants = probe.survey().offered();
    let others = variants.iter().skip(1).filter(|variant| is_stable(variant));
    for variant in others {
        for (key, value) in common_hints(variant) {
            let sharing = variants
                .iter()
                .filter(|other| at(other, &["hints", &key]) == Some(&value));
            if sharing.count() > 1 || value == "any" {
                continue;
            }
            let client = probe.connect_with_hints(json!({ &key: value })).await?;
            let first = client.offered().first().and_then(|first| first.get("id"));
            ensure!(
                first == variant.get("id"),
                "with the hint {key} = {}, the first is {}",
                brief(&value),
                brief(&json!(first))
            );
            return Ok(());
        }
    }
    not_applicable("no stable variant but the first has a hint for itself")
}

/// Capabilities without the extensions, which may say other things to other clients.
pub(super) fn flags(capabilities: &Value) -> Map<String, Value> {
    let mut flags = capabilities.as_object().cloned().unwrap_or_default();
    flags.retain(|key, _| !matches!(key.as_str(), "extensions" | EXPERIMENTAL));
    flags
}

async fn capabilities_do_not_depend_on_variants(probe: &Probe<'_>) -> Verdict {
    let without = probe.connect_with_variants().await?;
    let expected = flags(&without.capabilities);
    let same = |capabilities: &Value, variant: &Value| {
        ensure!(
            flags(capabilities) == expected,
            "for {}, the capabilities are {}",
            brief(&json!(variant.get("id"))),
            brief(capabilities)
        );
        Ok(())
    };
    for variant in probe.survey().offered() {
        let hints = json!(object_at(variant, &["hints"]));
        let client = probe.connect_with_hints(hints).await?;
        same(&client.capabilities, variant)?;
        if probe.era() == Era::Modern {
            let params = selecting(json!({}), text_at(variant, &["id"]));
            let result = client.result("server/discover", params).await?;
            same(result.get("capabilities").unwrap_or(&Value::Null), variant)?;
        }
    }
    Ok(())
}
