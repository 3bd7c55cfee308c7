//! Shares lists between classes of clients that see the same.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use super::layout::Layout;
use super::listing::{ListKind, Listing};
use super::merge::ServerListing;
use super::registry::NameRegistry;
use super::server_changes::ServerChanges;
use crate::catalog::{Lists, LoggedCollisions};
use mcp_vary_base::lock::Lock;

/// The lists of the servers for all classes of clients, and their views.
///
/// # Properties
///
/// Only lists in use are stored. If a server lists the same for several classes of clients, the list is stored once and
/// its views are built once.
#[derive(Debug)]
pub struct SharedLists {
    listings: Lock<Vec<Weak<Listing>>>,
    /// Locked while views are built, so that other classes wait for them instead of building the same views.
    lists: BTreeMap<ListKind, Lock<Vec<Weak<Lists>>>>,
    /// Which server each name or URI is assigned to.
    pub registry: NameRegistry,
    /// What was logged of names and URIs that two servers have.
    pub collisions: LoggedCollisions,
    /// What servers changed.
    pub changes: ServerChanges,
}

impl Default for SharedLists {
    fn default() -> Self {
        let of_kind = |kind| (kind, Lock::default());
        Self {
            listings: Lock::default(),
            lists: ListKind::ALL.into_iter().map(of_kind).collect(),
            registry: NameRegistry::default(),
            collisions: LoggedCollisions::default(),
            changes: ServerChanges::default(),
        }
    }
}

impl SharedLists {
    /// Returns an equal list if one is already stored. Otherwise stores this one, sharing unchanged items with
    /// `before`.
    pub fn listing(&self, listing: Listing, before: Option<&Listing>) -> Arc<Listing> {
        let mut listings = self.listings.lock();
        if let Some(same) = find(&mut listings, |known| *known == listing) {
            return same;
        }
        let listing = Arc::new(listing.reusing(before));
        listings.push(Arc::downgrade(&listing));
        listing
    }

    /// Returns the lists that another class already uses for the same parts, or builds new ones. If the lists are
    /// published to clients, their items are assigned to their servers.
    pub fn lists(
        &self,
        kind: ListKind,
        parts: Vec<ServerListing>,
        layout: &Layout,
        before: Option<&Arc<Lists>>,
        is_published: bool,
    ) -> Arc<Lists> {
        let registry = (&self.registry, is_published);
        let Some(lists) = self.lists.get(&kind) else {
            return Lists::new(kind, parts, layout, before, registry);
        };
        let mut known_lists = lists.lock();
        let is_same = |known: &Lists| known.layout.is_same(layout) && known.listings == parts;
        if let Some(same) = find(&mut known_lists, is_same) {
            if is_published {
                self.registry.publish(&same.merged);
            }
            return same;
        }
        let created = Lists::new(kind, parts, layout, before, registry);
        known_lists.push(Arc::downgrade(&created));
        created
    }
}

/// The first value that `is_wanted` accepts. Removes values that are no longer in use.
fn find<T>(known: &mut Vec<Weak<T>>, is_wanted: impl Fn(&T) -> bool) -> Option<Arc<T>> {
    known.retain(|value| value.strong_count() > 0);
    let mut used = known.iter().filter_map(Weak::upgrade);
    used.find(|value| is_wanted(value))
}
