//! What a server's `WWW-Authenticate` asks for (RFC 6750, section 3; RFC 9728, section 5.1).

use http::HeaderValue;

use crate::scope::Scopes;

/// The parameters of the `Bearer` challenge of a response.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Challenge {
    /// Why the request was refused.
    pub error: Option<String>,
    /// The scopes that the request needs.
    pub scope: Option<Scopes>,
    /// The address of the metadata of the protected resource.
    pub resource_metadata: Option<String>,
}

impl Challenge {
    /// The first `Bearer` challenge of these header values; none of its parameters if there is no such challenge.
    #[must_use]
    pub fn parse(values: &[HeaderValue]) -> Self {
        let texts = values.iter().take(MAX_VALUES).map(HeaderValue::as_bytes);
        let mut found = texts
            .filter(|bytes| bytes.len() <= MAX_VALUE)
            .filter_map(|bytes| std::str::from_utf8(bytes).ok())
            .filter_map(bearer);
        found.next().unwrap_or_default()
    }

    pub(crate) fn is_insufficient_scope(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }
}

/// The `Bearer` challenge of a header value, which may have other challenges (RFC 9110, section 11.6.1).
fn bearer(text: &str) -> Option<Challenge> {
    let mut challenge: Option<Challenge> = None;
    for part in parts(text) {
        let (name, value) = match part.split_once('=') {
            // `Bearer realm="x"`: a scheme, then its first parameter.
            Some((before, value)) => match before.trim().rsplit_once([' ', '\t']) {
                Some((scheme, name)) => {
                    if challenge.is_some() {
                        break;
                    }
                    challenge = is_bearer(scheme).then(Challenge::default);
                    (name, value)
                }
                None => (before.trim(), value),
            },
            None if challenge.is_some() => break,
            None => {
                challenge = is_bearer(part).then(Challenge::default);
                continue;
            }
        };
        if let Some(challenge) = &mut challenge {
            challenge.set(name, unquoted(value.trim()));
        }
    }
    challenge
}

impl Challenge {
    /// Sets a parameter. The first value counts.
    fn set(&mut self, name: &str, value: String) {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        if is("error") {
            self.error.get_or_insert(value);
        } else if is("scope") {
            let scopes = Scopes::parse(&value);
            if !scopes.is_empty() {
                self.scope.get_or_insert(scopes);
            }
        } else if is("resource_metadata") {
            self.resource_metadata.get_or_insert(value);
        }
    }
}

fn is_bearer(scheme: &str) -> bool {
    scheme.trim().eq_ignore_ascii_case("bearer")
}

/// `text` split at the commas that are not inside of quotation marks.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    let parts = text.split(move |character| {
        let was_escaped = std::mem::take(&mut is_escaped);
        match character {
            '"' if !was_escaped => is_quoted = !is_quoted,
            '\\' if is_quoted && !was_escaped => is_escaped = true,
            ',' => return !is_quoted,
            _ => {}
        }
        false
    });
    parts.map(str::trim).filter(|part| !part.is_empty())
}

/// The value of a token or of a quoted string.
fn unquoted(value: &str) -> String {
    let inner = value
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    let Some(inner) = inner else {
        return value.to_owned();
    };
    let mut text = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.extend(characters.next()),
            character => text.push(character),
        }
    }
    text
}

/// The most header values that are read, and the most bytes of one.
const MAX_VALUES: usize = 8;
const MAX_VALUE: usize = 8 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(value: &str, expected: [Option<&str>; 3]) {
        let challenge = Challenge::parse(&[HeaderValue::from_str(value).unwrap()]);
        let scope = challenge.scope.as_ref().map(Scopes::to_string);
        let found = [challenge.error, scope, challenge.resource_metadata];
        assert_eq!(found.each_ref().map(Option::as_deref), expected, "{value}");
    }

    #[test]
    fn a_bearer_challenge_is_found_among_others() {
        let (scope, metadata) = (Some("a b"), Some("https://x/y"));
        reads("Bearer", [None; 3]);
        reads("", [None; 3]);
        reads("Basic realm=\"x\"", [None; 3]);
        reads(
            "Bearer error=\"insufficient_scope\", scope=\"a b\", resource_metadata=\"https://x/y\"",
            [Some("insufficient_scope"), scope, metadata],
        );
        reads(
            "bearer SCOPE=a,resource_metadata=https://x/y",
            [None, Some("a"), metadata],
        );
        reads(
            "Basic realm=\"Bearer scope=z\", Bearer scope=\"a b\"",
            [None, scope, None],
        );
        reads(
            "Bearer scope=\"a b\", Basic scope=\"z\"",
            [None, scope, None],
        );
        reads(
            "Negotiate, Bearer resource_metadata=\"https://x/y\"",
            [None, None, metadata],
        );
        reads(
            "DPoP algs=\"ES256\", Bearer scope=a",
            [None, Some("a"), None],
        );
        reads(
            "Bearer realm=\"a, \\\"b\", error=x",
            [Some("x"), None, None],
        );
        reads("Bearer scope=\"a\", scope=\"b\"", [None, Some("a"), None]);
        reads("Bearer scope=\"\"", [None; 3]);
        reads(
            "Bearer error=\"unclosed, scope=a",
            [Some("\"unclosed, scope=a"), None, None],
        );
    }

    #[test]
    fn the_first_value_with_a_bearer_challenge_counts() {
        let values = ["Basic realm=x", "Bearer scope=a", "Bearer scope=b"];
        let challenge = Challenge::parse(&values.map(HeaderValue::from_static));
        assert_eq!(challenge.scope.unwrap().to_string(), "a");
        let long = format!("Bearer scope={}", "x".repeat(MAX_VALUE));
        let challenge = Challenge::parse(&[HeaderValue::from_str(&long).unwrap()]);
        assert_eq!(challenge, Challenge::default());
    }
}
