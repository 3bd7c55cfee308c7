//! Servers of which access rules show nothing: for the clients of the class they do not exist.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::catalog::Lists;
use crate::layout::Layout;
use crate::listing::ListKind;
use crate::server_snapshot::ServerSnapshot;

/// Replaces the snapshots of the servers that do not exist for the class by [hidden](ServerSnapshot::hidden) ones.
/// `servers` has the key of the server of each snapshot, and `lists` what the class sees of all of them.
///
/// # Properties
///
/// Whether a server is hidden follows from the rules, from the items that they show, and from whether the server has
/// resources or skills; never from an item that they do not show.
pub fn hide_servers(
    snapshots: &mut [Arc<ServerSnapshot>],
    servers: &[&str],
    layout: &Layout,
    lists: &BTreeMap<ListKind, Arc<Lists>>,
) {
    let Some(access) = layout.variants.access() else {
        return;
    };
    let shown = shown_servers(servers, lists);
    for (snapshot, server) in std::iter::zip(&mut *snapshots, servers) {
        let prefix = layout.name_prefix(server, servers.len());
        let of_server = access.server_access(server, &prefix);
        let reads_unlisted =
            || of_server.unlisted_resources && snapshot.capabilities().contains("resources");
        let reads_skills = || of_server.skills && snapshot.has_skills();
        let may_show = || {
            let may_read = reads_unlisted() || reads_skills();
            snapshot.is_unknown() || of_server.everything || may_read
        };
        let is_shown = shown.contains(server) || of_server.something && may_show();
        if !is_shown {
            *snapshot = Arc::new(ServerSnapshot::hidden());
        }
    }
}

/// The servers of which some view lists an item.
fn shown_servers<'a>(
    servers: &[&'a str],
    lists: &BTreeMap<ListKind, Arc<Lists>>,
) -> BTreeSet<&'a str> {
    let views = lists.values().flat_map(|lists| &lists.views);
    let listed = views.flat_map(|view| view.item_refs().map(|(_, item_ref)| item_ref.server));
    let places: BTreeSet<_> = listed.collect();
    let shown = places.into_iter().filter_map(|at| at.get(servers).copied());
    shown.collect()
}
