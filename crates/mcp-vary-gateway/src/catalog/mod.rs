//! What the servers offer together, and the views of it.

pub(crate) mod apps;
mod bookmark;
pub(crate) mod face;
pub(crate) mod item;
pub(crate) mod listing;
pub(crate) mod merge;
mod page;
pub(crate) mod registry;
pub(crate) mod resource;
pub(crate) mod selected;
pub(crate) mod shared;
pub(crate) mod shown;
mod slips;
pub(crate) mod source;
#[cfg(test)]
mod tests;
pub(crate) mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, Weak};

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use tokio::sync::{Mutex, broadcast};
use tracing::{debug, warn};

use crate::call::COMPLETE;
use crate::notify::Audience;
use listing::ListKind;
use mcp_vary_upstream::log_level::SET_LEVEL;
use mcp_vary_upstream::{Event, Kind, Learned, SUBSCRIBE};
use mcp_vary_wire::response::Failure;
use merge::{Merged, Part};
use registry::Registry;
use shared::SharedLists;
use shown::{Prompt, Tool};
use source::{Changes, Source, Told};
use view::{Layout, View};

/// The lists of all servers and the views of the variants, all of one moment.
#[derive(Debug)]
pub(crate) struct Catalog {
    /// What each server said, in the order of configuration.
    pub(crate) told: Vec<Arc<Told>>,
    /// The names of the capabilities that there are.
    pub(crate) offered: BTreeSet<String>,
    /// What was learned of each server.
    learned: Vec<Arc<Learned>>,
    lists: BTreeMap<ListKind, Arc<Lists>>,
}

/// One list of all servers, and how each variant shows it.
#[derive(Debug)]
pub(crate) struct Lists {
    pub(crate) merged: Merged,
    /// What it was merged from.
    from: Vec<Part>,
    /// One view per variant, in their order, then those in manners that rules for clients ask for.
    pub(crate) views: Vec<Arc<View>>,
    layout: Layout,
}

/// The lists that clients no longer get as they were: of which variants, and which ones.
pub(crate) type Changed = BTreeSet<(usize, ListKind)>;

impl Lists {
    /// The lists of `kind`. What is as it was `before` is not made again (SV-23).
    fn new(
        kind: ListKind,
        parts: Vec<Part>,
        layout: &Layout,
        before: Option<&Arc<Self>>,
        (registry, is_published): (&Registry, bool),
    ) -> Arc<Self> {
        let before = before.filter(|lists| lists.layout.is(layout));
        if let Some(lists) = before.filter(|lists| lists.from == parts) {
            return Arc::clone(lists);
        }
        let known = before.map(|lists| &lists.merged);
        let merged = registry.merge(kind, is_published, |assigned| {
            Merged::new(kind, &parts, layout.naming, known, assigned)
        });
        let mut views = Vec::with_capacity(layout.faces.all.len());
        for (at, face) in layout.faces.all.iter().enumerate() {
            let before = before.and_then(|lists| lists.views.get(at));
            let view = View::new(face, &merged, layout, before, &views);
            views.push(view);
        }
        Arc::new(Self {
            views,
            merged,
            from: parts,
            layout: layout.clone(),
        })
    }
}

/// Which lists differ between two catalogues.
fn changed(
    before: &BTreeMap<ListKind, Arc<Lists>>,
    now: &BTreeMap<ListKind, Arc<Lists>>,
) -> Changed {
    let views = |lists: &BTreeMap<ListKind, Arc<Lists>>, kind| {
        let lists: Option<&Arc<Lists>> = lists.get(&kind);
        // What rules ask for stays the variant's list: it changes with it.
        lists.map_or(Vec::new(), |lists| {
            let variants = lists.layout.faces.variants.as_slice().len();
            lists.views.iter().take(variants).cloned().collect()
        })
    };
    let of_kind = |kind| {
        let (before, now) = (views(before, kind), views(now, kind));
        (0..before.len().max(now.len())).filter_map(move |at| {
            let is_same = match (before.get(at), now.get(at)) {
                (Some(before), Some(now)) => Arc::ptr_eq(before, now) || before.is_like(now),
                (before, now) => before.is_none() && now.is_none(),
            };
            (!is_same).then_some((at, kind))
        })
    };
    ListKind::ALL.into_iter().flat_map(of_kind).collect()
}

impl Catalog {
    fn empty() -> Self {
        Self {
            told: Vec::new(),
            offered: BTreeSet::new(),
            learned: Vec::new(),
            lists: BTreeMap::new(),
        }
    }

    /// Whether there is a capability, declared by a server or found by asking for its method.
    pub(crate) fn has(&self, capability: &str) -> bool {
        let method = match capability {
            "completions" => COMPLETE,
            "logging" => SET_LEVEL,
            // Found lists are offered.
            _ => return self.offered.contains(capability),
        };
        let found = |learned: &Arc<Learned>| learned.has_undeclared(method) == Some(true);
        self.offered.contains(capability) || self.learned.iter().any(found)
    }

    /// Whether there is such a list, be it empty.
    pub(crate) fn offers(&self, kind: ListKind) -> bool {
        self.offered.contains(kind.capability())
    }

    /// Whether some server tells of changes of single resources, or may turn out to.
    pub(crate) fn subscribes(&self) -> bool {
        let offers = |told: &Arc<Told>| {
            let hello = told.hello.as_ref();
            hello.is_none_or(|hello| hello.offers("resources", "subscribe"))
        };
        let found = |learned: &Arc<Learned>| learned.has_undeclared(SUBSCRIBE) == Some(true);
        let is_declared = self.offered.contains("resources") && self.told.iter().any(offers);
        is_declared || self.learned.iter().any(found)
    }

    pub(crate) fn lists(&self) -> impl Iterator<Item = &Lists> {
        self.lists.values().map(AsRef::as_ref)
    }

    /// How `variant` shows one list.
    pub(crate) fn view(&self, kind: ListKind, variant: usize) -> Option<&View> {
        let views = &self.lists.get(&kind)?.views;
        views.get(variant).map(AsRef::as_ref)
    }

    pub(crate) fn tool(&self, variant: usize, name: &str) -> Option<&Arc<Tool>> {
        self.view(ListKind::Tools, variant)?.tool(name)
    }

    pub(crate) fn prompt(&self, variant: usize, name: &str) -> Option<&Arc<Prompt>> {
        self.view(ListKind::Prompts, variant)?.prompt(name)
    }

    /// The server that lists the resource that it calls `own`, or else one whose template may stand for it.
    pub(crate) fn resource(&self, variant: usize, own: &str) -> Option<usize> {
        let listed = self.listed_resource(variant, own);
        listed.or_else(|| self.by_template(variant, own))
    }

    /// The server that lists the resource that it calls `own`.
    pub(crate) fn listed_resource(&self, variant: usize, own: &str) -> Option<usize> {
        let place = self.view(ListKind::Resources, variant)?.place_of(own)?;
        Some(place.server)
    }

    fn failure(&self, kind: ListKind) -> Option<Failure> {
        self.lists.get(&kind)?.merged.items.as_ref().err().cloned()
    }
}

/// The capabilities that a server may turn out to have that was never connected to.
const POSSIBLE: [&str; 5] = ["tools", "resources", "prompts", "completions", "logging"];

/// The current catalogue; requests swap it in without a lock.
#[derive(Debug)]
pub(crate) struct LiveCatalog {
    current: ArcSwap<Catalog>,
    /// In the order of configuration.
    pub(crate) sources: Vec<Arc<Source>>,
    /// Held while one catalogue takes the place of another.
    replacing: Mutex<()>,
    pub(crate) layout: Layout,
    audience: Arc<Audience>,
    shared: Arc<SharedLists>,
    /// Whether clients see it.
    is_published: AtomicBool,
    /// Whether clients were offered what servers might turn out to have.
    has_promised: AtomicBool,
}

impl LiveCatalog {
    pub(crate) fn new(
        sources: Vec<Arc<Source>>,
        layout: Layout,
        audience: Arc<Audience>,
        shared: Arc<SharedLists>,
    ) -> Self {
        for source in &sources {
            source.set_views(layout.faces.all.len());
        }
        Self {
            shared,
            audience,
            is_published: AtomicBool::new(false),
            has_promised: AtomicBool::new(false),
            current: ArcSwap::from_pointee(Catalog::empty()),
            sources,
            replacing: Mutex::default(),
            layout,
        }
    }

    /// The catalogue of other sources, which is made from this one where they list the same.
    pub(crate) fn with_sources(&self, sources: Vec<Arc<Source>>) -> Self {
        Self {
            current: ArcSwap::new(self.current()),
            sources,
            replacing: Mutex::default(),
            layout: self.layout.clone(),
            audience: Arc::clone(&self.audience),
            shared: Arc::clone(&self.shared),
            is_published: AtomicBool::new(self.is_published.load(Ordering::Acquire)),
            has_promised: AtomicBool::new(self.has_promised.load(Ordering::Acquire)),
        }
    }

    pub(crate) fn current(&self) -> Arc<Catalog> {
        self.current.load_full()
    }

    /// Clients see it from now on: what it lists stays assigned to its servers, and what it offers since some server
    /// has not answered yet stays offered, be it empty.
    pub(crate) async fn publish(&self) {
        let _replacing = self.replacing.lock().await;
        self.is_published.store(true, Ordering::Release);
        let current = self.current();
        if current.told.iter().any(|told| told.hello.is_none()) {
            self.has_promised.store(true, Ordering::Release);
        }
        for lists in current.lists() {
            self.shared.registry.publish(&lists.merged);
        }
    }

    /// The catalogue to list `kind` from, after the changes that were announced; read again first when
    /// the last reading failed, or when a server does not tell of changes and its `ttlMs` is over.
    pub(crate) async fn fresh(&self, kind: ListKind) -> Arc<Catalog> {
        self.ask_undeclared(kind).await;
        let is_old = |source: &&Arc<Source>| !source.is_fresh(kind);
        let old: Vec<_> = self.sources.iter().filter(is_old).collect();
        if !old.is_empty() {
            let read = old.iter().map(|source| async move {
                source.settle().await;
                if !source.is_fresh(kind) {
                    source.read_unless_recent(kind).await;
                }
            });
            join_all(read).await;
        }
        self.catch_up(kind).await;
        self.current()
    }

    /// What `find` finds in the catalogue; if nothing, after the changes that were announced, and if
    /// still nothing, after reading the list again.
    ///
    /// # Errors
    ///
    /// The failure of the list when it could not be read, `None` when it lacks what was looked for.
    pub(crate) async fn find<T>(
        &self,
        kind: ListKind,
        find: impl Fn(&Catalog) -> Option<T>,
    ) -> Result<T, Option<Failure>> {
        if let Some(found) = find(&self.current.load()) {
            return Ok(found);
        }
        self.ask_undeclared(kind).await;
        // What arrived before this request is seen by whoever follows the server before it is missed.
        tokio::task::yield_now().await;
        join_all(self.sources.iter().map(|source| source.settle())).await;
        if let Some(found) = find(&self.current.load()) {
            return Ok(found);
        }
        let read = self.sources.iter();
        let read = read.map(|source| source.read_unless_recent(kind));
        join_all(read).await;
        self.catch_up(kind).await;
        let current = self.current();
        find(&current).ok_or_else(|| current.failure(kind))
    }

    /// Asks the servers that do not declare a list whether they have it, each one once.
    async fn ask_undeclared(&self, kind: ListKind) {
        if self.sources.iter().any(|source| source.is_unasked(kind)) {
            let asked = self.sources.iter().map(|it| it.ask_undeclared(kind));
            Box::pin(join_all(asked)).await;
        }
    }

    /// Merges a list anew if a server says something else than when that was last done, whoever read it.
    async fn catch_up(&self, kind: ListKind) {
        let current = self.current.load();
        let from = current
            .lists
            .get(&kind)
            .map_or(&[][..], |lists| &lists.from);
        let is_behind = (0..self.sources.len()).any(|at| {
            let then = from.get(at).and_then(|part| part.listing.as_ref());
            self.sources[at].says_otherwise(kind, then)
        });
        drop(current);
        if is_behind {
            self.rebuild(&BTreeSet::from([kind])).await;
        }
    }

    /// Merges the lists `kinds` anew from what the servers said last; the others stay. Which lists of which
    /// variants are others than before.
    ///
    /// Views are made aside: deriving thousands of items would hold up other requests.
    pub(crate) async fn rebuild(&self, kinds: &BTreeSet<ListKind>) -> Changed {
        let _replacing = self.replacing.lock().await;
        let told: Vec<_> = self.sources.iter().map(|source| source.told()).collect();
        let mut offered = offered(&told);
        if self.has_promised.load(Ordering::Acquire) {
            offered.extend(POSSIBLE.map(str::to_owned));
        }
        let before = self.current();
        let mut lists = before.lists.clone();
        lists.retain(|kind, _| offered.contains(kind.capability()));
        for kind in ListKind::ALL {
            let has = offered.contains(kind.capability());
            if !has || (lists.contains_key(&kind) && !kinds.contains(&kind)) {
                continue;
            }
            let parts = self.sources.iter().map(|source| source.part(kind));
            let parts: Vec<_> = parts.collect();
            let (layout, before) = (self.layout.clone(), lists.get(&kind).cloned());
            let shared = Arc::clone(&self.shared);
            let is_published = self.is_published.load(Ordering::Acquire);
            let made = tokio::task::spawn_blocking(move || {
                let made = shared.lists(kind, parts, &layout, before.as_ref(), is_published);
                report(&made.merged, before.as_ref().map(|lists| &lists.merged));
                made
            });
            match made.await {
                Ok(made) => drop(lists.insert(kind, made)),
                Err(error) => {
                    warn!(%error, list = kind.method(), "the views were not made; the last ones stay")
                }
            }
        }
        let changed = changed(&before.lists, &lists);
        let learned = self.sources.iter();
        let learned = learned.map(|source| Arc::clone(source.line.learned()));
        self.current.store(Arc::new(Catalog {
            told,
            offered,
            learned: learned.collect(),
            lists,
        }));
        self.tell(&changed);
        changed
    }

    /// The lists of these kinds, of all variants.
    fn all_of(&self, kinds: &BTreeSet<Kind>) -> Changed {
        let current = self.current.load();
        let kinds = kinds
            .iter()
            .filter(|kind| current.offered.contains(kind.capability()));
        let lists = kinds.flat_map(|kind| ListKind::of(*kind));
        let variants = 0..self.layout.faces.variants.as_slice().len();
        lists
            .flat_map(|list| variants.clone().map(|variant| (variant, *list)))
            .collect()
    }

    fn tell(&self, changed: &Changed) {
        let ids: Vec<_> = self.layout.faces.ids().collect();
        for (variant, kind) in changed {
            let (variant, list) = (
                ids.get(*variant).map(tracing::field::display),
                kind.method(),
            );
            debug!(variant, list, "list changed");
        }
        if !changed.is_empty() {
            self.audience.lists_changed(self, changed);
        }
    }
}

/// The catalogues that show a source.
pub(crate) type Catalogs = Arc<std::sync::Mutex<Vec<Weak<LiveCatalog>>>>;

/// Follows a server until its connection is closed, and merges what it says into all `catalogs` that there are by
/// then.
pub(crate) async fn follow(source: Arc<Source>, catalogs: Catalogs, audience: Arc<Audience>) {
    let merge = |changes| merge(&source, &catalogs, &audience, changes);
    source.follow(merge).await;
}

/// The same for a source whose lists have been read, with the events since then.
pub(crate) async fn follow_on(
    events: broadcast::Receiver<Event>,
    source: &Arc<Source>,
    catalogs: &Catalogs,
    audience: &Audience,
) {
    let merge = |changes| merge(source, catalogs, audience, changes);
    source.follow_on(events, merge).await;
}

async fn merge(source: &Arc<Source>, catalogs: &Catalogs, audience: &Audience, changes: Changes) {
    let living: Vec<_> = {
        let mut catalogs = catalogs.lock().unwrap_or_else(PoisonError::into_inner);
        catalogs.retain(|catalog| catalog.strong_count() > 0);
        catalogs.iter().filter_map(Weak::upgrade).collect()
    };
    let lists = &changes.lists;
    if !lists.is_empty() {
        join_all(living.iter().map(|catalog| catalog.rebuild(lists))).await;
    }
    for catalog in living.iter().filter(|_| !changes.announced.is_empty()) {
        audience.lists_changed(catalog, &catalog.all_of(&changes.announced));
    }
    audience.resources_changed(source, &changes.updates);
    source.ask_requested();
}

fn offered(told: &[Arc<Told>]) -> BTreeSet<String> {
    let mut offered: BTreeSet<_> = told.iter().flat_map(|told| told.capabilities()).collect();
    if told.iter().any(|told| told.hello.is_none()) {
        offered.extend(POSSIBLE.map(str::to_owned));
    }
    offered
}

/// Says which collisions are new, the first few.
fn report(merged: &Merged, before: Option<&Merged>) {
    const FEW: usize = 20;
    let known = before.map_or(&[][..], |merged| &merged.collisions);
    let known: BTreeSet<_> = known.iter().map(|it| (&it.id, &it.hidden)).collect();
    let new = merged.collisions.iter();
    let new: Vec<_> = new
        .filter(|it| !known.contains(&(&it.id, &it.hidden)))
        .collect();
    if new.len() > FEW {
        warn!(
            list = merged.kind.method(),
            collisions = new.len(),
            "names or URIs collide; `vary config check` shows all"
        );
    }
    for collision in new.into_iter().take(FEW) {
        warn!(
            list = collision.list,
            id = collision.id,
            kept_by = collision.kept_by,
            hidden = collision.hidden,
            "two servers offer the same; the first one is reached"
        );
    }
}
