//! One rule of `access`.

use mcp_vary::variant::VariantId;
use mcp_vary_access::{
    AccessPolicy, AccessRule, Expression, MAX_RULE_SCOPES, PolicyError, RuleError, When,
};
use mcp_vary_auth::scope::Scope;

use super::pattern::{self, PlacedPattern};
use super::when;
use crate::clients::{self, Named};
use crate::key_spec::ValueKind::{Other, Scalar, Switch};
use crate::key_spec::{KeySpec, keys, value};
use crate::reader::{Located, Reader};
use crate::schema_builder::SchemaBuilder;

pub(super) const EXAMPLE: &str = "{when: {groups: dev}, allow: [\"git_*\"]}";

/// A rule while it is read.
#[derive(Default)]
pub(super) struct PartialRule {
    name: Option<String>,
    when: Option<When>,
    pub(super) allow: Vec<PlacedPattern>,
    pub(super) deny: Vec<PlacedPattern>,
    scopes: Vec<Scope>,
    condition: Option<Expression>,
    variants: Option<Vec<VariantId>>,
    variant: Option<VariantId>,
    is_pinned: bool,
    /// References to variants that must be declared.
    pub(super) named: Vec<Named>,
}

impl PartialRule {
    /// The rule; `None` after a mistake, which is reported.
    pub(super) fn finish(self, reader: &mut Reader<'_>, item: &Located<'_>) -> Option<AccessRule> {
        let patterns = |all: Vec<PlacedPattern>| all.into_iter().map(|placed| placed.pattern);
        let mut rule = AccessRule::new(self.when?)
            .with_allow(patterns(self.allow))
            .with_deny(patterns(self.deny))
            .with_scopes(self.scopes.iter().map(Scope::as_str));
        if let Some(name) = &self.name {
            rule = rule.with_name(name);
        }
        if let Some(condition) = self.condition {
            rule = rule.with_condition(condition);
        }
        if let Some(variants) = self.variants {
            rule = rule.with_variants(variants);
        }
        if let Some(variant) = self.variant {
            rule = rule.with_variant(variant);
        }
        if self.is_pinned {
            rule = rule.pinned();
        }
        match AccessPolicy::new([rule.clone()]) {
            Ok(_) => Some(rule),
            Err(error) => {
                report(reader, item, &error);
                None
            }
        }
    }
}

/// Reports why a rule is not possible, at the key that it is about.
fn report(reader: &mut Reader<'_>, item: &Located<'_>, error: &PolicyError) {
    let PolicyError::Rule { error, .. } = error else {
        return reader.refuse(item, error);
    };
    match error {
        RuleError::ConditionWithoutItems => {
            let what = "needs `allow` or `deny`, on which it decides";
            reader.report(&item.deepest(&["if"]), what, "add one of them");
        }
        RuleError::ScopesWithoutAllow => {
            let what = "needs `allow`: only what a rule allows can need a scope";
            reader.report(&item.deepest(&["scopes"]), what, "add it");
        }
        RuleError::PinWithoutVariant => {
            let what = "needs `variant`, the variant to pin";
            reader.report(&item.deepest(&["pin"]), what, "add it");
        }
        RuleError::VariantNotOffered(_) => {
            let what = "is not among `variants` of the rule";
            reader.report(&item.deepest(&["variant"]), what, "add it there");
        }
        RuleError::Name => {
            let what = "is empty, longer than 128 bytes, or contains a control character";
            reader.report(&item.deepest(&["name"]), what, "write a short name");
        }
        other => {
            let text = other.to_string();
            let (what, fix) = text.rsplit_once("; ").unwrap_or((&text, ""));
            reader.report(item, what, fix);
        }
    }
}

fn read_scopes(reader: &mut Reader<'_>, field: &Located<'_>) -> Vec<Scope> {
    reader.values(MAX_RULE_SCOPES, field, Scope::parse)
}

/// Compiles the expression. An error shows parts of it, unless they come from a variable.
fn read_condition(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<Expression> {
    let word = reader.word(field)?;
    let error = match Expression::compile(&word) {
        Ok(expression) => return Some(expression),
        Err(error) => error,
    };
    if field.written() != word {
        let fix = "see what its variable stands for";
        reader.report(field, "cannot be used: it is not an expression in CEL", fix);
        return None;
    }
    reader.refuse(field, &error);
    None
}

pub(super) const SETTINGS: &[KeySpec<PartialRule>] = keys![
    /// what reports and logs call the rule; its position without it, as `access[2]`
    "name" => Scalar(|rule| &mut rule.name),
    /// the clients to whom the rule applies: conditions on claims, `key` and `client`, all of which must match, or
    /// `anyone: on`; required
    "when" => value!(when::shape, when::read, |rule| rule.when),
    /// what they may see and use: patterns, one of which must match
    "allow" => Other(pattern::shape, |reader, field, rule| rule.allow = pattern::read(reader, field, true)),
    /// what they may not, whatever another rule allows, likewise; also by the server's own name
    "deny" => Other(pattern::shape, |reader, field, rule| rule.deny = pattern::read(reader, field, false)),
    /// the scopes that a token needs for what this rule allows, at most 32; without them a call gets 403 and the client
    /// can ask its user
    "scopes" => value!(SchemaBuilder::strings, read_scopes, |rule| rule.scopes),
    /// `allow` and `deny` of this rule apply only to calls for which this expression (CEL) is true: `args.environment
    /// != "production"`
    "if" => value!(SchemaBuilder::word, read_condition, |rule| rule.condition),
    /// the variants that they are offered; all if no rule that applies names any
    "variants" => Other(clients::variants_shape, |reader, field, rule| {
        rule.variants = Some(clients::variants(reader, field, &mut rule.named))
    }),
    /// their variant if they select none
    "variant" => Other(SchemaBuilder::variant_id, |reader, field, rule| {
        rule.variant = clients::variant(reader, field, &mut rule.named)
    }),
    /// whether `variant` is the only one that exists for them
    "pin" = "off" => Switch(|rule| &mut rule.is_pinned),
];
