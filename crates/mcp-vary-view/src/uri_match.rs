//! Selections on URIs: patterns match resources, not single spellings of their URIs.

use std::borrow::Cow;

use globset::GlobMatcher;

use super::normal::{self, Decode, decoded, uri_identity};
use super::select::{Candidate, Pattern, Rule, Selection};

impl Pattern {
    /// The pattern in the form of [`uri_identity`] or [`decoded`].
    fn form(&self, decode: Decode) -> &GlobMatcher {
        let form = match decode {
            Decode::All => &self.uri_forms.decoded,
            _ => &self.uri_forms.identity,
        };
        let matcher = form.get_or_init(|| {
            let text = self.as_str();
            let pattern = rewritten(text, decode);
            let is_same = pattern == text;
            // A pattern that compiled with encoded characters compiles with escaped ones.
            (!is_same).then(|| Self::glob(&pattern).ok()).flatten()
        });
        matcher.as_ref().unwrap_or(&self.glob)
    }

    /// Whether the pattern covers more than the path.
    fn names_query(&self) -> bool {
        self.as_str().contains(AFTER_PATH)
    }
}

/// Characters that end the path for some readers.
const AFTER_PATH: [char; 3] = ['?', '#', ';'];

/// The pattern with the characters of `decode` decoded, and escaped if they would become wildcards.
fn rewritten(pattern: &str, decode: Decode) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut remaining = pattern;
    while let Some(at) = remaining.find(['%', '[', '\\']) {
        out.push_str(&remaining[..at]);
        remaining = &remaining[at..];
        let length = match remaining.as_bytes()[0] {
            b'[' => class_length(remaining),
            b'\\' => 1 + remaining[1..].chars().next().map_or(0, char::len_utf8),
            _ => {
                let (length, bytes) = normal::triplets(remaining);
                normal::push_decoded(&mut out, &bytes, |c| {
                    decode.decodes(c).then(|| is_wildcard(c))
                });
                if length > 0 {
                    remaining = &remaining[length..];
                    continue;
                }
                1
            }
        };
        out.push_str(&remaining[..length]);
        remaining = &remaining[length..];
    }
    out.push_str(remaining);
    normal::with_lowercase_prefix(Cow::Owned(out)).into_owned()
}

fn is_wildcard(c: char) -> bool {
    matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | ',' | '\\' | '!')
}

/// The length of the character class at the start of `pattern`; a `]` as its first member does not end it.
fn class_length(pattern: &str) -> usize {
    let inner = pattern[1..].trim_start_matches(['!', '^']);
    let start = pattern.len() - inner.len();
    let skip = inner.chars().next().map_or(0, char::len_utf8);
    let end = inner[skip..].find(']');
    end.map_or(pattern.len(), |end| start + skip + end + 1)
}

/// A URI from a client, in all forms that a selection compares.
struct RequestedUri<'u> {
    uri: &'u str,
    identity: Cow<'u, str>,
    /// The length of its path.
    path: usize,
    /// The URI and its possible paths, each as a lenient reader decodes it.
    lenient_forms: Vec<Cow<'u, str>>,
}

impl<'u> RequestedUri<'u> {
    fn new(uri: &'u str) -> Self {
        let identity = uri_identity(uri);
        let cut = |ends: &[char]| &uri[..uri.find(ends).unwrap_or(uri.len())];
        let mut all = vec![
            uri,
            cut(&AFTER_PATH[..1]),
            cut(&AFTER_PATH[..2]),
            cut(&AFTER_PATH),
        ];
        all.extend(all.clone().iter().map(|form| form.trim_end_matches('/')));
        all.dedup();
        Self {
            uri,
            path: identity.find(AFTER_PATH).unwrap_or(identity.len()),
            identity,
            lenient_forms: all.into_iter().map(decoded).collect(),
        }
    }

    /// A pattern without a query must also match the path alone.
    fn is_included(&self, pattern: &Pattern) -> bool {
        let pattern_form = pattern.form(Decode::Meaningless);
        pattern_form.is_match(&*self.identity)
            && (pattern.names_query() || pattern_form.is_match(&self.identity[..self.path]))
    }

    fn is_excluded(&self, pattern: &Pattern) -> bool {
        let form = pattern.form(Decode::All);
        let mut lenient = self.lenient_forms.iter();
        pattern.matches(self.uri) || lenient.any(|uri| form.is_match(&**uri))
    }
}

impl Rule {
    /// Whether the rule matches a listed resource in any spelling.
    pub(super) fn matches_resource(&self, item: Candidate<'_>) -> bool {
        self.matches_listed(item, Decode::All)
    }

    fn matches_listed(&self, item: Candidate<'_>, decode: Decode) -> bool {
        self.matches_with(item, true, |pattern, uri| {
            let form = match decode {
                Decode::All => decoded(uri),
                _ => uri_identity(uri),
            };
            pattern.matches(uri) || pattern.form(decode).is_match(&*form)
        })
    }
}

impl Selection {
    /// Whether the selection includes a resource or template that its server lists under this URI.
    ///
    /// Patterns and URIs are compared in a form that all spellings of a URI share.
    pub fn selects_resource(&self, item: Candidate<'_>) -> bool {
        let holds = |rules: &[Rule], decode| {
            let matches = |rule: &Rule| rule.matches_listed(item, decode);
            rules.iter().any(matches)
        };
        let included = self.include.is_empty() || holds(&self.include, Decode::Meaningless);
        self.covers(item.server) && included && !holds(&self.exclude, Decode::All)
    }

    /// Whether the selection includes a resource that no server lists, under the URI that a client wrote.
    ///
    /// Exclusions apply in every encoding, and also with a query, a fragment or a trailing slash: some servers
    /// ignore these. For the same reason, an `include` pattern without `?`, `#` and `;` must also match the URI
    /// without them.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary_view::{Candidate, Selection};
    ///
    /// let selection: Selection =
    ///     serde_json::from_str(r#"{"include": ["file:///srv/*.md"], "exclude": ["file:///srv/secret.md"]}"#)?;
    /// let selects = |uri| {
    ///     selection.selects_unlisted_resource(Candidate { name: uri, upstream_name: uri, server: "files", hints: None })
    /// };
    /// assert!(selects("file:///srv/a%20b.md"));
    /// assert!(!selects("file:///srv/secret%2Emd"));
    ///
    /// // A server that uses only the path reads `key`, which is not markdown.
    /// assert!(!selects("file:///srv/key?.md"));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn selects_unlisted_resource(&self, item: Candidate<'_>) -> bool {
        let requested = RequestedUri::new(item.upstream_name);
        let included = |rule: &Rule| {
            let by_upstream_name = rule.server.is_some();
            rule.matches_with(item, by_upstream_name, |pattern, _| {
                requested.is_included(pattern)
            })
        };
        let excluded = |rule: &Rule| {
            rule.matches_with(item, true, |pattern, _| requested.is_excluded(pattern))
        };
        let is_included = self.include.is_empty() || self.include.iter().any(included);
        self.covers(item.server) && is_included && !self.exclude.iter().any(excluded)
    }

    /// Whether the selection includes a skill, or a file or directory of one, by its URI on the server.
    ///
    /// A pattern matches the path of a skill, such as `pdf` of `skill://pdf/SKILL.md`, and everything below it.
    /// Exclusions apply in every encoding. A path of more than 64 segments is not included, and none with `@` or `:` in
    /// its first one, which servers may read as a user or a port.
    pub fn selects_skill(&self, item: Candidate<'_>) -> bool {
        if !self.covers(item.server) || !self.has_rules() {
            return self.covers(item.server);
        }
        let uri = item.name;
        let after_scheme = uri.split_once("://").map_or(uri, |(_, after)| after);
        let path = after_scheme.trim_start_matches('/');
        let ends = path.match_indices('/').map(|(at, _)| at);
        let ends = ends.chain([path.len()]).take(MAX_DEPTH + 1);
        let paths: Vec<_> = ends.map(|end| RequestedUri::new(&path[..end])).collect();
        let holds = |rules: &[Rule], is: fn(&RequestedUri<'_>, &Pattern) -> bool| {
            let is_any = |pattern: &Pattern, _: &str| paths.iter().any(|path| is(path, pattern));
            let mut rules = rules.iter();
            rules.any(|rule| rule.matches_with(item, false, is_any))
        };
        let has_authority = path
            .split('/')
            .next()
            .is_some_and(|first| first.contains(['@', ':']));
        paths.len() <= MAX_DEPTH
            && !has_authority
            && (self.include.is_empty()
                || holds(&self.include, |path, pattern| path.is_included(pattern)))
            && !holds(&self.exclude, |path, pattern| path.is_excluded(pattern))
    }
}

/// The most segments in the path of a file of a skill that is selected.
const MAX_DEPTH: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn item(uri: &str) -> Candidate<'_> {
        Candidate {
            name: uri,
            upstream_name: uri,
            server: "a",
            hints: None,
        }
    }

    #[track_caller]
    fn shows(selection: &str, yes: &[&str], no: &[&str]) {
        let selection: Selection = serde_json::from_str(selection).unwrap();
        for uri in yes {
            assert!(selection.selects_unlisted_resource(item(uri)), "{uri}");
        }
        for uri in no {
            assert!(!selection.selects_unlisted_resource(item(uri)), "{uri}");
        }
    }

    /// SV-11: what is excluded is so in every spelling.
    #[test]
    fn an_exclusion_holds_for_every_spelling() {
        let secrets = [
            "a:x/my secret(1)",
            "a:x/my%20secret(1)",
            "a:x/my%20secret%281%29",
        ];
        for secret in secrets {
            let selection = format!(r#"{{"exclude": ["{secret}"]}}"#);
            let all = secrets.iter().flat_map(|it| {
                ["", "/", "?", "?a/", "#b", ";c", ";c?d#e"].map(|end| format!("{it}{end}"))
            });
            let all: Vec<_> = all.collect();
            let all: Vec<_> = all.iter().map(String::as_str).collect();
            shows(
                &selection,
                &[
                    "a:x/my%20secret",
                    "a:x/my secret(2)",
                    "a:x/my%20secret(1)/b",
                ],
                &all,
            );
        }
        shows(
            r#"{"exclude": ["*%C3%A9*", "A:*%7e"]}"#,
            &["a:e"],
            &["b:é", "b:%c3%a9", "a:b~"],
        );
        shows(
            r#"{"exclude": ["a:%2A[%]25%5b"]}"#,
            &["a:b%25["],
            &["a:*%25["],
        );
    }

    /// SV-11: what is included is a resource, not what its URI looks like at the end.
    #[test]
    fn an_inclusion_holds_for_the_path() {
        shows(
            r#"{"include": ["file:///d/*.md"]}"#,
            &["file:///d/a.md", "file:///d/a.md?b.md", "file:///d/a%3F.md"],
            &[
                "file:///d/a?.md",
                "file:///d/a#.md",
                "file:///d/a;.md",
                "file:///d/.md/../a",
            ],
        );
        shows(
            r#"{"include": ["s:x?q=*"]}"#,
            &["s:x?q=1", "s:x?q=a;b"],
            &["s:x"],
        );
        shows(
            r#"{"include": ["s:%7ex/caf%C3%A9*"]}"#,
            &["s:~x/café", "s:~x/caf%C3%A9s"],
            &["s:x"],
        );
        shows(r#"{"include": ["a:b%3Fc"]}"#, &["a:b%3Fc"], &["a:b?c"]);
        shows(
            r#"{"include": [{"server": "b", "name": "a:*"}]}"#,
            &[],
            &["a:b"],
        );
    }

    /// SV-11: a skill is selected with all that is below its path, and hidden in every spelling.
    #[test]
    fn a_skill_is_selected_by_its_path() {
        let deep = format!("skill://pdf{}", "/x".repeat(64));
        for (selection, uri, expected) in [
            (r#"{"include": ["pdf"]}"#, "skill://pdf/SKILL.md", true),
            (r#"{"include": ["pdf"]}"#, "skill:///pdf/forms/a.md", true),
            (r#"{"include": ["pdf"]}"#, "skill://pdf", true),
            (r#"{"include": ["pdf"]}"#, "skill://pdfs/SKILL.md", false),
            (
                r#"{"include": ["pdf"]}"#,
                "skill://acme/pdf/SKILL.md",
                false,
            ),
            (r#"{"include": ["*/pdf"]}"#, "https://x.dev/pdf/a", true),
            (r#"{"include": ["pdf"]}"#, &deep, false),
            (r#"{"exclude": ["none"]}"#, &deep, false),
            (r#"{"exclude": ["pdf"]}"#, "skill://xls/SKILL.md", true),
            (r#"{"exclude": ["pdf"]}"#, "skill://%70df/SKILL.md", false),
            (r#"{"exclude": ["pdf"]}"#, "skill://a@pdf/SKILL.md", false),
            (r#"{"exclude": ["acme/pdf"]}"#, "skill://acme/pdf/x", false),
            (r#"{"include": [{"server": "b"}]}"#, "skill://pdf/x", false),
            (
                r#"{"include": [{"readOnlyHint": true}]}"#,
                "skill://p",
                false,
            ),
        ] {
            let parsed: Selection = serde_json::from_str(selection).unwrap();
            assert_eq!(
                parsed.selects_skill(item(uri)),
                expected,
                "{selection} {uri}"
            );
        }
    }

    #[test]
    fn what_is_listed_is_selected_by_any_spelling() {
        #[track_caller]
        fn lists(selection: &str, uri: &str, expected: bool) {
            let selection: Selection = serde_json::from_str(selection).unwrap();
            assert_eq!(selection.selects_resource(item(uri)), expected, "{uri}");
        }
        lists(r#"{"include": ["a:~*"]}"#, "a:%7Eb", true);
        lists(r#"{"include": ["a:%7e*"]}"#, "a:~b", true);
        lists(r#"{"include": ["a:*.md"]}"#, "a:b?c.md", true);
        lists(r#"{"exclude": ["a:%7e*"]}"#, "a:~b", false);
        lists(r#"{"exclude": ["a:(*"]}"#, "a:%28b", false);
        lists(r#"{"exclude": ["a:b"]}"#, "a:b?c", true);
        lists(r#"{"include": ["a:{+path}"]}"#, "a:{+path}", false);
        lists(r#"{"include": ["a:[{]+path[}]"]}"#, "a:{+path}", true);
    }
}
