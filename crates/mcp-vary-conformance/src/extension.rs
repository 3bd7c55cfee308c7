//! The extensions that are checked: their names, and how peers declare them.

use serde_json::Value;

use crate::json::{array_at, at};

/// An extension that a server may declare.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Extension {
    /// Content negotiation: `io.modelcontextprotocol/content-negotiation`.
    Negotiation,
    /// Server variants: `io.modelcontextprotocol/server-variants`.
    Variants,
}

/// The content negotiation extension.
pub(crate) const NEGOTIATION: &str = "io.modelcontextprotocol/content-negotiation";

/// The server variants extension.
pub(crate) const VARIANTS: &str = "io.modelcontextprotocol/server-variants";

/// The member of `_meta` that selects a variant.
pub(crate) const SELECTOR: &str = "io.modelcontextprotocol/server-variant";

/// The member of capabilities that had extensions before SEP-2133.
pub(crate) const EXPERIMENTAL: &str = "experimental";

/// The settings of an extension in `capabilities`. Some servers declare extensions in `experimental`.
pub(crate) fn settings_of<'a>(capabilities: &'a Value, extension: &str) -> Option<&'a Value> {
    let declared = |member| at(capabilities, &[member, extension]);
    declared("extensions").or_else(|| declared(EXPERIMENTAL))
}

/// The variants that `capabilities` offer.
pub(crate) fn offered_in(capabilities: &Value) -> &[Value] {
    settings_of(capabilities, VARIANTS).map_or(&[], |value| array_at(value, &["availableVariants"]))
}

/// Whether `key` is `prefix/name`: dotted labels that start with a letter and end with a letter or digit; a name that starts
/// and ends with a letter or digit.
pub(crate) fn is_identifier(key: &str) -> bool {
    let is_label = |label: &str| {
        label.starts_with(|first: char| first.is_ascii_alphabetic())
            && label.ends_with(|last: char| last.is_ascii_alphanumeric())
            && label
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
    };
    key.split_once('/').is_some_and(|(prefix, name)| {
        prefix.split('.').all(is_label)
            && name.starts_with(|first: char| first.is_ascii_alphanumeric())
            && name.ends_with(|last: char| last.is_ascii_alphanumeric())
            && name
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_have_a_prefix_and_a_name() {
        for right in ["io.modelcontextprotocol/ui", "com.example/a_b.c-d", "a/1"] {
            assert!(is_identifier(right), "{right}");
        }
        for wrong in [
            "ui", "/ui", "a/", "1a/b", "a-/b", "a..b/c", "a/b/c", "a b/c", "a/-b",
        ] {
            assert!(!is_identifier(wrong), "{wrong}");
        }
    }
}
