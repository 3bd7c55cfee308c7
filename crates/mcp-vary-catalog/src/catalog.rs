//! The lists of all servers and the views of the variants, all of one moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mcp_vary_wire::methods::COMPLETE;
use mcp_vary_wire::methods::SET_LEVEL;
use mcp_vary_wire::methods::SUBSCRIBE;
use mcp_vary_wire::response::Failure;
use mcp_vary_wire::undeclared::UndeclaredMethods;
use tracing::warn;

use crate::listing::ListKind;
use crate::merge::{Merged, Part};
use crate::registry::Registry;
use crate::server_snapshot::Told;
use crate::shown::{Prompt, Tool};
use crate::view::{Layout, View};

/// The lists of all servers and the views of the variants, all of one moment.
#[derive(Debug)]
pub struct Catalog {
    /// What each server said, in the order of configuration.
    pub told: Vec<Arc<Told>>,
    /// The names of the capabilities that there are.
    pub offered: BTreeSet<String>,
    /// The methods that each server has without declaring them.
    pub undeclared: Vec<Arc<UndeclaredMethods>>,
    pub lists: BTreeMap<ListKind, Arc<Lists>>,
}

/// One list of all servers, and how each variant shows it.
#[derive(Debug)]
pub struct Lists {
    pub merged: Merged,
    /// What it was merged from.
    pub from: Vec<Part>,
    /// One view per variant, in their order, then those in manners that rules for clients ask for.
    pub views: Vec<Arc<View>>,
    pub layout: Layout,
}

/// The lists that clients no longer get as they were: of which variants, and which ones.
pub type Changed = BTreeSet<(usize, ListKind)>;

impl Lists {
    /// The lists of `kind`. What is as it was `before` is not made again (SV-23).
    pub fn new(
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
pub fn changed(
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
    pub fn empty() -> Self {
        Self {
            told: Vec::new(),
            offered: BTreeSet::new(),
            undeclared: Vec::new(),
            lists: BTreeMap::new(),
        }
    }

    /// Whether there is a capability, declared by a server or found by asking for its method.
    pub fn has(&self, capability: &str) -> bool {
        let method = match capability {
            "completions" => COMPLETE,
            "logging" => SET_LEVEL,
            // Found lists are offered.
            _ => return self.offered.contains(capability),
        };
        let found = |methods: &Arc<UndeclaredMethods>| methods.has(method) == Some(true);
        self.offered.contains(capability) || self.undeclared.iter().any(found)
    }

    /// Whether there is such a list, be it empty.
    pub fn offers(&self, kind: ListKind) -> bool {
        self.offered.contains(kind.capability())
    }

    /// Whether some server tells of changes of single resources, or may turn out to.
    pub fn subscribes(&self) -> bool {
        let offers = |told: &Arc<Told>| {
            let hello = told.hello.as_ref();
            hello.is_none_or(|hello| hello.offers("resources", "subscribe"))
        };
        let found = |methods: &Arc<UndeclaredMethods>| methods.has(SUBSCRIBE) == Some(true);
        let is_declared = self.offered.contains("resources") && self.told.iter().any(offers);
        is_declared || self.undeclared.iter().any(found)
    }

    pub fn lists(&self) -> impl Iterator<Item = &Lists> {
        self.lists.values().map(AsRef::as_ref)
    }

    /// How `variant` shows one list.
    pub fn view(&self, kind: ListKind, variant: usize) -> Option<&View> {
        let views = &self.lists.get(&kind)?.views;
        views.get(variant).map(AsRef::as_ref)
    }

    pub fn tool(&self, variant: usize, name: &str) -> Option<&Arc<Tool>> {
        self.view(ListKind::Tools, variant)?.tool(name)
    }

    pub fn prompt(&self, variant: usize, name: &str) -> Option<&Arc<Prompt>> {
        self.view(ListKind::Prompts, variant)?.prompt(name)
    }

    /// The server that lists the resource that it calls `own`, or else one whose template may stand for it.
    pub fn resource(&self, variant: usize, own: &str) -> Option<usize> {
        let listed = self.listed_resource(variant, own);
        listed.or_else(|| self.by_template(variant, own))
    }

    /// The server that lists the resource that it calls `own`.
    pub fn listed_resource(&self, variant: usize, own: &str) -> Option<usize> {
        let place = self.view(ListKind::Resources, variant)?.place_of(own)?;
        Some(place.server)
    }

    pub fn failure(&self, kind: ListKind) -> Option<Failure> {
        self.lists.get(&kind)?.merged.items.as_ref().err().cloned()
    }
}

/// The capabilities that a server may turn out to have that was never connected to.
pub const POSSIBLE: [&str; 5] = ["tools", "resources", "prompts", "completions", "logging"];

pub fn offered(told: &[Arc<Told>]) -> BTreeSet<String> {
    let mut offered: BTreeSet<_> = told.iter().flat_map(|told| told.capabilities()).collect();
    if told.iter().any(|told| told.hello.is_none()) {
        offered.extend(POSSIBLE.map(str::to_owned));
    }
    offered
}

/// Says which collisions are new, the first few.
pub fn report(merged: &Merged, before: Option<&Merged>) {
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
