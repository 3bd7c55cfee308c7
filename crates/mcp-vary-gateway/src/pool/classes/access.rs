//! Access classes: which rules apply to a principal, and what its clients see.

use std::sync::Arc;

use mcp_vary::variant::VariantId;
use mcp_vary_access::{AccessClass, Principal, RuleIndex, RuleSet};
use mcp_vary_catalog::access::AccessView;
use mcp_vary_catalog::index::VariantIndex;
use mcp_vary_catalog::variant_set::VariantSet;
use quick_cache::sync::Cache;

use mcp_vary_session::AccessKey;
use mcp_vary_settings::access::AccessSettings;

/// The most principals whose access class is remembered.
const REMEMBERED_PRINCIPALS: usize = 4096;

/// The most access classes whose variants are remembered.
const REMEMBERED_CLASSES: usize = 1024;

/// Applies the access rules of one configuration.
pub(crate) struct AccessControl {
    settings: AccessSettings,
    /// By the address of the principal, which the value keeps alive: credentials that were verified once share it.
    classes: Cache<usize, (Arc<Principal>, Arc<AccessClass>)>,
    anonymous: Arc<AccessClass>,
    variant_set: Arc<VariantSet>,
    allowed_variants: Cache<RuleSet, Arc<AllowedVariants>>,
}

/// The variants that access rules let a client use (SV-20).
#[derive(Clone, Debug, Default)]
pub(crate) struct AllowedVariants {
    /// Those that exist for the client.
    pub(crate) variants: Arc<[VariantIndex]>,
    /// The only one, if rules pin it.
    pub(crate) pin: Option<VariantId>,
    /// The default of clients that select none, if rules set it.
    pub(crate) default: Option<VariantIndex>,
    /// The rule that sets the pin, or else the default; the rules that leave no variant, if there is none.
    pub(crate) rule: Option<Arc<str>>,
}

// Omits the principals.
mcp_vary_base::debug_by_name!(AccessControl);

impl AccessControl {
    pub(crate) fn new(settings: AccessSettings, variant_set: Arc<VariantSet>) -> Self {
        Self {
            anonymous: settings.policy.class_of(&Principal::anonymous()),
            settings,
            classes: Cache::new(REMEMBERED_PRINCIPALS),
            variant_set,
            allowed_variants: Cache::new(REMEMBERED_CLASSES),
        }
    }

    /// The class of a principal. A client that is not authenticated has that of anonymous ones.
    pub(crate) fn class_of(&self, principal: Option<&Arc<Principal>>) -> Arc<AccessClass> {
        let Some(principal) = principal else {
            return Arc::clone(&self.anonymous);
        };
        let address = Arc::as_ptr(principal) as usize;
        if let Some((_, class)) = self.classes.get(&address) {
            return class;
        }
        let class = self.settings.policy.class_of(principal);
        let remembered = (Arc::clone(principal), Arc::clone(&class));
        self.classes.insert(address, remembered);
        class
    }

    /// The variants that a client of `principal` may use. The principals of a class share them.
    pub(crate) fn allowed_variants(
        &self,
        principal: Option<&Arc<Principal>>,
    ) -> Arc<AllowedVariants> {
        let class = self.class_of(principal);
        let rules = class.rules();
        if let Some(allowed) = self.allowed_variants.get(&rules) {
            return allowed;
        }
        let access = class.variants();
        let is_offered = |index: &VariantIndex| {
            let id = self.variant_set.id(*index);
            id.is_some_and(|id| access.offers(id))
        };
        let default = access.default_variant();
        let policy = &self.settings.policy;
        let sets_default = |rule: &RuleIndex| {
            let rule = policy.rule(*rule).filter(|rule| rule.variant() == default);
            rule.is_some_and(|rule| access.pin().is_none() || rule.is_pinned())
        };
        let rule = default.and_then(|_| rules.iter().find(sets_default));
        let variants: Arc<[_]> = self.variant_set.indices().filter(is_offered).collect();
        let rule = if variants.is_empty() {
            Some(self.restrictions(rules).into())
        } else {
            rule.map(|rule| policy.label(rule).into())
        };
        let allowed = Arc::new(AllowedVariants {
            variants,
            pin: access.pin().cloned(),
            default: default.and_then(|id| self.variant_set.index_of(id.as_str())),
            rule,
        });
        self.allowed_variants.insert(rules, Arc::clone(&allowed));
        allowed
    }

    /// The rules that restrict the variants of a class: `access[1], team`.
    fn restrictions(&self, rules: RuleSet) -> String {
        let policy = &self.settings.policy;
        let restricts = |rule: &RuleIndex| {
            let rule = policy.rule(*rule);
            rule.is_some_and(|rule| rule.is_pinned() || rule.variants().is_some())
        };
        let restricting = rules.iter().filter(restricts);
        let labels: Vec<_> = restricting.map(|rule| policy.label(rule)).collect();
        labels.join(", ")
    }

    /// What the clients of a class see.
    pub(crate) fn view_of(&self, AccessKey(class): &AccessKey) -> Arc<AccessView> {
        Arc::new(AccessView {
            policy: Arc::clone(&self.settings.policy),
            class: Arc::clone(class),
            trusted: Arc::clone(&self.settings.trusted_annotations),
        })
    }
}

#[cfg(test)]
mod tests {
    use mcp_vary_access::{AccessPolicy, AccessRule, Claims, Presence, When};

    use super::*;

    /// Rules by which members of `dev` may use `read-only`, and all others every variant.
    fn control() -> AccessControl {
        let groups = Presence::of(["dev"]).unwrap();
        let when = When::new().with_claim("groups", groups).unwrap();
        let rule = AccessRule::new(when).with_variants(["read-only".parse().unwrap()]);
        let settings = AccessSettings {
            policy: Arc::new(AccessPolicy::new([rule]).unwrap()),
            trusted_annotations: Arc::default(),
        };
        AccessControl::new(settings, Arc::new(VariantSet::built_in()))
    }

    fn member(group: &str, name: &str) -> Arc<Principal> {
        let claims = Claims::from_json(&format!(r#"{{"groups":["{group}"]}}"#)).unwrap();
        Arc::new(Principal::key(name, claims).unwrap())
    }

    #[test]
    fn the_principals_of_a_class_share_their_variants() {
        let control = control();
        let people = [
            member("dev", "ann"),
            member("dev", "bob"),
            member("sre", "eve"),
        ];
        let [ann, bob, eve] = people
            .each_ref()
            .map(|who| control.allowed_variants(Some(who)));
        assert!(Arc::ptr_eq(&ann, &bob));
        let nobody = control.allowed_variants(None);
        assert!(Arc::ptr_eq(&eve, &nobody), "no rule matches either");
        let ids = |allowed: &AllowedVariants| {
            let ids = allowed
                .variants
                .iter()
                .filter_map(|at| control.variant_set.id(*at));
            ids.map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(ids(&ann), ["read-only"]);
        assert!(ids(&eve).len() > 1);
        assert_eq!(control.allowed_variants.len(), 2);
    }

    #[test]
    fn a_principal_that_is_shared_by_requests_is_remembered_once() {
        let control = control();
        let ann = member("dev", "ann");
        for _ in 0..100 {
            control.class_of(Some(&ann));
        }
        assert_eq!(control.classes.len(), 1);
    }
}
