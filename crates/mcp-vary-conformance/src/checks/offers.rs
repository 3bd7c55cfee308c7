//! Server variants: what a server offers.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::prelude::*;

pub(crate) const TEXTS: &str = include_str!("offers.json");

#[rustfmt::skip]
pub(crate) const TESTS: &[(&str, Test)] = &[
    ("SV-2/list-is-an-array", Test::Member(Member::of(Some(VARIANTS), &["availableVariants"], Value::is_array))),
    ("SV-2/no-empty-list", Test::Survey(no_empty_list)),
    ("SV-2/more-variants-is-boolean",
        Test::Member(Member::of(Some(VARIANTS), &["moreVariantsAvailable"], Value::is_boolean))),
    ("SV-1/ids-are-text", Test::EachVariant(|variant| text_at(variant, &["id"]).is_some_and(|id| !id.is_empty()))),
    ("SV-1/unique-ids", Test::Survey(unique_ids)),
    ("SV-1/descriptions-are-text", Test::EachVariant(|variant| text_at(variant, &["description"]).is_some())),
    ("SV-1/hints-are-texts", Test::EachVariant(|variant| variant.get("hints").is_none_or(is_object_of_texts))),
    ("SV-1/known-status", Test::EachVariant(|variant| variant.get("status").is_none_or(is_known_status))),
    ("SV-1/deprecation-info", Test::EachVariant(|variant| variant.get("deprecationInfo").is_none_or(is_deprecation_info))),
    ("SV-1/removal-date",
        Test::EachVariant(|variant| at(variant, &["deprecationInfo", "removalDate"]).is_none_or(begins_with_a_date))),
    ("SV-1/replacement-is-another",
        Test::EachVariant(|variant| at(variant, &["deprecationInfo", "replacement"]).is_none_or(|other| Some(other) != variant.get("id")))),
    ("SV-1/replacement-exists", server!(replacement_exists)),
    ("SV-3/first-is-stable", Test::Survey(first_is_stable)),
    ("SV-3/subset-has-a-fallback", Test::Survey(subset_has_a_fallback)),
    ("SV-3/few-variants", Test::Survey(few_variants)),
    ("SV-7/same-hints-same-order", server!(same_hints_same_order)),
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

async fn replacement_exists(probe: &Probe<'_>) -> Verdict {
    let client = probe.connect_with_variants().await?;
    let method = client.any_list()?.list_method;
    let offered = probe.survey().offered().iter();
    for id in offered.filter_map(|variant| text_at(variant, &["deprecationInfo", "replacement"])) {
        let answer = client.ask(method, selecting(json!({}), Some(id))).await?;
        ensure!(
            answer.is_result(),
            "the replacement {id:?} is not a variant: {}",
            answer.describe()
        );
    }
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
