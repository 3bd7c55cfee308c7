//! What a view calls its resources, and what their servers do.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mcp_vary::ignored::shown as cut;

use super::normal::{is_scheme, normal_uri, uri_identity};
use super::uri_check::{UriFault, check_values};

/// A URI template (RFC 6570), as far as telling needs it which URIs it may stand for: the literal text
/// between its expressions, and which of these may hold a `/`.
///
/// # Grammar
///
/// | expression | its value |
/// |---|---|
/// | `{a}`, `{a,b}`, `{.a}`, `{;a}` | without `/` |
/// | `{+a}`, `{#a}`, `{/a}`, `{?a}`, `{&a}` | any text |
/// | `{a*}` | any text: some servers write so what is a path |
///
/// # Properties
///
/// Matches every URI that the template can produce, and some that it cannot: what an expression's value may
/// look like otherwise is the server's to judge. Takes time in proportion to the URI; one of more than 8 KiB is
/// nobody's.
///
/// # Examples
///
/// ```
/// use crate::UriTemplate;
///
/// let template = UriTemplate::new("repo://{owner}/{name}/issues");
/// assert!(template.matches("repo://acme/site/issues"));
/// assert!(!template.matches("repo://acme/issues"));
/// assert!(!template.matches("repo://acme/site/private/issues"));
///
/// // A brace that is never closed is a character like another.
/// assert!(UriTemplate::new("open:{brace").matches("open:{brace"));
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UriTemplate {
    /// What stands before the first expression, between two, and after the last.
    literals: Vec<String>,
    /// The expressions, with what stands before their variables: `+path`, `?q,page`.
    expressions: Vec<String>,
}

/// Longer URIs are nobody's: templates may be many, and what is compared is what a client sends.
const LONGEST: usize = 8 << 10;

impl UriTemplate {
    /// The template that `text` is; one without expressions stands for itself alone.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let (mut literals, mut expressions) = (Vec::new(), Vec::new());
        let mut rest = text;
        while let Some((literal, after)) = rest.split_once('{') {
            let Some((expression, after)) = after.split_once('}') else {
                break;
            };
            literals.push(literal.to_owned());
            expressions.push(expression.to_owned());
            rest = after;
        }
        literals.push(rest.to_owned());
        Self {
            literals,
            expressions,
        }
    }

    /// Whether the template may stand for `uri`.
    #[must_use]
    pub fn matches(&self, uri: &str) -> bool {
        self.values(uri).is_some()
    }

    /// The same, with a `/` in any value: some servers write `{path}` where they take a whole path.
    #[must_use]
    pub fn matches_loosely(&self, uri: &str) -> bool {
        self.first_values(uri).is_some()
    }

    /// Whether it can be decided which resource `uri` names that the template stands for: what the server wrote itself is
    /// not looked at.
    ///
    /// # Errors
    ///
    /// As [`check_uri`](super::check_uri).
    pub fn check(&self, uri: &str) -> Result<(), UriFault> {
        let values = self.values(uri).unwrap_or_else(|| vec![uri]);
        let span = |value: &str| {
            let start = value.as_ptr().addr() - uri.as_ptr().addr();
            start..start + value.len()
        };
        let spans: Vec<_> = values.into_iter().map(span).collect();
        check_values(uri, &spans)
    }

    /// What stands in `uri` for each expression; `None` when the template does not stand for it.
    fn values<'u>(&self, uri: &'u str) -> Option<Vec<&'u str>> {
        let values = self.first_values(uri)?;
        if self.are_possible(&values) {
            return Some(values);
        }
        let takes_slashes = |it: &String| may_hold_slash(it);
        if !self.expressions.iter().any(takes_slashes) {
            // A longer value holds the same slashes.
            return None;
        }
        self.other_values(uri)
    }

    fn are_possible(&self, values: &[&str]) -> bool {
        let mut pairs = std::iter::zip(&self.expressions, values);
        pairs.all(|(expression, value)| may_hold_slash(expression) || !value.contains('/'))
    }

    /// Values where the shortest ones are not possible: for each expression, from where it may begin, where it may end.
    fn other_values<'u>(&self, uri: &'u str) -> Option<Vec<&'u str>> {
        let (first, others) = self.literals.split_first()?;
        uri.strip_prefix(first.as_str())?;
        // Of each expression where it begins, for each place where the literal behind it begins.
        let mut ways: Vec<BTreeMap<usize, usize>> = Vec::new();
        let mut begins: Vec<usize> = vec![first.len()];
        for (at, (expression, literal)) in std::iter::zip(&self.expressions, others).enumerate() {
            let is_last = at + 1 == self.expressions.len();
            let fits = |end: usize| match is_last {
                true => uri[end..] == *literal,
                false => uri[end..].starts_with(literal.as_str()),
            };
            let mut found = BTreeMap::new();
            let mut begin = None;
            for (end, c) in uri.char_indices().chain([(uri.len(), ' ')]) {
                if begins.binary_search(&end).is_ok() {
                    // The nearest one; before a slash of any other it is as good.
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
        for (at, way) in ways.iter().enumerate().rev() {
            let begin = *way.get(&end)?;
            values.push(&uri[begin..end]);
            end = begin - self.literals[at].len();
        }
        values.reverse();
        Some(values)
    }

    /// What stands in `uri` for each expression, the shortest text first.
    fn first_values<'u>(&self, uri: &'u str) -> Option<Vec<&'u str>> {
        if uri.len() > LONGEST {
            return None;
        }
        let (first, others) = self.literals.split_first()?;
        let mut rest = uri.strip_prefix(first.as_str())?;
        let Some((last, between)) = others.split_last() else {
            return rest.is_empty().then(Vec::new);
        };
        let mut values = Vec::with_capacity(self.expressions.len());
        for literal in between {
            let at = rest.find(literal.as_str())?;
            values.push(&rest[..at]);
            rest = &rest[at + literal.len()..];
        }
        values.push(rest.strip_suffix(last.as_str())?);
        Some(values)
    }

    /// The URI with `values` in the place of the expressions.
    fn with(&self, values: &[&str]) -> String {
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

/// Whether the value of `expression` may hold a `/`.
///
/// > Simple String Expansion: […] only unreserved characters are allowed; others are pct-encoded
/// > ([RFC 6570, 3.2.2](https://www.rfc-editor.org/rfc/rfc6570#section-3.2.2))
fn may_hold_slash(expression: &str) -> bool {
    expression.starts_with(['+', '#', '/', '?', '&']) || expression.ends_with('*')
}

/// Why a view cannot call a resource or template so: to be read after its key.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{}; {}", self.what(), self.fix())]
#[non_exhaustive]
pub enum UriError {
    /// There is no scheme, or a character that no URI has.
    NoUri,
    /// What it is for has other expressions.
    Expressions {
        /// The expressions of the server's template.
        expected: Vec<String>,
        /// Those of the view's.
        found: Vec<String>,
    },
    /// Nothing stands between two expressions where the server's template has something.
    SideBySide(String, String),
}

impl UriError {
    /// What is wrong.
    #[must_use]
    pub fn what(&self) -> String {
        match self {
            Self::NoUri => "is no URI".to_owned(),
            Self::Expressions { expected, found } => {
                let instead = listed(expected);
                format!(
                    "has {} instead of {instead} of the server's template",
                    listed(found)
                )
            }
            Self::SideBySide(one, other) => {
                format!(
                    "has nothing between `{{{one}}}` and `{{{other}}}`, so that nobody can tell where one ends"
                )
            }
        }
    }

    /// What to write.
    #[must_use]
    pub fn fix(&self) -> String {
        let fix = match self {
            Self::NoUri => "begin with a scheme, such as `docs:`, and leave out white space",
            Self::Expressions { expected, .. } if expected.is_empty() => {
                "write no braces: what the server lists is no template"
            }
            Self::Expressions { .. } => {
                "write the same in braces, in the same order, and change what stands around them"
            }
            Self::SideBySide(..) => "put something between them",
        };
        fix.to_owned()
    }
}

fn listed(expressions: &[String]) -> String {
    let quoted = expressions.iter().map(|it| format!("`{{{}}}`", cut(it)));
    match expressions {
        [] => "nothing in braces".to_owned(),
        _ => quoted.collect::<Vec<_>>().join(", "),
    }
}

/// The URIs of a view and those of its servers, both ways.
///
/// # Properties
///
/// - One to one: where [`own`](Self::own) finds what a view's URI is to the server, [`shown`](Self::shown) leads
///   from there to that URI again, and the other way round. What could be meant in two ways is in no view.
/// - What moved is no longer where it was, and what another moved to is that other's alone.
/// - Another [spelling](uri_identity) of what moved has moved as well.
/// - A template that moves takes along every URI and every template that it stands for, unless that moves by
///   itself; where several stand for it, the one with the most literal text.
///
/// # Examples
///
/// ```
/// use crate::UriMap;
///
/// let map = UriMap::new([("file:///srv/app/{+path}", "app:/{+path}"), ("file:///srv/app/README", "app:start")]);
/// assert_eq!(map.own("app:/src/main.rs").unwrap(), "file:///srv/app/src/main.rs");
/// assert_eq!(map.shown("file:///srv/app/README").unwrap(), "app:start");
/// assert_eq!(map.own("docs:a").unwrap(), "docs:a");
///
/// // The server's own URI of what moved does not exist in the view.
/// assert_eq!(map.own("file:///srv/app/README"), None);
/// assert_eq!(map.own("app:/README"), None);
/// ```
#[derive(Clone, Debug, Default)]
pub struct UriMap {
    /// By what all spellings of the server's URI or template share: the spelling that moves, and the view's.
    moved: BTreeMap<String, (String, String)>,
    /// By the view's, the server's.
    taken: BTreeMap<String, String>,
    /// Those of them that are templates, the one with the most literal text first.
    templates: Vec<Moved>,
}

/// A template that moved.
#[derive(Clone, Debug)]
struct Moved {
    own: String,
    from: UriTemplate,
    to: UriTemplate,
}

impl UriMap {
    /// What `moves` make of URIs and templates: of each the server's, and the view's.
    ///
    /// A pair that [`check`](Self::check) refuses is left out. Of two that move to one place the first stays, and
    /// what is moved twice moves as is said first.
    pub fn new<'a>(moves: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut map = Self::default();
        let mut templates = Vec::new();
        for (own, shown) in moves {
            let Ok((from, to)) = read(own, shown) else {
                continue;
            };
            let identity = uri_identity(own);
            if map.moved.contains_key(&*identity) {
                continue;
            }
            let pair = (own.to_owned(), shown.to_owned());
            map.moved.insert(identity.into_owned(), pair);
            let taken = map.taken.entry(shown.to_owned());
            taken.or_insert_with(|| own.to_owned());
            if !from.expressions.is_empty() {
                let own = own.to_owned();
                templates.push(Moved { own, from, to });
            }
        }
        // The order of two alike is that of the moves.
        templates.sort_by_key(|it| std::cmp::Reverse(it.from.literal_length()));
        map.templates = templates;
        map
    }

    /// Whether a view can call `shown` what its server calls `own`.
    ///
    /// # Errors
    ///
    /// When `shown` is no URI, or when both are not templates with the same expressions in the same order.
    pub fn check(own: &str, shown: &str) -> Result<(), UriError> {
        read(own, shown).map(|_| ())
    }

    /// Whether everything is called what the servers call it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.moved.is_empty()
    }

    /// What the server calls the resource or template `shown` of the view; `None` when there is none in it.
    #[must_use]
    pub fn own<'u>(&self, shown: &'u str) -> Option<Cow<'u, str>> {
        let leads_back = |own: &str| self.wanted(own) == shown;
        if let Some(own) = self.taken.get(shown) {
            return Some(Cow::Owned(own.clone()));
        }
        let templates = self.templates.iter();
        let carried = templates.filter_map(|it| carry(shown, &it.to, &it.from));
        let mut carried = carried.peekable();
        // What a template of the view stands for is that template's, whether or not there is such a resource.
        if carried.peek().is_some() {
            return carried.find(|own| leads_back(own)).map(Cow::Owned);
        }
        leads_back(shown).then_some(Cow::Borrowed(shown))
    }

    /// What the view calls the resource or template `own` of a server; `None` when it has no place in the view,
    /// since something else is called so there.
    #[must_use]
    pub fn shown<'u>(&self, own: &'u str) -> Option<Cow<'u, str>> {
        let wanted = self.wanted(own);
        let back = self.own(&wanted)?;
        (back == own || uri_identity(&back) == uri_identity(own)).then_some(wanted)
    }

    /// Whether the view calls something `shown` by itself, not along with a template.
    #[must_use]
    pub fn gives(&self, shown: &str) -> bool {
        self.taken.contains_key(shown)
    }

    /// What the view would call `own`, whatever else it calls so.
    fn wanted<'u>(&self, own: &'u str) -> Cow<'u, str> {
        if self.moved.is_empty() {
            return Cow::Borrowed(own);
        }
        if let Some((_, shown)) = self.moved.get(&*uri_identity(own)) {
            return Cow::Owned(shown.clone());
        }
        let carried = |own: &str| {
            let mut templates = self.templates.iter();
            templates.find_map(|it| carry(own, &it.from, &it.to))
        };
        let normal = || match normal_uri(own) {
            Cow::Owned(normal) => carried(&normal),
            Cow::Borrowed(_) => None,
        };
        let carried = carried(own).or_else(normal);
        carried.map_or(Cow::Borrowed(own), Cow::Owned)
    }

    /// On account of which move `own` has no place in the view: what the server calls that which moved, and
    /// what the view would call `own`. `None` when it has one.
    #[must_use]
    pub fn obstacle<'m>(&'m self, own: &'m str) -> Option<(&'m str, Cow<'m, str>)> {
        if self.shown(own).is_some() {
            return None;
        }
        let wanted = self.wanted(own);
        let stays = wanted == own;
        let stands = |it: &&Moved| match stays {
            true => it.to.matches(own),
            false => it.from.matches(own),
        };
        let template = || self.templates.iter().find(stands).map(|it| &*it.own);
        let by = match self.moved.get(&*uri_identity(own)) {
            Some((own, _)) => Some(&**own),
            None => self.taken.get(own).map(String::as_str).filter(|_| stays),
        };
        Some((by.or_else(template)?, wanted))
    }
}

/// `uri` as `to` has it, where `from` stands for it.
fn carry(uri: &str, from: &UriTemplate, to: &UriTemplate) -> Option<String> {
    let values = from.values(uri)?;
    // Part of an expression of another template is no value.
    let is_whole = |value: &&str| value.matches('{').count() == value.matches('}').count();
    values.iter().all(is_whole).then(|| to.with(&values))
}

fn read(own: &str, shown: &str) -> Result<(UriTemplate, UriTemplate), UriError> {
    let (from, to) = (UriTemplate::new(own), UriTemplate::new(shown));
    let has_scheme = shown
        .split_once(':')
        .is_some_and(|(scheme, _)| is_scheme(scheme));
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    if !has_scheme || shown.contains(is_odd) {
        return Err(UriError::NoUri);
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
            return Err(UriError::SideBySide(one, other));
        }
    }
    Ok((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn stands_for(template: &str, uri: &str, expected: bool) {
        let matches = UriTemplate::new(template).matches(uri);
        assert_eq!(matches, expected, "{template} {uri}");
    }

    #[test]
    fn a_template_stands_for_what_it_can_produce() {
        stands_for("place:{name}", "place:bern", true);
        stands_for("place:{name}", "city:bern", false);
        stands_for("repo://{owner}/{name}/issues", "repo://a/b/issues", true);
        stands_for("repo://{owner}/{name}/issues", "repo://a/issues", false);
        stands_for("file://{+path}", "file:///a/b", true);
        stands_for("x:{a}{?b,c}", "x:1?b=2", true);
        stands_for("plain:uri", "plain:uri", true);
        stands_for("plain:uri", "plain:uri2", false);
        stands_for("open:{brace", "open:{brace", true);
        stands_for("{any}", "", true);
    }

    #[test]
    fn literals_do_not_overlap() {
        stands_for("a{x}aa", "aa", false);
        stands_for("a{x}aa", "aaa", true);
        stands_for("{x}-{y}-{z}", "1-2", false);
    }

    #[test]
    fn a_long_uri_is_nobodys() {
        let uri = |length: usize| format!("a:{}", "x".repeat(length - 2));
        stands_for("a:{x}", &uri(LONGEST), true);
        stands_for("a:{x}", &uri(LONGEST + 1), false);
    }

    /// Both ways; `-` is what does not exist.
    #[track_caller]
    fn are(moves: &[(&str, &str)], pairs: &[(&str, &str)]) {
        let map = UriMap::new(moves.iter().copied());
        for (own, shown) in pairs {
            if *own != "-" {
                let found = map.shown(own);
                assert_eq!(
                    found.as_deref().unwrap_or("-"),
                    *shown,
                    "of the server: {own}"
                );
            }
            if *shown != "-" {
                let found = map.own(shown);
                assert_eq!(
                    found.as_deref().unwrap_or("-"),
                    *own,
                    "of the view: {shown}"
                );
            }
        }
    }

    /// SV-11, SV-12: what a view calls otherwise exists only so.
    #[test]
    fn what_moved_is_found_where_it_is_and_nowhere_else() {
        are(&[], &[("a:1", "a:1")]);
        are(
            &[("doc:a", "guide:a")],
            &[("doc:a", "guide:a"), ("-", "doc:a"), ("doc:b", "doc:b")],
        );
        are(
            &[("doc:{name}", "ours:{name}/text")],
            &[
                ("doc:{name}", "ours:{name}/text"),
                ("doc:a", "ours:a/text"),
                ("-", "doc:a"),
                ("-", "doc:{name}"),
                ("ours:a", "ours:a"),
                // What the server calls so has no place: the view's is another.
                ("ours:a/text", "-"),
            ],
        );
    }

    /// SV-11: two may change places.
    #[test]
    fn two_that_change_places_do_not_become_one() {
        are(
            &[("a:1", "a:2"), ("a:2", "a:1")],
            &[("a:1", "a:2"), ("a:2", "a:1")],
        );
        are(
            &[("a:{x}", "b:{x}"), ("b:{x}", "a:{x}")],
            &[("a:1", "b:1"), ("b:1", "a:1")],
        );
    }

    /// SV-11: what has no place in a view says why.
    #[test]
    fn what_is_in_the_way_is_known() {
        #[track_caller]
        fn is(moves: &[(&str, &str)], own: &str, obstacle: Option<(&str, &str)>) {
            let map = UriMap::new(moves.iter().copied());
            let found = map.obstacle(own);
            assert_eq!(
                found.as_ref().map(|(by, uri)| (*by, &**uri)),
                obstacle,
                "{own}"
            );
        }
        let same = [("a:1", "c:0"), ("a:2", "c:0")];
        is(&same, "a:1", None);
        is(&same, "a:2", Some(("a:2", "c:0")));
        is(&same, "c:0", Some(("a:1", "c:0")));
        let unclear = [("r:{o}/{n}", "q:{o}-{n}")];
        is(&unclear, "r:a-b/c", Some(("r:{o}/{n}", "q:a-b-c")));
        is(&unclear, "q:a-b", Some(("r:{o}/{n}", "q:a-b")));
        is(&unclear, "r:a/b", None);
    }

    #[test]
    fn of_two_that_move_to_one_place_the_first_is_there() {
        are(
            &[("a:1", "c:0"), ("a:2", "c:0")],
            &[("a:1", "c:0"), ("a:2", "-"), ("c:0", "-")],
        );
    }

    #[test]
    fn a_template_takes_along_what_it_stands_for() {
        let moves = [
            ("file:///srv/{+path}", "srv:/{+path}"),
            ("file:///srv/app/{+path}", "app:/{+path}"),
            ("file:///srv/app/LICENSE", "license:"),
        ];
        are(
            &moves,
            &[
                ("file:///srv/log/1", "srv:/log/1"),
                ("file:///srv/app/a/b", "app:/a/b"),
                ("file:///srv/app/LICENSE", "license:"),
                ("-", "srv:/app/a"),
                ("-", "app:/LICENSE"),
                ("file:///srv/log/{day}", "srv:/log/{day}"),
                ("file:///etc/passwd", "file:///etc/passwd"),
            ],
        );
    }

    /// What could be meant in two ways would be read as another resource.
    #[test]
    fn what_could_be_meant_in_two_ways_is_not_there() {
        let moves = [("r:{owner}/{name}", "q:{owner}-{name}")];
        are(
            &moves,
            &[("r:a/b", "q:a-b"), ("r:a-b/c", "-"), ("r:a/b-c", "q:a-b-c")],
        );
        // The braces of an expression are not torn apart.
        are(&moves, &[("r:{/n}", "r:{/n}")]);
    }

    #[test]
    fn what_a_view_cannot_say_is_refused_and_left_out() {
        #[track_caller]
        fn refused(own: &str, shown: &str, why: &str) {
            assert_eq!(UriMap::check(own, shown).unwrap_err().to_string(), why);
            assert!(UriMap::new([(own, shown)]).is_empty());
        }
        let no_uri = "is no URI; begin with a scheme, such as `docs:`, and leave out white space";
        for shown in [
            "", "guide", "/a", "1a:b", "a b:c", "a: b", "a:\u{7}", "{x}:a", "{+any}/x", "ä:b",
        ] {
            refused("doc:a", shown, no_uri);
        }
        refused(
            "doc:{name}",
            "a:b",
            "has nothing in braces instead of `{name}` of the server's template; \
             write the same in braces, in the same order, and change what stands around them",
        );
        refused(
            "doc:{a}/{+b}",
            "doc:{+b}/{a}",
            "has `{+b}`, `{a}` instead of `{a}`, `{+b}` of the server's template; \
             write the same in braces, in the same order, and change what stands around them",
        );
        refused(
            "doc:a",
            "doc:{a}",
            "has `{a}` instead of nothing in braces of the server's template; \
             write no braces: what the server lists is no template",
        );
        refused(
            "doc:{a}/{b}",
            "doc:{a}{b}",
            "has nothing between `{a}` and `{b}`, so that nobody can tell where one ends; put something between them",
        );
        for (own, shown) in [
            ("doc:{a}{?b}", "d:{a}{?b}"),
            ("{+any}", "x:{+any}"),
            ("a", "x-1.b+c:"),
        ] {
            assert_eq!(UriMap::check(own, shown), Ok(()));
        }
    }
}
