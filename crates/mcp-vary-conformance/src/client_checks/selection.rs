//! How a client selects variants, and what it keeps apart.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::check::Test;
use crate::json::brief;
use crate::mock_server::answers::variant_of_cursor;
use crate::mock_server::declarations::offered;
use crate::objection::ClientVerdict;
use crate::observation::{Event, Observation, Scenario};

use super::reactions::is_served;
use super::{not_applicable, violation};

pub(crate) const TEXTS: &str = include_str!("selection.json");

#[rustfmt::skip]
pub(crate) const TESTS: &[(&str, Test)] = &[
    ("SV-8/client-selector-is-text", Test::Client(Scenario::Ordinary, selector_is_text)),
    ("SV-8/client-selects-what-is-offered", Test::Client(Scenario::Ordinary, selects_what_is_offered)),
    ("SV-2/client-takes-no-list-as-no-variants", Test::Client(Scenario::NoVariants, takes_no_list_as_no_variants)),
    ("EXT-4/client-reverts-to-core", Test::Client(Scenario::NoExtensions, reverts_to_core)),
    ("SV-13/client-cursors-are-opaque", Test::Client(Scenario::Ordinary, cursors_are_opaque)),
    ("SV-13/client-keeps-cursors-with-their-variant",
        Test::Client(Scenario::Ordinary, keeps_cursors_with_their_variant)),
    ("SV-14/client-unsubscribes-before-another-variant",
        Test::Client(Scenario::Ordinary, unsubscribes_before_another_variant)),
];

/// The variant under which a request runs.
fn variant(event: &Event) -> &str {
    let default = offered(Scenario::Ordinary).first().copied();
    let selector = event.selector().and_then(Value::as_str);
    selector.or(default).unwrap_or_default()
}

fn selector_is_text(observed: &Observation<'_>) -> ClientVerdict {
    let mut selectors = 0;
    for (event, request) in observed.ordinary().messages() {
        let Some(selector) = request.selector() else {
            continue;
        };
        selectors += 1;
        if selector.as_str().is_none_or(str::is_empty) {
            return violation(event, format!("a selector is {}", brief(selector)));
        }
    }
    match selectors {
        0 => not_applicable("the client selects no variant"),
        _ => Ok(()),
    }
}

fn selects_what_is_offered(observed: &Observation<'_>) -> ClientVerdict {
    for (event, request) in observed.ordinary().messages() {
        let selector = request.selector().and_then(Value::as_str);
        let is_offered = |id| offered(Scenario::Ordinary).contains(&id);
        if let Some(id) = selector.filter(|id| !is_offered(id)) {
            return violation(event, format!("the selector {id:?} is not on offer"));
        }
    }
    Ok(())
}

fn takes_no_list_as_no_variants(observed: &Observation<'_>) -> ClientVerdict {
    has_no_selectors(observed, Scenario::NoVariants)?;
    is_served(observed, Scenario::NoVariants)
}

fn reverts_to_core(observed: &Observation<'_>) -> ClientVerdict {
    has_no_selectors(observed, Scenario::NoExtensions)
}

fn has_no_selectors(observed: &Observation<'_>, scenario: Scenario) -> ClientVerdict {
    for (event, request) in observed.of(scenario).messages() {
        if let Some(selector) = request.selector() {
            let finding = format!(
                "`{}` selects the variant {}, and the server has none",
                request.method(),
                brief(selector)
            );
            return violation(event, finding);
        }
    }
    Ok(())
}

/// The requests with a cursor, with the places of their events.
fn with_cursor<'a>(
    observed: &Observation<'a>,
) -> impl Iterator<Item = (usize, &'a Event, &'a Value)> {
    let messages = observed.ordinary().messages();
    messages.filter_map(|(at, event)| Some((at, event, event.param(&["cursor"])?)))
}

fn cursors_are_opaque(observed: &Observation<'_>) -> ClientVerdict {
    let mut cursors = 0;
    for (event, _, cursor) in with_cursor(observed) {
        cursors += 1;
        if cursor.as_str().and_then(variant_of_cursor).is_none() {
            let finding = format!("the cursor {} is none of the server's", brief(cursor));
            return violation(event, finding);
        }
    }
    match cursors {
        0 => not_applicable("the client reads no second page"),
        _ => Ok(()),
    }
}

fn keeps_cursors_with_their_variant(observed: &Observation<'_>) -> ClientVerdict {
    let mut cursors = 0;
    for (event, request, cursor) in with_cursor(observed) {
        cursors += 1;
        let Some(origin) = cursor.as_str().and_then(variant_of_cursor) else {
            continue;
        };
        let active = variant(request);
        if origin != active {
            let finding =
                format!("a cursor of the variant {origin:?} was sent with the variant {active:?}");
            return violation(event, finding);
        }
    }
    match cursors {
        0 => not_applicable("the client reads no second page"),
        _ => Ok(()),
    }
}

fn unsubscribes_before_another_variant(observed: &Observation<'_>) -> ClientVerdict {
    let mut subscribed: BTreeMap<&str, &str> = BTreeMap::new();
    for (event, request) in observed.ordinary().messages() {
        let Some(uri) = request.param(&["uri"]).and_then(Value::as_str) else {
            continue;
        };
        match request.method() {
            "resources/unsubscribe" => _ = subscribed.remove(uri),
            "resources/subscribe" => {
                let new = variant(request);
                let before = subscribed.insert(uri, new);
                if let Some(before) = before.filter(|before| *before != new) {
                    let finding = format!(
                        "{uri:?} was subscribed to in {new:?} while the subscription in {before:?} was open"
                    );
                    return violation(event, finding);
                }
            }
            _ => {}
        }
    }
    match observed
        .ordinary()
        .with_method("resources/subscribe")
        .count()
    {
        0 | 1 => not_applicable("the client does not subscribe twice"),
        _ => Ok(()),
    }
}
