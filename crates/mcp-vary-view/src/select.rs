//! Selects the items that a view shows: by globs on names and URIs, by server, and by the hints of tools.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use globset::{GlobBuilder, GlobMatcher};
use mcp_vary::ignored::for_display;
use serde::{Deserialize, Serialize};

use super::diagnostic::ViewDiagnostic;
use super::fault::nearest;
use super::hint::{HintCondition, ToolHint, ToolHints};
use super::uri_forms::UriForms;

/// The maximum length of a pattern, in bytes.
pub const MAX_PATTERN: usize = 512;

/// A glob on names or URIs.
///
/// # Grammar
///
/// | | matches |
/// |---|---|
/// | `*` | any characters, `/` too |
/// | `?` | one byte |
/// | `[a-z]`, `[!a-z]` | one of them, none of them |
/// | `{a,b}` | either |
/// | `\*` | the character itself |
///
/// Patterns are case-sensitive. `**` equals `*`: names and URIs are not paths.
///
/// # Properties
///
/// A printed pattern parses to the same pattern. Matching takes linear time in the name.
///
/// # Examples
///
/// ```
/// use mcp_vary_view::Pattern;
///
/// let pattern: Pattern = "{get,list}_*".parse()?;
/// assert!(pattern.matches("list_issues"));
/// assert!(!pattern.matches("delete_list_issues"));
///
/// // A slash is an ordinary character.
/// assert!("docs://*".parse::<Pattern>()?.matches("docs://guide/start"));
/// # Ok::<(), mcp_vary_view::PatternError>(())
/// ```
#[derive(Clone, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    pub(super) glob: GlobMatcher,
    /// The forms that are compared with URIs, compiled on first use.
    pub(super) uri_forms: Box<UriForms>,
}

/// Why a text is not a [`Pattern`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the pattern `{pattern}` {reason}")]
pub struct PatternError {
    pattern: String,
    reason: String,
}

impl Pattern {
    /// Whether the pattern matches the whole of `name`.
    pub fn matches(&self, name: &str) -> bool {
        self.glob.is_match(name)
    }

    pub(super) fn glob(pattern: &str) -> Result<GlobMatcher, globset::Error> {
        let glob = GlobBuilder::new(pattern)
            .literal_separator(false)
            .backslash_escape(true)
            .build()?;
        Ok(glob.compile_matcher())
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        self.glob.glob().glob()
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(pattern: &str) -> Result<Self, Self::Err> {
        let error = |why: String| PatternError {
            pattern: for_display(pattern),
            reason: why,
        };
        if pattern.is_empty() {
            return Err(error("is empty; write `*` for everything".into()));
        }
        if pattern.len() > MAX_PATTERN {
            return Err(error(format!("has more than {MAX_PATTERN} bytes")));
        }
        let glob = Self::glob(pattern)
            .map_err(|reason| error(format!("cannot be read: {}", reason.kind())))?;
        let uris = Box::default();
        Ok(Self {
            glob,
            uri_forms: uris,
        })
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;

    fn try_from(pattern: String) -> Result<Self, Self::Error> {
        pattern.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.as_str().to_owned()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Pattern {
    /// Without the forms for URIs, which come with the first use: equal patterns look alike.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pattern").field(&self.as_str()).finish()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Pattern {}

/// An item as a selection sees it.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "rules use all of these and nothing else"
)]
pub struct Candidate<'a> {
    /// The name of a tool or prompt, the URI of a resource, the URI template.
    pub name: &'a str,
    /// The name on the server, without a prefix that `name` may have.
    pub upstream_name: &'a str,
    /// The key of the server that lists it.
    pub server: &'a str,
    /// The hints of a tool; `None` for other items.
    pub hints: Option<ToolHints>,
}

/// One entry of a selection: conditions that an item must all satisfy.
///
/// In a configuration, a string is a pattern on names. With a `server`, the name may also be the name on the server,
/// so that the rule does not depend on the number of servers.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "written out by hand")]
pub struct Rule {
    /// The name, or the URI.
    pub name: Option<Pattern>,
    /// The key of the server.
    pub server: Option<Pattern>,
    /// Conditions on the hints of a tool. Only tools have hints, so a rule with hints matches nothing else.
    pub hints: BTreeMap<ToolHint, HintCondition>,
}

impl Rule {
    /// A rule with a name pattern only.
    #[must_use]
    pub fn by_name(name: Pattern) -> Self {
        Self {
            name: Some(name),
            ..Self::default()
        }
    }

    /// Whether the rule matches the item.
    pub fn matches(&self, item: Candidate<'_>) -> bool {
        self.matches_names(item, self.server.is_some())
    }

    fn matches_names(&self, item: Candidate<'_>, by_own: bool) -> bool {
        self.matches_with(item, by_own, Pattern::matches)
    }

    /// Like [`matches`](Self::matches), with `is` to compare patterns with names.
    pub(super) fn matches_with(
        &self,
        item: Candidate<'_>,
        by_own: bool,
        is: impl Fn(&Pattern, &str) -> bool,
    ) -> bool {
        let name = |text| self.name.as_ref().is_none_or(|pattern| is(pattern, text));
        let mut server = self.server.iter();
        (name(item.name) || by_own && item.upstream_name != item.name && name(item.upstream_name))
            && server.all(|pattern| pattern.matches(item.server))
            && self.hints.iter().all(|(hint, wanted)| {
                item.hints
                    .is_some_and(|hints| hints.matches(*hint, *wanted))
            })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.iter().map(ToString::to_string);
        let server = self.server.iter().map(|server| format!("server: {server}"));
        let hints = self.hints.iter().map(|(hint, wanted)| {
            let wanted = match wanted {
                HintCondition::True => "true",
                HintCondition::False => "false",
                HintCondition::Absent => "absent",
            };
            format!("{hint}: {wanted}")
        });
        let parts: Vec<String> = name.chain(server).chain(hints).collect();
        f.write_str(&parts.join(", "))
    }
}

/// Selects the items of one kind that a view shows: those that a rule of `include` matches (all if there is none),
/// except those that a rule of `exclude` matches, and those of servers that are not among `servers`.
///
/// # Examples
///
/// ```
/// use mcp_vary_view::{Candidate, Selection, ToolHints};
///
/// let selection: Selection = serde_json::from_str(
///     r#"{"include": ["*_issue*", {"server": "git", "readOnlyHint": true}], "exclude": ["delete_*"]}"#,
/// )?;
/// let selects = |name, server| {
///     selection.selects(Candidate { name, upstream_name: name, server, hints: Some(ToolHints::default()) })
/// };
/// assert!(selects("list_issues", "github"));
/// assert!(!selects("delete_issue", "github"));
///
/// // The tool does not declare that it is read-only, so it may not be.
/// assert!(!selects("log", "git"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "written out by hand")]
pub struct Selection {
    /// The items that are shown; empty means all.
    pub include: Vec<Rule>,
    /// The items among these that are hidden.
    pub exclude: Vec<Rule>,
    /// The names of the servers whose items can be selected; empty means all.
    pub servers: Vec<String>,
}

impl Selection {
    /// Whether the selection includes the item.
    pub fn selects(&self, item: Candidate<'_>) -> bool {
        let included =
            self.include.is_empty() || self.include.iter().any(|rule| rule.matches(item));
        included
            && self.covers(item.server)
            && !self
                .exclude
                .iter()
                .any(|rule| rule.matches_names(item, true))
    }

    /// Whether items of `server` can be selected at all.
    pub fn covers(&self, server: &str) -> bool {
        self.servers.is_empty() || self.servers.iter().any(|known| known == server)
    }

    /// Whether the selection has rules for items, and not only for servers.
    pub const fn has_rules(&self) -> bool {
        !self.include.is_empty() || !self.exclude.is_empty()
    }

    /// Whether the selection may leave out an item of `server`.
    pub fn may_hide_of(&self, server: &str) -> bool {
        let is_of_server = |rule: &&Rule| {
            let pattern = rule.server.as_ref();
            pattern.is_none_or(|pattern| pattern.matches(server))
        };
        let matches_all = |rule: &Rule| {
            let name = rule.name.as_ref().map(Pattern::as_str);
            rule.hints.is_empty() && name.is_none_or(|name| matches!(name, "*" | "**"))
        };
        let includes_all =
            self.include.is_empty() || self.include.iter().filter(is_of_server).any(matches_all);
        !self.covers(server) || !includes_all || self.exclude.iter().any(|rule| is_of_server(&rule))
    }

    /// Whether the selection can include items of `server`.
    pub fn may_select_from(&self, server: &str) -> bool {
        let may_match = |rule: &Rule| {
            let pattern = rule.server.as_ref();
            pattern.is_none_or(|pattern| pattern.matches(server))
        };
        self.covers(server) && (self.include.is_empty() || self.include.iter().any(may_match))
    }

    /// The rules that match none of `items`, which are most likely mistakes. `key` is the key of the selection, such
    /// as `tools`.
    pub fn diagnostics(&self, key: &str, items: &[Candidate<'_>]) -> Vec<ViewDiagnostic> {
        let lists = [("include", &self.include), ("exclude", &self.exclude)];
        let rules = lists.into_iter().flat_map(|(list, rules)| {
            let indexed = rules.iter().enumerate();
            indexed.map(move |(index, rule)| (list, index, rule))
        });
        let holds = |list: &str, rule: &Rule, item: &Candidate<'_>| match key {
            "resources" => rule.matches_resource(*item),
            _ => rule.matches_names(*item, list == "exclude" || rule.server.is_some()),
        };
        let idle =
            rules.filter(|(list, _, rule)| !items.iter().any(|item| holds(list, rule, item)));
        idle.map(|(list, index, rule)| {
            let key = format!("{key}.{list}[{index}]");
            let rule_text = rule.to_string();
            match items.iter().find(|item| rule.matches_names(**item, true)) {
                Some(item) => ViewDiagnostic::UpstreamNameOnly {
                    key,
                    rule: rule_text,
                    server: item.server.to_owned(),
                    upstream_name: item.upstream_name.to_owned(),
                    name: item.name.to_owned(),
                },
                None => ViewDiagnostic::UnmatchedRule {
                    suggestion: match meant_name(rule, items) {
                        // What is excluded may be added later.
                        None if list == "include" => meant_pattern(rule, items),
                        meant => meant,
                    },
                    key,
                    rule: rule_text,
                },
            }
        })
        .collect()
    }
}

/// The server or the name that a rule most likely means.
fn meant_name(rule: &Rule, items: &[Candidate<'_>]) -> Option<String> {
    let similar = || nearest(&rule.to_string(), items.iter().map(|item| item.name));
    meant_server(rule, items).or_else(|| similar().map(str::to_owned))
}

/// The pattern that a rule most likely means: its own, with a word of the names in place of a similar one.
fn meant_pattern(rule: &Rule, items: &[Candidate<'_>]) -> Option<String> {
    let written = rule.name.as_ref()?.as_str();
    if rule.server.is_some() || !rule.hints.is_empty() {
        return None;
    }
    let parts = || items.iter().flat_map(|item| item.name.split(is_separator));
    let mistyped = written
        .split(is_separator)
        .filter(|word| word.len() >= SHORTEST_WORD);
    let mut corrected =
        mistyped.filter_map(|word| Some(written.replacen(word, nearest(word, parts())?, 1)));
    corrected.find(|text| {
        let parsed = text.parse::<Pattern>();
        parsed.is_ok_and(|pattern| items.iter().any(|item| pattern.matches(item.name)))
    })
}

/// Whether a character is between the words of a name.
fn is_separator(c: char) -> bool {
    !c.is_alphanumeric()
}

/// The bytes of the shortest word that is corrected: many short words are similar.
const SHORTEST_WORD: usize = 5;

/// The server that a rule most likely means, if what it names is none.
fn meant_server(rule: &Rule, items: &[Candidate<'_>]) -> Option<String> {
    let written = rule.server.as_ref()?;
    if items.iter().any(|item| written.matches(item.server)) {
        return None;
    }
    let meant = nearest(written.as_str(), items.iter().map(|item| item.server))?;
    Some(format!("server: {meant}"))
}

/// A pattern on names, or an object of conditions.
impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "expected a pattern, or an object of name, server and hints"
        )]
        enum Written {
            Name(Pattern),
            Conditions(Conditions),
        }
        #[derive(Deserialize)]
        struct Conditions {
            name: Option<Pattern>,
            server: Option<Pattern>,
            #[serde(flatten)]
            hints: BTreeMap<ToolHint, HintCondition>,
        }
        Ok(match Written::deserialize(deserializer)? {
            Written::Name(name) => Self::by_name(name),
            Written::Conditions(Conditions {
                name,
                server,
                hints,
            }) => Self {
                name,
                server,
                hints,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn matches(pattern: &str, yes: &[&str], no: &[&str]) {
        let pattern: Pattern = pattern.parse().unwrap();
        for name in yes {
            assert!(pattern.matches(name), "{pattern} is {name}");
        }
        for name in no {
            assert!(!pattern.matches(name), "{pattern} is not {name}");
        }
    }

    #[test]
    fn a_pattern_is_what_was_written() {
        let read = |text: &str| Pattern::try_from(text.to_owned());
        assert_eq!(String::from(read("get_*").unwrap()), "get_*");
        assert_eq!(read("a").unwrap(), read("a").unwrap());
        assert_ne!(read("a").unwrap(), read("b").unwrap());
        assert!(read(&"a".repeat(MAX_PATTERN)).is_ok());
        let error = read(&"a".repeat(MAX_PATTERN + 1)).unwrap_err().to_string();
        assert!(error.ends_with("has more than 512 bytes"), "{error}");
    }

    #[test]
    fn a_pattern_is_about_the_whole_name() {
        matches("get_*", &["get_", "get_a/b"], &["xget_a", "Get_a", "get"]);
        matches("*", &["", "a", "a/b.c:d"], &[]);
        matches("{a,b}?", &["ax", "b/"], &["a", "axx", "c1"]);
        matches(r"a\*", &["a*"], &["ab"]);
        matches(
            "file:///src/**/*.rs",
            &["file:///src/a/b.rs"],
            &["file:///src/b.rs/c"],
        );
    }

    #[test]
    fn what_is_no_pattern_says_why() {
        #[track_caller]
        fn refused(pattern: &str, why: &str) {
            assert_eq!(pattern.parse::<Pattern>().unwrap_err().to_string(), why);
        }
        refused("", "the pattern `` is empty; write `*` for everything");
        refused(
            "a[",
            "the pattern `a[` cannot be read: unclosed character class; missing ']'",
        );
        let long = "a".repeat(513);
        assert!(
            long.parse::<Pattern>()
                .unwrap_err()
                .to_string()
                .ends_with("more than 512 bytes")
        );
    }

    #[test]
    fn patterns_that_hurt_other_engines_do_not() {
        let pattern: Pattern = "*a*a*a*a*a*a*a*a*a*a*a*b".parse().unwrap();
        assert!(!pattern.matches(&"a".repeat(100_000)));
    }

    #[track_caller]
    fn shown(selection: &str, items: &[(&str, &str, &str)], expected: &[&str]) {
        let selection: Selection = serde_json::from_str(selection).unwrap();
        let shown: Vec<&str> = items
            .iter()
            .filter(|(name, server, annotations)| {
                let tool = format!(r#"{{"annotations":{annotations}}}"#);
                let hints = (*annotations != "-").then(|| ToolHints::from_tool(&tool));
                selection.selects(Candidate {
                    name,
                    upstream_name: name,
                    server,
                    hints,
                })
            })
            .map(|(name, ..)| *name)
            .collect();
        assert_eq!(shown, expected, "by {selection:?}");
    }

    /// SV-11: a view selects by name, server and annotation.
    #[test]
    fn items_are_selected_by_name_server_and_annotation() {
        let items = [
            ("get", "a", r#"{"readOnlyHint": true}"#),
            ("put", "a", r#"{"destructiveHint": false}"#),
            ("delete", "b", "{}"),
            ("docs://x", "b", "-"),
        ];
        shown("{}", &items, &["get", "put", "delete", "docs://x"]);
        shown(r#"{"include": ["*t"]}"#, &items, &["get", "put"]);
        shown(
            r#"{"include": [{"server": "b"}]}"#,
            &items,
            &["delete", "docs://x"],
        );
        shown(
            r#"{"exclude": [{"readOnlyHint": false}]}"#,
            &items,
            &["get", "docs://x"],
        );
        shown(
            r#"{"include": [{"destructiveHint": true}]}"#,
            &items,
            &["delete"],
        );
        shown(
            r#"{"include": [{"destructiveHint": "absent"}], "exclude": ["docs:*"]}"#,
            &items,
            &["get", "delete"],
        );
        shown(
            r#"{"include": [{"name": "*e*", "server": "a"}, "put"], "exclude": ["put"]}"#,
            &items,
            &["get"],
        );
    }

    /// SV-11: what is said of a server's item holds whatever is put before its name.
    #[test]
    fn what_is_denied_stays_so_when_names_are_prefixed() {
        #[track_caller]
        fn is(selection: &str, shown: bool) {
            let selection: Selection = serde_json::from_str(selection).unwrap();
            for name in ["write_file", "a_write_file"] {
                let item = Candidate {
                    name,
                    upstream_name: "write_file",
                    server: "a",
                    hints: None,
                };
                assert_eq!(selection.selects(item), shown, "{name} by {selection:?}");
            }
        }
        is(
            r#"{"exclude": [{"server": "a", "name": "write_*"}]}"#,
            false,
        );
        is(r#"{"exclude": ["write_*"]}"#, false);
        is(
            r#"{"include": [{"server": "a", "name": "write_file"}]}"#,
            true,
        );
        is(
            r#"{"include": [{"server": "b", "name": "write_file"}]}"#,
            false,
        );
        is(r#"{"exclude": [{"server": "b", "name": "write_*"}]}"#, true);
        // Of all servers, what is shown is meant by the name that clients see.
        let some: Selection = serde_json::from_str(r#"{"include": ["write_*"]}"#).unwrap();
        let item = Candidate {
            name: "a_write_file",
            upstream_name: "write_file",
            server: "a",
            hints: None,
        };
        assert!(!some.selects(item));
        let said = some.diagnostics("tools", &[item])[0].to_string();
        let expected = "`tools.include[0]` matches nothing that clients see: the item is `write_file` on server `a`, \
                        and clients see `a_write_file`; name the server, as in `{server: a, name: write_*}`, or write \
                        `server: \"*\"` for all servers";
        assert_eq!(said, expected);
        is(r#"{"include": [{"server": "*", "name": "write_*"}]}"#, true);
        let none: Selection = serde_json::from_str(r#"{"exclude": ["write_*"]}"#).unwrap();
        assert_eq!(none.diagnostics("tools", &[item]), []);
    }

    #[test]
    fn a_rule_of_a_server_that_is_not_there_names_the_one_that_is_meant() {
        let selection = r#"{"exclude": [{"server": "note", "name": "drop_*"}]}"#;
        let selection: Selection = serde_json::from_str(selection).unwrap();
        let item = Candidate {
            name: "list_notes",
            upstream_name: "list_notes",
            server: "notes",
            hints: None,
        };
        let said = selection.diagnostics("tools", &[item])[0].to_string();
        let expected = "`tools.exclude[0]` matches nothing now: `drop_*, server: note`; did you mean `server: notes`?";
        assert_eq!(said, expected);
    }

    #[test]
    fn a_pattern_with_a_mistyped_word_is_followed_by_the_one_that_is_meant() {
        let item = Candidate {
            name: "search_issues",
            upstream_name: "search_issues",
            server: "a",
            hints: None,
        };
        for (list, pattern, expected) in [
            ("include", "*_isues", "`*_isues`; did you mean `*_issues`?"),
            ("include", "serch_*", "`serch_*`; did you mean `search_*`?"),
            (
                "include",
                "isues_*",
                "`isues_*`; correct it, or take it out",
            ),
            (
                "exclude",
                "*_isues",
                "`*_isues`; it will exclude what the servers add later",
            ),
        ] {
            let text = format!(r#"{{"{list}": ["{pattern}"]}}"#);
            let selection: Selection = serde_json::from_str(&text).unwrap();
            let said = selection.diagnostics("tools", &[item])[0].to_string();
            assert!(said.ends_with(expected), "{said}");
        }
    }

    #[test]
    fn rules_that_hold_for_nothing_are_found() {
        let selection: Selection = serde_json::from_str(
            r#"{"include": ["get_*", {"server": "x", "readOnlyHint": true}]}"#,
        )
        .unwrap();
        let items = [Candidate {
            name: "get_a",
            upstream_name: "get_a",
            server: "a",
            hints: None,
        }];
        let mistakes = selection.diagnostics("tools", &items);
        let mistakes: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        assert_eq!(
            mistakes,
            [
                "`tools.include[1]` matches nothing: `server: x, readOnlyHint: true`; correct it, or take it out"
            ]
        );
    }

    #[test]
    fn a_misspelt_condition_is_no_rule() {
        let rule = serde_json::from_str::<Rule>(r#"{"readOnly": true}"#);
        assert!(rule.is_err());
    }
}
