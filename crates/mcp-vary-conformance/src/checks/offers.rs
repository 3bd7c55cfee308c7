//! Server variants: what a server offers.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::prelude::*;

#[rustfmt::skip]
pub(crate) const CHECKS: &[Check] = &[
    Check { id: "SV-2/list-is-an-array", level: Level::Must, source: source::INITIALIZE_RESULT,
        sentence: "The server returns `availableVariants` inside the extension payload under `capabilities.extensions`.",
        does: "Reads the settings: `availableVariants` is an array or absent.",
        scope: Scope::DeclaredVariants, eras: BOTH, test: Test::Member(Member {
            extension: Some(VARIANTS), path: &["availableVariants"], is_right: Value::is_array, if_absent: IfAbsent::Right,
        }) },
    Check { id: "SV-2/no-empty-list", level: Level::Should, source: source::INITIALIZE_RESULT,
        sentence: "Servers SHOULD omit the field rather than returning an empty array.",
        does: "Reads the settings: `availableVariants` is not `[]`.",
        scope: Scope::DeclaredVariants, eras: BOTH, test: Test::Survey(no_empty_list) },
    Check { id: "SV-2/more-variants-is-boolean", level: Level::Must, source: source::INITIALIZE_RESULT,
        sentence: "If the server returns a subset while more exist for the principal, it SHOULD set `moreVariantsAvailable: true`.",
        does: "Reads the settings: `moreVariantsAvailable` is a boolean or absent.",
        scope: Scope::DeclaredVariants, eras: BOTH, test: Test::Member(Member {
            extension: Some(VARIANTS), path: &["moreVariantsAvailable"], is_right: Value::is_boolean, if_absent: IfAbsent::Right,
        }) },
    Check { id: "SV-1/ids-are-text", level: Level::Must, source: source::TYPES,
        sentence: "id: string;",
        does: "Reads the offered variants: each has an `id`, a string that is not empty.",
        scope: Scope::Variants, eras: BOTH, test: Test::EachVariant(|it| text_at(it, &["id"]).is_some_and(|id| !id.is_empty())) },
    Check { id: "SV-1/unique-ids", level: Level::Must, source: source::TYPES,
        sentence: "Each variant's `id` MUST be unique within `availableVariants`.",
        does: "Reads the offered variants: no `id` is there twice.",
        scope: Scope::Variants, eras: BOTH, test: Test::Survey(unique_ids) },
    Check { id: "SV-1/descriptions-are-text", level: Level::Must, source: source::TYPES,
        sentence: "description: string;",
        does: "Reads the offered variants: each has a `description`, a string.",
        scope: Scope::Variants, eras: BOTH, test: Test::EachVariant(|it| text_at(it, &["description"]).is_some()) },
    Check { id: "SV-1/hints-are-texts", level: Level::Must, source: source::TYPES,
        sentence: "hints?: { [key: string]: string };",
        does: "Reads the offered variants: `hints` is an object of strings or absent.",
        scope: Scope::Variants, eras: BOTH, test: Test::EachVariant(|it| it.get("hints").is_none_or(is_object_of_texts)) },
    Check { id: "SV-1/known-status", level: Level::Must, source: source::TYPES,
        sentence: "status?: \"stable\" | \"experimental\" | \"deprecated\";",
        does: "Reads the offered variants: `status` is one of the three or absent.",
        scope: Scope::Variants, eras: BOTH, test: Test::EachVariant(|it| it.get("status").is_none_or(is_known_status)) },
    Check { id: "SV-1/deprecation-info", level: Level::Must, source: source::TYPES,
        sentence: "message: string; replacement?: string;",
        does: "Reads the offered variants: `deprecationInfo` has a text as `message`, and if any as `replacement`.",
        scope: Scope::Variants, eras: BOTH, test: Test::EachVariant(|it| it.get("deprecationInfo").is_none_or(is_deprecation_info)) },
    Check { id: "SV-1/removal-date", level: Level::Should, source: source::TYPES,
        sentence: "Optional date when this variant is planned to be removed (ISO 8601 format).",
        does: "Reads the offered variants: `removalDate` begins with a date.",
        scope: Scope::Variants, eras: BOTH, test: Test::EachVariant(|it| at(it, &["deprecationInfo", "removalDate"]).is_none_or(begins_with_a_date)) },
    Check { id: "SV-1/replacement-is-another", level: Level::Decision, source: source::DECISION,
        sentence: "A variant is not its own replacement.",
        does: "Reads the offered variants: `replacement` is another id than `id`.",
        scope: Scope::Variants, eras: BOTH, test: Test::EachVariant(|it| at(it, &["deprecationInfo", "replacement"]).is_none_or(|other| Some(other) != it.get("id"))) },
    Check { id: "SV-3/first-is-stable", level: Level::Must, source: source::INITIALIZE_RESULT,
        sentence: "The first element MUST have status `\"stable\"` unless the client explicitly requested experimental variants via `variantHints`.",
        does: "Reads the variants that are offered to a client without hints: the first is stable.",
        scope: Scope::Variants, eras: BOTH, test: Test::Survey(first_is_stable) },
    Check { id: "SV-3/subset-has-a-fallback", level: Level::Must, source: source::INITIALIZE_RESULT,
        sentence: "Servers MAY return a subset of variants to reduce noise, but MUST include … at least 1 additional fallback variant when possible",
        does: "Reads the settings: with `moreVariantsAvailable: true`, at least two are offered.",
        scope: Scope::Variants, eras: BOTH, test: Test::Survey(subset_has_a_fallback) },
    Check { id: "SV-3/few-variants", level: Level::Should, source: source::INITIALIZE_RESULT,
        sentence: "Servers SHOULD expose a small number of variants by default (guidance: 2–5) to limit discovery overhead.",
        does: "Counts the variants that are offered to a client without hints.",
        scope: Scope::Variants, eras: BOTH, test: Test::Survey(few_variants) },
    Check { id: "SV-7/same-hints-same-order", level: Level::Should, source: source::RANKING,
        sentence: "Cache rankings: For the same client hints, return consistent rankings within a session",
        does: "Asks a client's offers three times: the same variants are offered in the same order. Sessions of 2025-11-25 are offered variants once.",
        scope: Scope::Variants, eras: MODERN, test: Test::Server(|probe| Box::pin(same_hints_same_order(probe))) },
];

pub(super) fn is_stable(variant: &Value) -> bool {
    let status = variant.get("status");
    status.is_none_or(|status| status == "stable")
}

fn is_object_of_texts(value: &Value) -> bool {
    let members = value.as_object();
    members.is_some_and(|members| members.values().all(Value::is_string))
}

fn is_known_status(status: &Value) -> bool {
    matches!(
        status.as_str(),
        Some("stable" | "experimental" | "deprecated")
    )
}

fn is_deprecation_info(info: &Value) -> bool {
    let replacement = info.get("replacement");
    text_at(info, &["message"]).is_some() && replacement.is_none_or(Value::is_string)
}

/// Whether a text begins as an ISO 8601 date does: `2026-06-01`, or the same with a time after it.
fn begins_with_a_date(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    let date = text.split(['T', 't', ' ']).next().unwrap_or_default();
    let mut parts = date.split('-');
    let mut is_number = |length: usize, range: std::ops::RangeInclusive<u32>| {
        parts.next().is_some_and(|part| {
            part.len() == length && part.parse().is_ok_and(|number| range.contains(&number))
        })
    };
    is_number(4, 0..=9999) && is_number(2, 1..=12) && is_number(2, 1..=31) && parts.next().is_none()
}

fn no_empty_list(survey: &Survey) -> Verdict {
    let settings = survey.settings(VARIANTS);
    let list = settings.and_then(|settings| settings.get("availableVariants"));
    ensure!(list != Some(&json!([])), "`availableVariants` is `[]`");
    Ok(())
}

fn unique_ids(survey: &Survey) -> Verdict {
    let ids = survey.variants();
    let mut seen = BTreeSet::new();
    let repeated = ids.iter().find(|id| !seen.insert(**id));
    requires(repeated.is_none(), "repeated:", &json!(repeated))
}

fn first_is_stable(survey: &Survey) -> Verdict {
    let first = survey.offered().first();
    let finding = "the first variant is";
    requires(first.is_some_and(is_stable), finding, &json!(first))
}

fn subset_has_a_fallback(survey: &Survey) -> Verdict {
    if !survey.has_more_variants() {
        return not_applicable("the server offers all of its variants");
    }
    ensure!(
        survey.offered().len() >= 2,
        "more variants exist, and one is offered"
    );
    Ok(())
}

fn few_variants(survey: &Survey) -> Verdict {
    let count = survey.offered().len();
    ensure!(count <= 5, "the server offers {count}");
    Ok(())
}

async fn same_hints_same_order(probe: &Probe<'_>) -> Verdict {
    let client = probe.connect_with_variants().await?;
    let expected = client.variants();
    for _ in 0..2 {
        let next = probe.connect_with_variants().await?;
        let found = next.variants();
        ensure!(
            found == expected,
            "first {}, then {}",
            json!(expected),
            json!(found)
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_iso_8601() {
        for right in ["2026-06-01", "2026-06-01T10:00:00Z"] {
            assert!(begins_with_a_date(&right.into()), "{right}");
        }
        for wrong in [
            "",
            "June 2026",
            "2026-13-01",
            "2026-6-1",
            "01.06.2026",
            "2026-06-01-1",
        ] {
            assert!(!begins_with_a_date(&wrong.into()), "{wrong}");
        }
    }
}
