//! Maps the URIs of a view to those of its servers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mcp_vary::ignored::for_display as cut;
use mcp_vary::json::span;

use super::normal::{is_scheme, normal_uri, uri_identity};
use super::uri_check::{UriRejection, check_values};

/// A URI template (RFC 6570), as far as matching needs it: the literal text between its expressions, and which of
/// these may contain a `/`.
///
/// # Grammar
///
/// | expression | its value |
/// |---|---|
/// | `{a}`, `{a,b}`, `{.a}`, `{;a}` | without `/` |
/// | `{+a}`, `{#a}`, `{/a}`, `{?a}`, `{&a}` | any text |
/// | `{a*}` | any text: some servers use it for paths |
///
/// # Properties
///
/// Matches every URI that the template can produce, and some that it cannot: the server validates the values of
/// expressions further. Takes linear time in the URI. A URI of more than 8 KiB never matches.
///
/// # Examples
///
/// ```
/// use mcp_vary_view::UriTemplate;
///
/// let template = UriTemplate::new("repo://{owner}/{name}/issues");
/// assert!(template.matches("repo://acme/site/issues"));
/// assert!(!template.matches("repo://acme/issues"));
/// assert!(!template.matches("repo://acme/site/private/issues"));
///
/// // An unclosed brace is an ordinary character.
/// assert!(UriTemplate::new("open:{brace").matches("open:{brace"));
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UriTemplate {
    /// The text before the first expression, between two, and after the last.
    literals: Vec<String>,
    /// The expressions with their operators: `+path`, `?q,page`.
    expressions: Vec<String>,
}

/// Longer URIs never match: a client chooses the URI, and there may be many templates.
const MAX_URI: usize = 8 << 10;

impl UriTemplate {
    /// Parses a template; one without expressions matches only itself.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut literals = Vec::new();
        let mut expressions = Vec::new();
        let mut remaining = text;
        while let Some((literal, after)) = remaining.split_once('{') {
            let Some((expression, after)) = after.split_once('}') else {
                break;
            };
            literals.push(literal.to_owned());
            expressions.push(expression.to_owned());
            remaining = after;
        }
        literals.push(remaining.to_owned());
        Self {
            literals,
            expressions,
        }
    }

    /// Whether the template can produce `uri`.
    pub fn matches(&self, uri: &str) -> bool {
        self.values(uri).is_some()
    }

    /// Like [`matches`](Self::matches), with `/` allowed in any value: some servers write `{path}` for a whole path.
    pub fn matches_with_slashes(&self, uri: &str) -> bool {
        self.shortest_values(uri).is_some()
    }

    /// Checks that `uri`, which the template matches, is unambiguous. Only the values are checked, not the text that
    /// the server wrote.
    ///
    /// # Errors
    ///
    /// As [`check_uri`](super::check_uri).
    pub fn check(&self, uri: &str) -> Result<(), UriRejection> {
        let values = self.values(uri).unwrap_or_else(|| vec![uri]);
        let spans: Vec<_> = values.into_iter().map(|value| span(uri, value)).collect();
        check_values(uri, &spans)
    }

    /// The value of each expression in `uri`; `None` if the template does not match.
    fn values<'u>(&self, uri: &'u str) -> Option<Vec<&'u str>> {
        let values = self.shortest_values(uri)?;
        if self.are_possible(&values) {
            return Some(values);
        }
        let takes_slashes = |it: &String| may_hold_slash(it);
        if !self.expressions.iter().any(takes_slashes) {
            // A longer value has the same slashes.
            return None;
        }
        self.searched_values(uri)
    }

    fn are_possible(&self, values: &[&str]) -> bool {
        let mut pairs = std::iter::zip(&self.expressions, values);
        pairs.all(|(expression, value)| may_hold_slash(expression) || !value.contains('/'))
    }

    /// Searches values when the shortest ones are not valid: for each expression, where it may begin and end.
    fn searched_values<'u>(&self, uri: &'u str) -> Option<Vec<&'u str>> {
        let (first, others) = self.literals.split_first()?;
        uri.strip_prefix(first.as_str())?;
        // For each expression: its start, by the start of the literal after it.
        let mut ways: Vec<BTreeMap<usize, usize>> = Vec::new();
        let mut begins: Vec<usize> = vec![first.len()];
        for (at, (expression, literal)) in std::iter::zip(&self.expressions, others).enumerate() {
            let is_last = at + 1 == self.expressions.len();
            let fits = |end: usize| {
                if is_last {
                    uri[end..] == *literal
                } else {
                    uri[end..].starts_with(literal.as_str())
                }
            };
            let mut found = BTreeMap::new();
            let mut begin = None;
            for (end, c) in uri.char_indices().chain([(uri.len(), ' ')]) {
                if begins.binary_search(&end).is_ok() {
                    // The nearest start; a farther one matches no more.
                    begin = begin.filter(|_| may_hold_slash(expression)).or(Some(end));
                }
                if let Some(begin) = begin
                    && fits(end)
                {
                    found.insert(end, begin);
                }
                if c == '/' && !may_hold_slash(expression) {
                    begin = None;
                }
            }
            begins = found.keys().map(|end| end + literal.len()).collect();
            ways.push(found);
        }
        let mut values = Vec::new();
        let mut end = uri.len() - self.literals.last()?.len();
        for (at, client_kind) in ways.iter().enumerate().rev() {
            let begin = *client_kind.get(&end)?;
            values.push(&uri[begin..end]);
            end = begin - self.literals[at].len();
        }
        values.reverse();
        Some(values)
    }

    /// The value of each expression in `uri`, each as short as possible.
    fn shortest_values<'u>(&self, uri: &'u str) -> Option<Vec<&'u str>> {
        if uri.len() > MAX_URI {
            return None;
        }
        let (first, others) = self.literals.split_first()?;
        let mut remaining = uri.strip_prefix(first.as_str())?;
        let Some((last, between)) = others.split_last() else {
            return remaining.is_empty().then(Vec::new);
        };
        let mut values = Vec::with_capacity(self.expressions.len());
        for literal in between {
            let at = remaining.find(literal.as_str())?;
            values.push(&remaining[..at]);
            remaining = &remaining[at + literal.len()..];
        }
        values.push(remaining.strip_suffix(last.as_str())?);
        Some(values)
    }

    /// The URI with `values` in place of the expressions.
    fn expand(&self, values: &[&str]) -> String {
        let mut uri = self.literals[0].clone();
        for (value, literal) in values.iter().zip(&self.literals[1..]) {
            uri.push_str(value);
            uri.push_str(literal);
        }
        uri
    }

    fn literal_length(&self) -> usize {
        self.literals.iter().map(String::len).sum()
    }
}

/// Whether the value of `expression` may contain a `/`.
///
/// > Simple String Expansion: […] only unreserved characters are allowed; others are pct-encoded
/// > ([RFC 6570, 3.2.2](https://www.rfc-editor.org/rfc/rfc6570#section-3.2.2))
fn may_hold_slash(expression: &str) -> bool {
    expression.starts_with(['+', '#', '/', '?', '&']) || expression.ends_with('*')
}

/// Why a URI or template of a view is invalid; the text follows its key.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{}; {}", self.problem(), self.fix())]
#[non_exhaustive]
pub enum UriError {
    /// The scheme is missing, or there is a character that URIs cannot have.
    NotAUri,
    /// The server's template has other expressions.
    Expressions {
        /// The expressions of the server's template.
        expected: Vec<String>,
        /// The expressions of the view's template.
        found: Vec<String>,
    },
    /// Two expressions are adjacent that the server's template separates.
    AdjacentExpressions(String, String),
}

impl UriError {
    /// The problem.
    pub fn problem(&self) -> String {
        match self {
            Self::NotAUri => "is not a URI".to_owned(),
            Self::Expressions { expected, found } => {
                let instead = listed(expected);
                format!(
                    "has {} instead of {instead} of the server's template",
                    listed(found)
                )
            }
            Self::AdjacentExpressions(one, other) => {
                format!(
                    "has nothing between `{{{one}}}` and `{{{other}}}`, so it is ambiguous where one ends"
                )
            }
        }
    }

    /// How to fix it.
    pub fn fix(&self) -> String {
        let fix = match self {
            Self::NotAUri => "begin with a scheme, such as `docs:`, and leave out white space",
            Self::Expressions { expected, .. } if expected.is_empty() => {
                "write no braces: the server lists a URI, not a template"
            }
            Self::Expressions { .. } => {
                "write the same expressions in the same order, and change only the text around them"
            }
            Self::AdjacentExpressions(..) => "put something between them",
        };
        fix.to_owned()
    }
}

fn listed(expressions: &[String]) -> String {
    let quoted = expressions.iter().map(|one| format!("`{{{}}}`", cut(one)));
    match expressions {
        [] => "nothing in braces".to_owned(),
        _ => quoted.collect::<Vec<_>>().join(", "),
    }
}

/// Maps URIs between a view and its servers, in both directions.
///
/// # Properties
///
/// - One to one: if [`to_upstream`](Self::to_upstream) maps a view's URI to the server's, [`to_view`](Self::to_view)
///   maps that back to the same URI, and vice versa. An ambiguous URI is in no view.
/// - A renamed URI does not exist under its old name, and its new name belongs to it alone.
/// - All [spellings](uri_identity) of a renamed URI are renamed.
/// - A renamed template renames every URI and template that it matches, unless these are renamed individually; of
///   several matching templates the one with the most literal text applies.
///
/// # Examples
///
/// ```
/// use mcp_vary_view::UriMap;
///
/// let map = UriMap::new([("file:///srv/app/{+path}", "app:/{+path}"), ("file:///srv/app/README", "app:start")]);
/// assert_eq!(map.to_upstream("app:/src/main.rs").unwrap(), "file:///srv/app/src/main.rs");
/// assert_eq!(map.to_view("file:///srv/app/README").unwrap(), "app:start");
/// assert_eq!(map.to_upstream("docs:a").unwrap(), "docs:a");
///
/// // The server's URI of a renamed resource does not exist in the view.
/// assert_eq!(map.to_upstream("file:///srv/app/README"), None);
/// assert_eq!(map.to_upstream("app:/README"), None);
/// ```
#[derive(Clone, Debug, Default)]
pub struct UriMap {
    /// By the identity of the server's URI or template: its spelling, and the view's URI.
    renamed: BTreeMap<String, (String, String)>,
    /// The server's URIs by the view's.
    by_view_uri: BTreeMap<String, String>,
    /// The renamed templates, the one with the most literal text first.
    templates: Vec<MovedTemplate>,
}

/// A renamed template.
#[derive(Clone, Debug)]
struct MovedTemplate {
    upstream: String,
    from: UriTemplate,
    to: UriTemplate,
}

impl UriMap {
    /// Builds the map from pairs of the server's and the view's URI or template.
    ///
    /// Pairs that [`check`](Self::check) rejects are ignored. Of two pairs with the same URI on either side, the
    /// first applies.
    pub fn new<'a>(moves: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut map = Self::default();
        let mut templates = Vec::new();
        for (native, shown) in moves {
            let Ok((from, to)) = parse_pair(native, shown) else {
                continue;
            };
            let identity = uri_identity(native);
            if map.renamed.contains_key(&*identity) {
                continue;
            }
            let pair = (native.to_owned(), shown.to_owned());
            map.renamed.insert(identity.into_owned(), pair);
            let used = map.by_view_uri.entry(shown.to_owned());
            used.or_insert_with(|| native.to_owned());
            if !from.expressions.is_empty() {
                templates.push(MovedTemplate {
                    upstream: native.to_owned(),
                    from,
                    to,
                });
            }
        }
        // Templates of equal length stay in the order of the pairs.
        templates.sort_by_key(|template| std::cmp::Reverse(template.from.literal_length()));
        map.templates = templates;
        map
    }

    /// Checks whether a view can rename `native` to `shown`.
    ///
    /// # Errors
    ///
    /// When `shown` is not a URI, or when the two have different expressions.
    pub fn check(native: &str, shown: &str) -> Result<(), UriError> {
        parse_pair(native, shown).map(|_| ())
    }

    /// Whether nothing is renamed.
    pub fn is_empty(&self) -> bool {
        self.renamed.is_empty()
    }

    /// The server's URI of the view's resource or template `shown`; `None` if the view has no such item.
    pub fn to_upstream<'u>(&self, shown: &'u str) -> Option<Cow<'u, str>> {
        let leads_back = |native: &str| self.preferred(native) == shown;
        if let Some(native) = self.by_view_uri.get(shown) {
            return Some(Cow::Owned(native.clone()));
        }
        let templates = self.templates.iter();
        let mut candidates = templates
            .filter_map(|template| translate(shown, &template.to, &template.from))
            .peekable();
        // A URI that a template of the view matches belongs to that template, even if no such resource exists.
        if candidates.peek().is_some() {
            return candidates.find(|native| leads_back(native)).map(Cow::Owned);
        }
        leads_back(shown).then_some(Cow::Borrowed(shown))
    }

    /// The view's URI of a server's resource or template `native`; `None` if another item has that URI in the view.
    pub fn to_view<'u>(&self, native: &'u str) -> Option<Cow<'u, str>> {
        let wanted = self.preferred(native);
        let back = self.to_upstream(&wanted)?;
        (back == native || uri_identity(&back) == uri_identity(native)).then_some(wanted)
    }

    /// Whether the view assigns the URI `shown` individually, not through a template.
    pub fn is_assigned(&self, shown: &str) -> bool {
        self.by_view_uri.contains_key(shown)
    }

    /// The URI that the view would give `native` if no other item had it.
    fn preferred<'u>(&self, native: &'u str) -> Cow<'u, str> {
        if self.renamed.is_empty() {
            return Cow::Borrowed(native);
        }
        if let Some((_, shown)) = self.renamed.get(&*uri_identity(native)) {
            return Cow::Owned(shown.clone());
        }
        let carried = |native: &str| {
            let mut templates = self.templates.iter();
            templates.find_map(|template| translate(native, &template.from, &template.to))
        };
        let normal = || match normal_uri(native) {
            Cow::Owned(normal) => carried(&normal),
            Cow::Borrowed(_) => None,
        };
        let renamed = carried(native).or_else(normal);
        renamed.map_or(Cow::Borrowed(native), Cow::Owned)
    }

    /// Which renaming keeps `native` out of the view: the server's URI of the renamed item, and the URI that `native`
    /// would have. `None` if `native` is in the view.
    pub fn conflict<'m>(&'m self, native: &'m str) -> Option<(&'m str, Cow<'m, str>)> {
        if self.to_view(native).is_some() {
            return None;
        }
        let wanted = self.preferred(native);
        let stays = wanted == native;
        let state = |it: &&MovedTemplate| {
            let template = if stays { &it.to } else { &it.from };
            template.matches(native)
        };
        let template = || self.templates.iter().find(state).map(|one| &*one.upstream);
        let by = match self.renamed.get(&*uri_identity(native)) {
            Some((native, _)) => Some(&**native),
            None => self
                .by_view_uri
                .get(native)
                .map(String::as_str)
                .filter(|_| stays),
        };
        Some((by.or_else(template)?, wanted))
    }
}

/// Rewrites `uri` from template `from` to template `to`; `None` if `from` does not match.
fn translate(uri: &str, from: &UriTemplate, to: &UriTemplate) -> Option<String> {
    let values = from.values(uri)?;
    // A part of another template's expression is not a value.
    let is_whole = |value: &&str| value.matches('{').count() == value.matches('}').count();
    values.iter().all(is_whole).then(|| to.expand(&values))
}

fn parse_pair(native: &str, shown: &str) -> Result<(UriTemplate, UriTemplate), UriError> {
    let from = UriTemplate::new(native);
    let to = UriTemplate::new(shown);
    let has_scheme = shown
        .split_once(':')
        .is_some_and(|(scheme, _)| is_scheme(scheme));
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    if !has_scheme || shown.contains(is_odd) {
        return Err(UriError::NotAUri);
    }
    if from.expressions != to.expressions {
        return Err(UriError::Expressions {
            expected: from.expressions,
            found: to.expressions,
        });
    }
    let between = 1..from.literals.len().saturating_sub(1);
    for at in between {
        if to.literals[at].is_empty() && !from.literals[at].is_empty() {
            let [one, other] = [at - 1, at].map(|at| cut(&to.expressions[at]));
            return Err(UriError::AdjacentExpressions(one, other));
        }
    }
    Ok((from, to))
}

#[cfg(test)]
mod tests;
