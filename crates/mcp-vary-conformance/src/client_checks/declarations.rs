//! What a client declares of the extensions.

use serde_json::Value;

use crate::check::{Check, Level, Test};
use crate::era::{BOTH, MODERN};
use crate::extension::{NEGOTIATION, VARIANTS, is_identifier};
use crate::json::{at, brief, object_at};
use crate::member::{IfAbsent, Member};
use crate::objection::ClientVerdict;
use crate::observation::{Observation, Scenario};
use crate::scope::Scope;
use crate::source;

use super::{not_applicable, violation, violation_of_run};

#[rustfmt::skip]
pub(crate) const CHECKS: &[Check] = &[
    Check { id: "EXT-1/client-prefixed-identifiers", level: Level::Must, source: source::EXTENSIONS,
        sentence: "The names follow the same rules as the _meta keys, except that the prefix is mandatory.",
        does: "Reads the keys of the client's `capabilities.extensions`.",
        scope: Scope::Any, eras: BOTH, test: Test::Client(Scenario::Ordinary, prefixed_identifiers) },
    Check { id: "EXT-2/client-extensions-are-a-map", level: Level::Must, source: source::NEGOTIATION_OF_EXTENSIONS,
        sentence: "A new “extensions” field will be introduced to each that is a map of extension identifiers to per-extension settings objects.",
        does: "Reads the client's `capabilities.extensions`: it is an object or absent.",
        scope: Scope::Any, eras: BOTH, test: Test::ClientMember(Member {
            extension: None, path: &["extensions"], is_right: Value::is_object, if_absent: IfAbsent::Right,
        }) },
    Check { id: "EXT-2/client-settings-are-objects", level: Level::Must, source: source::NEGOTIATION_OF_EXTENSIONS,
        sentence: "Each extension specifies the schema of its settings object; an empty object indicates no settings.",
        does: "Reads the values in the client's `capabilities.extensions`: each is an object.",
        scope: Scope::Any, eras: BOTH, test: Test::Client(Scenario::Ordinary, settings_are_objects) },
    Check { id: "CN-17/client-version-is-text", level: Level::Must, source: source::SETTINGS,
        sentence: "version: string;",
        does: "Reads the client's settings of content negotiation: `version` is a string.",
        scope: Scope::NegotiatingClient, eras: BOTH, test: Test::ClientMember(Member {
            extension: Some(NEGOTIATION), path: &["version"], is_right: Value::is_string,
            if_absent: IfAbsent::Violation("the settings have no `version`"),
        }) },
    Check { id: "CN-17/client-features-are-texts", level: Level::Must, source: source::SETTINGS,
        sentence: "features?: string[]; // Only in client request",
        does: "Reads the client's settings of content negotiation: `features` is an array of strings or absent.",
        scope: Scope::NegotiatingClient, eras: BOTH, test: Test::ClientMember(Member {
            extension: Some(NEGOTIATION), path: &["features"], is_right: is_array_of_texts, if_absent: IfAbsent::Right,
        }) },
    Check { id: "CN-17/client-mirrors-sampling", level: Level::Should, source: source::BEHAVIOR,
        sentence: "If a client declares `sampling: {}` in capabilities, it SHOULD also include `\"sampling\"` in the extension's `features` array.",
        does: "Reads the capabilities of a client with `sampling`: `features` has the tag, too.",
        scope: Scope::NegotiatingClient, eras: BOTH, test: Test::Client(Scenario::Ordinary, mirrors_sampling) },
    Check { id: "CN-1/client-tags-are-well-formed", level: Level::Should, source: source::TAGS,
        sentence: "Feature tags support three syntactic forms (inspired by RFC 2295)",
        does: "Reads the client's tags: each is `tag`, `!tag`, `key=value` or `key!=value`.",
        scope: Scope::NegotiatingClient, eras: BOTH, test: Test::Client(Scenario::Ordinary, tags_are_well_formed) },
    Check { id: "CN-18/client-declares-with-every-request", level: Level::Decision, source: source::DECISION,
        sentence: "Without sessions, a client declares the same tags with each request whose result it wants shaped.",
        does: "Compares the tags of all requests for lists and items.",
        scope: Scope::NegotiatingClient, eras: MODERN, test: Test::Client(Scenario::Ordinary, declares_with_every_request) },
    Check { id: "SV-4/client-description-is-text", level: Level::Must, source: source::VARIANT_HINTS,
        sentence: "description?: string;",
        does: "Reads the client's `variantHints`: `description` is a string or absent.",
        scope: Scope::VariantsClient, eras: BOTH, test: Test::Client(Scenario::Ordinary, description_is_text) },
    Check { id: "SV-4/client-hints-are-texts-or-arrays", level: Level::Must, source: source::VARIANT_HINTS,
        sentence: "hints?: { [key: string]: string | string[] };",
        does: "Reads the client's `variantHints`: each of `hints` is a string or an array of strings.",
        scope: Scope::VariantsClient, eras: BOTH, test: Test::Client(Scenario::Ordinary, hints_are_texts_or_arrays) },
    Check { id: "SV-2/client-declares-variants", level: Level::Should, source: source::INITIALIZE_PARAMS,
        sentence: "Clients that support this SEP SHOULD advertise the extension:",
        does: "Looks for requests with a selector: the client has declared server variants.",
        scope: Scope::VariantsClient, eras: BOTH, test: Test::Client(Scenario::Ordinary, declares_variants) },
];

fn prefixed_identifiers(observed: &Observation<'_>) -> ClientVerdict {
    let Some((event, capabilities)) = observed.declaration() else {
        return Ok(());
    };
    let extensions = object_at(capabilities, &["extensions"]);
    let mut names = extensions.into_iter().flat_map(|it| it.keys());
    match names.find(|name| !is_identifier(name)) {
        Some(name) => violation(event, format!("{name:?} is not `prefix/name`")),
        None => Ok(()),
    }
}

fn settings_are_objects(observed: &Observation<'_>) -> ClientVerdict {
    let Some((event, capabilities)) = observed.declaration() else {
        return Ok(());
    };
    let extensions = object_at(capabilities, &["extensions"]);
    let mut extensions = extensions.into_iter().flatten();
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
    let declared = |capabilities: Option<&Value>| {
        let settings = capabilities.and_then(|it| at(it, &["extensions", NEGOTIATION]));
        settings.map(|settings| tags(settings).map(str::to_owned).collect::<Vec<_>>())
    };
    let mut first = None;
    for (event, request) in observed.ordinary().messages() {
        let is_shaped = matches!(
            request.method(),
            "tools/call" | "resources/read" | "prompts/get"
        );
        let declared = declared(request.capabilities());
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
