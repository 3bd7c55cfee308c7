//! All access rules of a configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use mcp_vary_base::lock::Lock;

use crate::claims::MAX_CLAIMS;
use crate::class::{AccessClass, MAX_RULES, RuleIndex, RuleSet};
use crate::principal::Principal;
use crate::rule::{AccessRule, RuleError};

/// The number of classes that a policy remembers. Beyond it, classes are computed anew.
const MAX_CLASSES: usize = 1024;

/// All access rules of a configuration.
///
/// # Properties
///
/// - What no rule allows is denied. A policy without rules denies everything.
/// - What one rule denies is denied, whatever others allow.
/// - The order of rules does not matter.
///
/// # Examples
///
/// ```
/// use mcp_vary_access::{
///     AccessPolicy, AccessRule, Claims, Item, ItemPattern, Presence, Principal, When,
/// };
/// use mcp_vary_view::{Rule, ToolHints};
///
/// let all = |pattern: &str| pattern.parse().map(|name| [ItemPattern::any(Rule::by_name(name))]);
/// let dev = When::new().with_claim("groups", Presence::of(["dev"])?)?;
/// let policy = AccessPolicy::new([
///     AccessRule::new(dev).with_allow(all("git_*")?),
///     AccessRule::new(When::anyone()).with_deny(all("git_push")?),
/// ])?;
///
/// let claims = Claims::from_json(r#"{"groups": ["dev"]}"#)?;
/// let class = policy.class_of(&Principal::token("https://idp.example", "ann", claims)?);
/// let tool = |name| Item::tool(name, name, "git", ToolHints::default(), false);
/// assert!(policy.decide(&class, &tool("git_log")).is_visible());
/// assert!(!policy.decide(&class, &tool("git_push")).is_visible());
///
/// // Nothing is allowed by default.
/// let nobody = policy.class_of(&Principal::anonymous());
/// assert!(!policy.decide(&nobody, &tool("git_log")).is_visible());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AccessPolicy {
    rules: Vec<AccessRule>,
    classes: Lock<BTreeMap<RuleSet, Arc<AccessClass>>>,
}

/// Why rules are not possible.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PolicyError {
    /// A rule is not possible.
    #[error("`access[{position}]` {error}")]
    Rule {
        /// The position of the rule, from 0.
        position: usize,
        /// What is wrong with it.
        error: RuleError,
    },
    /// There are more rules than [`MAX_RULES`].
    #[error("`access` has more than {MAX_RULES} rules")]
    TooManyRules,
    /// Two rules have one name.
    #[error("`access[{second}]` has the same name as `access[{first}]`")]
    RepeatedName {
        /// The position of the first.
        first: usize,
        /// The position of the second.
        second: usize,
    },
    /// The rules use more claims than a token may have.
    #[error("`access` uses more than {MAX_CLAIMS} claims")]
    TooManyClaims,
}

impl AccessPolicy {
    /// Checks rules.
    ///
    /// # Errors
    ///
    /// The first mistake in the rules, with the position of its rule.
    pub fn new(rules: impl IntoIterator<Item = AccessRule>) -> Result<Self, PolicyError> {
        let rules: Vec<AccessRule> = rules.into_iter().take(MAX_RULES + 1).collect();
        if rules.len() > MAX_RULES {
            return Err(PolicyError::TooManyRules);
        }
        for (position, rule) in rules.iter().enumerate() {
            rule.check()
                .map_err(|error| PolicyError::Rule { position, error })?;
        }
        check_names(&rules)?;
        let policy = Self {
            rules,
            classes: Lock::default(),
        };
        if policy.claim_names().len() > MAX_CLAIMS {
            Err(PolicyError::TooManyClaims)
        } else {
            Ok(policy)
        }
    }

    /// The rules, in the order of the file.
    pub fn rules(&self) -> &[AccessRule] {
        &self.rules
    }

    /// The rule at an index of this policy.
    pub fn rule(&self, index: RuleIndex) -> Option<&AccessRule> {
        self.rules.get(index.position())
    }

    /// The name of a rule in reports: its own, else its position, such as `access[2]`.
    pub fn label(&self, index: RuleIndex) -> String {
        match self.rule(index).and_then(AccessRule::name) {
            Some(name) => name.to_owned(),
            None => format!("access[{}]", index.position()),
        }
    }

    /// The rules with their indices.
    pub(crate) fn indexed(&self) -> impl Iterator<Item = (RuleIndex, &AccessRule)> {
        let rules = self.rules.iter().enumerate();
        rules.filter_map(|(position, rule)| Some((RuleIndex::new(position)?, rule)))
    }

    /// The rules of a class, with their indices.
    pub(crate) fn rules_of(
        &self,
        class: &AccessClass,
    ) -> impl Iterator<Item = (RuleIndex, &AccessRule)> {
        let rules = class.rules();
        self.indexed()
            .filter(move |(index, _)| rules.contains(*index))
    }

    /// The names of the claims that rules use; a [`ClaimMapping`](crate::ClaimMapping) must read them.
    pub fn claim_names(&self) -> BTreeSet<&str> {
        let in_when = self.rules.iter().flat_map(|rule| rule.when().claim_names());
        let conditions = self.rules.iter().filter_map(AccessRule::condition);
        let in_conditions = conditions.flat_map(|condition| condition.claim_names());
        in_when.chain(in_conditions).collect()
    }

    /// The class of a principal.
    ///
    /// # Properties
    ///
    /// Principals to whom the same rules apply share one value. Every `when` is evaluated: remember the result beside the
    /// principal, as long as the configuration stays.
    pub fn class_of(&self, principal: &Principal) -> Arc<AccessClass> {
        let mut rules = RuleSet::default();
        for (index, rule) in self.indexed() {
            if rule.when().matches(principal) {
                rules.insert(index);
            }
        }
        let mut classes = self.classes.lock();
        if let Some(class) = classes.get(&rules) {
            return Arc::clone(class);
        }
        let matching = self.indexed().filter(|(index, _)| rules.contains(*index));
        let matched: Vec<&AccessRule> = matching.map(|(_, rule)| rule).collect();
        let class = Arc::new(AccessClass::new(rules, matched.iter().copied()));
        if classes.len() >= MAX_CLASSES {
            classes.clear();
        }
        classes.insert(rules, Arc::clone(&class));
        class
    }
}

impl fmt::Debug for AccessPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.rules).finish()
    }
}

fn check_names(rules: &[AccessRule]) -> Result<(), PolicyError> {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for (second, rule) in rules.iter().enumerate() {
        if let Some(first) = rule.name().and_then(|name| names.insert(name, second)) {
            return Err(PolicyError::RepeatedName { first, second });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Claims, Expression, ItemPattern, Presence, When};
    use mcp_vary_view::Rule;

    fn allows_all(when: When) -> AccessRule {
        let all = Rule::by_name("*".parse().unwrap());
        AccessRule::new(when).with_allow([ItemPattern::any(all)])
    }

    fn group(name: &str) -> When {
        let name = Presence::of([name]).unwrap();
        When::new().with_claim("groups", name).unwrap()
    }

    fn member(groups: &str) -> Principal {
        let claims = Claims::from_json(&format!(r#"{{"groups":{groups}}}"#)).unwrap();
        Principal::token("i", groups, claims).unwrap()
    }

    #[track_caller]
    fn refused(rules: Vec<AccessRule>, why: &str) {
        assert_eq!(AccessPolicy::new(rules).unwrap_err().to_string(), why);
    }

    #[test]
    fn mistakes_name_the_rule() {
        let good = || allows_all(When::anyone());
        let why = "`access[1]` does nothing; add `allow`, `deny`, `variants` or `variant`";
        refused(vec![good(), AccessRule::new(When::anyone())], why);
        refused(vec![good(); 257], "`access` has more than 256 rules");
        refused(
            vec![good().with_name("a"), good(), good().with_name("a")],
            "`access[2]` has the same name as `access[0]`",
        );
        let many = (0..=MAX_CLAIMS).map(|at| {
            let when = When::new().with_claim(&format!("c{at}"), Presence::Absent);
            allows_all(when.unwrap())
        });
        refused(many.collect(), "`access` uses more than 64 claims");
        assert!(AccessPolicy::new(vec![good(); 256]).is_ok());
    }

    #[test]
    fn a_class_is_the_set_of_rules_that_apply() {
        let rules = [group("a"), group("b"), When::anyone()].map(allows_all);
        let policy = AccessPolicy::new(rules).unwrap();
        let rules = |groups| policy.class_of(&member(groups)).rules();
        let positions = |groups| rules(groups).iter().map(RuleIndex::position).collect();
        let of_a: Vec<usize> = positions(r#"["a","x"]"#);
        assert_eq!(of_a, [0, 2]);
        let of_both: Vec<usize> = positions(r#"["b","a"]"#);
        assert_eq!(of_both, [0, 1, 2]);
        let of_none: Vec<usize> = positions("[]");
        assert_eq!(of_none, [2]);
    }

    #[test]
    fn principals_with_the_same_rules_share_one_class() {
        let policy = AccessPolicy::new([group("a"), group("b")].map(allows_all)).unwrap();
        let first = policy.class_of(&member(r#"["a"]"#));
        let second = policy.class_of(&member(r#"["a","c"]"#));
        assert!(Arc::ptr_eq(&first, &second));
        let other = policy.class_of(&member(r#"["b"]"#));
        assert!(first != other);
    }

    #[test]
    fn the_table_of_classes_is_bounded() {
        let groups: Vec<String> = (0..11).map(|at| format!("g{at}")).collect();
        let rules = groups.iter().map(|name| allows_all(group(name)));
        let policy = AccessPolicy::new(rules).unwrap();
        for bits in 0..1 << groups.len() {
            let of_bits = groups.iter().enumerate();
            let of_bits = of_bits.filter(|(at, _)| bits & (1 << at) != 0);
            let names: Vec<String> = of_bits.map(|(_, name)| format!("{name:?}")).collect();
            let class = policy.class_of(&member(&format!("[{}]", names.join(","))));
            assert_eq!(class.rules().iter().count(), names.len());
            assert!(policy.classes.lock().len() <= MAX_CLASSES);
        }
    }

    #[test]
    fn the_claims_that_rules_use_are_known() {
        let condition = Expression::compile("claims.level > 3 || 'x' in claims[\"groups\"]");
        let rules = [
            allows_all(group("a")).with_condition(condition.unwrap()),
            allows_all(When::new().with_claim("sub", Presence::Absent).unwrap()),
        ];
        let policy = AccessPolicy::new(rules).unwrap();
        let names: Vec<&str> = policy.claim_names().into_iter().collect();
        assert_eq!(names, ["groups", "level", "sub"]);
    }

    #[test]
    fn threads_can_share_a_policy() {
        fn is_shared<T: Send + Sync>() {}
        is_shared::<AccessPolicy>();
        is_shared::<Principal>();
    }

    #[test]
    fn a_rule_is_shown_by_its_name_or_position() {
        let rules = [
            allows_all(group("a")).with_name("team"),
            allows_all(group("b")),
        ];
        let policy = AccessPolicy::new(rules).unwrap();
        let labels: Vec<String> = policy
            .indexed()
            .map(|(index, _)| policy.label(index))
            .collect();
        assert_eq!(labels, ["team", "access[1]"]);
    }
}
