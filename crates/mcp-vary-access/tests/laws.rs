//! What holds for all rules, principals and items, compared with a model of a few lines.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::Arc;

use mcp_vary_access::{
    AccessPolicy, AccessRule, Call, ClaimMapping, ClaimPath, Claims, Expression, Item, ItemPattern,
    Presence, Principal, Verdict, When,
};
use mcp_vary_view::{Candidate, Rule, Selection, ToolHints};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

const GROUPS: [&str; 3] = ["a", "b", "c"];
const SCOPES: [&str; 2] = ["read", "write"];
const READ_ONLY: &str = r#"{"annotations":{"readOnlyHint":true}}"#;

/// A rule, as data.
#[derive(Clone, Debug)]
struct RuleSpec {
    /// The group, or everyone.
    group: Option<&'static str>,
    allow: Vec<PatternSpec>,
    deny: Vec<PatternSpec>,
    scopes: Vec<&'static str>,
    condition: Option<Condition>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Condition {
    True,
    False,
    Fails,
}

#[derive(Clone, Copy, Debug)]
enum PatternSpec {
    All,
    Name(&'static str),
    Server(&'static str),
    NameOnServer(&'static str, &'static str),
    ReadOnly,
}

#[derive(Clone, Copy, Debug)]
struct ItemSpec {
    name: &'static str,
    upstream_name: &'static str,
    server: &'static str,
    is_tool: bool,
    is_read_only: bool,
    is_trusted: bool,
}

#[derive(Clone, Debug)]
struct PrincipalSpec {
    groups: Vec<&'static str>,
    scopes: Vec<&'static str>,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Outcome {
    Denied,
    NeedsScopes,
    Allowed,
}

impl PatternSpec {
    fn rule(self) -> Rule {
        let json = match self {
            Self::All => r#""*""#.to_owned(),
            Self::Name(name) => format!("{name:?}"),
            Self::Server(server) => format!(r#"{{"server":{server:?}}}"#),
            Self::NameOnServer(name, server) => {
                format!(r#"{{"name":{name:?},"server":{server:?}}}"#)
            }
            Self::ReadOnly => r#"{"readOnlyHint":true}"#.to_owned(),
        };
        serde_json::from_str(&json).unwrap()
    }

    fn allows(self, item: ItemSpec) -> bool {
        match self {
            Self::All => true,
            Self::Name(name) => item.name == name,
            Self::Server(server) => item.server == server,
            Self::NameOnServer(name, server) => {
                item.server == server && (item.name == name || item.upstream_name == name)
            }
            Self::ReadOnly => item.is_tool && item.is_read_only && item.is_trusted,
        }
    }

    fn denies(self, item: ItemSpec) -> bool {
        match self {
            Self::Name(name) => item.name == name || item.upstream_name == name,
            Self::ReadOnly => item.is_tool && item.is_read_only,
            _ => self.allows(item),
        }
    }
}

impl RuleSpec {
    fn build(&self) -> AccessRule {
        let when = match self.group {
            None => When::anyone(),
            Some(group) => {
                let group = Presence::of([group]).unwrap();
                When::new().with_claim("groups", group).unwrap()
            }
        };
        let patterns = |all: &[PatternSpec]| {
            all.iter()
                .map(|it| ItemPattern::any(it.rule()))
                .collect::<Vec<_>>()
        };
        let rule = AccessRule::new(when)
            .with_allow(patterns(&self.allow))
            .with_deny(patterns(&self.deny))
            .with_scopes(self.scopes.iter().copied());
        match self.condition {
            None => rule,
            Some(condition) => rule.with_condition(condition.expression()),
        }
    }

    fn applies_to(&self, principal: &PrincipalSpec) -> bool {
        self.group
            .is_none_or(|group| principal.groups.contains(&group))
    }
}

impl Condition {
    fn expression(self) -> Expression {
        let source = match self {
            Self::True => "args.x == 1",
            Self::False => "args.x == 2",
            Self::Fails => "args.y == 1",
        };
        Expression::compile(source).unwrap()
    }
}

impl ItemSpec {
    fn build(&self) -> Item<'static> {
        let hints = ToolHints::from_tool(if self.is_read_only { READ_ONLY } else { "{}" });
        let (name, upstream_name, server) = (self.name, self.upstream_name, self.server);
        if self.is_tool {
            Item::tool(name, upstream_name, server, hints, self.is_trusted)
        } else {
            Item::prompt(name, upstream_name, server)
        }
    }
}

impl PrincipalSpec {
    fn build(&self) -> Principal {
        let groups = serde_json::to_string(&self.groups).unwrap();
        let scopes = self.scopes.join(" ");
        let claims = format!(r#"{{"groups":{groups},"scope":"{scopes}"}}"#);
        Principal::token("i", "s", Claims::from_json(&claims).unwrap()).unwrap()
    }
}

/// Whether the item is visible, and what becomes of a call with `{"x": 1}`: the rules of rules, written down once more.
fn model(rules: &[RuleSpec], principal: &PrincipalSpec, item: ItemSpec) -> (bool, Outcome) {
    let applying = || rules.iter().filter(|rule| rule.applies_to(principal));
    let denying = || applying().filter(|rule| rule.deny.iter().any(|it| it.denies(item)));
    let allowing = || applying().filter(|rule| rule.allow.iter().any(|it| it.allows(item)));
    let is_hidden = denying().any(|rule| rule.condition.is_none()) || allowing().count() == 0;
    let is_denied = is_hidden || denying().any(|rule| rule.condition != Some(Condition::False));
    let has_scopes = |rule: &&RuleSpec| rule.scopes.iter().all(|it| principal.scopes.contains(it));
    let granting =
        || allowing().filter(|rule| matches!(rule.condition, None | Some(Condition::True)));
    let outcome = match () {
        () if is_denied => Outcome::Denied,
        () if granting().any(|rule| has_scopes(&rule)) => Outcome::Allowed,
        () if granting().count() > 0 => Outcome::NeedsScopes,
        () => Outcome::Denied,
    };
    (!is_hidden, outcome)
}

/// The same, by the crate.
fn decided(policy: &AccessPolicy, principal: &PrincipalSpec, item: ItemSpec) -> (bool, Outcome) {
    let principal = principal.build();
    let class = policy.class_of(&principal);
    let item = item.build();
    let decision = policy.decide(&class, &item);
    let call = Call {
        principal: &principal,
        item,
        variant: &"standard".parse().unwrap(),
        arguments: Some(r#"{"x": 1}"#),
    };
    let outcome = match policy.check(&decision, &call) {
        Verdict::Allowed(_) => Outcome::Allowed,
        Verdict::NeedsScopes(_) => Outcome::NeedsScopes,
        Verdict::Denied(_) => Outcome::Denied,
    };
    (decision.is_visible(), outcome)
}

fn built(rules: &[RuleSpec]) -> AccessPolicy {
    AccessPolicy::new(rules.iter().map(RuleSpec::build)).unwrap()
}

fn patterns(most: usize) -> impl Strategy<Value = Vec<PatternSpec>> {
    let pattern = prop_oneof![
        Just(PatternSpec::All),
        Just(PatternSpec::ReadOnly),
        select(vec!["x", "y", "s_x"]).prop_map(PatternSpec::Name),
        select(vec!["s", "t"]).prop_map(PatternSpec::Server),
        (select(vec!["x", "y", "s_x"]), select(vec!["s", "t"]))
            .prop_map(|(name, server)| PatternSpec::NameOnServer(name, server)),
    ];
    proptest::collection::vec(pattern, 0..=most)
}

fn rule() -> impl Strategy<Value = RuleSpec> {
    let group = prop_oneof![Just(None), select(GROUPS.to_vec()).prop_map(Some)];
    let condition = prop_oneof![
        2 => Just(None),
        1 => select(vec![Condition::True, Condition::False, Condition::Fails]).prop_map(Some),
    ];
    let scopes = subsequence(SCOPES.to_vec(), 0..=2);
    let parts = (group, patterns(2), patterns(1), scopes, condition);
    parts.prop_map(|(group, mut allow, deny, scopes, condition)| {
        if allow.is_empty() && deny.is_empty() {
            allow.push(PatternSpec::All);
        }
        let scopes = if allow.is_empty() { Vec::new() } else { scopes };
        RuleSpec {
            group,
            allow,
            deny,
            scopes,
            condition,
        }
    })
}

fn rules() -> impl Strategy<Value = Vec<RuleSpec>> {
    proptest::collection::vec(rule(), 0..6)
}

fn principal() -> impl Strategy<Value = PrincipalSpec> {
    let groups = subsequence(GROUPS.to_vec(), 0..=3);
    let scopes = subsequence(SCOPES.to_vec(), 0..=2);
    (groups, scopes).prop_map(|(groups, scopes)| PrincipalSpec { groups, scopes })
}

fn items() -> Vec<ItemSpec> {
    let names = [
        ("x", "x", "s"),
        ("y", "y", "t"),
        ("s_x", "x", "s"),
        ("s_x", "y", "t"),
    ];
    let flags = (0..8).map(|bits| [bits & 1 != 0, bits & 2 != 0, bits & 4 != 0]);
    let all = flags.flat_map(|[is_tool, is_read_only, is_trusted]| {
        names.map(|(name, upstream_name, server)| ItemSpec {
            name,
            upstream_name,
            server,
            is_tool,
            is_read_only,
            is_trusted,
        })
    });
    all.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// SV-20: what is visible, and what becomes of a call, is what the rules say.
    #[test]
    fn decisions_are_those_of_the_model(rules in rules(), principal in principal()) {
        let policy = built(&rules);
        for item in items() {
            let expected = model(&rules, &principal, item);
            prop_assert_eq!(decided(&policy, &principal, item), expected, "{:?}", item);
        }
    }

    #[test]
    fn the_order_of_rules_does_not_matter(
        (rules, shuffled) in rules().prop_flat_map(|rules| (Just(rules.clone()), Just(rules).prop_shuffle())),
        principal in principal(),
    ) {
        let (first, second) = (built(&rules), built(&shuffled));
        for item in items() {
            let expected = decided(&first, &principal, item);
            prop_assert_eq!(decided(&second, &principal, item), expected, "{:?}", item);
        }
    }

    /// SV-20: a rule that denies never shows or allows more.
    #[test]
    fn one_more_deny_never_shows_more(
        rules in rules(),
        mut added in rule(),
        at in any::<prop::sample::Index>(),
        principal in principal(),
    ) {
        added.allow.clear();
        added.scopes.clear();
        added.deny.push(PatternSpec::Name("x"));
        let mut more = rules.clone();
        more.insert(at.index(rules.len() + 1), added);
        let (before, after) = (built(&rules), built(&more));
        for item in items() {
            let (was_visible, was) = decided(&before, &principal, item);
            let (is_visible, is) = decided(&after, &principal, item);
            prop_assert!(is_visible <= was_visible && is <= was, "{:?}: {:?} {:?}", item, was, is);
        }
    }

    /// SV-20: one more rule for others changes nothing.
    #[test]
    fn rules_for_others_do_not_matter(rules in rules(), mut added in rule(), principal in principal()) {
        added.group = Some("others");
        let mut more = rules.clone();
        more.insert(0, added);
        let (before, after) = (built(&rules), built(&more));
        for item in items() {
            let expected = decided(&before, &principal, item);
            prop_assert_eq!(decided(&after, &principal, item), expected, "{:?}", item);
        }
    }

    #[test]
    fn principals_with_equal_rules_share_a_class_and_its_decisions(
        rules in rules(),
        first in principal(),
        second in principal(),
    ) {
        let policy = built(&rules);
        let classes = [&first, &second].map(|it| policy.class_of(&it.build()));
        let applying = |principal: &PrincipalSpec| -> Vec<bool> {
            rules.iter().map(|rule| rule.applies_to(principal)).collect()
        };
        let is_equal = applying(&first) == applying(&second);
        prop_assert_eq!(Arc::ptr_eq(&classes[0], &classes[1]), is_equal);
        for item in items() {
            let [one, other] = classes.each_ref().map(|class| policy.decide(class, &item.build()));
            prop_assert!(!is_equal || one == other);
        }
    }

    /// The patterns of rules are those of variants, character by character.
    #[test]
    fn patterns_match_what_selections_of_variants_match(
        pattern in "[ab*?\\[\\]{},!/%:.\\\\]{1,8}",
        name in "[ab/%:.?#;]{0,6}",
        upstream_name in "[ab/%:.?#;]{0,6}",
    ) {
        let Ok(pattern) = pattern.parse() else { return Ok(()) };
        let rule = Rule::by_name(pattern);
        let selection = |include: &[Rule], exclude: &[Rule]| Selection {
            include: include.to_vec(),
            exclude: exclude.to_vec(),
            ..Selection::default()
        };
        let includes = selection(std::slice::from_ref(&rule), &[]);
        let excludes = selection(&[], std::slice::from_ref(&rule));
        let pattern = ItemPattern::any(rule);
        let candidate = |hints| Candidate { name: &name, upstream_name: &upstream_name, server: "s", hints };
        let hints = ToolHints::default();
        let tool = Item::tool(&name, &upstream_name, "s", hints, true);
        prop_assert_eq!(pattern.allows(&tool), includes.selects(candidate(Some(hints))));
        prop_assert_eq!(pattern.denies(&tool), !excludes.selects(candidate(Some(hints))));
        let listed = Item::resource(&name, &upstream_name, "s");
        prop_assert_eq!(pattern.allows(&listed), includes.selects_resource(candidate(None)));
        prop_assert_eq!(pattern.denies(&listed), !excludes.selects_resource(candidate(None)));
        let unlisted = Item::unlisted_resource(&upstream_name, "s");
        prop_assert_eq!(pattern.allows(&unlisted), includes.selects_unlisted_resource(candidate(None)));
        prop_assert_eq!(pattern.denies(&unlisted), !excludes.selects_unlisted_resource(candidate(None)));
    }

    #[test]
    fn any_text_gives_claims_or_an_error(text in r#"([{}\[\]",:a-c0-9.e\\ \n-]|null|true|"a"|"\\u0000"){0,20}"#) {
        let mapping = ClaimMapping::default().with_names(["a", "b"]).unwrap();
        let all = Claims::from_json(&text);
        let some = mapping.read(&text);
        // A mapping reads less, so it refuses less.
        prop_assert!(all.is_err() || some.is_ok());
    }

    #[test]
    fn a_printed_path_parses_to_the_same_path(names in proptest::collection::vec("[a-c.\\\\/]{1,5}", 1..8)) {
        let path = ClaimPath::from_names(names.iter().map(String::as_str)).unwrap();
        let text = path.to_string();
        prop_assert_eq!(text.parse(), Ok(path));
    }
}

proptest! {
    // The parser of expressions takes milliseconds for each.
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_text_gives_an_expression_or_an_error(
        text in r#"(args|claims|\.a|\["a"\]|==|&&|\|\||!|\(|\)|\[|\]|1|"x"|\.all\(x, |\?|:|in| |-|\+|[a-z]){0,16}"#,
    ) {
        let claims = Claims::from_json(r#"{"a": ["x"]}"#).unwrap();
        let Ok(condition) = Expression::compile(&text) else { return Ok(()) };
        let all = ItemPattern::any(Rule::by_name("*".parse().unwrap()));
        let rule = AccessRule::new(When::anyone()).with_allow([all]).with_condition(condition);
        let policy = AccessPolicy::new([rule]).unwrap();
        let principal = Principal::token("i", "s", claims).unwrap();
        let item = Item::prompt("p", "p", "s");
        let decision = policy.decide(&policy.class_of(&principal), &item);
        let variant = "standard".parse().unwrap();
        let call = Call { principal: &principal, item, variant: &variant, arguments: Some(r#"{"a": [1, "x"]}"#) };
        prop_assert!(!matches!(policy.check(&decision, &call), Verdict::NeedsScopes(_)));
    }
}
