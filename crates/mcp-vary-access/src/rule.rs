//! One access rule.

use std::fmt;

use mcp_vary::variant::VariantId;

use crate::expression::Expression;
use crate::item::{Item, ItemPattern};
use crate::when::When;

/// The maximum number of patterns in `allow` and in `deny` of one rule.
pub const MAX_ITEM_PATTERNS: usize = 1000;

/// The maximum number of scopes of one rule.
pub const MAX_RULE_SCOPES: usize = 32;

/// The maximum length of a scope, in bytes.
const MAX_SCOPE: usize = 256;

/// The maximum length of the name of a rule, in bytes.
const MAX_NAME: usize = 128;

/// One access rule: to whom it applies, and what it allows and denies.
///
/// It is written with the methods `with_…`; [`AccessPolicy::new`](crate::AccessPolicy::new) checks it.
///
/// | | |
/// |---|---|
/// | `when` | the principals to whom the rule applies |
/// | `allow` | the items that they may see and use, once they have `scopes` and `if` is true |
/// | `deny` | the items that they may not, whatever allows it, if `if` is true |
/// | `scopes` | the token needs all of them for what this rule allows; without, the call is answered with a challenge |
/// | `if` | an expression over each call |
/// | `variants` | the variants that they are offered |
/// | `variant`, `pin` | their default variant, or the only one that exists for them |
///
/// # Examples
///
/// ```
/// use mcp_vary_access::{AccessRule, ItemPattern, Presence, When};
/// use mcp_vary_view::Rule;
///
/// let when = When::new().with_claim("groups", Presence::of(["dev"])?)?;
/// let rule = AccessRule::new(when)
///     .with_allow([ItemPattern::any(Rule::by_name("git_*".parse()?))])
///     .with_variants(["standard".parse()?, "compact".parse()?]);
/// assert_eq!(rule.to_string(), "when groups: dev");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct AccessRule {
    name: Option<Box<str>>,
    when: When,
    pub(crate) allow: Vec<ItemPattern>,
    pub(crate) deny: Vec<ItemPattern>,
    scopes: Vec<Box<str>>,
    condition: Option<Expression>,
    variants: Option<Vec<VariantId>>,
    variant: Option<VariantId>,
    is_pinned: bool,
}

/// Why a rule is not possible. It does not name the rule, which [`PolicyError`](crate::PolicyError) does.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RuleError {
    /// Nobody is named.
    #[error("`when` is empty; write `anyone: on` for everyone")]
    NoPrincipal,
    /// The rule does nothing.
    #[error("does nothing; add `allow`, `deny`, `variants` or `variant`")]
    NoEffect,
    /// A pattern without conditions.
    #[error("`{0}` has a pattern without conditions; write `\"*\"` for everything")]
    EmptyPattern(&'static str),
    /// Too many patterns.
    #[error("`{0}` has more than {MAX_ITEM_PATTERNS} patterns")]
    TooManyPatterns(&'static str),
    /// Scopes that nothing needs.
    #[error("has `scopes` but no `allow`; only what a rule allows can need a scope")]
    ScopesWithoutAllow,
    /// Too many scopes.
    #[error("`scopes` has more than {MAX_RULE_SCOPES} scopes")]
    TooManyScopes,
    /// A scope that no token can contain (RFC 6749, section 3.3).
    #[error(
        "`scopes` has an element that is not a scope: 1 to 256 ASCII characters without spaces, `\"` and `\\`"
    )]
    Scope,
    /// A condition that nothing needs.
    #[error("has `if` but neither `allow` nor `deny`")]
    ConditionWithoutItems,
    /// An empty list of variants.
    #[error("`variants` is empty; name at least one variant, or remove the key")]
    NoVariants,
    /// A pin without a variant.
    #[error("has `pin` but no `variant`; name the variant to pin")]
    PinWithoutVariant,
    /// The default variant is not offered.
    #[error("`variant` is `{0}`, which is not among `variants`")]
    VariantNotOffered(VariantId),
    /// A name that cannot be shown.
    #[error("`name` is empty, longer than 128 bytes, or contains a control character")]
    Name,
}

impl AccessRule {
    /// A rule for these principals, which does nothing yet.
    pub const fn new(when: When) -> Self {
        Self {
            name: None,
            when,
            allow: Vec::new(),
            deny: Vec::new(),
            scopes: Vec::new(),
            condition: None,
            variants: None,
            variant: None,
            is_pinned: false,
        }
    }

    /// Names the rule in reports and in the audit; otherwise its position does.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Allows items.
    #[must_use]
    pub fn with_allow(mut self, patterns: impl IntoIterator<Item = ItemPattern>) -> Self {
        self.allow.extend(patterns);
        self
    }

    /// Denies items.
    #[must_use]
    pub fn with_deny(mut self, patterns: impl IntoIterator<Item = ItemPattern>) -> Self {
        self.deny.extend(patterns);
        self
    }

    /// Requires scopes for what the rule allows.
    #[must_use]
    pub fn with_scopes<'s>(mut self, scopes: impl IntoIterator<Item = &'s str>) -> Self {
        self.scopes.extend(scopes.into_iter().map(Box::from));
        self.scopes.sort_unstable();
        self.scopes.dedup();
        self
    }

    /// Applies `allow` and `deny` only to calls for which the expression is true.
    ///
    /// If the expression fails, the rule allows nothing, and denies all of its `deny`.
    #[must_use]
    pub fn with_condition(mut self, condition: Expression) -> Self {
        self.condition = Some(condition);
        self
    }

    /// Offers these variants.
    #[must_use]
    pub fn with_variants(mut self, variants: impl IntoIterator<Item = VariantId>) -> Self {
        self.variants.get_or_insert_default().extend(variants);
        self
    }

    /// Sets the default variant.
    #[must_use]
    pub fn with_variant(mut self, variant: VariantId) -> Self {
        self.variant = Some(variant);
        self
    }

    /// Makes the default variant the only one.
    #[must_use]
    pub const fn pinned(mut self) -> Self {
        self.is_pinned = true;
        self
    }

    /// The first mistake in the rule.
    pub(crate) fn check(&self) -> Result<(), RuleError> {
        let has_items = !self.allow.is_empty() || !self.deny.is_empty();
        let has_variants = self.variants.is_some() || self.variant.is_some();
        if self.when.is_empty() {
            return Err(RuleError::NoPrincipal);
        }
        if self.is_pinned && self.variant.is_none() {
            return Err(RuleError::PinWithoutVariant);
        }
        if !self.scopes.is_empty() && self.allow.is_empty() {
            return Err(RuleError::ScopesWithoutAllow);
        }
        if self.condition.is_some() && !has_items {
            return Err(RuleError::ConditionWithoutItems);
        }
        if !has_items && !has_variants {
            return Err(RuleError::NoEffect);
        }
        self.check_name()?;
        check_patterns("allow", &self.allow)?;
        check_patterns("deny", &self.deny)?;
        self.check_scopes()?;
        self.check_variants()
    }

    fn check_name(&self) -> Result<(), RuleError> {
        let is_shown = |name: &str| {
            (1..=MAX_NAME).contains(&name.len()) && !name.chars().any(char::is_control)
        };
        if self.name.as_deref().is_none_or(is_shown) {
            Ok(())
        } else {
            Err(RuleError::Name)
        }
    }

    fn check_scopes(&self) -> Result<(), RuleError> {
        if self.scopes.len() > MAX_RULE_SCOPES {
            return Err(RuleError::TooManyScopes);
        }
        let is_scope = |scope: &str| {
            (1..=MAX_SCOPE).contains(&scope.len())
                && scope
                    .bytes()
                    .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
        };
        if self.scopes.iter().all(|scope| is_scope(scope)) {
            Ok(())
        } else {
            Err(RuleError::Scope)
        }
    }

    fn check_variants(&self) -> Result<(), RuleError> {
        let Some(offered) = &self.variants else {
            return Ok(());
        };
        if offered.is_empty() {
            return Err(RuleError::NoVariants);
        }
        match &self.variant {
            Some(default) if !offered.contains(default) => {
                Err(RuleError::VariantNotOffered(default.clone()))
            }
            _ => Ok(()),
        }
    }

    /// The name that the file gives to the rule.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The principals to whom the rule applies.
    pub const fn when(&self) -> &When {
        &self.when
    }

    /// The scopes that a token needs for what the rule allows, sorted.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.scopes.iter().map(|scope| &**scope)
    }

    /// The expression over each call.
    pub const fn condition(&self) -> Option<&Expression> {
        self.condition.as_ref()
    }

    /// The variants that the rule offers; `None` if it does not name any.
    pub fn variants(&self) -> Option<&[VariantId]> {
        self.variants.as_deref()
    }

    /// The default variant.
    pub const fn variant(&self) -> Option<&VariantId> {
        self.variant.as_ref()
    }

    /// Whether the default variant is the only one.
    pub const fn is_pinned(&self) -> bool {
        self.is_pinned
    }

    /// The entry of `allow` that matches the item.
    pub fn allowing(&self, item: &Item<'_>) -> Option<&ItemPattern> {
        self.allow.iter().find(|pattern| pattern.allows(item))
    }

    /// The entry of `deny` that matches the item.
    pub fn denying(&self, item: &Item<'_>) -> Option<&ItemPattern> {
        self.deny.iter().find(|pattern| pattern.denies(item))
    }

    /// The entries of `allow`, then those of `deny`.
    pub fn patterns(&self) -> impl Iterator<Item = &ItemPattern> {
        self.allow.iter().chain(&self.deny)
    }
}

fn check_patterns(key: &'static str, patterns: &[ItemPattern]) -> Result<(), RuleError> {
    if patterns.len() > MAX_ITEM_PATTERNS {
        return Err(RuleError::TooManyPatterns(key));
    }
    if patterns.iter().any(ItemPattern::is_empty) {
        Err(RuleError::EmptyPattern(key))
    } else {
        Ok(())
    }
}

/// The principals, such as `when groups: dev`.
impl fmt::Display for AccessRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "when {}", self.when)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_vary_view::Rule;

    fn anyone() -> AccessRule {
        AccessRule::new(When::anyone())
    }

    fn all() -> [ItemPattern; 1] {
        [ItemPattern::any(Rule::by_name("*".parse().unwrap()))]
    }

    fn id(text: &str) -> VariantId {
        text.parse().unwrap()
    }

    #[track_caller]
    fn refused(rule: &AccessRule, why: &str) {
        assert_eq!(rule.check().unwrap_err().to_string(), why);
    }

    #[test]
    fn a_rule_needs_somebody_and_an_effect() {
        let why = "`when` is empty; write `anyone: on` for everyone";
        refused(&AccessRule::new(When::new()).with_allow(all()), why);
        let why = "does nothing; add `allow`, `deny`, `variants` or `variant`";
        refused(&anyone(), why);
        for rule in [
            anyone().with_allow(all()),
            anyone().with_deny(all()),
            anyone().with_variants([id("a")]),
            anyone().with_variant(id("a")),
            anyone().with_variant(id("a")).pinned(),
        ] {
            assert_eq!(rule.check(), Ok(()));
        }
    }

    #[test]
    fn patterns_without_conditions_or_too_many_are_refused() {
        let empty = || [ItemPattern::any(Rule::default())];
        let text = "has a pattern without conditions; write `\"*\"` for everything";
        refused(&anyone().with_allow(empty()), &format!("`allow` {text}"));
        refused(&anyone().with_deny(empty()), &format!("`deny` {text}"));
        let many = vec![all()[0].clone(); MAX_ITEM_PATTERNS + 1];
        let why = "`deny` has more than 1000 patterns";
        refused(&anyone().with_deny(many), why);
    }

    #[test]
    fn scopes_are_those_that_a_token_can_contain() {
        let rule = |scopes: &[&str]| {
            anyone()
                .with_allow(all())
                .with_scopes(scopes.iter().copied())
        };
        let sorted = rule(&["b:write", "a", "a"]);
        assert_eq!(sorted.check(), Ok(()));
        assert_eq!(sorted.scopes().collect::<Vec<_>>(), ["a", "b:write"]);
        let long = "s".repeat(257);
        for scope in ["", "a b", "a\"b", "a\\b", "é", "a\n", &long] {
            assert_eq!(rule(&[scope]).check(), Err(RuleError::Scope), "{scope}");
        }
        let many: Vec<String> = (0..=MAX_RULE_SCOPES).map(|at| at.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        refused(&rule(&many), "`scopes` has more than 32 scopes");
        let why = "has `scopes` but no `allow`; only what a rule allows can need a scope";
        refused(&anyone().with_deny(all()).with_scopes(["a"]), why);
    }

    #[test]
    fn keys_that_contradict_each_other_are_refused() {
        let why = "has `pin` but no `variant`; name the variant to pin";
        refused(&anyone().with_allow(all()).pinned(), why);
        refused(
            &anyone().with_variants([id("a")]).with_variant(id("b")),
            "`variant` is `b`, which is not among `variants`",
        );
        let condition = Expression::compile("true").unwrap();
        refused(
            &anyone().with_variant(id("a")).with_condition(condition),
            "has `if` but neither `allow` nor `deny`",
        );
        let why = "`variants` is empty; name at least one variant, or remove the key";
        refused(&anyone().with_variants([]), why);
    }

    #[test]
    fn a_name_can_be_shown() {
        let found = anyone().with_deny(all()).with_name("no pushes").check();
        assert_eq!(found, Ok(()));
        let long = "n".repeat(129);
        for name in ["", "a\nb", &long] {
            let rule = anyone().with_deny(all()).with_name(name);
            assert_eq!(rule.check(), Err(RuleError::Name));
        }
    }
}
