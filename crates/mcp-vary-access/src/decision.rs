//! What an access class may do with an item, and what a call of it may.

use crate::call::Call;
use crate::class::{AccessClass, RuleIndex};
use crate::expression::{CallContext, EvaluationError, Expression};
use crate::item::Item;
use crate::policy::AccessPolicy;
use crate::rule::AccessRule;

/// What an access class may do with an item. It is computed once for each class and state of the catalogue.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Decision {
    /// The item does not exist for the class: it is not listed, and a call of it is answered like a call of an unknown
    /// name.
    Hidden(HiddenBy),
    /// The item is listed, and every call is allowed by this rule.
    Allowed(RuleIndex),
    /// The item is listed, and a call needs the scopes of one of the rules.
    NeedsScopes(CallCheck),
    /// The item is listed, and expressions decide on each call.
    Conditional(CallCheck),
}

/// Why an item is hidden.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HiddenBy {
    /// No rule allows it.
    Default,
    /// A rule denies it.
    Rule(RuleIndex),
}

/// What remains to be checked at each call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CallCheck {
    /// The rules that deny the item if their expressions are true, or fail.
    denying: Box<[RuleIndex]>,
    /// The rules that allow the item, if the token has their scopes and their expressions are true.
    allowing: Box<[RuleIndex]>,
}

/// What becomes of a call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// The rule allows the call.
    Allowed(RuleIndex),
    /// The call is refused.
    Denied(Denial),
    /// The rule would allow the call with all of its scopes: HTTP status 403 with a challenge (RFC 6750, section 3.1).
    NeedsScopes(RuleIndex),
}

/// Why a call is refused. By default, because no rule allows it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Denial {
    /// The rule that decided; `None` if no rule allows the call.
    pub rule: Option<RuleIndex>,
    /// The expression that failed, and thereby refused the call, with its rule.
    pub error: Option<(RuleIndex, EvaluationError)>,
}

impl Decision {
    /// Whether the item exists for the class.
    pub const fn is_visible(&self) -> bool {
        !matches!(self, Self::Hidden(_))
    }
}

impl AccessPolicy {
    /// What `class` may do with `item`.
    ///
    /// # Properties
    ///
    /// It depends on the rules of the class and on nothing else of the principal. With another rule that denies, no item
    /// becomes visible.
    pub fn decide(&self, class: &AccessClass, item: &Item<'_>) -> Decision {
        let denying = self
            .rules_of(class)
            .filter(|(_, rule)| rule.denying(item).is_some());
        let mut denying_at_call = Vec::new();
        for (index, rule) in denying {
            if rule.condition().is_none() {
                return Decision::Hidden(HiddenBy::Rule(index));
            }
            denying_at_call.push(index);
        }
        let allowing: Vec<(RuleIndex, &AccessRule)> = self
            .rules_of(class)
            .filter(|(_, rule)| rule.allowing(item).is_some())
            .collect();
        if allowing.is_empty() {
            return Decision::Hidden(HiddenBy::Default);
        }
        let is_free = |rule: &AccessRule| rule.condition().is_none() && rule.scopes().count() == 0;
        let free = allowing.iter().find(|(_, rule)| is_free(rule));
        let is_conditional = allowing.iter().any(|(_, rule)| rule.condition().is_some());
        match free {
            Some((index, _)) if denying_at_call.is_empty() => Decision::Allowed(*index),
            _ => {
                let is_conditional = !denying_at_call.is_empty() || is_conditional;
                let check = CallCheck {
                    denying: denying_at_call.into(),
                    allowing: allowing.iter().map(|(index, _)| *index).collect(),
                };
                if is_conditional {
                    Decision::Conditional(check)
                } else {
                    Decision::NeedsScopes(check)
                }
            }
        }
    }

    /// Whether a call is allowed, by the decision on its item for the class of the principal.
    ///
    /// # Properties
    ///
    /// Expressions are evaluated only if the decision is [`Decision::Conditional`], and at most once each. An expression
    /// that fails allows nothing, and denies what its rule denies.
    pub fn check(&self, decision: &Decision, call: &Call<'_>) -> Verdict {
        match decision {
            Decision::Allowed(rule) => Verdict::Allowed(*rule),
            Decision::Hidden(HiddenBy::Default) => Verdict::Denied(Denial::default()),
            Decision::Hidden(HiddenBy::Rule(rule)) => Verdict::Denied(Denial {
                rule: Some(*rule),
                error: None,
            }),
            Decision::NeedsScopes(check) | Decision::Conditional(check) => {
                self.check_call(check, call)
            }
        }
    }

    /// The same for every call of the item, whatever its arguments are; `None` if an expression reads them.
    pub fn check_all(&self, decision: &Decision, call: &Call<'_>) -> Option<Verdict> {
        let is_open = match decision {
            Decision::Conditional(CallCheck { denying, allowing }) => {
                let rules = self.select(denying).chain(self.select(allowing));
                let mut conditions = rules.filter_map(|(_, rule)| rule.condition());
                conditions.any(Expression::reads_arguments)
            }
            _ => false,
        };
        (!is_open).then(|| self.check(decision, call))
    }

    fn check_call(&self, check: &CallCheck, call: &Call<'_>) -> Verdict {
        let context = CallContext::new(call);
        for (index, rule) in self.select(&check.denying) {
            let error = match holds(rule, &context) {
                Ok(false) => continue,
                Ok(true) => None,
                Err(error) => Some((index, error)),
            };
            let rule = Some(index);
            return Verdict::Denied(Denial { rule, error });
        }
        let mut denial = Denial::default();
        let mut challenge: Option<(RuleIndex, &AccessRule)> = None;
        for (index, rule) in self.select(&check.allowing) {
            let has_scopes = rule
                .scopes()
                .all(|scope| call.principal.claims().has_scope(scope));
            match holds(rule, &context) {
                Ok(true) if has_scopes => return Verdict::Allowed(index),
                Ok(true) => {
                    let is_better = challenge.is_none_or(|(_, best)| cost(rule) < cost(best));
                    challenge = if is_better {
                        Some((index, rule))
                    } else {
                        challenge
                    };
                }
                Ok(false) => {}
                Err(error) => denial.error = denial.error.or(Some((index, error))),
            }
        }
        match challenge {
            Some((index, _)) => Verdict::NeedsScopes(index),
            None => Verdict::Denied(denial),
        }
    }

    fn select(&self, indices: &[RuleIndex]) -> impl Iterator<Item = (RuleIndex, &AccessRule)> {
        let rules = indices.iter().copied();
        rules.filter_map(|index| Some((index, self.rule(index)?)))
    }
}

/// Of several challenges, the one with the fewest scopes is sent, whatever the order of the rules.
fn cost(rule: &AccessRule) -> (usize, Vec<&str>) {
    (rule.scopes().count(), rule.scopes().collect())
}

fn holds(rule: &AccessRule, context: &CallContext<'_>) -> Result<bool, EvaluationError> {
    rule.condition()
        .map_or(Ok(true), |condition| condition.evaluate(context))
}

#[cfg(test)]
mod tests;
