//! The merged catalog of all servers, and its views.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use mcp_vary_catalog::catalog::{
    Catalog, ChangedLists, Lists, POSSIBLE_CAPABILITIES, changed_lists, log_new_collisions,
    offered_capabilities,
};
use mcp_vary_catalog::hidden_servers::hide_servers;
use mcp_vary_catalog::layout::Layout;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::server_snapshot::ServerSnapshot;
use mcp_vary_catalog::shared::SharedLists;
use mcp_vary_wire::list_kind::Kind;
use mcp_vary_wire::response::RpcError;
use tokio::sync::Mutex;
use tracing::{debug, warn};

use super::ids::CatalogId;
use super::observer::{ListObserver, PoolContext};
use super::source::ServerSource;
use super::undeclared;

/// The current catalog, which requests load without a lock.
#[derive(Debug)]
pub(crate) struct LiveCatalog {
    pub(crate) id: CatalogId,
    current: ArcSwap<Catalog>,
    /// In the order of configuration.
    pub(crate) sources: Vec<Arc<ServerSource>>,
    /// Held while a new catalog is built.
    rebuilding: Mutex<()>,
    pub(crate) layout: Layout,
    observer: Arc<dyn ListObserver>,
    shared: Arc<SharedLists>,
    /// Whether clients see it.
    is_published: AtomicBool,
    /// Whether lists were offered that servers may turn out not to have.
    has_promised: AtomicBool,
}

impl LiveCatalog {
    pub(crate) fn new(
        sources: Vec<Arc<ServerSource>>,
        layout: Layout,
        context: &PoolContext,
    ) -> Self {
        for source in &sources {
            source.reader.set_views(layout.variants.configs().len());
        }
        Self {
            id: CatalogId::next(),
            shared: Arc::clone(&context.shared_lists),
            observer: Arc::clone(&context.observer),
            is_published: AtomicBool::new(false),
            has_promised: AtomicBool::new(false),
            current: ArcSwap::from_pointee(Catalog::empty()),
            sources,
            rebuilding: Mutex::default(),
            layout,
        }
    }

    /// A catalog of other sources. It starts as a copy of this one.
    pub(crate) fn with_sources(&self, sources: Vec<Arc<ServerSource>>) -> Self {
        Self {
            id: CatalogId::next(),
            current: ArcSwap::new(self.current()),
            sources,
            rebuilding: Mutex::default(),
            layout: self.layout.clone(),
            observer: Arc::clone(&self.observer),
            shared: Arc::clone(&self.shared),
            is_published: AtomicBool::new(self.is_published.load(Ordering::Acquire)),
            has_promised: AtomicBool::new(self.has_promised.load(Ordering::Acquire)),
        }
    }

    pub(crate) fn current(&self) -> Arc<Catalog> {
        self.current.load_full()
    }

    /// Shows it to clients from now on. Its names stay assigned to their servers. Lists that are offered because a
    /// server has not responded yet stay offered, even if they turn out empty.
    pub(crate) async fn publish(&self) {
        let _replacing = self.rebuilding.lock().await;
        self.is_published.store(true, Ordering::Release);
        let current = self.current();
        if current
            .snapshots
            .iter()
            .any(|snapshot| snapshot.is_unknown())
        {
            self.has_promised.store(true, Ordering::Release);
        }
        for lists in current.lists() {
            self.shared.registry.publish(&lists.merged);
        }
    }

    /// The catalog to list `kind` from, with all announced changes. A list is read again if the last reading failed, or
    /// if the server announces no changes and the list has expired.
    pub(crate) async fn fresh(&self, kind: ListKind) -> Arc<Catalog> {
        let current = self.current();
        if self.is_up_to_date(&current, kind) {
            return current;
        }
        self.request_undeclared(kind).await;
        let is_old = |source: &&Arc<ServerSource>| !source.is_fresh(kind);
        let old: Vec<_> = self.sources.iter().filter(is_old).collect();
        if !old.is_empty() {
            let read = old.iter().map(|source| async move {
                source.drain().await;
                if !source.is_fresh(kind) {
                    source.read_unless_recent(kind).await;
                }
            });
            join_all(read).await;
        }
        self.catch_up(kind).await;
        self.current()
    }

    /// Whether `catalog` has the fresh lists of all servers, so that nothing has to be read or merged.
    fn is_up_to_date(&self, catalog: &Catalog, kind: ListKind) -> bool {
        let lists = catalog.lists.get(&kind);
        let merged = lists.map_or(&[][..], |lists| &lists.listings);
        self.sources.iter().enumerate().all(|(at, source)| {
            let listing = merged.get(at).and_then(|part| part.listing.as_ref());
            matches!(listing, Some(Ok(listing)) if source.is_latest(kind, listing))
        })
    }

    /// Applies `find` to the catalog; if it finds nothing, again after the announced changes, and again after reading
    /// the list again.
    ///
    /// # Errors
    ///
    /// The failure of the list if it could not be read; `None` if the list lacks the item.
    pub(crate) async fn find<T>(
        &self,
        kind: ListKind,
        find: impl Fn(&Catalog) -> Option<T>,
    ) -> Result<T, Option<RpcError>> {
        if let Some(found) = find(&self.current.load()) {
            return Ok(found);
        }
        self.request_undeclared(kind).await;
        // Followers handle events that arrived before this request first.
        tokio::task::yield_now().await;
        join_all(self.sources.iter().map(|source| source.drain())).await;
        if let Some(found) = find(&self.current.load()) {
            return Ok(found);
        }
        let sources = self.sources.iter();
        let read = sources.map(|source| source.read_unless_recent(kind));
        join_all(read).await;
        self.catch_up(kind).await;
        let current = self.current();
        find(&current).ok_or_else(|| current.failure(kind))
    }

    /// Requests the list from servers that do not declare it, once from each. Servers that refuse the gateway are not
    /// asked.
    async fn request_undeclared(&self, kind: ListKind) {
        self.sources.iter().for_each(|source| source.note_refusal());
        let is_undecided = |source: &&Arc<ServerSource>| {
            source.lists().is_undecided(kind) && self.may_show_some_of(source)
        };
        let undecided: Vec<_> = self.sources.iter().filter(is_undecided).collect();
        if !undecided.is_empty() {
            let sources = undecided.into_iter();
            let requests = sources.map(|source| undeclared::request(source, kind));
            Box::pin(join_all(requests)).await;
        }
    }

    /// Whether access rules could show something of a server, whatever it lists.
    pub(crate) fn may_show_some_of(&self, source: &ServerSource) -> bool {
        let layout = &self.layout;
        let prefix = layout.name_prefix(&source.name, self.sources.len());
        let access = layout.variants.access();
        access.is_none_or(|access| access.server_access(&source.name, &prefix).something)
    }

    /// Whether clients must not learn why a list of a server cannot be read: access rules show them nothing of it.
    fn hides_failure(&self, source: &ServerSource, kind: ListKind) -> bool {
        let snapshot = source.snapshot();
        let is_failure = matches!(snapshot.listings.get(&kind), Some(Err(_)));
        is_failure && !self.may_show_some_of(source)
    }

    /// Merges a list again if it has changed since the last merge.
    async fn catch_up(&self, kind: ListKind) {
        let current = self.current.load();
        let from = current
            .lists
            .get(&kind)
            .map_or(&[][..], |lists| &lists.listings);
        let is_behind = (0..self.sources.len()).any(|at| {
            let source = &self.sources[at];
            let then = from.get(at).and_then(|part| part.listing.as_ref());
            let is_hidden = then.is_none() && self.hides_failure(source, kind);
            !is_hidden && source.lists().differs_from(kind, then)
        });
        drop(current);
        if is_behind {
            self.rebuild(&BTreeSet::from([kind])).await;
        }
    }

    /// Merges the lists `kinds` again; the others stay. Returns the lists and variants that changed.
    ///
    /// Views are built on a blocking thread: deriving thousands of items would delay other requests.
    pub(crate) async fn rebuild(&self, kinds: &BTreeSet<ListKind>) -> ChangedLists {
        let _replacing = self.rebuilding.lock().await;
        let snapshots: Vec<_> = self
            .sources
            .iter()
            .map(|source| source.snapshot())
            .collect();
        let mut offered = self.offered_by(&snapshots);
        if self.layout.variants.access().is_some() {
            offered.insert(EMPTY_LIST.capability().to_owned());
        }
        let before = self.current();
        let mut lists = before.lists.clone();
        lists.retain(|kind, _| offered.contains(kind.capability()));
        for kind in ListKind::ALL {
            let has = offered.contains(kind.capability());
            if !has || (lists.contains_key(&kind) && !kinds.contains(&kind)) {
                continue;
            }
            let listings = self.sources.iter().map(|source| {
                let mut part = source.listing(kind);
                part.listing = part.listing.filter(|_| !self.hides_failure(source, kind));
                part
            });
            let parts: Vec<_> = listings.collect();
            let layout = self.layout.clone();
            let before = lists.get(&kind).cloned();
            let shared = Arc::clone(&self.shared);
            let is_published = self.is_published.load(Ordering::Acquire);
            let built = tokio::task::spawn_blocking(move || {
                let built = shared.lists(kind, parts, &layout, before.as_ref(), is_published);
                log_new_collisions(&built.merged, &shared.collisions);
                built
            });
            match built.await {
                Ok(built) => drop(lists.insert(kind, built)),
                Err(error) => {
                    warn!(%error, list = kind.method(), "views could not be built; the last ones stay")
                }
            }
        }
        let catalog = self.without_hidden_servers(snapshots, lists);
        let mut changed = changed_lists(&before.lists, &catalog.lists);
        changed.retain(|(_, kind)| before.has_list(*kind) || catalog.has_list(*kind));
        self.current.store(Arc::new(catalog));
        self.publish_changes(&changed);
        changed
    }

    /// The capabilities of these servers, and those that were promised.
    fn offered_by(&self, snapshots: &[Arc<ServerSnapshot>]) -> BTreeSet<String> {
        let mut offered = offered_capabilities(snapshots);
        if self.has_promised.load(Ordering::Acquire) {
            offered.extend(POSSIBLE_CAPABILITIES.map(str::to_owned));
        }
        offered
    }

    /// The catalog of these lists, without the servers that access rules hide.
    fn without_hidden_servers(
        &self,
        mut snapshots: Vec<Arc<ServerSnapshot>>,
        lists: BTreeMap<ListKind, Arc<Lists>>,
    ) -> Catalog {
        let servers: Vec<&str> = self.sources.iter().map(|source| &*source.name).collect();
        hide_servers(&mut snapshots, &servers, &self.layout, &lists);
        let mut capabilities = self.offered_by(&snapshots);
        if capabilities.is_empty() && snapshots.iter().all(|snapshot| snapshot.is_hidden) {
            // A client that may use nothing gets an empty list rather than an error.
            capabilities.insert(EMPTY_LIST.capability().to_owned());
        }
        let pairs = std::iter::zip(&self.sources, &snapshots);
        let visible = pairs.filter(|(_, snapshot)| !snapshot.is_hidden);
        let undeclared = visible
            .map(|(source, _)| Arc::clone(source.connection.server_facts().undeclared_methods()));
        Catalog {
            undeclared: undeclared.collect(),
            snapshots,
            capabilities,
            lists,
        }
    }

    /// The lists of these kinds, in all variants.
    pub(super) fn all_of(&self, kinds: &BTreeSet<Kind>) -> ChangedLists {
        let current = self.current.load();
        let offered = kinds
            .iter()
            .filter(|kind| current.capabilities.contains(kind.capability()));
        let lists = offered.flat_map(|kind| ListKind::affected_by(*kind));
        lists
            .flat_map(|list| {
                self.layout
                    .variants
                    .indices()
                    .map(|variant| (variant, *list))
            })
            .collect()
    }

    /// Whether clients are notified of changes that a server announced and that its lists do not show.
    ///
    /// Not with access rules: the change may be one of what they hide.
    pub(super) fn repeats_announcements(&self) -> bool {
        self.layout.variants.access().is_none()
    }

    fn publish_changes(&self, changed: &ChangedLists) {
        for (variant, kind) in changed {
            let id = self.layout.variants.id(*variant);
            let variant = id.map(tracing::field::display);
            debug!(variant, list = kind.method(), "list changed");
        }
        if !changed.is_empty() {
            self.observer.lists_changed(self.id, changed);
        }
    }
}

/// The list that clients have who may use nothing.
const EMPTY_LIST: ListKind = ListKind::Tools;
