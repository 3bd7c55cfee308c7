//! What a principal may use, and which rules decided.

use std::fmt;

use crate::class::{AccessClass, RuleIndex};
use crate::decision::{Decision, HiddenBy, Verdict};
use crate::item::{Item, ItemKind, ItemPattern};
use crate::policy::AccessPolicy;
use crate::rule::AccessRule;

/// What an access class may use, item by item, with the rules that decided.
///
/// Printed, it is a page for an operator:
///
/// ```text
/// rules that apply: access[0] (when groups: dev), no pushes (when anyone)
/// variants: standard, compact
/// tool git_log: allowed by access[0] (allow git_*)
/// tool git_push: hidden by no pushes (deny git_push)
/// prompt help: hidden, since no rule allows it
/// ```
#[derive(Clone, Debug)]
pub struct AccessReport {
    rules: Vec<String>,
    variants: String,
    /// The items, in the order in which they were given.
    pub items: Vec<ItemReport>,
}

/// What an access class may do with one item.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ItemReport {
    /// The kind of the item.
    pub kind: ItemKind,
    /// The name, URI or template of the item.
    pub name: String,
    /// The key of its server.
    pub server: String,
    /// The decision.
    pub decision: Decision,
    /// The rules that decided, those that deny first.
    pub reasons: Vec<Reason>,
}

/// A rule that decides on an item, or takes part in it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reason {
    /// The rule.
    pub rule: RuleIndex,
    /// The name of the rule, or its position.
    pub label: String,
    /// Whether it denies, rather than allows.
    pub denies: bool,
    /// The entry of `allow` or `deny` that matches.
    pub pattern: String,
    /// The scopes that it needs.
    pub scopes: Vec<String>,
    /// Its expression.
    pub condition: Option<String>,
}

impl AccessPolicy {
    /// What `class` may do with each of `items`, and why.
    pub fn explain<'i>(
        &self,
        class: &AccessClass,
        items: impl IntoIterator<Item = &'i Item<'i>>,
    ) -> AccessReport {
        let of_class = self.rules_of(class);
        let rules = of_class.map(|(index, rule)| format!("{} ({rule})", self.label(index)));
        AccessReport {
            rules: rules.collect(),
            variants: class.variants().to_string(),
            items: items
                .into_iter()
                .map(|item| self.explain_item(class, item))
                .collect(),
        }
    }

    /// The rules that allow an item, which do not apply to those from whom it is hidden since no rule allows it.
    pub fn rules_for_others(&self, item: &Item<'_>) -> Vec<String> {
        let allowing = self.indexed().filter_map(|(index, rule)| {
            let pattern = rule.allowing(item)?;
            Some(format!(
                "{} (does not apply: allow {pattern})",
                self.label(index)
            ))
        });
        allowing.collect()
    }

    fn explain_item(&self, class: &AccessClass, item: &Item<'_>) -> ItemReport {
        let decision = self.decide(class, item);
        let reason = |index, rule: &AccessRule, pattern: &ItemPattern, denies| Reason {
            rule: index,
            label: self.label(index),
            denies,
            pattern: pattern.to_string(),
            scopes: if denies {
                Vec::new()
            } else {
                rule.scopes().map(str::to_owned).collect()
            },
            condition: rule.condition().map(ToString::to_string),
        };
        let denying = self.rules_of(class).filter_map(|(index, rule)| {
            let pattern = rule.denying(item)?;
            Some(reason(index, rule, pattern, true))
        });
        let allowing = self.rules_of(class).filter_map(|(index, rule)| {
            let pattern = rule.allowing(item)?;
            Some(reason(index, rule, pattern, false))
        });
        let all = denying.chain(allowing);
        let decided = |reason: &Reason| match &decision {
            Decision::Hidden(HiddenBy::Default) => false,
            Decision::Hidden(HiddenBy::Rule(rule)) => reason.denies && reason.rule == *rule,
            Decision::Allowed(rule) => !reason.denies && reason.rule == *rule,
            Decision::NeedsScopes(_) | Decision::Conditional(_) => true,
        };
        let reasons = all.filter(decided).collect();
        ItemReport {
            kind: item.kind(),
            name: item.name().to_owned(),
            server: item.server().to_owned(),
            decision,
            reasons,
        }
    }
}

impl ItemReport {
    /// The rules by which calls have this verdict, that which decides first. Of the others, those that could have denied an
    /// allowed call, or allowed a denied one, do not apply to it. Without a verdict, all that take part.
    pub fn reasons_of(&self, verdict: Option<&Verdict>) -> Vec<String> {
        let Some(verdict) = verdict else {
            return self.reasons.iter().map(ToString::to_string).collect();
        };
        let (decides, is_denied) = match verdict {
            Verdict::Allowed(rule) | Verdict::NeedsScopes(rule) => (Some(*rule), false),
            Verdict::Denied(denial) => (denial.rule, true),
        };
        let (first, others): (Vec<_>, Vec<_>) = self
            .reasons
            .iter()
            .partition(|reason| Some(reason.rule) == decides && reason.denies == is_denied);
        let in_vain = others
            .into_iter()
            .filter(|reason| reason.denies != is_denied && (decides.is_none() || !is_denied));
        let in_vain =
            in_vain.map(|reason| format!("{} (does not apply: {})", reason.label, reason.effect()));
        first
            .into_iter()
            .map(ToString::to_string)
            .chain(in_vain)
            .collect()
    }
}

impl AccessReport {
    /// The rules that apply, each with its `when`.
    pub fn rules(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(String::as_str)
    }
}

impl fmt::Display for AccessReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules = match &*self.rules {
            [] => "none".to_owned(),
            rules => rules.join(", "),
        };
        writeln!(f, "rules that apply: {rules}")?;
        writeln!(f, "variants: {}", self.variants)?;
        self.items.iter().try_for_each(|item| writeln!(f, "{item}"))
    }
}

impl fmt::Display for ItemReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names come from servers.
        let name = mcp_vary::ignored::for_display(&self.name);
        let decision = match &self.decision {
            Decision::Hidden(HiddenBy::Default) => "hidden, since no rule allows it",
            Decision::Hidden(HiddenBy::Rule(_)) => "hidden by ",
            Decision::Allowed(_) => "allowed by ",
            Decision::NeedsScopes(_) => "allowed with scopes by ",
            Decision::Conditional(_) => "decided at each call by ",
        };
        let reasons: Vec<String> = self.reasons.iter().map(ToString::to_string).collect();
        write!(f, "{} {name}: {decision}{}", self.kind, reasons.join(", "))
    }
}

/// The rule and its part, such as `access[0] (allow git_*, scopes repo:write)`.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.label, self.effect())
    }
}

impl Reason {
    /// What its rule does with the item, such as `allow git_*, scopes repo:write`.
    fn effect(&self) -> String {
        let effect = if self.denies { "deny" } else { "allow" };
        let mut text = format!("{effect} {}", self.pattern);
        if !self.scopes.is_empty() {
            text += &format!(", scopes {}", self.scopes.join(" "));
        }
        if let Some(condition) = &self.condition {
            text += &format!(", if {condition}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Denial, Expression, Presence, Principal, When};
    use mcp_vary_view::{Rule, ToolHints};

    fn all(pattern: &str) -> [ItemPattern; 1] {
        [ItemPattern::any(Rule::by_name(pattern.parse().unwrap()))]
    }

    fn anyone() -> AccessRule {
        AccessRule::new(When::anyone())
    }

    #[test]
    fn a_report_names_what_is_seen_and_the_rule_that_decided() {
        let condition = Expression::compile("args.draft == true").unwrap();
        let no_key = When::new().with_key(Presence::Absent).unwrap();
        let key = When::new().with_key(Presence::of(["ci"]).unwrap()).unwrap();
        let variants = ["standard", "compact"].map(|id| id.parse().unwrap());
        let policy = AccessPolicy::new([
            AccessRule::new(no_key)
                .with_allow(all("git_*"))
                .with_variants(variants),
            anyone().with_deny(all("git_push")).with_name("no pushes"),
            anyone().with_allow(all("pr_*")).with_scopes(["repo:write"]),
            anyone().with_allow(all("mail")).with_condition(condition),
            AccessRule::new(key).with_allow(all("*")),
        ]);
        let policy = policy.unwrap();
        let class = policy.class_of(&Principal::anonymous());
        let tool = |name| Item::tool(name, name, "s", ToolHints::default(), false);
        let items = [
            tool("git_log"),
            tool("git_push"),
            tool("pr_open"),
            tool("mail"),
            Item::prompt("help\n", "help\n", "s"),
        ];
        let report = policy.explain(&class, &items);
        let expected = "\
            rules that apply: access[0] (when key: absent), no pushes (when anyone), access[2] (when anyone), \
            access[3] (when anyone)\n\
            variants: compact, standard\n\
            tool git_log: allowed by access[0] (allow git_*)\n\
            tool git_push: hidden by no pushes (deny git_push)\n\
            tool pr_open: allowed with scopes by access[2] (allow pr_*, scopes repo:write)\n\
            tool mail: decided at each call by access[3] (allow mail, if args.draft == true)\n\
            prompt help\\n: hidden, since no rule allows it\n";
        assert_eq!(report.to_string(), expected);
        assert_eq!(report.rules().count(), 4);
        let first = &report.items[0];
        let found = (first.kind, first.name.as_str(), first.server.as_str());
        assert_eq!(found, (ItemKind::Tool, "git_log", "s"));
        assert!(first.decision.is_visible());
        assert_eq!(first.reasons[0].label, "access[0]");
    }

    #[test]
    fn the_rule_that_decides_comes_first_and_what_could_have_decided_does_not_apply() {
        let for_one =
            |key: &str| Expression::compile(&format!("principal.key == '{key}'")).unwrap();
        let policy = AccessPolicy::new([
            anyone().with_allow(all("*")).with_name("all"),
            anyone()
                .with_deny(all("drop"))
                .with_condition(for_one("ann"))
                .with_name("no drop"),
            anyone()
                .with_allow(all("mail"))
                .with_condition(for_one("ann"))
                .with_name("mail"),
        ]);
        let policy = policy.unwrap();
        let anonymous = Principal::anonymous();
        let class = policy.class_of(&anonymous);
        let tool = Item::tool("drop", "drop", "s", ToolHints::default(), false);
        let report = policy.explain(&class, [&tool]);
        let [all, no_drop] = [0, 1].map(|index| report.items[0].reasons[1 - index].rule);
        let reasons = |verdict| report.items[0].reasons_of(Some(&verdict));
        let allowed = [
            "all (allow *)",
            "no drop (does not apply: deny drop, if principal.key == 'ann')",
        ];
        assert_eq!(reasons(Verdict::Allowed(all)), allowed);
        let denial = |rule| Verdict::Denied(Denial { rule, error: None });
        let denied = ["no drop (deny drop, if principal.key == 'ann')"];
        assert_eq!(reasons(denial(Some(no_drop))), denied);
        assert_eq!(reasons(denial(None)), ["all (does not apply: allow *)"]);
        assert_eq!(report.items[0].reasons_of(None).len(), 2);
    }
}
