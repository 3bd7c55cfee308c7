//! Lists that several classes of clients see alike, held once.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use super::listing::{ListKind, Listing};
use super::merge::ServerListing;
use super::registry::NameRegistry;
use super::view::Layout;
use crate::catalog::Lists;
use mcp_vary_base::lock::Lock;

/// What servers list to the classes that there are, and the views of it.
///
/// # Properties
///
/// Nothing is stored that no class uses. A server that lists the same to clients that can do different things takes the
/// memory, and the views the time, of one list.
#[derive(Debug)]
pub struct SharedLists {
    listings: Lock<Vec<Weak<Listing>>>,
    /// Each is locked while views are made, so that several classes that need the same wait for it.
    lists: BTreeMap<ListKind, Lock<Vec<Weak<Lists>>>>,
    /// Which server each name or URI is assigned to.
    pub registry: NameRegistry,
}

impl Default for SharedLists {
    fn default() -> Self {
        let of_kind = |kind| (kind, Lock::default());
        Self {
            listings: Lock::default(),
            lists: ListKind::ALL.into_iter().map(of_kind).collect(),
            registry: NameRegistry::default(),
        }
    }
}

impl SharedLists {
    /// The list that some server already has like this; otherwise this one, with the items that it had `before`.
    pub fn listing(&self, listing: Listing, before: Option<&Listing>) -> Arc<Listing> {
        let mut listings = self.listings.lock();
        if let Some(same) = find(&mut listings, |known| *known == listing) {
            return same;
        }
        let listing = Arc::new(listing.reusing(before));
        listings.push(Arc::downgrade(&listing));
        listing
    }

    /// The lists of the same parts that another class already uses; new ones if there are none. Their items are assigned
    /// to their servers if clients see them.
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
        let mut lists = lists.lock();
        let is_same = |known: &Lists| known.layout.is_same(layout) && known.listings == parts;
        if let Some(same) = find(&mut lists, is_same) {
            if is_published {
                self.registry.publish(&same.merged);
            }
            return same;
        }
        let made = Lists::new(kind, parts, layout, before, registry);
        lists.push(Arc::downgrade(&made));
        made
    }
}

/// The first value in use that is wanted. Values that are no longer in use are removed.
fn find<T>(known: &mut Vec<Weak<T>>, is_wanted: impl Fn(&T) -> bool) -> Option<Arc<T>> {
    known.retain(|it| it.strong_count() > 0);
    let mut used = known.iter().filter_map(Weak::upgrade);
    used.find(|it| is_wanted(it))
}
