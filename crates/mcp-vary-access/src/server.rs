//! What a class may use of a whole server, by the rules alone.

use crate::class::AccessClass;
use crate::item::ItemPattern;
use crate::policy::AccessPolicy;

/// A server as access rules see it, before anything is known of its lists.
#[derive(Clone, Copy, Debug)]
pub struct Server<'a> {
    /// The key of the server.
    pub name: &'a str,
    /// How the names of its tools and prompts begin in the variant `standard`; empty if that is not known.
    pub prefix: &'a str,
    /// Whether its annotations can allow something.
    pub trusts_annotations: bool,
}

/// What rules may allow of a server, whatever it lists.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ServerAccess {
    /// Something: a rule could allow an item of the server. If it is not set, no item of it can exist for the class.
    pub something: bool,
    /// A resource that the server does not list.
    pub unlisted_resources: bool,
    /// Every item, and no rule denies anything of the server.
    pub everything: bool,
    /// Everything, without a condition on its use.
    pub unconditional: bool,
    /// A skill.
    pub skills: bool,
}

impl AccessPolicy {
    /// What the rules of `class` may allow of `server`.
    ///
    /// # Properties
    ///
    /// An item that [`decide`](Self::decide) shows is an item of a server of which this allows something; a skill only if
    /// a pattern is for skills, or could match a name or a URI of the server.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary_access::{AccessPolicy, AccessRule, ItemPattern, Principal, Server, When};
    /// use mcp_vary_view::Rule;
    ///
    /// let of_git = ItemPattern::any(Rule::by_name("git_*".parse()?));
    /// let policy = AccessPolicy::new([AccessRule::new(When::anyone()).with_allow([of_git])])?;
    /// let class = policy.class_of(&Principal::anonymous());
    /// let server = |name, prefix| Server { name, prefix, trusts_annotations: false };
    /// assert!(policy.server_access(&class, server("git", "git_")).something);
    /// assert!(!policy.server_access(&class, server("web", "web_")).something);
    ///
    /// // Without a prefix, any server could have a tool with this name.
    /// assert!(policy.server_access(&class, server("web", "")).something);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn server_access(&self, class: &AccessClass, server: Server<'_>) -> ServerAccess {
        let rules = || self.rules_of(class).map(|(_, rule)| rule);
        let is_of_server = |pattern: &&ItemPattern| pattern.may_match_server(server.name);
        let mut denying = rules().flat_map(|rule| &rule.deny).filter(is_of_server);
        let is_denied = rules()
            .filter(|rule| rule.condition().is_none())
            .flat_map(|rule| &rule.deny)
            .filter(is_of_server)
            .any(ItemPattern::matches_every_name);
        if is_denied {
            return ServerAccess::default();
        }
        let allowing = || {
            let allowing = rules().flat_map(|rule| &rule.allow).filter(is_of_server);
            allowing.filter(|pattern| server.trusts_annotations || !pattern.uses_annotations())
        };
        let is_whole = denying.next().is_none();
        let may_allow = rules().filter(|rule| rule.condition().is_none());
        let mut may_allow = may_allow.flat_map(|rule| &rule.allow).filter(is_of_server);
        let allows_all = may_allow.any(ItemPattern::matches_every_name);
        let may_match = |pattern: &ItemPattern| {
            pattern.may_match_names(server.prefix)
                || pattern.may_match_uris()
                || pattern.is_for_skills()
        };
        ServerAccess {
            something: allowing().any(may_match),
            unlisted_resources: allowing().any(ItemPattern::may_match_uris),
            everything: is_whole && allowing().any(ItemPattern::matches_every_name),
            unconditional: is_whole && allows_all,
            skills: allowing().any(ItemPattern::may_match_skills),
        }
    }
}

#[cfg(test)]
mod tests {
    use mcp_vary_view::Rule;

    use super::*;
    use crate::{AccessRule, Expression, Principal, When};

    fn pattern(json: &str) -> ItemPattern {
        ItemPattern::any(serde_json::from_str::<Rule>(json).unwrap())
    }

    #[track_caller]
    fn allows(rules: Vec<AccessRule>, prefix: &str, expected: [bool; 3]) {
        let policy = AccessPolicy::new(rules).unwrap();
        let class = policy.class_of(&Principal::anonymous());
        let server = Server {
            name: "git",
            prefix,
            trusts_annotations: false,
        };
        let found = policy.server_access(&class, server);
        let found = [found.something, found.unlisted_resources, found.everything];
        assert_eq!(found, expected);
    }

    fn allowing(patterns: &[&str]) -> AccessRule {
        AccessRule::new(When::anyone()).with_allow(patterns.iter().map(|it| pattern(it)))
    }

    fn denying(json: &str) -> AccessRule {
        AccessRule::new(When::anyone()).with_deny([pattern(json)])
    }

    #[test]
    fn a_server_is_named_by_its_key_or_by_the_prefix_of_its_names() {
        const NOTHING: [bool; 3] = [false; 3];
        const NAMED: [bool; 3] = [true, false, false];
        for (patterns, prefix, expected) in [
            (&[r#""*""#][..], "git_", [true; 3]),
            (&[r#"{"server":"g*"}"#], "git_", [true; 3]),
            (&[r#"{"server":"web"}"#], "git_", NOTHING),
            (&[r#""git_*""#], "git_", NAMED),
            (&[r#""git_log""#], "git_", NAMED),
            (&[r#""g?t_*""#], "git_", [true, true, false]),
            (&[r#""web_*""#], "git_", NOTHING),
            (&[r#""web_*""#], "", NAMED),
            (&[r#"{"name":"log","server":"git"}"#], "git_", NAMED),
            (
                &[r#""web_get""#, r#""docs://*""#],
                "git_",
                [true, true, false],
            ),
            (&[r#"{"readOnlyHint":true}"#], "git_", NOTHING),
        ] {
            allows(vec![allowing(patterns)], prefix, expected);
        }
    }

    #[test]
    fn what_is_denied_whole_has_nothing_left() {
        let all = || allowing(&[r#""*""#]);
        allows(vec![all(), denying(r#"{"server":"git"}"#)], "", [false; 3]);
        allows(vec![all(), denying(r#""*""#)], "", [false; 3]);
        let some = [true, true, false];
        allows(vec![all(), denying(r#""git_push""#)], "git_", some);
        allows(vec![all(), denying(r#"{"server":"web"}"#)], "", [true; 3]);
        let never = Expression::compile("false").unwrap();
        let conditional = denying(r#""*""#).with_condition(never);
        allows(vec![all(), conditional], "git_", some);
    }

    #[test]
    fn a_condition_may_refuse_what_a_rule_allows() {
        let condition = || Expression::compile("false").unwrap();
        let all = || allowing(&[r#""*""#]);
        for (rules, expected) in [
            (vec![all()], true),
            (vec![all().with_condition(condition())], false),
            (vec![all(), all().with_condition(condition())], true),
        ] {
            let policy = AccessPolicy::new(rules).unwrap();
            let class = policy.class_of(&Principal::anonymous());
            let server = Server {
                name: "git",
                prefix: "git_",
                trusts_annotations: false,
            };
            let found = policy.server_access(&class, server);
            assert_eq!((found.everything, found.unconditional), (true, expected));
        }
    }

    #[test]
    fn a_rule_for_another_kind_allows_no_skill() {
        let named = |name: &str| Rule::by_name(name.parse().unwrap());
        for (allowed, expected) in [
            (ItemPattern::skills(named("pdf")), true),
            (ItemPattern::any(named("*")), true),
            (ItemPattern::tools(named("*")), false),
            (ItemPattern::resources(named("*")), false),
            (pattern(r#"{"readOnlyHint":false}"#), false),
            (pattern(r#"{"server":"web"}"#), false),
        ] {
            let allow = AccessRule::new(When::anyone()).with_allow([allowed]);
            let policy = AccessPolicy::new(vec![allow]).unwrap();
            let class = policy.class_of(&Principal::anonymous());
            let server = Server {
                name: "git",
                prefix: "git_",
                trusts_annotations: false,
            };
            assert_eq!(policy.server_access(&class, server).skills, expected);
        }
    }

    #[test]
    fn kinds_limit_what_a_pattern_may_match() {
        let rule = |pattern: fn(Rule) -> ItemPattern, name: &str| {
            let pattern = pattern(Rule::by_name(name.parse().unwrap()));
            vec![AccessRule::new(When::anyone()).with_allow([pattern])]
        };
        let named = [true, false, false];
        allows(rule(ItemPattern::tools, "*"), "git_", named);
        allows(rule(ItemPattern::prompts, "git_*"), "git_", named);
        let of_uris = [true, true, false];
        allows(rule(ItemPattern::resources, "file:*"), "git_", of_uris);
        allows(rule(ItemPattern::resources, "git_*"), "git_", of_uris);
    }
}
