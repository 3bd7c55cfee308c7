//! How a client selects variants, and what it keeps apart.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::check::{Check, Level, Test};
use crate::era::{BOTH, LEGACY};
use crate::json::brief;
use crate::mock_server::answers::variant_of_cursor;
use crate::mock_server::declarations::offered;
use crate::objection::ClientVerdict;
use crate::observation::{Event, Observation, Scenario};
use crate::scope::Scope;
use crate::source;

use super::reactions::is_served;
use super::{not_applicable, violation};

#[rustfmt::skip]
pub(crate) const CHECKS: &[Check] = &[
    Check { id: "SV-8/client-selector-is-text", level: Level::Must, source: source::SELECTION,
        sentence: "Clients select variants on a per-request basis using a canonical namespaced `_meta` key: … \"io.modelcontextprotocol/server-variant\": \"compact\"",
        does: "Reads the selectors: each is a string that is not empty.",
        scope: Scope::VariantsClient, eras: BOTH, test: Test::Client(Scenario::Ordinary, selector_is_text) },
    Check { id: "SV-8/client-selects-what-is-offered", level: Level::Should, source: source::SECURITY_OF_SELECTION,
        sentence: "Client-side: Validate that any variant selected (by rules or LLM) exists in `availableVariants`",
        does: "Reads the selectors: each names a variant on offer.",
        scope: Scope::VariantsClient, eras: BOTH, test: Test::Client(Scenario::Ordinary, selects_what_is_offered) },
    Check { id: "SV-2/client-takes-no-list-as-no-variants", level: Level::Should, source: source::INITIALIZE_RESULT,
        sentence: "If the extension payload is present but `availableVariants` is absent or empty, clients SHOULD treat this as \"no variants supported\" for compatibility.",
        does: "Declares server variants without `availableVariants`: no request has a selector, and the client is served as before.",
        scope: Scope::VariantsClient, eras: BOTH, test: Test::Client(Scenario::NoVariants, takes_no_list_as_no_variants) },
    Check { id: "EXT-4/client-reverts-to-core", level: Level::Must, source: source::DEGRADATION,
        sentence: "If one party supports an extension but the other does not, the supporting party MUST either revert to core protocol behavior or reject the request with an appropriate error if the extension is mandatory.",
        does: "Declares no extension: no request has a selector. A client that needs the extension may end without success.",
        scope: Scope::Any, eras: BOTH, test: Test::Client(Scenario::NoExtensions, reverts_to_core) },
    Check { id: "SV-13/client-cursors-are-opaque", level: Level::Must, source: source::CURSORS,
        sentence: "Cursors MUST be treated as opaque and variant-scoped",
        does: "Offers tools on two pages: the client sends the cursor as it received it.",
        scope: Scope::Any, eras: BOTH, test: Test::Client(Scenario::Ordinary, cursors_are_opaque) },
    Check { id: "SV-13/client-keeps-cursors-with-their-variant", level: Level::Must, source: source::CURSORS,
        sentence: "Clients MUST NOT reuse cursors across variants",
        does: "Offers tools on two pages in each variant: the client sends a cursor with the variant in which it received it.",
        scope: Scope::VariantsClient, eras: BOTH, test: Test::Client(Scenario::Ordinary, keeps_cursors_with_their_variant) },
    Check { id: "SV-14/client-unsubscribes-before-another-variant", level: Level::Must, source: source::SUBSCRIPTIONS,
        sentence: "If a client wants notifications for the same resource URI in a different variant, it MUST: Unsubscribe from the current subscription; Create a new subscription with the desired variant in `_meta`",
        does: "Compares the subscriptions to a resource: between two in different variants there is an unsubscription.",
        scope: Scope::VariantsClient, eras: LEGACY, test: Test::Client(Scenario::Ordinary, unsubscribes_before_another_variant) },
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
