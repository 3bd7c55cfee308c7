//! Which server each listed name or URI is assigned to, once clients may have seen it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::listing::ListKind;
use super::merge::{AssignedServers, MergedList};
use mcp_vary_base::lock::Lock;

/// The assignments of all lists, for clients of every class.
///
/// # Properties
///
/// A name or URI that was listed for one server stays assigned to that server as long as the server is configured. The
/// order in which servers become ready, and what they list later, do not change that: a client may still act on the
/// definition that it saw first.
#[derive(Debug, Default)]
pub struct NameRegistry(Lock<Assignments>);

#[derive(Debug, Default)]
struct Assignments {
    /// The names of the servers that are configured now.
    servers: BTreeSet<Arc<str>>,
    lists: BTreeMap<ListKind, AssignedServers>,
}

impl NameRegistry {
    /// Releases the assignments to all servers except `servers`.
    pub fn retain(&self, servers: impl IntoIterator<Item = Arc<str>>) {
        let mut state = self.0.lock();
        let Assignments {
            servers: configured,
            lists,
        } = &mut *state;
        *configured = servers.into_iter().collect();
        for assigned in lists.values_mut() {
            assigned.retain(|_, server| configured.contains(server));
        }
    }

    /// Merges a list according to the assignments. If the list is published to clients, its items are assigned as well.
    /// Other lists of this kind cannot be merged in between.
    pub(super) fn merge(
        &self,
        kind: ListKind,
        is_published: bool,
        merge: impl FnOnce(&AssignedServers) -> MergedList,
    ) -> MergedList {
        let mut state = self.0.lock();
        let Assignments { servers, lists } = &mut *state;
        let assigned = lists.entry(kind).or_default();
        let merged = merge(assigned);
        if is_published {
            assign(assigned, servers, &merged);
        }
        merged
    }

    /// Assigns the items of `merged`, which clients see from now on.
    pub fn publish(&self, merged: &MergedList) {
        let mut state = self.0.lock();
        let Assignments { servers, lists } = &mut *state;
        assign(lists.entry(merged.kind).or_default(), servers, merged);
    }
}

/// Assigns each item to its server, unless it is already assigned. If there are too many assignments, those of items
/// that are no longer listed are released.
fn assign(assigned: &mut AssignedServers, servers: &BTreeSet<Arc<str>>, merged: &MergedList) {
    for item in merged.items() {
        let server = merged.server_name(&item.item_ref);
        if !assigned.contains_key(&item.id) && servers.contains(server) {
            assigned.insert(Arc::clone(&item.id), Arc::clone(server));
        }
    }
    if assigned.len() > MAX_ASSIGNMENTS.max(2 * merged.items().len()) {
        let listed: BTreeSet<_> = merged.items().iter().map(|item| &item.id).collect();
        assigned.retain(|id, _| listed.contains(id));
    }
}

/// The maximum number of assignments of one list, or twice the number of listed items if that is more. They take a few
/// megabytes.
const MAX_ASSIGNMENTS: usize = 65_536;
