//! Finds configuration of variants that matches no item that a server lists.

use std::sync::Arc;

use mcp_vary::error_code::METHOD_NOT_FOUND;
use mcp_vary_view::{Candidate, Rule, Selection, ViewDiagnostic};

use super::index::ViewIndex;
use super::item::Item;
use super::listing::ListKind;
use super::merge::ServerListing;
use crate::catalog::Catalog;
use crate::variant_config::{VariantConfig, candidate};
use crate::variant_set::VariantSet;

/// The sections of a variant's configuration, and the lists that each applies to. Resources and templates share a
/// section.
const SECTIONS: [(&str, &[ListKind]); 3] = [
    ("tools", &[ListKind::Tools]),
    ("resources", &[ListKind::Resources, ListKind::Templates]),
    ("prompts", &[ListKind::Prompts]),
];

/// The rule that matches every item.
const EVERYTHING: &str = "*";

impl Catalog {
    /// The problems in the configuration of `variant_set` that the lists reveal, each with its view.
    ///
    /// If one of the lists of a section could not be read, nothing in that section is reported as unmatched: the items
    /// may belong to a server that is down.
    pub fn unmatched_overrides(
        &self,
        variant_set: &VariantSet,
    ) -> Vec<(ViewIndex, ViewDiagnostic)> {
        let mut mistakes = Vec::new();
        for (key, kinds) in SECTIONS {
            let items = self.all_items(kinds);
            for (at, variant) in variant_set.views() {
                let missing = items
                    .iter()
                    .flat_map(|items| unmatched(key, kinds, variant, items));
                let views = kinds.iter().filter_map(|kind| self.view(*kind, at));
                let shown = views.flat_map(|view| view.diagnostics.iter().cloned());
                mistakes.extend(missing.chain(shown).map(|diagnostic| (at, diagnostic)));
            }
        }
        mistakes
    }

    /// The parts of this configuration that match nothing in the lists. As in [`unmatched_overrides`](Self::unmatched_overrides),
    /// nothing is reported of a section whose lists could not all be read.
    pub fn unmatched_parts(&self, variant: &VariantConfig) -> Vec<ViewDiagnostic> {
        let mut mistakes = Vec::new();
        for (key, kinds) in SECTIONS {
            if let Some(items) = self.all_items(kinds) {
                mistakes.extend(unmatched(key, kinds, variant, &items));
            }
        }
        mistakes
    }

    /// All items of the lists `kinds`, each with the name of its server. `None` if the lists may be incomplete.
    fn all_items(&self, kinds: &[ListKind]) -> Option<Vec<(&Arc<Item>, &str)>> {
        let mut all = Vec::new();
        for kind in kinds {
            // A list that no server offers is empty.
            if !self.has_list(*kind) {
                continue;
            }
            let lists = self.lists.get(kind)?;
            if !lists.listings.iter().all(is_complete) {
                return None;
            }
            all.extend(lists.merged.items_with_server());
        }
        Some(all)
    }
}

/// Whether the server's list is known. Many servers offer resources but do not implement the method for templates.
fn is_complete(part: &ServerListing) -> bool {
    part.was_connected
        && match &part.listing {
            Some(Err(failure)) => failure.code() == METHOD_NOT_FOUND,
            Some(Ok(_)) | None => true,
        }
}

/// The overrides and rules in the section `key` of `face` that match none of `items`.
fn unmatched(
    key: &str,
    kinds: &[ListKind],
    variant: &VariantConfig,
    items: &[(&Arc<Item>, &str)],
) -> Vec<ViewDiagnostic> {
    let Some(kind) = kinds.first() else {
        return Vec::new();
    };
    let ids = items.iter().map(|(item, _)| &*item.id);
    let names: Vec<_> = ids
        .chain(items.iter().map(|(item, _)| &*item.item_ref.upstream_name))
        .collect();
    let mut diagnostics = mcp_vary_view::unknown_items(key, variant.overridden(*kind), &names);
    let listed = items.iter().map(|(item, server)| candidate(item, server));
    let candidates: Vec<_> = listed.collect();
    let selection = variant.selection(*kind);
    let mut idle = selection.diagnostics(key, &candidates);
    if kinds.contains(&ListKind::Templates) {
        let rules = || selection.include.iter().chain(&selection.exclude);
        let may_hold = |text: &str| {
            let mut equal = rules().filter(|rule| rule.to_string() == text);
            equal.any(|rule| {
                candidates
                    .iter()
                    .any(|item| may_match_template(rule, *item))
            })
        };
        idle.retain(|diagnostic| !matches!(diagnostic, ViewDiagnostic::UnmatchedRule { rule, .. } if may_hold(rule)));
    }
    if *kind == ListKind::Tools {
        let keeping = Selection {
            include: variant.keep_schemas.clone(),
            ..Selection::default()
        };
        idle.extend(keeping.diagnostics("keep-schemas", &candidates));
    }
    // A rule for everything also covers items that are added later.
    idle.retain(|diagnostic| !matches!(diagnostic, ViewDiagnostic::UnmatchedRule { rule, .. } if rule == EVERYTHING));
    diagnostics.extend(idle);
    diagnostics
}

/// Whether `rule` may match a URI that the template `item` expands to, since clients read templates by such URIs. Only
/// the literal beginnings are compared.
fn may_match_template(rule: &Rule, item: Candidate<'_>) -> bool {
    let Some((pattern, (template, _))) = rule.name.as_ref().zip(item.name.split_once('{')) else {
        return false;
    };
    let server = rule.server.as_ref();
    let is_of_server = server.is_none_or(|server| server.matches(item.server));
    let parts = pattern.as_str().split_once(['*', '?', '[', '{', '\\']);
    let literal = parts.map_or(pattern.as_str(), |(literal, _)| literal);
    is_of_server && (literal.starts_with(template) || template.starts_with(literal))
}
