//! A consistent snapshot of the lists of all servers and the views of the variants.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mcp_vary_base::lock::Lock;
use mcp_vary_wire::handshake::Handshake;
use mcp_vary_wire::method_names::{COMPLETE, SET_LEVEL, SUBSCRIBE};
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::undeclared::UndeclaredMethods;
use tracing::warn;

use crate::index::{ServerIndex, VariantIndex, ViewIndex};
use crate::item::{Item, ItemRef};
use crate::layout::Layout;
use crate::listing::ListKind;
use crate::merge::{Collision, MergedList, ServerListing};
use crate::registry::NameRegistry;
use crate::server_snapshot::ServerSnapshot;
use crate::shown::{Prompt, Tool};
use crate::variant_config::VariantConfig;
use crate::view::View;

/// A consistent snapshot of the lists of all servers and the views of the variants.
#[derive(Debug)]
pub struct Catalog {
    /// The snapshot of each server, in the order of configuration.
    pub snapshots: Vec<Arc<ServerSnapshot>>,
    /// The names of the available capabilities.
    pub capabilities: BTreeSet<String>,
    /// The methods that each server that is not hidden supports without declaring them.
    pub undeclared: Vec<Arc<UndeclaredMethods>>,
    /// The list of each kind, if some server offers it.
    pub lists: BTreeMap<ListKind, Arc<Lists>>,
}

/// A list of all servers, and how each variant shows it.
#[derive(Debug)]
pub struct Lists {
    /// The list of all servers, before variants select from it.
    pub merged: MergedList,
    /// What it was merged from.
    pub listings: Vec<ServerListing>,
    /// One view per variant, in order, then the views for presentations from rules for clients.
    pub views: Vec<Arc<View>>,
    /// How the views were built.
    pub layout: Layout,
}

/// The lists that have changed for clients, by variant and kind.
pub type ChangedLists = BTreeSet<(VariantIndex, ListKind)>;

impl Lists {
    /// Builds the lists of `kind`. What is unchanged since `before` is reused (SV-23).
    pub fn new(
        kind: ListKind,
        parts: Vec<ServerListing>,
        layout: &Layout,
        before: Option<&Arc<Self>>,
        (registry, is_published): (&NameRegistry, bool),
    ) -> Arc<Self> {
        let comparable = before.filter(|lists| lists.layout.is_same(layout));
        if let Some(lists) = comparable.filter(|lists| lists.listings == parts) {
            return Arc::clone(lists);
        }
        let known = comparable.map(|lists| &lists.merged);
        let merged = registry.merge(kind, is_published, |assigned| {
            MergedList::new(kind, &parts, layout.naming, known, assigned)
        });
        let mut views = Vec::with_capacity(layout.variants.configs().len());
        for (at, variant) in layout.variants.views() {
            let previous = comparable.and_then(|lists| at.get(&lists.views));
            let view = View::new(variant, &merged, layout, previous, &views);
            views.push(view);
        }
        Arc::new(Self {
            views,
            merged,
            listings: parts,
            layout: layout.clone(),
        })
    }
}

/// The lists that differ between two catalogs.
pub fn changed_lists(
    before: &BTreeMap<ListKind, Arc<Lists>>,
    now: &BTreeMap<ListKind, Arc<Lists>>,
) -> ChangedLists {
    let views = |lists: &BTreeMap<ListKind, Arc<Lists>>, kind| {
        let listed: Option<&Arc<Lists>> = lists.get(&kind);
        // Only the declared views are compared: presentations from rules change together with them.
        listed.map_or(Vec::new(), |listed| {
            let variants = listed.layout.variants.variants.as_slice().len();
            listed.views.iter().take(variants).cloned().collect()
        })
    };
    let of_kind = |kind| {
        let before = views(before, kind);
        let now = views(now, kind);
        (0..before.len().max(now.len())).filter_map(move |at| {
            let is_same = match (before.get(at), now.get(at)) {
                (Some(before), Some(now)) => Arc::ptr_eq(before, now) || before.is_equivalent(now),
                (before, now) => before.is_none() && now.is_none(),
            };
            (!is_same).then_some((VariantIndex::at(at), kind))
        })
    };
    ListKind::ALL.into_iter().flat_map(of_kind).collect()
}

impl Catalog {
    /// A catalog without servers.
    pub fn empty() -> Self {
        Self {
            snapshots: Vec::new(),
            capabilities: BTreeSet::new(),
            undeclared: Vec::new(),
            lists: BTreeMap::new(),
        }
    }

    /// The snapshot of a server. `None` before it was first read.
    pub fn snapshot(&self, server: ServerIndex) -> Option<&Arc<ServerSnapshot>> {
        server.get(&self.snapshots)
    }

    /// The handshake with a server. `None` before the first connection.
    pub fn handshake(&self, server: ServerIndex) -> Option<&Arc<Handshake>> {
        self.snapshot(server)?.handshake.as_ref()
    }

    /// The snapshot of each server, with the index of the server.
    pub fn servers(&self) -> impl DoubleEndedIterator<Item = (ServerIndex, &Arc<ServerSnapshot>)> {
        ServerIndex::enumerate(&self.snapshots)
    }

    /// Whether a capability is available: declared by a server, or detected by calling its method.
    pub fn has_capability(&self, capability: &str) -> bool {
        let method = match capability {
            "completions" => COMPLETE,
            "logging" => SET_LEVEL,
            // Lists that were detected are already among the capabilities.
            _ => return self.capabilities.contains(capability),
        };
        let found = |methods: &Arc<UndeclaredMethods>| methods.has(method) == Some(true);
        self.capabilities.contains(capability) || self.undeclared.iter().any(found)
    }

    /// Whether there is such a list, even if it is empty.
    pub fn has_list(&self, kind: ListKind) -> bool {
        self.capabilities.contains(kind.capability())
    }

    /// Whether some server supports subscriptions to resources, or may do so once it is connected.
    pub fn supports_subscriptions(&self) -> bool {
        let offers = |snapshot: &Arc<ServerSnapshot>| {
            let handshake = snapshot.handshake.as_ref();
            let declares =
                handshake.map(|handshake| handshake.has_capability_flag("resources", "subscribe"));
            declares.unwrap_or(snapshot.is_unknown())
        };
        let found = |methods: &Arc<UndeclaredMethods>| methods.has(SUBSCRIBE) == Some(true);
        let is_declared =
            self.capabilities.contains("resources") && self.snapshots.iter().any(offers);
        is_declared || self.undeclared.iter().any(found)
    }

    /// All lists, by kind.
    pub fn lists(&self) -> impl Iterator<Item = &Lists> {
        self.lists.values().map(AsRef::as_ref)
    }

    /// What `view` shows of one list.
    pub fn view(&self, kind: ListKind, view: ViewIndex) -> Option<&View> {
        let views = &self.lists.get(&kind)?.views;
        view.get(views).map(AsRef::as_ref)
    }

    /// The tool that the view lists as `name`.
    pub fn tool(&self, view: ViewIndex, name: &str) -> Option<&Arc<Tool>> {
        self.view(ListKind::Tools, view)?.tool(name)
    }

    /// The prompt that the view lists as `name`.
    pub fn prompt(&self, view: ViewIndex, name: &str) -> Option<&Arc<Prompt>> {
        self.view(ListKind::Prompts, view)?.prompt(name)
    }

    /// The server that lists a resource with its URI `upstream_uri`, or else one with a template that matches.
    pub fn resource_server(&self, view: ViewIndex, upstream_uri: &str) -> Option<ServerIndex> {
        let listed = self.listed_resource_server(view, upstream_uri);
        listed.or_else(|| self.template_server(view, upstream_uri))
    }

    /// The server that lists a resource with its URI `upstream_uri`.
    pub fn listed_resource_server(
        &self,
        view: ViewIndex,
        upstream_uri: &str,
    ) -> Option<ServerIndex> {
        let item_ref = self
            .view(ListKind::Resources, view)?
            .find_by_upstream_name(upstream_uri)?;
        Some(item_ref.server)
    }

    /// Whether some view lists an item of `server`.
    pub fn shows_some_of(&self, server: ServerIndex) -> bool {
        let mut views = self.lists.values().flat_map(|lists| &lists.views);
        views.any(|view| {
            view.item_refs()
                .any(|(_, item_ref)| item_ref.server == server)
        })
    }

    /// Whether `view` lists an item of `server`.
    pub fn lists_some_of(&self, view: ViewIndex, server: ServerIndex) -> bool {
        let mut views = self
            .lists
            .values()
            .filter_map(|lists| view.get(&lists.views));
        views.any(|listed| {
            let mut items = listed.item_refs();
            items.any(|(_, item_ref)| item_ref.server == server)
        })
    }

    /// Whether `view`, which shows items as `variant` does, may show something of `server`, called `name`: it leaves nothing
    /// out, or lists an item, or may show one of a list that was not read yet.
    pub fn may_show_some_of(
        &self,
        view: ViewIndex,
        variant: &VariantConfig,
        server: ServerIndex,
        name: &str,
    ) -> bool {
        if !variant.may_leave_out_of(name) || self.lists_some_of(view, server) {
            return true;
        }
        let Some(snapshot) = server.get(&self.snapshots) else {
            return false;
        };
        let is_unread = |kind: &ListKind| !matches!(snapshot.listings.get(kind), Some(Ok(_)));
        let mut unread = snapshot.offered().into_iter().filter(is_unread);
        let shows_skills = snapshot.has_skills() && variant.may_show_skills_of(name);
        shows_skills || unread.any(|kind| variant.selection(kind).may_select_from(name))
    }

    /// The item of the merged list with this reference, whether or not a view shows it.
    pub fn merged_item(&self, kind: ListKind, item_ref: &ItemRef) -> Option<&Arc<Item>> {
        let mut items = self.lists.get(&kind)?.merged.items().iter();
        items.find(|item| item.item_ref == *item_ref)
    }

    /// The item of the merged list with this name in `standard`, whether or not a view shows it.
    pub fn merged_item_named(&self, kind: ListKind, name: &str) -> Option<&Arc<Item>> {
        let items = self.lists.get(&kind)?.merged.items().iter();
        items.into_iter().find(|item| *item.id == *name)
    }

    /// The error of the list, if no server's list could be read.
    pub fn failure(&self, kind: ListKind) -> Option<RpcError> {
        self.lists.get(&kind)?.merged.items.as_ref().err().cloned()
    }
}

/// The capabilities that a server may have if there was no connection to it yet.
pub const POSSIBLE_CAPABILITIES: [&str; 5] =
    ["tools", "resources", "prompts", "completions", "logging"];

/// The names of the capabilities of all servers. If there was no connection to a server yet, the capabilities that it
/// may have are included.
pub fn offered_capabilities(snapshots: &[Arc<ServerSnapshot>]) -> BTreeSet<String> {
    let mut offered: BTreeSet<_> = snapshots
        .iter()
        .flat_map(|snapshots| snapshots.capabilities())
        .collect();
    if snapshots.iter().any(|snapshot| snapshot.is_unknown()) {
        offered.extend(POSSIBLE_CAPABILITIES.map(str::to_owned));
    }
    offered
}

/// The target of the log's events about names and URIs that two servers have.
pub const COLLISION_TARGET: &str = "mcp_vary_catalog::collision";

/// The collisions that were logged, of all classes of clients and configurations.
#[derive(Debug, Default)]
pub struct LoggedCollisions(Lock<BTreeSet<[String; 3]>>);

impl LoggedCollisions {
    /// Whether a collision was not logged yet. Of very many, some are logged again.
    fn insert(&self, collision: &Collision) -> bool {
        const MOST: usize = 4096;
        let mut logged = self.0.lock();
        if logged.len() >= MOST {
            logged.clear();
        }
        let list = collision.list.to_owned();
        logged.insert([list, collision.id.clone(), collision.hidden.clone()])
    }
}

/// Logs the first few collisions that were not `logged` yet.
pub fn log_new_collisions(merged: &MergedList, logged: &LoggedCollisions) {
    const FEW: usize = 20;
    let collisions = merged.collisions.iter();
    let new: Vec<_> = collisions.filter(|new| logged.insert(new)).collect();
    if new.len() > FEW {
        warn!(
            target: COLLISION_TARGET,
            list = merged.kind.method(),
            collisions = new.len(),
            "names or URIs collide; `vary config check` shows all"
        );
    }
    for collision in new.into_iter().take(FEW) {
        warn!(
            target: COLLISION_TARGET,
            list = collision.list,
            id = collision.id,
            reachable = collision.reachable,
            hidden = collision.hidden,
            "two servers offer the same, and the first one is reached; `vary config check` says more"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collision_is_logged_once_for_all_classes_of_clients_and_configurations() {
        let logged = LoggedCollisions::default();
        let merged = |ids: &[&str], hidden: &str| {
            let collision = |id: &&str| Collision {
                list: "resources/list",
                id: (*id).to_owned(),
                reachable: "a".to_owned(),
                hidden: hidden.to_owned(),
            };
            ids.iter().map(collision).collect::<Vec<_>>()
        };
        let count =
            |collisions: Vec<Collision>| collisions.iter().filter(|it| logged.insert(it)).count();
        assert_eq!(count(merged(&["x://1", "x://2"], "b")), 2);
        for _class in 0..3 {
            assert_eq!(count(merged(&["x://1", "x://2"], "b")), 0);
        }
        assert_eq!(count(merged(&["x://1", "x://3"], "b")), 1);
        assert_eq!(count(merged(&["x://1"], "c")), 1);
    }
}
