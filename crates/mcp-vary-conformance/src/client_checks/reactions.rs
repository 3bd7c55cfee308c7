//! How a client reacts to what a server declares, refuses and changes.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::check::Test;
use crate::json::text_at;
use crate::mock_server::answers::{CONTENT_MARK, STRUCTURE_MARK};
use crate::objection::ClientVerdict;
use crate::observation::{End, Event, Observation, Scenario};

use super::{not_applicable, violation, violation_of_run};

pub(crate) const TEXTS: &str = include_str!("reactions.json");

#[rustfmt::skip]
pub(crate) const TESTS: &[(&str, Test)] = &[
    ("SV-1/client-ignores-unknown-hints", Test::Client(Scenario::UnknownMembers, ignores_unknown_hints)),
    ("EXT-5/client-survives-bad-settings", Test::Client(Scenario::BadSettings, survives_bad_settings)),
    ("CN-7/client-assumes-no-negotiation", Test::Client(Scenario::NoExtensions, assumes_no_negotiation)),
    ("SV-19/client-falls-back-to-the-default", Test::Client(Scenario::RefusedSelectors, falls_back_to_the_default)),
    ("SV-19/client-retries-once", Test::Client(Scenario::RefusedRequests, retries_once)),
    ("SV-16/client-lists-again", Test::Client(Scenario::ChangedLists, lists_again)),
    ("SV-16/client-lists-its-variant-again", Test::Client(Scenario::ChangedVariant, lists_its_variant_again)),
    ("SV-14/client-revalidates-subscriptions", Test::Client(Scenario::ChangedLists, revalidates_subscriptions)),
    ("TR-1/client-forwards-one-field", Test::Client(Scenario::Ordinary, forwards_one_field)),
];

/// Whether the client does before the server of `scenario` what it does before the ordinary one.
pub(super) fn is_served(observed: &Observation<'_>, scenario: Scenario) -> ClientVerdict {
    let ordinary = observed.ordinary();
    let other = observed.of(scenario);
    for method in ["tools/list", "resources/list", "prompts/list", "tools/call"] {
        if ordinary.has_result(method) && !other.has_result(method) {
            return violation_of_run(format!(
                "no `{method}` was answered, as one was by the ordinary server; {}",
                other.describe_end()
            ));
        }
    }
    if ordinary.is_content() && !other.is_content() {
        let end = other.describe_end();
        return violation_of_run(format!("{end}, and not before the ordinary server"));
    }
    Ok(())
}

fn ignores_unknown_hints(observed: &Observation<'_>) -> ClientVerdict {
    is_served(observed, Scenario::UnknownMembers)
}

fn survives_bad_settings(observed: &Observation<'_>) -> ClientVerdict {
    is_served(observed, Scenario::BadSettings)
}

fn assumes_no_negotiation(observed: &Observation<'_>) -> ClientVerdict {
    if !observed.ordinary().has_result("tools/call") {
        return not_applicable("the client calls no tool");
    }
    is_served(observed, Scenario::NoExtensions)
}

/// Whether the server refused the selector of a request.
fn is_refused(event: &Event) -> bool {
    let response = event.response.as_ref();
    let error = response.and_then(|response| response.get("error"));
    let message = error.and_then(|error| text_at(error, &["message"]));
    message == Some("Invalid server variant")
}

fn falls_back_to_the_default(observed: &Observation<'_>) -> ClientVerdict {
    let record = observed.of(Scenario::RefusedSelectors);
    let mut refused: Option<(usize, &Event)> = None;
    for (at, event) in record.messages() {
        if refused.is_none() && is_refused(event) {
            refused = Some((at, event));
        } else if let Some((_, before)) = refused
            && event.method() == before.method()
            && event.selector().is_none()
        {
            return Ok(());
        }
    }
    match refused {
        None => not_applicable("the client selects no variant"),
        Some((_, event)) => violation_of_run(format!(
            "`{}` was refused, and not sent again without a selector; {}",
            event.method(),
            record.describe_end()
        )),
    }
}

fn retries_once(observed: &Observation<'_>) -> ClientVerdict {
    let record = observed.of(Scenario::RefusedRequests);
    let mut requests: BTreeMap<String, usize> = BTreeMap::new();
    let refused = record.messages().filter(|(_, event)| is_refused(event));
    let mut selects = false;
    for (at, event) in refused {
        selects |= event.selector().is_some();
        let count = requests.entry(without_metadata(event)).or_default();
        *count += 1;
        if *count > 2 {
            let method = event.method();
            return violation(at, format!("`{method}` was sent {count} times"));
        }
    }
    if selects {
        Ok(())
    } else {
        not_applicable("the client selects no variant")
    }
}

/// What a request asks for, whichever variant it selects.
fn without_metadata(event: &Event) -> String {
    let message = event.message.as_ref();
    let sent = message.and_then(|message| message.get("params"));
    let mut params = sent.cloned().unwrap_or_default();
    if let Value::Object(params) = &mut params {
        params.remove("_meta");
    }
    let params = match params {
        Value::Null => Value::Object(serde_json::Map::new()),
        params => params,
    };
    format!("{} {params}", event.method())
}

fn lists_again(observed: &Observation<'_>) -> ClientVerdict {
    reacts(
        observed,
        Scenario::ChangedLists,
        "notifications/tools/list_changed",
        |event, _| event.method() == "tools/list",
    )
}

fn lists_its_variant_again(observed: &Observation<'_>) -> ClientVerdict {
    reacts(
        observed,
        Scenario::ChangedVariant,
        "notifications/tools/list_changed",
        |event, change| {
            let selector = event.selector().and_then(Value::as_str);
            let selected = selector.unwrap_or("standard");
            event.method() == "tools/list" && change.notified_variant() == Some(selected)
        },
    )
}

fn revalidates_subscriptions(observed: &Observation<'_>) -> ClientVerdict {
    let record = observed.of(Scenario::ChangedLists);
    if !record.has_result("resources/subscribe") {
        return not_applicable("the client subscribes to nothing");
    }
    reacts(
        observed,
        Scenario::ChangedLists,
        "notifications/resources/list_changed",
        |event, _| event.method() == "resources/list",
    )
}

/// Whether an event with `is_reaction` follows the notification `method` in `scenario`.
fn reacts(
    observed: &Observation<'_>,
    scenario: Scenario,
    method: &str,
    is_reaction: impl Fn(&Event, &Event) -> bool,
) -> ClientVerdict {
    let record = observed.of(scenario);
    let is_change = |event: &&Event| {
        let notification = event.response.as_ref();
        event.message.is_none()
            && notification.and_then(|sent| text_at(sent, &["method"])) == Some(method)
    };
    let Some(at) = record.events.iter().position(|event| is_change(&event)) else {
        return not_applicable(
            "the client listened to no stream when its lists changed, or listed nothing to the end",
        );
    };
    let Some((change, later)) = record.events.get(at..).and_then(<[Event]>::split_first) else {
        return Ok(());
    };
    if later.iter().any(|event| is_reaction(event, change)) {
        return Ok(());
    }
    let stayed = record.duration.saturating_sub(change.time);
    if stayed < observed.reaction && record.end != End::Silence {
        return not_applicable("the client ended before it could react to a change");
    }
    let seconds = stayed.as_secs_f32();
    violation_of_run(format!(
        "`{method}` was sent, and nothing was listed in the {seconds:.1} s that the client stayed"
    ))
}

fn forwards_one_field(observed: &Observation<'_>) -> ClientVerdict {
    let record = observed.ordinary();
    let has = |mark: &str| record.stdout.contains(mark);
    match (has(CONTENT_MARK), has(STRUCTURE_MARK)) {
        (true, true) => violation_of_run(
            "standard output has the `content` and the `structuredContent` of a result",
        ),
        (false, false) => not_applicable("the client prints no result"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use crate::era::Era;
    use crate::objection::Objection;
    use crate::observation::Record;

    use super::*;

    /// What the check says of a client that ends two seconds after a notification, without a reaction.
    fn stays_for_two_seconds(reaction: Duration) -> Objection {
        let notification = json!({"method": "notifications/tools/list_changed"});
        let change = Event {
            message: None,
            response: Some(notification),
            time: Duration::from_secs(3),
        };
        let record = Record {
            events: vec![change],
            end: End::Success,
            duration: Duration::from_secs(5),
            stdout: String::new(),
            stderr: String::new(),
        };
        let observation = Observation {
            era: Era::Legacy,
            records: &BTreeMap::from([(Scenario::ChangedLists, record)]),
            reaction,
        };
        lists_again(&observation).unwrap_err().objection
    }

    #[test]
    fn a_client_must_react_only_if_it_stays_for_the_time_of_a_reaction() {
        let expected = "`notifications/tools/list_changed` was sent, and nothing was listed in the 2.0 s that the client stayed";
        let found = stays_for_two_seconds(Duration::from_secs(1));
        assert_eq!(found, Objection::Violation(expected.to_owned()));
        let expected = "the client ended before it could react to a change";
        let found = stays_for_two_seconds(Duration::from_secs(4));
        assert_eq!(found, Objection::NotApplicable(expected.to_owned()));
    }
}
