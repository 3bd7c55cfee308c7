//! The normal form of a URI: which spellings name the same resource.

use std::borrow::Cow;
use std::ops::Range;

/// The normal form of a URI ([RFC 3986, 6.2.2](https://www.rfc-editor.org/rfc/rfc3986#section-6.2.2)), except for
/// dot segments, which stay: a server that does not resolve them has another resource there.
///
/// # Grammar
///
/// | part | in the normal form |
/// |---|---|
/// | scheme | lower case |
/// | host of `http`, `https`, `ws`, `wss` | lower case; other schemes: unchanged, since it may be a name |
/// | `%7e`, `%3a` | hexadecimal digits in upper case |
/// | `%7E`, an unreserved character (`A-Z a-z 0-9 - . _ ~`) | the character |
/// | everything else | unchanged |
///
/// # Properties
///
/// Total: a text that is not a URI, or has a `%` without two hexadecimal digits, is its own normal form. Idempotent.
/// Never longer than `uri`. A URI in normal form needs no allocation.
///
/// # Examples
///
/// ```
/// use mcp_vary_view::normal_uri;
///
/// assert_eq!(normal_uri("FILE:///srv/%73ecret%2a"), "file:///srv/secret%2A");
/// assert_eq!(normal_uri("HTTPS://Example.ORG/A"), "https://example.org/A");
///
/// // The authority of other schemes may be anything, so its case counts.
/// assert_eq!(normal_uri("repo://Acme/site"), "repo://Acme/site");
/// ```
pub fn normal_uri(uri: &str) -> Cow<'_, str> {
    rewritten(uri, Decode::Unreserved)
}

/// The text that all equivalent spellings of a URI share: the [normal form](normal_uri) with every character decoded
/// that has no special meaning in a URI, such as a space or `é`.
///
/// # Properties
///
/// Total, idempotent, and never longer than `uri`. A URI without `%` and without upper case at its start needs no
/// allocation.
///
/// # Examples
///
/// ```
/// use mcp_vary_view::uri_identity;
///
/// assert_eq!(uri_identity("file:///srv/caf%c3%a9%20menu"), uri_identity("file:///srv/café menu"));
///
/// // These are two resources: one has a query.
/// assert_ne!(uri_identity("file:///srv/a%3Fb"), uri_identity("file:///srv/a?b"));
/// ```
pub fn uri_identity(uri: &str) -> Cow<'_, str> {
    rewritten(uri, Decode::Meaningless)
}

/// `uri` as a lenient reader decodes it: everything but `%` and control characters.
pub(super) fn decoded(uri: &str) -> Cow<'_, str> {
    rewritten(uri, Decode::All)
}

/// Which percent-encoded characters are decoded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Decode {
    /// Characters that never need encoding.
    Unreserved,
    /// Characters without special meaning to any reader: not reserved, not `%`, and neither braces nor `\`, which
    /// have a meaning in templates and for some servers.
    Meaningless,
    /// Everything but `%` and control characters.
    All,
}

impl Decode {
    pub(super) fn decodes(self, c: char) -> bool {
        match self {
            Self::Unreserved => is_unreserved(c),
            Self::Meaningless => {
                !c.is_control() && !is_reserved(c) && !matches!(c, '%' | '{' | '}' | '\\')
            }
            Self::All => !c.is_control() && c != '%',
        }
    }
}

/// > unreserved = ALPHA / DIGIT / "-" / "." / "_" / "~"
fn is_unreserved(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~')
}

/// > reserved = gen-delims / sub-delims
fn is_reserved(c: char) -> bool {
    matches!(c, ':' | '/' | '?' | '#' | '[' | ']' | '@')
        || matches!(
            c,
            '!' | '$' | '&' | '\'' | '(' | ')' | '*' | '+' | ',' | ';' | '='
        )
}

fn rewritten(uri: &str, decode: Decode) -> Cow<'_, str> {
    if decode == Decode::Unreserved && !has_non_normal_triplet(uri) {
        return with_lowercase_prefix(Cow::Borrowed(uri));
    }
    match decoded_triplets(uri, decode) {
        Some(decoded) => with_lowercase_prefix(decoded),
        None => Cow::Borrowed(uri),
    }
}

/// Whether a triplet encodes an unreserved character, is malformed, or has a lowercase digit.
fn has_non_normal_triplet(uri: &str) -> bool {
    let mut triplets = uri.match_indices('%');
    triplets.any(|(at, _)| triplet(uri, at).is_none_or(|byte| is_non_normal(uri, at, byte)))
}

pub(super) fn is_non_normal(uri: &str, at: usize, byte: u8) -> bool {
    is_unreserved(char::from(byte)) || uri[at..at + 3].bytes().any(|c| c.is_ascii_lowercase())
}

/// The byte that `%XX` at `at` encodes.
pub(super) fn triplet(uri: &str, at: usize) -> Option<u8> {
    let digit = |offset: usize| {
        let byte = *uri.as_bytes().get(at + offset)?;
        char::from(byte).to_digit(16)
    };
    u8::try_from(digit(1)? * 16 + digit(2)?).ok()
}

/// `text` with the triplets of `decode` decoded and the others in upper case; `None` if a `%` is not followed by two
/// hexadecimal digits.
fn decoded_triplets(text: &str, decode: Decode) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(next) = text[at..].find('%') {
        out.push_str(&text[at..at + next]);
        at += next;
        let (length, bytes) = triplets(&text[at..]);
        at += length;
        if text.as_bytes().get(at) == Some(&b'%') {
            return None;
        }
        push_decoded(&mut out, &bytes, |c| decode.decodes(c).then_some(false));
    }
    out.push_str(&text[at..]);
    Some(if out == text {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(out)
    })
}

/// The length of the triplets at the start of `text`, and the bytes that they encode: the bytes of one character are
/// read together.
pub(super) fn triplets(text: &str) -> (usize, Vec<u8>) {
    let mut bytes = Vec::new();
    while text.as_bytes().get(bytes.len() * 3) == Some(&b'%')
        && let Some(byte) = triplet(text, bytes.len() * 3)
    {
        bytes.push(byte);
    }
    (bytes.len() * 3, bytes)
}

/// Writes `bytes`. `takes` decides for each character: `Some` writes it decoded, behind a `\` if true; `None` writes
/// it as triplets.
pub(super) fn push_decoded(out: &mut String, bytes: &[u8], takes: impl Fn(char) -> Option<bool>) {
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match takes(c) {
                Some(is_escaped) => {
                    out.extend(is_escaped.then_some('\\'));
                    out.push(c);
                }
                None => push_triplets(out, c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        push_triplets(out, chunk.invalid());
    }
}

fn push_triplets(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        out.push_str(&format!("%{byte:02X}"));
    }
}

/// Lowers the case of the scheme, and of the host if it is case-insensitive.
pub(super) fn with_lowercase_prefix(uri: Cow<'_, str>) -> Cow<'_, str> {
    let ranges = [scheme(&uri), host(&uri)];
    let mut upper = ranges.iter().flatten().filter(|span| has_upper(&uri, span));
    if upper.next().is_none() {
        return uri;
    }
    let mut normal = uri.into_owned();
    for range in ranges.into_iter().flatten() {
        let lowered = lower(&normal[range.clone()]).into_owned();
        normal.replace_range(range, &lowered);
    }
    Cow::Owned(normal)
}

pub(super) fn has_upper(uri: &str, range: &Range<usize>) -> bool {
    let part = &uri[range.clone()];
    lower(part) != part
}

/// `text` in lower case, except for the digits of triplets.
fn lower(text: &str) -> Cow<'_, str> {
    if !text.contains(|c: char| c.is_ascii_uppercase()) {
        return Cow::Borrowed(text);
    }
    let mut bytes = text.chars();
    let mut out = String::with_capacity(text.len());
    while let Some(c) = bytes.next() {
        out.push(c.to_ascii_lowercase());
        if c == '%' {
            out.extend(bytes.by_ref().take(2));
        }
    }
    Cow::Owned(out)
}

/// > scheme = ALPHA *( ALPHA / DIGIT / "+" / "-" / "." )
/// > ([RFC 3986, 3.1](https://www.rfc-editor.org/rfc/rfc3986#section-3.1))
pub(super) fn is_scheme(text: &str) -> bool {
    let may_be = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(may_be)
}

pub(super) fn scheme(uri: &str) -> Option<Range<usize>> {
    let (scheme, _) = uri.split_once(':')?;
    is_scheme(scheme).then_some(0..scheme.len())
}

/// The host with its port, if it is case-insensitive.
pub(super) fn host(uri: &str) -> Option<Range<usize>> {
    let scheme = scheme(uri)?;
    let is_known = ["http", "https", "ws", "wss"]
        .iter()
        .any(|known| uri[scheme.clone()].eq_ignore_ascii_case(known));
    let start = scheme.end + 3;
    if !is_known || !uri[scheme.end..].starts_with("://") {
        return None;
    }
    let found = uri[start..].find(['/', '?', '#', '\\']);
    let end = found.map_or(uri.len(), |at| start + at);
    let userinfo = uri[start..end].rfind('@').map_or(0, |at| at + 1);
    Some(start + userinfo..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is_normally(uri: &str, normal: &str) {
        assert_eq!(normal_uri(uri), normal, "{uri}");
        assert!(matches!(normal_uri(normal), Cow::Borrowed(_)), "{normal}");
    }

    #[test]
    fn a_uri_has_one_normal_form() {
        for same in [
            "file:///srv/a%20b",
            "file:///srv/caf%C3%A9?a=%2F#%23",
            "x:é b",
            "mailto:Me@Example.org",
            "docs://Guide/A",
            "file:///a/../b",
            "100%",
            "A:%4%",
            "",
            "no uri",
            ":x",
        ] {
            is_normally(same, same);
        }
        is_normally("FILE:///%73e%63ret", "file:///secret");
        is_normally("a:%2f%3a%7e%7E", "a:%2F%3A~~");
        is_normally(
            "WSS://Me:P@Example.ORG:80/A?B",
            "wss://Me:P@example.org:80/A?B",
        );
        is_normally("http://%41%c3%a9B", "http://a%C3%A9b");
        is_normally("%46ILE:x", "file:x");
    }

    #[test]
    fn what_one_character_is_written_as_is_known_for_one() {
        for (one, other) in [
            ("a:b c", "a:b%20c"),
            ("a:é", "a:%c3%a9"),
            ("A:%7e", "a:~"),
            ("a:\"<>^`|", "a:%22%3C%3E%5E%60%7C"),
        ] {
            assert_eq!(uri_identity(one), uri_identity(other));
        }
        for (one, other) in [
            ("a:b?c", "a:b%3Fc"),
            ("a:?b&c", "a:?b%26c"),
            ("a:%2573", "a:%73"),
            ("a:%C3", "a:\u{c3}"),
            ("a:%C0%AE", "a:."),
        ] {
            assert_ne!(uri_identity(one), uri_identity(other));
        }
        assert_eq!(decoded("a:%28%29%2f%2573%00"), "a:()/%2573%00");
    }
}
