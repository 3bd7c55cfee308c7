//! Bounds for the variants that a server declares: each of its connections keeps them, and clients get them.

use std::borrow::Cow;

use mcp_vary::extension::{Carrier, SERVER_VARIANTS};
use mcp_vary::hints::{MAX_KEY, MAX_KEYS, MAX_VALUE};
use mcp_vary::json::{Members, elements, string};

use super::MAX_OFFERED_VARIANTS;

/// The most bytes of an answer to `initialize` or `server/discover`.
pub const MAX_HANDSHAKE: usize = 1 << 20;

/// The most bytes of a variant's description, and of its other members but the hints, which have the bounds of those of
/// clients (EXT-5).
const MAX_TEXT: usize = 1 << 10;

/// The most bytes of a variant with members that Vary does not read.
const MAX_VARIANT: usize = 8 << 10;

/// The `capabilities` of a server with bounded variants; `None` if they are within the bounds.
pub fn bound_variants(capabilities: &str) -> Option<String> {
    let mut bounded = Cow::Borrowed(capabilities);
    for carrier in Carrier::ALL {
        let keys = carrier.path().iter().copied();
        let path: Vec<_> = keys.chain([SERVER_VARIANTS, "availableVariants"]).collect();
        if let Some(cut) = bound_at(&bounded, &path) {
            bounded = Cow::Owned(cut);
        }
    }
    match bounded {
        Cow::Owned(cut) => Some(cut),
        Cow::Borrowed(_) => None,
    }
}

fn bound_at(object: &str, path: &[&str]) -> Option<String> {
    let [key, remaining @ ..] = path else {
        return bound_list(object);
    };
    let mut members = Members::parse(object).ok()?;
    let inner = bound_at(members.get(key)?, remaining)?;
    members.set(*key, inner);
    Some(members.to_json())
}

fn bound_list(variants: &str) -> Option<String> {
    let all = elements(variants).ok()?;
    let first = all.iter().take(MAX_OFFERED_VARIANTS);
    let retained: Vec<_> = first.map(|variant| bound_variant(variant)).collect();
    let is_whole = |it: &Cow<'_, str>| matches!(it, Cow::Borrowed(_));
    let is_within = retained.len() == all.len() && retained.iter().all(is_whole);
    (!is_within).then(|| format!("[{}]", retained.join(",")))
}

fn bound_variant(variant: &str) -> Cow<'_, str> {
    if variant.len() <= MAX_TEXT {
        return Cow::Borrowed(variant);
    }
    let Ok(members) = Members::parse(variant) else {
        return Cow::Owned("null".to_owned());
    };
    let mut bounded = Members::default();
    for (key, value) in members.iter() {
        let value = match key {
            "description" => bound_description(&members, value),
            "hints" => bound_hints(value),
            "id" | "status" | "deprecationInfo" if value.len() <= MAX_TEXT => Cow::Borrowed(value),
            _ if variant.len() <= MAX_VARIANT => Cow::Borrowed(value),
            _ => continue,
        };
        bounded.set(key.to_owned(), value.into_owned());
    }
    if bounded.iter().eq(members.iter()) {
        Cow::Borrowed(variant)
    } else {
        Cow::Owned(bounded.to_json())
    }
}

fn bound_description<'a>(members: &Members<'_>, written: &'a str) -> Cow<'a, str> {
    match members.get_str("description") {
        Some(text) if text.len() > MAX_TEXT => {
            Cow::Owned(string(&text[..text.floor_char_boundary(MAX_TEXT)]))
        }
        _ => Cow::Borrowed(written),
    }
}

fn bound_hints(hints: &str) -> Cow<'_, str> {
    let all = Members::parse(hints).unwrap_or_default();
    let mut bounded = Members::default();
    // Two quotation marks.
    let fits = |(key, value): &(&str, &str)| key.len() <= MAX_KEY && value.len() <= MAX_VALUE + 2;
    for (key, value) in all.iter().filter(fits).take(MAX_KEYS) {
        bounded.set(key.to_owned(), value.to_owned());
    }
    if bounded.len() == all.len() && !all.is_empty() {
        Cow::Borrowed(hints)
    } else {
        Cow::Owned(bounded.to_json())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;

    fn declaring(variants: &Value) -> Value {
        json!({"tools": {}, "extensions": {SERVER_VARIANTS: {"availableVariants": variants, "more": 1}}})
    }

    /// The variants of `variants` within the bounds.
    fn bounded(variants: &Value) -> Value {
        let text = bound_variants(&declaring(variants).to_string()).unwrap();
        let read: Value = serde_json::from_str(&text).unwrap();
        let kept = &read["extensions"][SERVER_VARIANTS]["availableVariants"];
        assert_eq!(read, declaring(kept), "the rest stays");
        kept.clone()
    }

    /// EXT-5, EXT-9.
    #[test]
    fn what_a_server_declares_of_its_variants_is_bounded() {
        let many: Vec<_> = (0..100).map(|at| json!({"id": format!("v{at}")})).collect();
        assert_eq!(bounded(&json!(many)), json!(many[..MAX_OFFERED_VARIANTS]));
        let long = json!([{"id": "a", "description": "é".repeat(1000), "x": 7}]);
        let expected = json!([{"id": "a", "description": "é".repeat(512), "x": 7}]);
        assert_eq!(bounded(&long), expected);
        let hints: Map<_, _> = (0..100)
            .map(|at| (format!("k{at:02}"), json!("v".repeat(9))))
            .collect();
        let kept: Map<_, _> = hints.clone().into_iter().take(MAX_KEYS).collect();
        let expected = json!([{"id": "a", "hints": kept}]);
        assert_eq!(bounded(&json!([{"id": "a", "hints": hints}])), expected);
        let text = "x".repeat(9000);
        let wide = json!([{"id": "a", "hints": {"a": text, "b": "c"}, "deprecationInfo": {"message": text}, "x": 1}]);
        assert_eq!(bounded(&wide), json!([{"id": "a", "hints": {"b": "c"}}]));
    }

    #[test]
    fn what_is_within_the_bounds_stays_as_it_was_written() {
        let hints: Map<_, _> = (0..MAX_KEYS)
            .map(|at| (format!("k{at}"), json!("v".repeat(MAX_VALUE))))
            .collect();
        let variant = json!({"id": "a", "description": "x".repeat(MAX_TEXT), "hints": hints, "status": "stable"});
        for capabilities in [
            declaring(&json!([variant])),
            declaring(&json!("none")),
            json!({}),
            json!({"extensions": 7}),
        ] {
            let found = bound_variants(&capabilities.to_string());
            assert_eq!(found, None, "{capabilities}");
        }
    }
}
