//! The parser of challenges, for the fuzz target. Not part of the API.

use http::HeaderValue;

use crate::challenge::Challenge;

/// The parameters of the challenge that are read, as a challenge; `None` if there are none.
#[must_use]
pub fn challenge(value: &HeaderValue) -> Option<String> {
    let parsed = Challenge::parse(std::slice::from_ref(value));
    let scope = parsed.scope.map(|scope| scope.to_string());
    let parameters = [
        ("error", parsed.error),
        ("scope", scope),
        ("resource_metadata", parsed.resource_metadata),
    ];
    let quoted = |text: String| text.replace('\\', "\\\\").replace('"', "\\\"");
    let written = parameters.into_iter().filter_map(|(name, value)| {
        let value = quoted(value?);
        Some(format!("{name}=\"{value}\""))
    });
    let written: Vec<_> = written.collect();
    (!written.is_empty()).then(|| format!("Bearer {}", written.join(", ")))
}
