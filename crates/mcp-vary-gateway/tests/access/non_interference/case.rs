//! Generated catalogues, rules, principals and changes, and what the rules show by another implementation.

use std::collections::BTreeMap;

use mcp_vary::variant::{DeprecationInfo, Status};
use mcp_vary_access::{AccessPolicy, AccessRule, Claims, ItemPattern, Presence, Principal, When};
use mcp_vary_catalog::variant_set::VariantSet;
use mcp_vary_view::Rule;
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::support::*;

/// The names of items of each kind, of which a catalogue has some.
pub(super) const NAMES: [&str; 3] = ["aa", "ab", "b"];

/// The servers, in the order of configuration. Some cases have the first alone, whose names have no prefix then.
pub(super) const SERVERS: [&str; 2] = ["one", "two"];

/// The groups of which a principal is in some.
const GROUPS: [&str; 2] = ["dev", "sre"];

/// The variants in which the questions are asked.
const VARIANTS: [&str; 4] = ["standard", "compact", "directory", "read-only"];

/// A variant that is deprecated, with another as its replacement.
pub(super) const DEPRECATED: &str = "old";

/// Patterns that allow. A star is at the end only, so that what they match is plain.
const ALLOWING: [&str; 21] = [
    "*", "one_*", "two_t_*", "one_t_a*", "two_t_ab", "t_*", "t_a*", "t_b", "one_p_*", "two_p_a*",
    "one_p_b", "p_a*", "one:*", "two:a*", "one:b", "one+*", "two+a*", "two+*", "nix", "same:*",
    "same:a*",
];

/// Patterns that deny. None matches a [mark](Kind::Mark).
const DENYING: [&str; 12] = [
    "one_t_*", "two_t_a*", "t_b*", "p_*", "one_p_a*", "two:*", "one:a*", "one:b", "one+a*",
    "two+*", "same:*", "same:ab",
];

/// The kind of an item.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Kind {
    Tool,
    Prompt,
    Resource,
    /// A resource whose URI is the same on every server.
    Shared,
    Template,
    /// The resource by which a test knows that everything before it has arrived.
    Mark,
}

impl Kind {
    const LISTED: [Self; 5] = [
        Self::Tool,
        Self::Prompt,
        Self::Resource,
        Self::Shared,
        Self::Template,
    ];

    /// The list that the item is in, as notifications name it.
    pub(super) const fn list(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::Prompt => "prompts",
            Self::Resource | Self::Shared | Self::Template | Self::Mark => "resources",
        }
    }
}

/// An item of a server.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Item {
    pub(super) server: usize,
    pub(super) kind: Kind,
    pub(super) name: &'static str,
}

impl Item {
    /// The name, URI or template on its server.
    pub(super) fn upstream_name(&self) -> String {
        let (server, name) = (SERVERS[self.server], self.name);
        match self.kind {
            Kind::Tool => format!("t_{name}"),
            Kind::Prompt => format!("p_{name}"),
            Kind::Resource => format!("{server}:{name}"),
            Kind::Shared => format!("same:{name}"),
            Kind::Template => format!("{server}+{name}:{{x}}"),
            Kind::Mark => mark(self.server),
        }
    }

    /// The same in the variant `standard` of a gateway that prefixes names or does not.
    pub(super) fn id(&self, is_prefixed: bool) -> String {
        match self.kind {
            Kind::Tool | Kind::Prompt if is_prefixed => {
                format!("{}_{}", SERVERS[self.server], self.upstream_name())
            }
            _ => self.upstream_name(),
        }
    }

    /// What a client reads: the URI of a resource, or one that matches the template.
    pub(super) fn uri(&self) -> String {
        self.upstream_name().replace("{x}", "5")
    }
}

/// The URI of the mark of a server.
pub(super) fn mark(server: usize) -> String {
    format!("end:{}", SERVERS[server])
}

/// The items that so many servers could have: with one that no catalogue has.
pub(super) fn possible(servers: usize) -> impl Iterator<Item = Item> {
    (0..servers).flat_map(|server| {
        Kind::LISTED.into_iter().flat_map(move |kind| {
            let names = NAMES.into_iter().chain(["nix"]);
            names.map(move |name| Item { server, kind, name })
        })
    })
}

/// The items of a catalogue, with the number of times that each was described anew.
pub(super) type Items = BTreeMap<Item, usize>;

/// A pattern of a rule, for the items of a server or of all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    name: Option<&'static str>,
    server: Option<usize>,
}

impl Named {
    fn is_all(&self) -> bool {
        self.name.is_none_or(|name| name == "*")
    }

    fn pattern(self) -> ItemPattern {
        ItemPattern::any(Rule {
            name: self.name.map(|name| name.parse().unwrap()),
            server: self.server.map(|at| SERVERS[at].parse().unwrap()),
            ..Rule::default()
        })
    }

    fn matches(self, item: &Item, is_prefixed: bool, by_upstream_name: bool) -> bool {
        let is = |name: &str| match self.name {
            None => true,
            Some(pattern) => match pattern.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => pattern == name,
            },
        };
        let by_upstream_name = by_upstream_name || self.server.is_some();
        self.server.is_none_or(|server| server == item.server)
            && (is(&item.id(is_prefixed)) || by_upstream_name && is(&item.upstream_name()))
    }
}

/// A rule for a group, or for anyone.
#[derive(Clone, Debug)]
pub(super) struct GroupRule {
    group: Option<&'static str>,
    allow: Vec<Named>,
    deny: Vec<Named>,
}

/// Something that happens at a server.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// An item appears, or is gone.
    Toggle(Item),
    /// The description of an item changes.
    Describe(Item),
    /// A server announces that a list changed, and it is the same.
    Announce(Item),
    /// A resource changes, whether a server lists it or not.
    Update(Item),
}

impl Step {
    const fn item_mut(&mut self) -> &mut Item {
        match self {
            Self::Toggle(item)
            | Self::Describe(item)
            | Self::Announce(item)
            | Self::Update(item) => item,
        }
    }

    pub(super) const fn item(&self) -> &Item {
        match self {
            Self::Toggle(item)
            | Self::Describe(item)
            | Self::Announce(item)
            | Self::Update(item) => item,
        }
    }
}

/// What a server declares.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declares {
    /// Resources; without, it has tools and prompts only.
    pub(super) resources: bool,
    /// Completions, a log, tasks, and an extension of its own.
    pub(super) others: bool,
}

/// One case.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// The number of servers.
    pub(super) servers: usize,
    /// Whether names are those of the servers, so that servers can share names.
    pub(super) shares_names: bool,
    pub(super) declares: [Declares; 2],
    pub(super) items: Items,
    rules: Vec<GroupRule>,
    /// The groups of the principal.
    groups: Vec<&'static str>,
    pub(super) page: usize,
    /// Whether the legacy client asks for the items with even numbers, and the modern one for the others.
    pub(super) is_even_legacy: bool,
    pub(super) variant: &'static str,
    /// The variants that the rules hide.
    pub(super) hidden_variants: Vec<&'static str>,
    /// The replacement of the deprecated variant.
    pub(super) replacement: &'static str,
    pub(super) server_era: Era,
    /// What happens after the questions. Everybody sees the marks then.
    pub(super) steps: Vec<Step>,
}

impl Case {
    /// Whether names of tools and prompts begin with that of their server.
    pub(super) fn is_prefixed(&self) -> bool {
        self.servers > 1 && !self.shares_names
    }

    fn applying(&self) -> impl Iterator<Item = &GroupRule> {
        let rules = self.rules.iter();
        rules.filter(|rule| rule.group.is_none_or(|group| self.groups.contains(&group)))
    }

    /// Whether the rules show the item to the principal.
    pub(super) fn shows(&self, item: &Item) -> bool {
        if item.kind == Kind::Mark {
            return !self.steps.is_empty();
        }
        let mut allowing = self.applying().flat_map(|rule| &rule.allow);
        let mut denying = self.applying().flat_map(|rule| &rule.deny);
        allowing.any(|named| named.matches(item, self.is_prefixed(), false))
            && !denying.any(|named| named.matches(item, self.is_prefixed(), true))
    }

    /// Those of `items` that the rules show.
    pub(super) fn visible(&self, items: &Items) -> Items {
        let items = items.iter().filter(|(item, _)| self.shows(item));
        items.map(|(item, described)| (*item, *described)).collect()
    }

    /// Whether the principal may use something of a server: an item that it has; a resource that it need not list, where a
    /// pattern may be one of URIs; or whatever it will ever have.
    pub(super) fn shows_server(&self, server: usize) -> bool {
        let mut items = self.items.keys().filter(|item| item.server == server);
        let is_of_it = |named: &&Named| named.server.is_none_or(|it| it == server);
        let allowing = || {
            let allow = self.applying().flat_map(|rule| &rule.allow);
            allow.filter(is_of_it)
        };
        let is_uri = |named: &Named| named.name.is_some_and(|name| name.contains([':', '+']));
        items.any(|item| self.shows(item) && !self.is_taken(item))
            || self.declares[server].resources
                && allowing().any(|named| named.is_all() || is_uri(named))
            || self.allows_all(server)
    }

    /// Whether the principal may use whatever a server will ever have.
    fn allows_all(&self, server: usize) -> bool {
        let is_of_it = |named: &&Named| named.server.is_none_or(|of| of == server);
        let mut allowing = self.applying().flat_map(|rule| &rule.allow);
        let mut denying = self.applying().flat_map(|rule| &rule.deny);
        allowing.any(|named| is_of_it(&named) && named.is_all())
            && !denying.any(|named| is_of_it(&named))
    }

    /// Whether a server before that of the item shows another one of its name.
    fn is_taken(&self, item: &Item) -> bool {
        let is_prefixed = self.is_prefixed();
        let mut before = self.items.keys().filter(|it| it.server < item.server);
        before.any(|it| {
            it.kind == item.kind && it.id(is_prefixed) == item.id(is_prefixed) && self.shows(it)
        })
    }

    pub(super) fn policy(&self) -> AccessPolicy {
        let patterns = |all: &[Named]| all.iter().map(|named| named.pattern()).collect::<Vec<_>>();
        let rules = self.rules.iter().map(|rule| {
            let when = match rule.group {
                None => When::anyone(),
                Some(group) => {
                    let groups = Presence::of([group]).unwrap();
                    When::new().with_claim("groups", groups).unwrap()
                }
            };
            let allowed = AccessRule::new(when).with_allow(patterns(&rule.allow));
            allowed.with_deny(patterns(&rule.deny))
        });
        let marks = Named {
            name: Some("end:*"),
            server: None,
        };
        let marks = AccessRule::new(When::anyone()).with_allow([marks.pattern()]);
        let marks = Some(marks).filter(|_| !self.steps.is_empty());
        let shown = VARIANTS.into_iter().chain([DEPRECATED]);
        let shown = shown.filter(|id| !self.hidden_variants.contains(id));
        let shown = shown.map(|id| id.parse().unwrap());
        let variants = AccessRule::new(When::anyone()).with_variants(shown);
        AccessPolicy::new(rules.chain(marks).chain([variants])).unwrap()
    }

    /// The variants of both gateways, or of that which never had what is hidden.
    pub(super) fn variants(&self, with_hidden: bool) -> Vec<VariantConfig> {
        let is_there = |id: &str| with_hidden || !self.hidden_variants.contains(&id);
        let mut info = DeprecationInfo::new("Old.");
        let replacement = is_there(self.replacement).then_some(self.replacement);
        info.replacement = replacement.map(|id| id.parse().unwrap());
        let mut old = ServerVariant::new(DEPRECATED.parse().unwrap(), "old");
        old = old.with_status(Status::Deprecated);
        old.deprecation_info = Some(info);
        let variants = VariantSet::built_in();
        let variants = variants.configs().iter().cloned();
        let variants = variants.chain([VariantConfig::new(old)]);
        variants
            .filter(|it| is_there(it.variant.id.as_str()))
            .collect()
    }

    /// The rules of the gateway whose servers never had what is hidden: they allow everything of the others. Where the rules
    /// of the case may hide something, one of these denies what is not there: extensions follow from rules, and not from what
    /// they hide.
    pub(super) fn policy_without_hidden(&self) -> AccessPolicy {
        let shown = (0..self.servers).filter(|at| self.shows_server(*at));
        let allowed = shown.map(|at| {
            let of_it = |name| Named {
                name,
                server: Some(at),
            };
            let absent = (!self.allows_all(at)).then(|| of_it(Some("absent_*")).pattern());
            let allowed = AccessRule::new(When::anyone()).with_allow([of_it(None).pattern()]);
            allowed.with_deny(absent)
        });
        AccessPolicy::new(allowed).unwrap()
    }

    pub(super) fn claims(&self) -> Claims {
        let claims = json!({"groups": self.groups}).to_string();
        Claims::from_json(&claims).unwrap()
    }

    pub(super) fn principal(&self) -> Principal {
        Principal::stdio("ann", self.claims()).unwrap()
    }

    /// Its size: the smallest case that fails is the easiest one to read.
    pub(super) fn size(&self) -> usize {
        self.items.len() + self.steps.len() + self.rules.len()
    }
}

fn item() -> impl Strategy<Value = Item> {
    let servers = 0..SERVERS.len();
    (servers, select(&Kind::LISTED[..]), select(&NAMES[..])).prop_map(|(server, kind, name)| Item {
        server,
        kind,
        name,
    })
}

fn named(names: &'static [&'static str]) -> impl Strategy<Value = Named> {
    let server = option::weighted(0.3, 0..SERVERS.len());
    (select(names), server).prop_map(|(name, server)| Named {
        name: Some(name),
        server,
    })
}

fn rule() -> impl Strategy<Value = GroupRule> {
    let allowing = prop_oneof![
        5 => named(&ALLOWING),
        1 => (0..SERVERS.len()).prop_map(|server| Named { name: None, server: Some(server) }),
    ];
    let group = option::weighted(0.6, select(&GROUPS[..]));
    let rule = (group, vec(allowing, 0..4), vec(named(&DENYING), 0..2));
    let does_something =
        |(_, allow, deny): &(_, Vec<Named>, Vec<Named>)| !allow.is_empty() || !deny.is_empty();
    let rule = rule.prop_filter("it does something", does_something);
    rule.prop_map(|(group, allow, deny)| GroupRule { group, allow, deny })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => item().prop_map(Step::Toggle),
        2 => item().prop_map(Step::Describe),
        1 => item().prop_map(Step::Announce),
        3 => item().prop_map(Step::Update),
    ]
}

fn declares() -> impl Strategy<Value = Declares> {
    let both = (any::<bool>(), any::<bool>());
    both.prop_map(|(resources, others)| Declares { resources, others })
}

/// Cases, half of which have changes.
pub(super) fn case() -> impl Strategy<Value = Case> {
    let items = btree_set(item(), 0..18);
    let groups = btree_set(select(&GROUPS[..]), 0..=GROUPS.len());
    let steps = prop_oneof![Just(Vec::new()), vec(step(), 1..5)];
    let era = select(&[Era::Legacy, Era::Modern][..]);
    let servers = (
        1..=SERVERS.len(),
        any::<bool>(),
        era,
        [declares(), declares()],
    );
    let hidden = subsequence(&["compact", "directory", "read-only", DEPRECATED][..], 0..3);
    let variants = (select(&VARIANTS[..]), hidden, select(&VARIANTS[..]));
    let client = (groups, 2_usize..6, any::<bool>(), variants);
    let case = (items, vec(rule(), 1..4), client, servers, steps);
    case.prop_map(|(items, rules, client, servers, mut steps)| {
        let (servers, shares_names, server_era, mut declares) = servers;
        for server in &mut declares {
            // The marks of steps are resources.
            server.resources |= !steps.is_empty();
        }
        let has = |item: &Item| item.kind.list() != "resources" || declares[item.server].resources;
        let items = items
            .into_iter()
            .filter(|item| item.server < servers && has(item));
        let mut items: Items = items.map(|item| (item, 0)).collect();
        let marked = 0..if steps.is_empty() { 0 } else { servers };
        items.extend(marked.map(|server| {
            let (kind, name) = (Kind::Mark, "end");
            (Item { server, kind, name }, 0)
        }));
        for item in steps.iter_mut().map(Step::item_mut) {
            item.server %= servers;
        }
        let (groups, page, is_even_legacy, variants) = client;
        let (variant, mut hidden_variants, replacement) = variants;
        // The marks of steps are subscribed to under the variant.
        hidden_variants.retain(|id| steps.is_empty() || *id != variant);
        Case {
            servers,
            shares_names,
            declares,
            items,
            rules,
            groups: groups.into_iter().collect(),
            page,
            is_even_legacy,
            variant,
            hidden_variants,
            replacement,
            server_era,
            steps,
        }
    })
}
