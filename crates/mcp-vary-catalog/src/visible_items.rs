//! Which of the items that a view could show it shows: of several with one name only one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mcp_vary_view::ViewDiagnostic;

use super::index::ServerIndex;
use super::item::Item;
use super::merge::MergedList;
use super::shown::ViewItem;
use crate::variant_config::{NameScope, VariantConfig};

/// The items that are shown. Items of one server that share a name are shown only if all of them are visible. If several
/// servers have a name, that of the first whose item is visible is shown.
///
/// If several items have the same name in the variant alone, the first one is shown, and renamed items come before others:
/// an item that a server adds later cannot take a name that the operator assigned.
pub(super) fn visible_items(
    variant: &VariantConfig,
    names: &NameScope,
    merged: &MergedList,
    showings: &[Arc<ViewItem>],
    diagnostics: &mut Vec<ViewDiagnostic>,
) -> Vec<Arc<ViewItem>> {
    let invisible = showings.iter().filter(|showing| showing.visible.is_none());
    let hidden: BTreeSet<_> = invisible
        .map(|showing| server_and_name(&showing.item))
        .collect();
    let shown = showings.iter().filter(|showing| {
        showing.visible.is_some() && !hidden.contains(&server_and_name(&showing.item))
    });
    let visible: Vec<_> = shown.collect();
    let owners = owners_in_view(variant, names, merged, showings, &visible);
    let owned = visible.into_iter().filter(|item| {
        let owner = owners.get(&*item.item.id);
        owner.is_none_or(|owner| *owner == item.item.item_ref.server)
    });
    let shown = owned
        .filter_map(|showing| Some((showing, &*showing.item.id, &*showing.visible.as_ref()?.id)));
    let named: Vec<_> = shown.collect();
    let (renamed, retained): (Vec<_>, Vec<_>) = named
        .iter()
        .partition(|(_, upstream_name, name)| upstream_name != name);
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    for (_, upstream_name, name) in renamed.into_iter().chain(retained) {
        owners.entry(name).or_insert(upstream_name);
    }
    let shown = named
        .iter()
        .filter(|(_, upstream_name, name)| owners[name] == *upstream_name);
    let all: Vec<_> = shown.map(|(it, ..)| Arc::clone(it)).collect();
    if all.len() < named.len() {
        let pairs: BTreeSet<_> = named
            .iter()
            .map(|(_, upstream_name, name)| (*upstream_name, *name))
            .collect();
        diagnostics.extend(mcp_vary_view::collisions(merged.kind.items_key(), pairs));
    }
    all
}

fn server_and_name(item: &Item) -> (ServerIndex, &str) {
    (item.item_ref.server, &item.id)
}

/// The owner of each name that several servers have, in a view with these `visible` items: the owner in all, or else the first
/// one. An owner that does not list such an item now keeps its name if the view would show that: clients may still know it.
fn owners_in_view<'m>(
    variant: &VariantConfig,
    names: &NameScope,
    merged: &'m MergedList,
    showings: &[Arc<ViewItem>],
    visible: &[&'m Arc<ViewItem>],
) -> BTreeMap<&'m str, ServerIndex> {
    let mut owners = BTreeMap::new();
    if merged.owners.is_empty() {
        return owners;
    }
    let listed: BTreeSet<_> = showings
        .iter()
        .map(|item| server_and_name(&item.item))
        .collect();
    let seen: BTreeSet<_> = visible
        .iter()
        .map(|showing| server_and_name(&showing.item))
        .collect();
    for it in visible {
        let (server, id) = server_and_name(&it.item);
        let Some(owner) = merged.owners.get(id) else {
            continue;
        };
        let would_show = || {
            let name = owner.entry(&merged.servers);
            let mut ignored = Vec::new();
            let shown = variant.show(names, merged.kind, &it.item, name, &mut ignored);
            !listed.contains(&(*owner, id)) && shown.is_some()
        };
        let is_held = seen.contains(&(*owner, id)) || would_show();
        owners
            .entry(id)
            .or_insert(if is_held { *owner } else { server });
    }
    owners
}
