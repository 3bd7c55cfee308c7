//! The feature tags of the registry.

use super::{Format, Verbosity};
use crate::feature_tag::FeatureTag;

/// The registered tags without a value. `format` and `verbosity` have values: [`Format::ALL`] and [`Verbosity::ALL`].
pub const REGISTERED: [&str; 8] = [
    "agent",
    "human",
    "mcp-capable",
    "interactive",
    "sampling",
    "elicitation",
    "roots",
    "tasks",
];

/// Whether the registry defines `tag`, in whatever form: `!tasks` is registered because `tasks` is.
///
/// # Examples
///
/// ```
/// use mcp_vary::feature::is_registered;
///
/// assert!(is_registered(&"interactive".parse()?) && is_registered(&"format!=json".parse()?));
/// assert!(!is_registered(&"x-acme".parse()?));
///
/// // The registry defines the key, but not this value.
/// assert!(!is_registered(&"format=xml".parse()?));
/// # Ok::<(), mcp_vary::feature::TagError>(())
/// ```
#[must_use]
pub fn is_registered(tag: &FeatureTag) -> bool {
    match (tag.key(), tag.value()) {
        ("format", Some(value)) => Format::from_value(value).is_some(),
        ("verbosity", Some(value)) => Verbosity::from_value(value).is_some(),
        (key, value) => REGISTERED.contains(&key) && value.is_none(),
    }
}
