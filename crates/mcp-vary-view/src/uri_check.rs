//! Whether it can be decided which resource a URI names, and what to write where it cannot.

use std::ops::Range;

use mcp_vary::ignored::shown as cut;

use super::normal::{has_upper, host, is_odd, normal_uri, scheme, triplet, triplets};

/// Why Vary cannot decide which resource a URI names; the text follows the name of the member that holds it.
///
/// Servers and their libraries read such texts in different ways, so that the resource that a selection is asked about
/// may not be the one that is read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{}; {}", self.what(), self.fix())]
pub struct UriFault {
    kind: Kind,
    /// What it is about, as it was written.
    found: String,
    /// What to write, where that is known.
    form: Option<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// `.` or `..` between slashes, however it is written.
    DotSegment,
    /// Two slashes in the path with nothing between them.
    EmptySegment,
    /// `%2F` or `%5C` in the path, or `\`.
    HiddenSlash,
    /// A control character, encoded or not, or white space around the URI.
    Control,
    /// A `%` without two hexadecimal digits, or triplets that are not UTF-8.
    Malformed,
    /// An unreserved character that is encoded, a digit, scheme or host in the wrong case, or a file here that does not begin
    /// with `file:///`.
    Spelling,
}

impl UriFault {
    /// Whether the URI is only another spelling of one that is fine.
    #[must_use]
    pub fn is_spelling(&self) -> bool {
        self.kind == Kind::Spelling
    }

    /// What is wrong.
    #[must_use]
    pub fn what(&self) -> String {
        let found = cut(&self.found);
        match self.kind {
            Kind::DotSegment => format!("has the segment `{found}`"),
            Kind::EmptySegment => "has an empty path segment, `//`".to_owned(),
            Kind::HiddenSlash => format!("has `{found}` in its path"),
            Kind::Control => {
                format!("has a control character, or white space around it: `{found}`")
            }
            Kind::Malformed => format!("has `{found}`, which does not encode a character"),
            Kind::Spelling => format!("has `{found}`, which is not in normal form"),
        }
    }

    /// What to write.
    #[must_use]
    pub fn fix(&self) -> String {
        match &self.form {
            Some(form) => format!("write `{form}`"),
            None => "leave it out".to_owned(),
        }
    }
}

/// Whether it can be decided which resource `uri` names.
///
/// # Errors
///
/// When it has a `.` or `..` segment, an empty one, an encoded slash or backslash in its path, a control character, an
/// encoding that is not one, or when it is not its [normal form](normal_uri). A character that a URI has to encode may
/// stand for itself: that spelling is common, and selections take it for the same.
///
/// # Examples
///
/// ```
/// use crate::check_uri;
///
/// assert!(check_uri("file:///srv/a%20b?path=x%2Fy").is_ok());
/// let fault = check_uri("file:///srv/app/%2e%2e/secret").unwrap_err();
/// assert_eq!(fault.to_string(), "has the segment `%2e%2e`; write `file:///srv/secret`");
///
/// // In a query a slash is a character like another, but a way up is still a way up.
/// assert!(check_uri("fetch:page?url=https://example.org//a").is_ok());
/// assert!(check_uri("files:read?path=../secret").is_err());
/// ```
pub fn check_uri(uri: &str) -> Result<(), UriFault> {
    check(uri, find_fault(uri, |_| true))
}

/// The same of a URI in which only what stands at `values` was not written by its server.
pub(super) fn check_values(uri: &str, values: &[Range<usize>]) -> Result<(), UriFault> {
    let concerns = |fault: &Found| values.iter().any(|value| fault.concerns(value));
    check(uri, find_fault(uri, concerns))
}

fn check(uri: &str, fault: Option<Found>) -> Result<(), UriFault> {
    let Some(Found { kind, at }) = fault else {
        return Ok(());
    };
    Err(UriFault {
        kind,
        found: uri[at].to_owned(),
        form: clean(uri).filter(|form| form.len() <= LONGEST_FORM),
    })
}

/// A fault, and where it is.
struct Found {
    kind: Kind,
    at: Range<usize>,
}

impl Found {
    /// Whether what stands at `value` is part of it.
    fn concerns(&self, value: &Range<usize>) -> bool {
        match self.kind {
            // An empty value beside the dots makes a segment of them.
            Kind::DotSegment => value.start <= self.at.end && self.at.start <= value.end,
            _ => value.start < self.at.end && self.at.start < value.end,
        }
    }
}

/// Longer ones are not repeated in an error.
const LONGEST_FORM: usize = 1_024;

fn find_fault(uri: &str, counts: impl Fn(&Found) -> bool) -> Option<Found> {
    let parts = Parts::of(uri);
    let structure = segments(uri, &parts).chain(empty_segments(uri, &parts));
    let characters = characters(uri, &parts).chain(start(uri));
    let all = structure.chain(characters);
    let mut all = all.map(|(kind, at)| Found { kind, at });
    all.find(counts)
}

/// Where the parts of a URI are.
struct Parts {
    /// Behind the scheme.
    body: usize,
    /// Behind the authority.
    path: usize,
    /// The `?` or `#` that ends the path.
    end: usize,
}

impl Parts {
    fn of(uri: &str) -> Self {
        let body = scheme(uri).map_or(0, |scheme| scheme.end + 1);
        let end = uri[body..].find(['?', '#']);
        let end = end.map_or(uri.len(), |end| body + end);
        let path = match uri[body..end].strip_prefix("//") {
            Some(rest) => end - rest.len() + rest.find('/').unwrap_or(rest.len()),
            None => body,
        };
        Self { body, path, end }
    }
}

/// The `.` and `..` segments, decoded. What separates segments for some reader does so here: `\` for those of Windows and
/// browsers, `;` for those of servlets, `?` for those that know no query.
fn segments(uri: &str, parts: &Parts) -> impl Iterator<Item = (Kind, Range<usize>)> {
    let mut at = parts.body;
    let mut is_after_slash = true;
    let end = parts.end;
    std::iter::from_fn(move || {
        while at <= uri.len() {
            let (length, separator) = next_separator(&uri[at..]);
            let range = at..at + length;
            let is_slash = matches!(separator, "/" | "\\") || separator.len() == 3;
            let was_after_slash = std::mem::replace(&mut is_after_slash, is_slash);
            at = if separator.is_empty() {
                uri.len() + 1
            } else {
                range.end + separator.len()
            };
            let is_dots = match dots(&uri[range.clone()]) {
                Some(2) => true,
                // As a value of a query it is not a way to anywhere.
                Some(1) => range.start < end || was_after_slash || is_slash,
                _ => false,
            };
            if is_dots {
                return Some((Kind::DotSegment, range));
            }
        }
        None
    })
}

/// How many bytes stand before the next separator, and that.
fn next_separator(text: &str) -> (usize, &str) {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'/' | b'\\' | b'?' | b'#' | b'&' | b'=' | b';' => return (at, &text[at..=at]),
            b'%' if matches!(triplet(text, at), Some(b'/' | b'\\')) => {
                return (at, &text[at..at + 3]);
            }
            _ => {}
        }
    }
    (text.len(), "")
}

/// How many dots a segment consists of, encoded or not.
fn dots(segment: &str) -> Option<usize> {
    let mut rest = segment;
    let mut count = 0;
    while !rest.is_empty() {
        let dot = [".", "%2e", "%2E"]
            .iter()
            .find(|dot| rest.starts_with(**dot))?;
        rest = &rest[dot.len()..];
        count += 1;
    }
    (count > 0).then_some(count)
}

fn empty_segments(uri: &str, parts: &Parts) -> impl Iterator<Item = (Kind, Range<usize>)> {
    let start = parts.path;
    let found = uri[start..parts.end].match_indices("//");
    found.map(move |(at, _)| (Kind::EmptySegment, start + at..start + at + 2))
}

/// What is wrong with single characters, and with those that are encoded.
fn characters(uri: &str, parts: &Parts) -> impl Iterator<Item = (Kind, Range<usize>)> {
    let (body, end) = (parts.body, parts.end);
    let outside = (uri.len() - uri.trim_start().len(), uri.trim_end().len());
    let mut run_end = 0;
    uri.char_indices().filter_map(move |(at, c)| {
        let is_in_path = (body..end).contains(&at);
        let kind = match c {
            _ if at < outside.0 || at >= outside.1 || c.is_control() => Kind::Control,
            '\\' if is_in_path => Kind::HiddenSlash,
            '%' => {
                let Some(byte) = triplet(uri, at) else {
                    return Some((Kind::Malformed, at..at + 1));
                };
                if at >= run_end {
                    let (length, bytes) = triplets(&uri[at..]);
                    run_end = at + length;
                    if std::str::from_utf8(&bytes).is_err() {
                        return Some((Kind::Malformed, at..run_end));
                    }
                }
                let kind = match byte {
                    b'/' | b'\\' if is_in_path => Kind::HiddenSlash,
                    0 => Kind::Control,
                    ..0x20 | 0x7F if is_in_path => Kind::Control,
                    byte if is_odd(uri, at, byte) => Kind::Spelling,
                    _ => return None,
                };
                return Some((kind, at..at + 3));
            }
            _ => return None,
        };
        Some((kind, at..at + c.len_utf8()))
    })
}

/// A scheme or host in upper case, and other ways to begin the URI of a file here.
///
/// > file-URI = file-scheme ":" file-hier-part, file-hier-part = ( "//" auth-path ) / local-path
/// > ([RFC 8089, 2](https://www.rfc-editor.org/rfc/rfc8089#section-2))
fn start(uri: &str) -> impl Iterator<Item = (Kind, Range<usize>)> {
    let parts = [scheme(uri), host(uri)].into_iter().flatten();
    let upper = parts.filter(|range| has_upper(uri, range));
    let ranges = upper.chain(local_file(uri));
    ranges.map(|range| (Kind::Spelling, range))
}

/// What stands before the path of a file here, where that is not `file://`.
fn local_file(uri: &str) -> Option<Range<usize>> {
    let rest = uri.get(..5).filter(|it| it.eq_ignore_ascii_case("file:"))?;
    let rest = &uri[rest.len()..];
    let authority = rest.strip_prefix("//");
    let Some(authority) = authority else {
        return rest.starts_with('/').then_some(0..5);
    };
    let host = &authority[..authority.find('/').unwrap_or(authority.len())];
    host.eq_ignore_ascii_case("localhost")
        .then_some(0..7 + host.len())
}

/// A URI that is fine and that the author of `uri` most likely meant.
fn clean(uri: &str) -> Option<String> {
    let uri = uri.replace(|c: char| c.is_control(), "");
    let mut uri = normal_uri(uri.trim()).into_owned();
    if let Some(start) = local_file(&uri) {
        uri.replace_range(start, "file://");
    }
    let Parts { path, end, .. } = Parts::of(&uri);
    let slashes = uri[path..end].replace("%2F", "/");
    let slashes = slashes.replace("%5C", "/").replace('\\', "/");
    let mut segments: Vec<&str> = Vec::new();
    for segment in slashes.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            name => segments.push(name),
        }
    }
    let first = if slashes.starts_with('/') { "/" } else { "" };
    let is_folder = !segments.is_empty() && slashes.ends_with('/');
    let last = if is_folder { "/" } else { "" };
    let clean = format!(
        "{}{first}{}{last}{}",
        &uri[..path],
        segments.join("/"),
        &uri[end..]
    );
    find_fault(&clean, |_| true).is_none().then_some(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is_fine(uri: &str) {
        assert_eq!(check_uri(uri), Ok(()));
    }

    #[test]
    fn what_can_be_decided_is_fine() {
        for uri in [
            "file:///srv/docs/app/readme.md",
            "docs:guide/start/",
            "docs:/guide",
            "docs://localhost/guide",
            "file://server/share",
            "file:a",
            "docs:///{+path}",
            "demo://resource/static/document/a..b...c",
            "search:x?q=a%2Fb//c&d=.&e=%0A",
            "fetch:x?url=https%3A%2F%2Fexample.org%2F",
            "a:é b",
            "a:caf%C3%A9",
            "a://",
            "a:",
            "x",
            "",
        ] {
            is_fine(uri);
        }
    }

    #[track_caller]
    fn is_refused(uri: &str, why: &str) {
        assert_eq!(check_uri(uri).unwrap_err().to_string(), why, "{uri}");
    }

    #[test]
    fn what_cannot_be_decided_says_what_to_write() {
        let up = |found: &str| format!("has the segment `{found}`; write `a:///c`");
        for dots in ["..", "%2e%2e", ".%2E"] {
            is_refused(&format!("a:///b/{dots}/c"), &up(dots));
            is_refused(&format!("a:///b/{dots}%2fc"), &up(dots));
            is_refused(&format!("a:///b/{dots}%5cc"), &up(dots));
        }
        is_refused("a:///b/..\\c", "has the segment `..`; write `a:///c`");
        is_refused("a:./b", "has the segment `.`; write `a:b`");
        is_refused("a:///b/..;x/c", "has the segment `..`; leave it out");
        is_refused("a:///b?/../c", "has the segment `..`; leave it out");
        is_refused("a:b?c=./d", "has the segment `.`; leave it out");
        is_refused(
            "a:///b//c",
            "has an empty path segment, `//`; write `a:///b/c`",
        );
        is_refused("a:////b", "has an empty path segment, `//`; write `a:///b`");
        is_refused("a:b%2fc", "has `%2f` in its path; write `a:b/c`");
        is_refused("a:b\\c", "has `\\\\` in its path; write `a:b/c`");
        is_refused(
            "a:%62",
            "has `%62`, which is not in normal form; write `a:b`",
        );
        is_refused(
            "a:%3a",
            "has `%3a`, which is not in normal form; write `a:%3A`",
        );
        is_refused("A:b", "has `A`, which is not in normal form; write `a:b`");
        is_refused(
            "http://A.b/C",
            "has `A.b`, which is not in normal form; write `http://a.b/C`",
        );
        is_refused(
            "a:b%",
            "has `%`, which does not encode a character; leave it out",
        );
        is_refused(
            "a:%C0%AE",
            "has `%C0%AE`, which does not encode a character; leave it out",
        );
        is_refused(
            "a:b%00",
            "has a control character, or white space around it: `%00`; leave it out",
        );
        is_refused(
            "a:b\t",
            "has a control character, or white space around it: `\\t`; write `a:b`",
        );
        is_refused(
            " a:b",
            "has a control character, or white space around it: ` `; write `a:b`",
        );
    }
}
