//! Server variants: what a server offers.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::check::{BOTH, Check, Level, MODERN, Scope, Test, Verdict, not_applicable, require};
use crate::client::{Client, VARIANTS, offered_in};
use crate::json::{at, brief, text_at};
use crate::probe::Probe;
use crate::source;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "SV-2/list-is-an-array",
        level: Level::Must,
        source: source::INITIALIZE_RESULT,
        sentence: "The server returns `availableVariants` inside the extension payload under `capabilities.extensions`.",
        does: "Reads the settings: `availableVariants` is an array or absent.",
        scope: Scope::DeclaredVariants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(list_is_an_array(probe))),
    },
    Check {
        id: "SV-2/no-empty-list",
        level: Level::Should,
        source: source::INITIALIZE_RESULT,
        sentence: "Servers SHOULD omit the field rather than returning an empty array.",
        does: "Reads the settings: `availableVariants` is not `[]`.",
        scope: Scope::DeclaredVariants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(no_empty_list(probe))),
    },
    Check {
        id: "SV-2/more-variants-is-boolean",
        level: Level::Must,
        source: source::INITIALIZE_RESULT,
        sentence: "If the server returns a subset while more exist for the principal, it SHOULD set `moreVariantsAvailable: true`.",
        does: "Reads the settings: `moreVariantsAvailable` is a boolean or absent.",
        scope: Scope::DeclaredVariants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(more_variants_is_boolean(probe))),
    },
    Check {
        id: "SV-1/ids-are-text",
        level: Level::Must,
        source: source::TYPES,
        sentence: "id: string;",
        does: "Reads the offered variants: each has an `id`, a string that is not empty.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(ids_are_text(probe))),
    },
    Check {
        id: "SV-1/unique-ids",
        level: Level::Must,
        source: source::TYPES,
        sentence: "Each variant's `id` MUST be unique within `availableVariants`.",
        does: "Reads the offered variants: no `id` is there twice.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(unique_ids(probe))),
    },
    Check {
        id: "SV-1/descriptions-are-text",
        level: Level::Must,
        source: source::TYPES,
        sentence: "description: string;",
        does: "Reads the offered variants: each has a `description`, a string.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(descriptions_are_text(probe))),
    },
    Check {
        id: "SV-1/hints-are-texts",
        level: Level::Must,
        source: source::TYPES,
        sentence: "hints?: { [key: string]: string };",
        does: "Reads the offered variants: `hints` is an object of strings or absent.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(hints_are_texts(probe))),
    },
    Check {
        id: "SV-1/known-status",
        level: Level::Must,
        source: source::TYPES,
        sentence: "status?: \"stable\" | \"experimental\" | \"deprecated\";",
        does: "Reads the offered variants: `status` is one of the three or absent.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(known_status(probe))),
    },
    Check {
        id: "SV-1/deprecation-info",
        level: Level::Must,
        source: source::TYPES,
        sentence: "message: string; replacement?: string;",
        does: "Reads the offered variants: `deprecationInfo` has a text as `message`, and if any as `replacement`.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(deprecation_info(probe))),
    },
    Check {
        id: "SV-1/removal-date",
        level: Level::Should,
        source: source::TYPES,
        sentence: "Optional date when this variant is planned to be removed (ISO 8601 format).",
        does: "Reads the offered variants: `removalDate` begins with a date.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(removal_date(probe))),
    },
    Check {
        id: "SV-1/replacement-is-another",
        level: Level::Decision,
        source: source::DECISION,
        sentence: "A variant is not its own replacement.",
        does: "Reads the offered variants: `replacement` is another id than `id`.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(replacement_is_another(probe))),
    },
    Check {
        id: "SV-3/first-is-stable",
        level: Level::Must,
        source: source::INITIALIZE_RESULT,
        sentence: "The first element MUST have status `\"stable\"` unless the client explicitly requested experimental variants via `variantHints`.",
        does: "Reads the variants that are offered to a client without hints: the first is stable.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(first_is_stable(probe))),
    },
    Check {
        id: "SV-3/subset-has-a-fallback",
        level: Level::Must,
        source: source::INITIALIZE_RESULT,
        sentence: "Servers MAY return a subset of variants to reduce noise, but MUST include … at least 1 additional fallback variant when possible",
        does: "Reads the settings: with `moreVariantsAvailable: true`, at least two are offered.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(subset_has_a_fallback(probe))),
    },
    Check {
        id: "SV-3/few-variants",
        level: Level::Should,
        source: source::INITIALIZE_RESULT,
        sentence: "Servers SHOULD expose a small number of variants by default (guidance: 2–5) to limit discovery overhead.",
        does: "Counts the variants that are offered to a client without hints.",
        scope: Scope::Variants,
        eras: BOTH,
        test: Test::Server(|probe| Box::pin(few_variants(probe))),
    },
    Check {
        id: "SV-7/same-hints-same-order",
        level: Level::Should,
        source: source::RANKING,
        sentence: "Cache rankings: For the same client hints, return consistent rankings within a session",
        does: "Asks a client's offers three times: the same variants are offered in the same order. Sessions of 2025-11-25 are offered variants once.",
        scope: Scope::Variants,
        eras: MODERN,
        test: Test::Server(|probe| Box::pin(same_hints_same_order(probe))),
    },
];

/// The variants that the server offers to `client`.
pub(super) fn offered<'a>(client: &'a Client<'_>) -> &'a [Value] {
    offered_in(&client.capabilities)
}

pub(super) fn ids(variants: &[Value]) -> Vec<&str> {
    variants
        .iter()
        .filter_map(|variant| text_at(variant, &["id"]))
        .collect()
}

pub(super) fn is_stable(variant: &Value) -> bool {
    variant
        .get("status")
        .is_none_or(|status| status == "stable")
}

fn setting<'a>(probe: &Probe<'a>, name: &str) -> Option<&'a Value> {
    probe
        .survey()
        .settings(VARIANTS)
        .and_then(|settings| settings.get(name))
}

/// Objects unless all offered variants are right.
fn each(probe: &Probe<'_>, is_right: impl Fn(&Value) -> bool) -> Verdict {
    let wrong = probe
        .survey()
        .offered()
        .iter()
        .find(|variant| !is_right(variant));
    require(wrong.is_none(), || {
        format!("the variant {}", brief(wrong.unwrap_or(&Value::Null)))
    })
}

fn is_text_or_absent(value: Option<&Value>) -> bool {
    value.is_none_or(Value::is_string)
}

async fn list_is_an_array(probe: &Probe<'_>) -> Verdict {
    let list = setting(probe, "availableVariants");
    require(list.is_none_or(Value::is_array), || {
        format!(
            "`availableVariants` is {}",
            brief(list.unwrap_or(&Value::Null))
        )
    })
}

async fn no_empty_list(probe: &Probe<'_>) -> Verdict {
    let is_empty = setting(probe, "availableVariants") == Some(&json!([]));
    require(!is_empty, || "`availableVariants` is `[]`".to_owned())
}

async fn more_variants_is_boolean(probe: &Probe<'_>) -> Verdict {
    let more = setting(probe, "moreVariantsAvailable");
    require(more.is_none_or(Value::is_boolean), || {
        format!(
            "`moreVariantsAvailable` is {}",
            brief(more.unwrap_or(&Value::Null))
        )
    })
}

async fn ids_are_text(probe: &Probe<'_>) -> Verdict {
    each(probe, |variant| {
        text_at(variant, &["id"]).is_some_and(|id| !id.is_empty())
    })
}

async fn unique_ids(probe: &Probe<'_>) -> Verdict {
    let ids = probe.survey().variants();
    let mut seen = BTreeSet::new();
    let repeated = ids.iter().find(|id| !seen.insert(**id));
    require(repeated.is_none(), || {
        format!("repeated: {}", brief(&json!(repeated)))
    })
}

async fn descriptions_are_text(probe: &Probe<'_>) -> Verdict {
    each(probe, |variant| {
        text_at(variant, &["description"]).is_some()
    })
}

async fn hints_are_texts(probe: &Probe<'_>) -> Verdict {
    each(probe, |variant| match variant.get("hints") {
        None => true,
        Some(Value::Object(hints)) => hints.values().all(Value::is_string),
        Some(_) => false,
    })
}

async fn known_status(probe: &Probe<'_>) -> Verdict {
    let known = [json!("stable"), json!("experimental"), json!("deprecated")];
    each(probe, |variant| {
        variant
            .get("status")
            .is_none_or(|status| known.contains(status))
    })
}

async fn deprecation_info(probe: &Probe<'_>) -> Verdict {
    each(probe, |variant| {
        variant.get("deprecationInfo").is_none_or(|info| {
            text_at(info, &["message"]).is_some() && is_text_or_absent(info.get("replacement"))
        })
    })
}

async fn removal_date(probe: &Probe<'_>) -> Verdict {
    each(probe, |variant| {
        let date = at(variant, &["deprecationInfo", "removalDate"]);
        date.is_none_or(|date| date.as_str().is_some_and(begins_with_a_date))
    })
}

/// Whether `text` begins as an ISO 8601 date does: `2026-06-01`, or the same with a time after it.
fn begins_with_a_date(text: &str) -> bool {
    let mut parts = text
        .split(['T', 't', ' '])
        .next()
        .unwrap_or_default()
        .split('-');
    let mut is_number = |length: usize, range: std::ops::RangeInclusive<u32>| {
        parts.next().is_some_and(|part| {
            part.len() == length && part.parse().is_ok_and(|number| range.contains(&number))
        })
    };
    is_number(4, 0..=9999) && is_number(2, 1..=12) && is_number(2, 1..=31) && parts.next().is_none()
}

async fn replacement_is_another(probe: &Probe<'_>) -> Verdict {
    each(probe, |variant| {
        let replacement = at(variant, &["deprecationInfo", "replacement"]);
        replacement.is_none() || replacement != variant.get("id")
    })
}

async fn first_is_stable(probe: &Probe<'_>) -> Verdict {
    let first = probe.survey().offered().first();
    require(first.is_some_and(is_stable), || {
        format!(
            "the first variant is {}",
            brief(first.unwrap_or(&Value::Null))
        )
    })
}

async fn subset_has_a_fallback(probe: &Probe<'_>) -> Verdict {
    if setting(probe, "moreVariantsAvailable") != Some(&json!(true)) {
        return not_applicable("the server offers all of its variants");
    }
    let count = probe.survey().offered().len();
    require(count >= 2, || {
        "more variants exist, and one is offered".to_owned()
    })
}

async fn few_variants(probe: &Probe<'_>) -> Verdict {
    let count = probe.survey().offered().len();
    require(count <= 5, || format!("the server offers {count}"))
}

async fn same_hints_same_order(probe: &Probe<'_>) -> Verdict {
    let client = probe.connect_with_variants().await?;
    let expected = ids(offered(&client));
    for _ in 0..2 {
        let again = probe.connect_with_variants().await?;
        let found = ids(offered(&again));
        require(found == expected, || {
            format!("first {}, then {}", json!(expected), json!(found))
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_iso_8601() {
        for right in ["2026-06-01", "2026-06-01T10:00:00Z"] {
            assert!(begins_with_a_date(right), "{right}");
        }
        for wrong in [
            "",
            "June 2026",
            "2026-13-01",
            "2026-6-1",
            "01.06.2026",
            "2026-06-01-1",
        ] {
            assert!(!begins_with_a_date(wrong), "{wrong}");
        }
    }
}
