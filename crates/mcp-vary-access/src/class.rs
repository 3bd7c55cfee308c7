//! Access classes: the principals to whom the same rules apply.

use std::collections::BTreeSet;
use std::fmt;

use mcp_vary::variant::VariantId;

use crate::rule::AccessRule;

/// The maximum number of rules.
pub const MAX_RULES: usize = 256;

const WORD: usize = 64;
const WORDS: usize = MAX_RULES / WORD;

/// The position of a rule in its policy.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RuleIndex(u8);

impl RuleIndex {
    /// The index of the rule at `position`; `None` beyond [`MAX_RULES`].
    pub(crate) fn new(position: usize) -> Option<Self> {
        position.try_into().ok().map(Self)
    }

    /// The position, from 0.
    pub fn position(self) -> usize {
        self.0.into()
    }
}

/// A set of rules of one policy.
///
/// It is small, `Copy` and ordered: caches use it as the key of an access class, together with the generation of the
/// configuration, whose rules it counts.
#[derive(Clone, Copy, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RuleSet([u64; WORDS]);

impl RuleSet {
    /// Adds a rule.
    pub(crate) fn insert(&mut self, rule: RuleIndex) {
        let position = rule.position();
        if let Some(word) = self.0.get_mut(position / WORD) {
            *word |= 1 << (position % WORD);
        }
    }

    /// Whether the rule is in the set.
    pub fn contains(&self, rule: RuleIndex) -> bool {
        let position = rule.position();
        let word = self.0.get(position / WORD).copied().unwrap_or_default();
        word & (1 << (position % WORD)) != 0
    }

    /// The rules, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = RuleIndex> + use<> {
        let set = *self;
        (0..=u8::MAX)
            .map(RuleIndex)
            .filter(move |rule| set.contains(*rule))
    }
}

/// The positions, such as `{0, 3}`.
impl fmt::Debug for RuleSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.iter().map(RuleIndex::position))
            .finish()
    }
}

/// The principals to whom the same rules of a policy apply: they see the same items and are offered the same variants.
///
/// What a class sees is computed once for each state of the catalogue. Principals of one class differ only in what a
/// call decides: the scopes of the token, and expressions.
///
/// # Properties
///
/// Two classes of one policy are equal if and only if their rules are.
#[derive(Debug)]
pub struct AccessClass {
    rules: RuleSet,
    variants: VariantAccess,
}

impl AccessClass {
    pub(crate) fn new<'r>(
        rules: RuleSet,
        matched: impl Iterator<Item = &'r AccessRule> + Clone,
    ) -> Self {
        Self {
            rules,
            variants: VariantAccess::new(matched),
        }
    }

    /// The rules that apply.
    pub const fn rules(&self) -> RuleSet {
        self.rules
    }

    /// The variants that the class is offered.
    pub const fn variants(&self) -> &VariantAccess {
        &self.variants
    }
}

impl PartialEq for AccessClass {
    fn eq(&self, other: &Self) -> bool {
        self.rules == other.rules
    }
}

impl Eq for AccessClass {}

/// The variants that an access class is offered, which is independent of the items that it may use (SEP-2053).
///
/// # Properties
///
/// - If rules name `variants`, the class is offered all variants that one of them names; if no rule does, all.
/// - A pinned variant is the only one. Rules that pin different variants leave none.
/// - Rules that set different default variants set none. A default that is not offered is none, either.
///
/// So the order of rules does not matter.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VariantAccess {
    offered: Option<BTreeSet<VariantId>>,
    default: Option<VariantId>,
    pins: BTreeSet<VariantId>,
}

impl VariantAccess {
    fn new<'r>(matched: impl Iterator<Item = &'r AccessRule> + Clone) -> Self {
        let mut offered: Option<BTreeSet<VariantId>> = None;
        for variants in matched.clone().filter_map(AccessRule::variants) {
            offered
                .get_or_insert_default()
                .extend(variants.iter().cloned());
        }
        let pinned = matched.clone().filter(|rule| rule.is_pinned());
        let pins: BTreeSet<VariantId> = pinned.filter_map(AccessRule::variant).cloned().collect();
        let defaults: BTreeSet<&VariantId> = matched.filter_map(AccessRule::variant).collect();
        let mut variants = Self {
            offered,
            default: None,
            pins,
        };
        let default = match (variants.pins.first(), defaults.first()) {
            (Some(pin), _) => Some(pin),
            (None, Some(only)) if defaults.len() == 1 => Some(*only),
            _ => None,
        };
        variants.default = default.filter(|id| variants.offers(id)).cloned();
        variants
    }

    /// Whether the class is offered the variant. Another variant must be answered as one that does not exist.
    pub fn offers(&self, variant: &VariantId) -> bool {
        if self.pins.is_empty() {
            let offered = self.offered.as_ref();
            offered.is_none_or(|offered| offered.contains(variant))
        } else {
            self.pins.len() == 1 && self.pins.contains(variant)
        }
    }

    /// The variant of clients that select none.
    pub const fn default_variant(&self) -> Option<&VariantId> {
        self.default.as_ref()
    }

    /// The only variant that the class is offered, if rules pin one.
    pub fn pin(&self) -> Option<&VariantId> {
        (self.pins.len() == 1).then_some(self.pins.first()?)
    }

    /// Whether rules pin different variants, so that none is offered: the class cannot use the gateway.
    pub fn has_conflict(&self) -> bool {
        self.pins.len() > 1
    }
}

impl fmt::Display for VariantAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |variants: &BTreeSet<VariantId>| {
            let ids: Vec<&str> = variants.iter().map(VariantId::as_str).collect();
            ids.join(", ")
        };
        if self.has_conflict() {
            return write!(
                f,
                "none, since rules pin different ones: {}",
                list(&self.pins)
            );
        }
        match (self.pin(), &self.offered) {
            (Some(pin), _) => return write!(f, "{pin}, pinned"),
            (None, Some(offered)) => f.write_str(&list(offered))?,
            (None, None) => f.write_str("all")?,
        }
        match &self.default {
            Some(default) => write!(f, "; default {default}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::when::When;

    fn id(text: &str) -> VariantId {
        text.parse().unwrap()
    }

    fn rule() -> AccessRule {
        AccessRule::new(When::anyone())
    }

    fn offers(variants: &[&str]) -> AccessRule {
        rule().with_variants(variants.iter().map(|text| id(text)))
    }

    fn default(variant: &str) -> AccessRule {
        rule().with_variant(id(variant))
    }

    const ALL: &[&str] = &["a", "b", "c"];

    #[track_caller]
    fn shown(rules: &[AccessRule], expected: &str, offered: &[&str]) {
        let forward = VariantAccess::new(rules.iter());
        let backward = VariantAccess::new(rules.iter().rev());
        assert_eq!(forward, backward);
        assert_eq!(forward.to_string(), expected);
        let seen = ALL.iter().filter(|it| forward.offers(&id(it)));
        assert!(seen.eq(offered), "{forward}");
    }

    /// SV-20: visibility of variants is a rule of its own.
    #[test]
    fn a_class_is_offered_what_one_of_its_rules_offers() {
        shown(&[], "all", ALL);
        shown(&[rule()], "all", ALL);
        shown(&[rule(), offers(&["a"])], "a", &["a"]);
        shown(&[offers(&["a"]), offers(&["c", "a"])], "a, c", &["a", "c"]);
    }

    #[test]
    fn the_default_is_what_all_rules_agree_on() {
        shown(&[default("b")], "all; default b", ALL);
        shown(&[default("b"), default("b")], "all; default b", ALL);
        shown(&[default("b"), default("a")], "all", ALL);
        shown(&[default("b"), offers(&["a"])], "a", &["a"]);
        let rules = [default("a"), offers(&["a", "b"])];
        shown(&rules, "a, b; default a", &["a", "b"]);
    }

    /// SV-9: for a pinned class, every other variant is invalid.
    #[test]
    fn a_pin_leaves_one_variant_and_a_conflict_none() {
        let pin = |variant| default(variant).pinned();
        shown(&[pin("b")], "b, pinned", &["b"]);
        shown(&[pin("b"), pin("b"), default("a")], "b, pinned", &["b"]);
        shown(&[pin("b"), offers(&["a", "c"])], "b, pinned", &["b"]);
        let conflict = "none, since rules pin different ones: a, b";
        shown(&[pin("b"), pin("a"), offers(&["a"])], conflict, &[]);
        let access = VariantAccess::new([pin("b"), pin("a")].iter());
        assert!(access.has_conflict());
        assert_eq!((access.pin(), access.default_variant()), (None, None));
        let access = VariantAccess::new([pin("b"), default("a")].iter());
        let expected = (Some(&id("b")), Some(&id("b")));
        assert_eq!((access.pin(), access.default_variant()), expected);
    }

    #[test]
    fn a_set_contains_what_was_inserted() {
        let positions = [0, 1, 63, 64, 200, 255];
        let mut set = RuleSet::default();
        for position in positions {
            set.insert(RuleIndex::new(position).unwrap());
        }
        let all: Vec<usize> = set.iter().map(RuleIndex::position).collect();
        assert_eq!(all, positions);
        assert!(!set.contains(RuleIndex::new(2).unwrap()));
        assert_eq!(RuleIndex::new(MAX_RULES), None);
        assert_eq!(format!("{set:?}"), "{0, 1, 63, 64, 200, 255}");
    }
}
