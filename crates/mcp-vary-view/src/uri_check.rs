//! Checks that a URI is unambiguous, and suggests what to write if it is not.

use std::ops::Range;

use mcp_vary::ignored::for_display as cut;

use super::normal::{has_upper, host, is_non_normal, normal_uri, scheme, triplet, triplets};

/// Why a URI is ambiguous; the text follows the name of the member that holds it.
///
/// Servers and their libraries read such URIs differently, so the selection could allow one resource while the
/// server reads another.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{}; {}", self.problem(), self.fix())]
pub struct UriRejection {
    kind: Kind,
    /// The offending part, as written.
    found: String,
    /// The suggested URI, if one is known.
    normal_form: Option<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// `.` or `..` between slashes, encoded or not.
    DotSegment,
    /// Two slashes in the path with nothing between them.
    EmptySegment,
    /// `%2F` or `%5C` in the path, or `\`.
    HiddenSlash,
    /// A control character, encoded or not, or white space at either end.
    Control,
    /// A `%` without two hexadecimal digits, or triplets that are not UTF-8.
    Malformed,
    /// An encoded unreserved character, a digit, scheme or host in the wrong case, or a local file that does not
    /// begin with `file:///`.
    Spelling,
}

impl UriRejection {
    /// Whether the URI is just another spelling of a valid one.
    pub fn is_spelling(&self) -> bool {
        self.kind == Kind::Spelling
    }

    /// The problem.
    pub fn problem(&self) -> String {
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

    /// How to fix it.
    pub fn fix(&self) -> String {
        match &self.normal_form {
            Some(form) => format!("write `{form}`"),
            None => "leave it out".to_owned(),
        }
    }
}

/// Checks that `uri` is unambiguous.
///
/// # Errors
///
/// When it has a `.` or `..` segment, an empty segment, an encoded slash or backslash in its path, a control
/// character, a malformed encoding, or when it is not in [normal form](normal_uri). A character that should be
/// encoded may be written as itself: that is common, and selections treat both alike.
///
/// # Examples
///
/// ```
/// use mcp_vary_view::check_uri;
///
/// assert!(check_uri("file:///srv/a%20b?path=x%2Fy").is_ok());
/// let fault = check_uri("file:///srv/app/%2e%2e/secret").unwrap_err();
/// assert_eq!(fault.to_string(), "has the segment `%2e%2e`; write `file:///srv/secret`");
///
/// // In a query a slash is an ordinary character, but `..` may still lead out of a folder.
/// assert!(check_uri("fetch:page?url=https://example.org//a").is_ok());
/// assert!(check_uri("files:read?path=../secret").is_err());
/// ```
pub fn check_uri(uri: &str) -> Result<(), UriRejection> {
    check(uri, find_issue(uri, |_| true))
}

/// Like [`check_uri`], for a URI of which the client wrote only the parts at `values`.
pub(super) fn check_values(uri: &str, values: &[Range<usize>]) -> Result<(), UriRejection> {
    let concerns = |fault: &UriIssue| values.iter().any(|value| fault.concerns(value));
    check(uri, find_issue(uri, concerns))
}

fn check(uri: &str, fault: Option<UriIssue>) -> Result<(), UriRejection> {
    let Some(UriIssue { kind, at }) = fault else {
        return Ok(());
    };
    Err(UriRejection {
        kind,
        found: uri[at].to_owned(),
        normal_form: suggested_uri(uri).filter(|form| form.len() <= MAX_SUGGESTION),
    })
}

/// One problem and its position.
struct UriIssue {
    kind: Kind,
    at: Range<usize>,
}

impl UriIssue {
    /// Whether the text at `value` is part of the problem.
    fn concerns(&self, value: &Range<usize>) -> bool {
        match self.kind {
            // An empty value next to dots turns them into a segment.
            Kind::DotSegment => value.start <= self.at.end && self.at.start <= value.end,
            _ => value.start < self.at.end && self.at.start < value.end,
        }
    }
}

/// Longer suggestions are omitted from errors.
const MAX_SUGGESTION: usize = 1_024;

fn find_issue(uri: &str, counts: impl Fn(&UriIssue) -> bool) -> Option<UriIssue> {
    let parts = Parts::of(uri);
    let structure = segments(uri, &parts).chain(empty_segments(uri, &parts));
    let misplaced = characters(uri, &parts).chain(non_normal_start(uri));
    let all = structure.chain(misplaced);
    let mut issues = all.map(|(kind, at)| UriIssue { kind, at });
    issues.find(counts)
}

/// The positions of the parts of a URI.
struct Parts {
    /// The end of the scheme.
    body: usize,
    /// The end of the authority.
    path: usize,
    /// The `?` or `#` that ends the path.
    end: usize,
}

impl Parts {
    fn of(uri: &str) -> Self {
        let body = scheme(uri).map_or(0, |scheme| scheme.end + 1);
        let found = uri[body..].find(['?', '#']);
        let end = found.map_or(uri.len(), |at| body + at);
        let path = match uri[body..end].strip_prefix("//") {
            Some(remaining) => {
                end - remaining.len() + remaining.find('/').unwrap_or(remaining.len())
            }
            None => body,
        };
        Self { body, path, end }
    }
}

/// Finds `.` and `..` segments, decoded. Everything that separates segments for some reader counts: `\` for Windows
/// and browsers, `;` for servlets, `?` for readers without queries.
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
                // A single dot as a query value leads nowhere.
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

/// The number of bytes before the next separator, and the separator.
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

/// The number of dots if a segment consists only of dots, encoded or not.
fn dots(segment: &str) -> Option<usize> {
    let mut remaining = segment;
    let mut count = 0;
    while !remaining.is_empty() {
        let dot = [".", "%2e", "%2E"]
            .iter()
            .find(|dot| remaining.starts_with(**dot))?;
        remaining = &remaining[dot.len()..];
        count += 1;
    }
    (count > 0).then_some(count)
}

fn empty_segments(uri: &str, parts: &Parts) -> impl Iterator<Item = (Kind, Range<usize>)> {
    let start = parts.path;
    let found = uri[start..parts.end].match_indices("//");
    found.map(move |(at, _)| (Kind::EmptySegment, start + at..start + at + 2))
}

/// Finds problems of single characters, encoded or not.
fn characters(uri: &str, parts: &Parts) -> impl Iterator<Item = (Kind, Range<usize>)> {
    let Parts { body, end, .. } = *parts;
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
                    byte if is_non_normal(uri, at, byte) => Kind::Spelling,
                    _ => return None,
                };
                return Some((kind, at..at + 3));
            }
            _ => return None,
        };
        Some((kind, at..at + c.len_utf8()))
    })
}

/// Finds a scheme or host in upper case, and non-normal starts of local file URIs.
///
/// > file-URI = file-scheme ":" file-hier-part, file-hier-part = ( "//" auth-path ) / local-path
/// > ([RFC 8089, 2](https://www.rfc-editor.org/rfc/rfc8089#section-2))
fn non_normal_start(uri: &str) -> impl Iterator<Item = (Kind, Range<usize>)> {
    let parts = [scheme(uri), host(uri)].into_iter().flatten();
    let upper = parts.filter(|range| has_upper(uri, range));
    let ranges = upper.chain(local_file(uri));
    ranges.map(|range| (Kind::Spelling, range))
}

/// The text before the path of a local file URI, if it is not `file://`.
fn local_file(uri: &str) -> Option<Range<usize>> {
    let remaining = uri.get(..5).filter(|it| it.eq_ignore_ascii_case("file:"))?;
    let remaining = &uri[remaining.len()..];
    let authority = remaining.strip_prefix("//");
    let Some(authority) = authority else {
        return remaining.starts_with('/').then_some(0..5);
    };
    let host = &authority[..authority.find('/').unwrap_or(authority.len())];
    host.eq_ignore_ascii_case("localhost")
        .then_some(0..7 + host.len())
}

/// A valid URI that the author of `uri` most likely meant.
fn suggested_uri(uri: &str) -> Option<String> {
    let printable = uri.replace(|c: char| c.is_control(), "");
    let mut uri = normal_uri(printable.trim()).into_owned();
    if let Some(start) = local_file(&uri) {
        uri.replace_range(start, "file://");
    }
    let Parts { path, end, .. } = Parts::of(&uri);
    let decoded = uri[path..end].replace("%2F", "/").replace("%5C", "/");
    let slashes = decoded.replace('\\', "/");
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
    find_issue(&clean, |_| true).is_none().then_some(clean)
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
