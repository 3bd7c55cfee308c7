//! The items of servers, and patterns over them.

use std::fmt;

use mcp_vary_view::{Candidate, Rule, Selection, ToolHints};

use crate::pattern::{may_be_uri, may_begin_with};

/// An item as access rules see it.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    kind: ItemKind,
    candidate: Candidate<'a>,
    trusts_annotations: bool,
}

/// The kind of an item.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum ItemKind {
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
    /// A resource that a server lists.
    Resource,
    /// A URI template that a server lists.
    ResourceTemplate,
    /// A resource that no server lists, under the URI that a client wrote.
    UnlistedResource,
    /// A skill, or a file or directory of one.
    Skill,
}

impl<'a> Item<'a> {
    /// A tool.
    ///
    /// `name` is the tool's name in the variant `standard`, after naming and before overrides, and `upstream_name` its
    /// name on the server. The hints decide only if the configuration trusts the annotations of the server.
    pub const fn tool(
        name: &'a str,
        upstream_name: &'a str,
        server: &'a str,
        hints: ToolHints,
        trusts_annotations: bool,
    ) -> Self {
        let mut tool = Self::without_hints(ItemKind::Tool, name, upstream_name, server);
        tool.candidate.hints = Some(hints);
        tool.trusts_annotations = trusts_annotations;
        tool
    }

    /// A prompt, with its names as a [`tool`](Self::tool) has them.
    pub const fn prompt(name: &'a str, upstream_name: &'a str, server: &'a str) -> Self {
        Self::without_hints(ItemKind::Prompt, name, upstream_name, server)
    }

    /// A resource that a server lists, by its URI in the variant `standard` and its URI on the server.
    pub const fn resource(uri: &'a str, upstream_uri: &'a str, server: &'a str) -> Self {
        Self::without_hints(ItemKind::Resource, uri, upstream_uri, server)
    }

    /// A URI template that a server lists, as in the variant `standard` and as on the server.
    pub const fn template(template: &'a str, upstream_template: &'a str, server: &'a str) -> Self {
        let kind = ItemKind::ResourceTemplate;
        Self::without_hints(kind, template, upstream_template, server)
    }

    /// A resource that no server lists, by the URI that goes to the server.
    pub const fn unlisted_resource(upstream_uri: &'a str, server: &'a str) -> Self {
        let kind = ItemKind::UnlistedResource;
        Self::without_hints(kind, upstream_uri, upstream_uri, server)
    }

    /// A skill, or a file or directory of one, by its URI on the server.
    #[must_use]
    pub const fn skill(upstream_uri: &'a str, server: &'a str) -> Self {
        Self::without_hints(ItemKind::Skill, upstream_uri, upstream_uri, server)
    }

    const fn without_hints(
        kind: ItemKind,
        name: &'a str,
        upstream_name: &'a str,
        server: &'a str,
    ) -> Self {
        let candidate = Candidate {
            name,
            upstream_name,
            server,
            hints: None,
        };
        Self {
            kind,
            candidate,
            trusts_annotations: false,
        }
    }

    /// The kind.
    pub const fn kind(&self) -> ItemKind {
        self.kind
    }

    /// The name, URI or template in the variant `standard`.
    pub const fn name(&self) -> &'a str {
        self.candidate.name
    }

    /// The key of the server.
    pub const fn server(&self) -> &'a str {
        self.candidate.server
    }
}

impl ItemKind {
    /// The kind in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::ResourceTemplate => "resource template",
            Self::UnlistedResource => "unlisted resource",
            Self::Skill => "skill",
        }
    }

    const fn is_resource(self) -> bool {
        matches!(
            self,
            Self::Resource | Self::ResourceTemplate | Self::UnlistedResource
        )
    }
}

impl fmt::Display for ItemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One entry of `allow` or `deny`: a rule as selections of variants have it, and the kinds of items to which it applies.
///
/// # Properties
///
/// It matches what a [`Selection`] with this rule includes or excludes. So a pattern without a server allows items by
/// the names that clients see, but denies also by the names on the servers; and resources are denied in every spelling
/// of their URIs.
///
/// Hints count only if the configuration trusts the annotations of the server:
///
/// | server | `allow` | `deny` |
/// |---|---|---|
/// | trusted | if the hints match | if the hints match |
/// | not trusted | never | if the hints match, or would match if the tool declared none |
///
/// A server that is not trusted cannot gain access for its tools by what it declares about them: it can only lose some.
///
/// # Examples
///
/// ```
/// use mcp_vary_access::{Item, ItemPattern};
/// use mcp_vary_view::{Rule, ToolHints};
///
/// let read_only = ItemPattern::any(serde_json::from_str::<Rule>(r#"{"readOnlyHint": true}"#)?);
/// let hints = ToolHints::from_tool(r#"{"annotations": {"readOnlyHint": true}}"#);
/// assert!(read_only.allows(&Item::tool("search", "search", "web", hints, true)));
///
/// // The server declares that its tool is read-only, but nobody vouches for it.
/// assert!(!read_only.allows(&Item::tool("search", "search", "web", hints, false)));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ItemPattern {
    kinds: Kinds,
    rule: Rule,
    including: Selection,
    excluding: Selection,
}

/// The kinds to which a pattern applies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kinds {
    All,
    Tools,
    Prompts,
    Resources,
    Skills,
}

impl ItemPattern {
    /// A pattern over items of all kinds.
    pub fn any(rule: Rule) -> Self {
        Self::new(Kinds::All, rule)
    }

    /// A pattern over tools.
    pub fn tools(rule: Rule) -> Self {
        Self::new(Kinds::Tools, rule)
    }

    /// A pattern over prompts.
    pub fn prompts(rule: Rule) -> Self {
        Self::new(Kinds::Prompts, rule)
    }

    /// A pattern over the URIs of resources, and over URI templates.
    pub fn resources(rule: Rule) -> Self {
        Self::new(Kinds::Resources, rule)
    }

    /// A pattern over the paths of skills, such as `pdf` for `skill://pdf/SKILL.md`.
    #[must_use]
    pub fn skills(rule: Rule) -> Self {
        Self::new(Kinds::Skills, rule)
    }

    fn new(kinds: Kinds, rule: Rule) -> Self {
        let including = Selection {
            include: vec![rule.clone()],
            ..Selection::default()
        };
        let excluding = Selection {
            exclude: vec![rule.clone()],
            ..Selection::default()
        };
        Self {
            kinds,
            rule,
            including,
            excluding,
        }
    }

    /// Whether the pattern has no conditions at all, and would match every item by accident.
    pub fn is_empty(&self) -> bool {
        self.rule == Rule::default()
    }

    /// Whether the pattern has a condition on hints, which servers declare.
    pub fn uses_annotations(&self) -> bool {
        !self.rule.hints.is_empty()
    }

    /// Whether it may match items of this server.
    pub(crate) fn may_match_server(&self, server: &str) -> bool {
        let pattern = self.rule.server.as_ref();
        pattern.is_none_or(|pattern| pattern.matches(server))
    }

    /// Whether it is for skills only.
    pub(crate) fn is_for_skills(&self) -> bool {
        self.kinds == Kinds::Skills
    }

    /// Whether it may match skills: it is for no other kind, and has no condition on hints, which only tools have.
    pub(crate) fn may_match_skills(&self) -> bool {
        matches!(self.kinds, Kinds::All | Kinds::Skills) && !self.uses_annotations()
    }

    /// Whether it matches all items of its servers.
    pub(crate) fn matches_every_name(&self) -> bool {
        let name = self.rule.name.as_ref();
        self.kinds == Kinds::All
            && !self.uses_annotations()
            && name.is_none_or(|name| matches!(name.as_str(), "*" | "**"))
    }

    /// Whether it may match tools or prompts of its servers, whose names begin with `prefix`. Under a condition on the
    /// server, their names on the server match as well.
    pub(crate) fn may_match_names(&self, prefix: &str) -> bool {
        let name = self.rule.name.as_ref();
        !matches!(self.kinds, Kinds::Resources | Kinds::Skills)
            && (self.rule.server.is_some() || name.is_none_or(|name| may_begin_with(name, prefix)))
    }

    /// Whether it may match resources. Unless it is for resources only, these have URIs with a scheme.
    pub(crate) fn may_match_uris(&self) -> bool {
        let is_uri = || self.rule.name.as_ref().is_none_or(may_be_uri);
        match self.kinds {
            Kinds::All => !self.uses_annotations() && is_uri(),
            Kinds::Resources => !self.uses_annotations(),
            Kinds::Tools | Kinds::Prompts | Kinds::Skills => false,
        }
    }

    /// Whether the item is allowed by this entry of `allow`.
    pub fn allows(&self, item: &Item<'_>) -> bool {
        let is_known = item.trusts_annotations || !self.uses_annotations();
        is_known
            && self.kinds.contains(item.kind)
            && selects(&self.including, item.kind, item.candidate)
    }

    /// Whether the item is denied by this entry of `deny`.
    pub fn denies(&self, item: &Item<'_>) -> bool {
        let undeclared = Candidate {
            hints: item.candidate.hints.map(|_| ToolHints::default()),
            ..item.candidate
        };
        let excludes = |candidate| !selects(&self.excluding, item.kind, candidate);
        self.kinds.contains(item.kind)
            && (excludes(item.candidate) || !item.trusts_annotations && excludes(undeclared))
    }
}

fn selects(selection: &Selection, kind: ItemKind, candidate: Candidate<'_>) -> bool {
    match kind {
        ItemKind::Tool | ItemKind::Prompt => selection.selects(candidate),
        ItemKind::Resource | ItemKind::ResourceTemplate => selection.selects_resource(candidate),
        ItemKind::UnlistedResource => selection.selects_unlisted_resource(candidate),
        ItemKind::Skill => selection.selects_skill(candidate),
    }
}

impl Kinds {
    fn contains(self, kind: ItemKind) -> bool {
        match self {
            Self::All => true,
            Self::Tools => kind == ItemKind::Tool,
            Self::Prompts => kind == ItemKind::Prompt,
            Self::Resources => kind.is_resource(),
            Self::Skills => kind == ItemKind::Skill,
        }
    }
}

/// The conditions as they are written, such as `tools git_*, server: git`.
impl fmt::Display for ItemPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = match self.kinds {
            Kinds::All => "",
            Kinds::Tools => "tools ",
            Kinds::Prompts => "prompts ",
            Kinds::Resources => "resources ",
            Kinds::Skills => "skills ",
        };
        write!(f, "{kinds}{}", self.rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(json: &str) -> Rule {
        serde_json::from_str(json).unwrap()
    }

    fn hints(annotations: &str) -> ToolHints {
        ToolHints::from_tool(&format!(r#"{{"annotations":{annotations}}}"#))
    }

    fn tool(name: &'static str, server: &'static str) -> Item<'static> {
        let upstream_name = name.split_once('_').map_or(name, |(_, end)| end);
        Item::tool(name, upstream_name, server, ToolHints::default(), true)
    }

    #[track_caller]
    fn is(pattern: &ItemPattern, item: &Item<'_>, allows: bool, denies: bool) {
        let both = (pattern.allows(item), pattern.denies(item));
        assert_eq!(both, (allows, denies), "{pattern} for {item:?}");
    }

    #[test]
    fn a_pattern_matches_names_and_servers() {
        let pattern = ItemPattern::any(rule(r#""git_*""#));
        is(&pattern, &tool("git_push", "git"), true, true);
        is(&pattern, &tool("svn_push", "svn"), false, false);
        let prompt = Item::prompt("git_help", "help", "git");
        is(&pattern, &prompt, true, true);
        let pattern = ItemPattern::any(rule(r#"{"server": "git"}"#));
        is(&pattern, &tool("git_push", "git"), true, true);
        is(&pattern, &tool("git_push", "other"), false, false);
        is(&pattern, &Item::resource("a:b", "a:b", "git"), true, true);
    }

    #[test]
    fn names_on_servers_are_denied_and_not_allowed() {
        let pattern = ItemPattern::any(rule(r#""push""#));
        is(&pattern, &tool("git_push", "git"), false, true);
        let pattern = ItemPattern::any(rule(r#"{"name": "push", "server": "git"}"#));
        is(&pattern, &tool("git_push", "git"), true, true);
    }

    #[test]
    fn kinds_limit_a_pattern() {
        let items = [
            tool("a", "s"),
            Item::prompt("a", "a", "s"),
            Item::resource("a", "a", "s"),
            Item::template("a", "a", "s"),
            Item::unlisted_resource("a", "s"),
            Item::skill("skill://a/SKILL.md", "s"),
        ];
        #[track_caller]
        fn limits(pattern: &ItemPattern, items: &[Item<'_>], expected: [bool; 6]) {
            for (item, expected) in items.iter().zip(expected) {
                is(pattern, item, expected, expected);
            }
        }
        let any = || rule(r#""a""#);
        limits(&ItemPattern::any(any()), &items, [true; 6]);
        let tools = [true, false, false, false, false, false];
        limits(&ItemPattern::tools(any()), &items, tools);
        let prompts = [false, true, false, false, false, false];
        limits(&ItemPattern::prompts(any()), &items, prompts);
        let resources = [false, false, true, true, true, false];
        limits(&ItemPattern::resources(any()), &items, resources);
        let skills = [false, false, false, false, false, true];
        limits(&ItemPattern::skills(any()), &items, skills);
    }

    /// SV-20: annotations are declared by servers, so they grant nothing unless the operator trusts them.
    #[test]
    fn annotations_of_a_server_that_is_not_trusted_cannot_grant_access() {
        let (reads, destroys) = (r#"{"readOnlyHint": true}"#, r#"{"destructiveHint": true}"#);
        let harmless = r#"{"destructiveHint": false}"#;
        let absent = r#"{"destructiveHint": "absent"}"#;
        for (pattern, annotations, allows, denies) in [
            (reads, "{}", [false, false], [false, false]),
            (reads, reads, [true, false], [true, true]),
            (destroys, "{}", [true, false], [true, true]),
            (destroys, harmless, [false, false], [false, true]),
            (absent, harmless, [false, false], [false, true]),
        ] {
            let pattern = ItemPattern::any(rule(pattern));
            assert!(pattern.uses_annotations());
            for (at, is_trusted) in [true, false].into_iter().enumerate() {
                let item = Item::tool("a", "a", "s", hints(annotations), is_trusted);
                is(&pattern, &item, allows[at], denies[at]);
            }
            is(&pattern, &Item::prompt("a", "a", "s"), false, false);
        }
        let named = ItemPattern::any(rule(r#"{"name": "a", "destructiveHint": true}"#));
        let other = Item::tool("b", "b", "s", hints("{}"), false);
        is(&named, &other, false, false);
    }

    #[test]
    fn resources_are_denied_in_every_spelling() {
        let pattern = ItemPattern::resources(rule(r#""file:///srv/secret""#));
        for uri in [
            "file:///srv/secret",
            "file:///srv/%73ecret",
            "file:///srv/secret?x",
            "file:///srv/secret#",
        ] {
            assert!(pattern.denies(&Item::unlisted_resource(uri, "s")), "{uri}");
        }
        let pattern = ItemPattern::resources(rule(r#""file:///srv/*.md""#));
        for (uri, allows) in [("file:///srv/a.md", true), ("file:///srv/key?.md", false)] {
            is(&pattern, &Item::unlisted_resource(uri, "s"), allows, true);
        }
        let pattern = ItemPattern::resources(rule(r#""a:[{]x[}]""#));
        is(&pattern, &Item::template("a:{x}", "a:{x}", "s"), true, true);
    }

    #[test]
    fn a_pattern_without_conditions_is_known() {
        assert!(ItemPattern::any(rule("{}")).is_empty());
        assert!(!ItemPattern::any(rule(r#""*""#)).is_empty());
        assert!(!ItemPattern::tools(rule(r#"{"readOnlyHint": false}"#)).is_empty());
    }

    #[test]
    fn patterns_are_shown_as_they_are_written() {
        let pattern = ItemPattern::tools(rule(r#"{"name": "a*", "readOnlyHint": true}"#));
        assert_eq!(pattern.to_string(), "tools a*, readOnlyHint: true");
        assert_eq!(ItemPattern::any(rule(r#""*""#)).to_string(), "*");
        let kinds = [
            ItemPattern::prompts(rule(r#""p""#)),
            ItemPattern::resources(rule(r#""r""#)),
            ItemPattern::skills(rule(r#""s""#)),
        ];
        let written = ["prompts p", "resources r", "skills s"];
        assert_eq!(kinds.map(|it| it.to_string()), written);
    }
}
