//! What a client declares of the extensions.

use serde_json::Value;

use crate::check::Test;
use crate::extension::{NEGOTIATION, VARIANTS, is_identifier};
use crate::json::{at, brief, object_at};
use crate::member::{IfAbsent, Member};
use crate::objection::ClientVerdict;
use crate::observation::{Observation, Scenario};

use super::{not_applicable, violation, violation_of_run};

pub(crate) const TEXTS: &str = include_str!("declarations.json");

#[rustfmt::skip]
pub(crate) const TESTS: &[(&str, Test)] = &[
    ("EXT-1/client-prefixed-identifiers", Test::Client(Scenario::Ordinary, prefixed_identifiers)),
    ("EXT-2/client-extensions-are-a-map", Test::ClientMember(Member::of(None, &["extensions"], Value::is_object))),
    ("EXT-2/client-settings-are-objects", Test::Client(Scenario::Ordinary, settings_are_objects)),
    ("CN-17/client-version-is-text",
        Test::ClientMember(Member::of(Some(NEGOTIATION), &["version"], Value::is_string)
            .or(IfAbsent::Violation("the settings have no `version`")))),
    ("CN-17/client-features-are-texts",
        Test::ClientMember(Member::of(Some(NEGOTIATION), &["features"], is_array_of_texts))),
    ("CN-17/client-mirrors-sampling", Test::Client(Scenario::Ordinary, mirrors_sampling)),
    ("CN-1/client-tags-are-well-formed", Test::Client(Scenario::Ordinary, tags_are_well_formed)),
    ("CN-18/client-declares-with-every-request", Test::Client(Scenario::Ordinary, declares_with_every_request)),
    ("SV-4/client-description-is-text", Test::Client(Scenario::Ordinary, description_is_text)),
    ("SV-4/client-hints-are-texts-or-arrays", Test::Client(Scenario::Ordinary, hints_are_texts_or_arrays)),
    ("SV-2/client-declares-variants", Test::Client(Scenario::Ordinary, declares_variants)),
];

fn prefixed_identifiers(observed: &Observation<'_>) -> ClientVerdict {
    let Some((event, capabilities)) = observed.declaration() else {
        return Ok(());
    };
    let extensions = object_at(capabilities, &["extensions"]);
    let mut names = extensions.into_iter().flat_map(|members| members.keys());
    match names.find(|name| !is_identifier(name)) {
        Some(name) => violation(event, format!("{name:?} is not `prefix/name`")),
        None => Ok(()),
    }
}

fn settings_are_objects(observed: &Observation<'_>) -> ClientVerdict {
    let Some((event, capabilities)) = observed.declaration() else {
        return Ok(());
    };
    let declared = object_at(capabilities, &["extensions"]);
    let mut extensions = declared.into_iter().flatten();
    match extensions.find(|(_, settings)| !settings.is_object()) {
        Some((name, other)) => {
            let finding = format!("the settings of {name:?} are {}", brief(other));
            violation(event, finding)
        }
        None => Ok(()),
    }
}

fn is_array_of_texts(value: &Value) -> bool {
    let elements = value.as_array();
    elements.is_some_and(|elements| elements.iter().all(Value::is_string))
}

fn mirrors_sampling(observed: &Observation<'_>) -> ClientVerdict {
    let has_sampling = observed
        .declaration()
        .is_some_and(|(_, capabilities)| capabilities.get("sampling").is_some());
    let Some((event, settings)) = observed.settings(NEGOTIATION).filter(|_| has_sampling) else {
        return not_applicable("the client does not declare `sampling`");
    };
    if tags(settings).any(|tag| tag == "sampling") {
        return Ok(());
    }
    let finding = "the client declares the capability `sampling`, but not the tag";
    violation(event, finding)
}

fn tags_are_well_formed(observed: &Observation<'_>) -> ClientVerdict {
    let Some((event, settings)) = observed.settings(NEGOTIATION) else {
        return Ok(());
    };
    match tags(settings).find(|tag| !is_tag(tag)) {
        Some(tag) => violation(event, format!("{tag:?} is not a feature tag")),
        None => Ok(()),
    }
}

/// The tags that are texts.
fn tags(settings: &Value) -> impl Iterator<Item = &str> {
    let tags = settings.get("features").and_then(Value::as_array);
    tags.into_iter().flatten().filter_map(Value::as_str)
}

/// Whether `tag` has one of the forms. Tags of vendors, `x-…`, may have a phrase as their value.
fn is_tag(tag: &str) -> bool {
    let is_key = |key: &str| {
        let starts = key.starts_with(|letter: char| letter.is_ascii_alphanumeric());
        let inner = |letter: char| letter.is_ascii_alphanumeric() || "._/-".contains(letter);
        starts && key.chars().all(inner)
    };
    let parts = tag.split_once("!=").or_else(|| tag.split_once('='));
    let Some((key, value)) = parts else {
        return is_key(tag.strip_prefix('!').unwrap_or(tag));
    };
    let is_vendor = key.starts_with("x-") && !value.starts_with('=');
    let is_inner = |letter: char| letter.is_ascii_graphic() && !"=!,;".contains(letter);
    let is_phrase = |letter: char| letter.is_ascii_graphic() || letter == ' ';
    let is_value = |letter| {
        if is_vendor {
            is_phrase(letter)
        } else {
            is_inner(letter)
        }
    };
    is_key(key) && !value.is_empty() && value.chars().all(is_value)
}

fn declares_with_every_request(observed: &Observation<'_>) -> ClientVerdict {
    let declared_tags = |capabilities: Option<&Value>| {
        let settings = capabilities.and_then(|members| at(members, &["extensions", NEGOTIATION]));
        settings.map(|settings| tags(settings).map(str::to_owned).collect::<Vec<_>>())
    };
    let mut first = None;
    for (event, request) in observed.ordinary().messages() {
        let is_shaped = matches!(
            request.method(),
            "tools/call" | "resources/read" | "prompts/get"
        );
        let declared = declared_tags(request.capabilities());
        if first.is_none() {
            first = declared;
        } else if is_shaped && declared != first {
            let finding = format!(
                "`{}` declares the tags {declared:?}, and an earlier request {first:?}",
                request.method()
            );
            return violation(event, finding);
        }
    }
    Ok(())
}

fn description_is_text(observed: &Observation<'_>) -> ClientVerdict {
    let Some((event, settings)) = observed.settings(VARIANTS) else {
        return not_applicable("the client does not declare server variants");
    };
    match at(settings, &["variantHints", "description"]) {
        None | Some(Value::String(_)) => Ok(()),
        Some(other) => violation(event, format!("`description` is {}", brief(other))),
    }
}

fn hints_are_texts_or_arrays(observed: &Observation<'_>) -> ClientVerdict {
    let Some((event, settings)) = observed.settings(VARIANTS) else {
        return not_applicable("the client does not declare server variants");
    };
    let Some(hints) = at(settings, &["variantHints", "hints"]) else {
        return match settings.get("hints") {
            Some(_) => violation(event, "`hints` are outside of `variantHints`"),
            None => Ok(()),
        };
    };
    let Value::Object(hints) = hints else {
        return violation(event, format!("`hints` is {}", brief(hints)));
    };
    let is_right = |value: &Value| value.is_string() || is_array_of_texts(value);
    match hints.iter().find(|(_, value)| !is_right(value)) {
        Some((key, value)) => violation(event, format!("the hint {key:?} is {}", brief(value))),
        None => Ok(()),
    }
}

fn declares_variants(observed: &Observation<'_>) -> ClientVerdict {
    if observed.settings(VARIANTS).is_some() {
        return Ok(());
    }
    let mut messages = observed.ordinary().messages();
    match messages.find(|(_, event)| event.selector().is_some()) {
        Some((event, request)) => {
            let method = request.method();
            let finding =
                format!("`{method}` selects a variant; the client declares no server variants");
            violation(event, finding)
        }
        None => violation_of_run(
            "the client selects variants of another server, and declares no server variants",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_has_one_of_four_forms() {
        for right in [
            "agent",
            "!interactive",
            "format=json",
            "format!=xml",
            "x-acme=a b",
        ] {
            assert!(is_tag(right), "{right}");
        }
        for wrong in [
            "",
            "!",
            "@#$%",
            "format==json",
            "format=",
            "!a=b",
            "a b",
            "format=a b",
        ] {
            assert!(!is_tag(wrong), "{wrong}");
        }
    }
}
