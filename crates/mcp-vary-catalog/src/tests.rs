//! What becomes of the views when a server's list changes: no more than must is made again, and it is known
//! what that changed.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::Arc;

use mcp_vary::variant::ServerVariant;
use mcp_vary_view::{Description, ResourceOverride, ToolOverride};
use mcp_vary_wire::era::Caching;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use proptest::prelude::*;

use super::index::VariantIndex;
use super::layout::Layout;
use super::list_fault::ListFaults;
use super::listing::{ListKind, ListedItem, Listing};
use super::merge::{Naming, ServerListing};
use super::registry::NameRegistry;
use super::shared::SharedLists;
use super::view::View;
use crate::catalog::{ChangedLists, Lists, changed_lists};
use crate::selection::rules::ClientRules;
use crate::selection::variant_selection::SelectionConfig;
use crate::variant_config::{Base, VariantConfig};
use crate::variant_set::VariantSet;

type Catalogue = BTreeMap<ListKind, Arc<Lists>>;

/// What three servers list of one kind.
type Parts = Vec<ServerListing>;

const SERVERS: [(&str, Era); 3] = [
    ("git", Era::Legacy),
    ("web", Era::Modern),
    ("files", Era::Legacy),
];

/// What is random of one item: its name, how it is described, and what it promises.
type Traits = (u8, u8, bool);

fn item(kind: ListKind, (name, words, reads): Traits) -> ListedItem {
    let id = match kind {
        ListKind::Tools | ListKind::Prompts => format!("item{name}"),
        ListKind::Resources => format!("doc:{name}"),
        ListKind::Templates => format!("doc:{name}/{{x}}"),
    };
    // The first sentence changes with every third description only, and a foreign schema with others.
    let (first, rest) = (words / 3, words % 3);
    let schema = if rest == 2 { "array" } else { "object" };
    let json = format!(
        r#"{{"{}":"{id}","description":"Does {first}. Or {rest}.","inputSchema":{{"type":"object"}},"outputSchema":{{"type":"{schema}"}},"annotations":{{"readOnlyHint":{reads}}}}}"#,
        kind.id_key()
    );
    ListedItem {
        id: id.into(),
        json: json.into(),
    }
}

/// A server's list; `None` is one that cannot be read.
fn part(kind: ListKind, server: usize, items: Option<&[Traits]>) -> ServerListing {
    let (name, era) = SERVERS[server];
    let listing = items.map(|items| Listing {
        passthrough: None,
        frame: format!(r#"{{"{}":[]}}"#, kind.items_key()).into(),
        items: items.iter().map(|traits| item(kind, *traits)).collect(),
        ttl: None,
        faults: ListFaults::default(),
    });
    let broken = || RpcError::internal("broken");
    ServerListing {
        server: name.into(),
        server_era: era,
        was_connected: true,
        listing: Some(listing.map(Arc::new).ok_or_else(broken)),
    }
}

fn layout(naming: Naming, page_size: Option<usize>) -> Layout {
    let variant =
        |id: &str| VariantConfig::new(ServerVariant::new(id.parse().unwrap(), "For tests."));
    let mut some = variant("some");
    some.tools = serde_json::from_str(r#"{"exclude": ["*item1*"]}"#).unwrap();
    some.resources = serde_json::from_str(r#"{"exclude": ["doc:2*"]}"#).unwrap();
    let mut renamed = variant("renamed");
    for name in ["item1", "git_item1"] {
        let change = ToolOverride {
            name: Some("first".into()),
            ..ToolOverride::default()
        };
        renamed.tool_overrides.insert(name.into(), change);
    }
    for (own, uri) in [("doc:1", "doc:3"), ("doc:2/{x}", "moved:2/{x}")] {
        let change = ResourceOverride {
            uri: Some(uri.into()),
            ..ResourceOverride::default()
        };
        renamed.resource_overrides.insert(own.into(), change);
    }
    let mut short = variant("short");
    short.style.description = Description::FirstSentence;
    let faces = vec![
        variant("all"),
        variant("compact").with_base(Base::Compact),
        variant("read-only").with_base(Base::ReadOnly),
        some,
        renamed,
        short,
    ];
    Layout {
        results: Arc::default(),
        naming,
        variants: Arc::new(VariantSet::new(faces).unwrap()),
        page_size: page_size.and_then(NonZeroUsize::new),
        caching: Caching::Never,
        read_result: false,
    }
}

fn build(parts: &BTreeMap<ListKind, Parts>, layout: &Layout, before: &Catalogue) -> Catalogue {
    let made = parts.iter().map(|(kind, parts)| {
        let before = before.get(kind);
        (
            *kind,
            Lists::new(
                *kind,
                parts.clone(),
                layout,
                before,
                (&NameRegistry::default(), false),
            ),
        )
    });
    made.collect()
}

/// All pages of a view in both eras, as a client that follows the bookmarks reads them.
fn read(view: &View) -> Vec<Result<String, ()>> {
    let mut pages = Vec::new();
    for era in [Era::Legacy, Era::Modern] {
        let mut cursor = None;
        loop {
            let page = match view.page(era, cursor.as_deref()) {
                Ok(page) => page,
                Err(failure) => {
                    assert!(failure.is_some(), "the bookmark is good");
                    pages.push(Err(()));
                    break;
                }
            };
            let (open, end) = page.result(None);
            pages.push(Ok(format!("{}{end}", str::from_utf8(open).unwrap())));
            match page.next() {
                Some(next) => cursor = Some(view.cursor_at(next)),
                None => break,
            }
        }
    }
    pages
}

/// Where the bytes of a view's prebuilt pages are.
fn addresses(view: &View) -> Vec<*const u8> {
    let pages = [Era::Legacy, Era::Modern]
        .map(|era| view.page(era, None))
        .into_iter()
        .flatten();
    pages.map(|page| page.result(None).0.as_ptr()).collect()
}

/// What of a view its clients can tell, beside its pages.
fn facts(view: &View) -> String {
    let places: Vec<_> = view.item_refs().collect();
    let tools: Vec<_> = places
        .iter()
        .filter_map(|(id, _)| view.tool(id))
        .map(|tool| (&tool.item_ref, tool.facts, tool.idempotent))
        .collect();
    format!("{places:?} {tools:?} {:?}", view.diagnostics)
}

/// The variants of [`layout`].
fn variants() -> impl Iterator<Item = VariantIndex> {
    (0..6).map(VariantIndex::at)
}

/// By comparing everything with everything.
fn differences(before: &Catalogue, now: &Catalogue) -> ChangedLists {
    let pairs = now.iter().flat_map(|(kind, lists)| {
        let before = &before[kind].views;
        let views = lists.views.iter().enumerate();
        views.filter_map(move |(at, view)| {
            (read(view) != read(&before[at])).then_some((VariantIndex::at(at), *kind))
        })
    });
    pairs.collect()
}

fn traits() -> impl Strategy<Value = Option<Vec<Traits>>> {
    let items = prop::collection::vec((0..6_u8, 0..9_u8, any::<bool>()), 0..7);
    prop::option::weighted(0.9, items)
}

fn kinds() -> impl Strategy<Value = ListKind> {
    prop::sample::select(ListKind::ALL.to_vec())
}

fn names() -> impl Strategy<Value = Naming> {
    prop::sample::select(vec![Naming::AsNeeded, Naming::Never, Naming::OnCollision])
}

/// Changes one trait of a list, or nothing.
fn nudge(items: &mut Option<Vec<Traits>>, how: u8, at: usize, to: Traits) {
    let Some(items) = items else { return };
    match (how, items.len()) {
        (0, count) => items.insert(at % (count + 1), to),
        (_, 0) => {}
        (1, count) => drop(items.remove(at % count)),
        (2, count) => items[at % count].1 = to.1,
        (3, count) => items[at % count].2 = to.2,
        (4, count) => items.rotate_left(at % count),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// SV-23: whatever changes, the catalogue is the one that is made from nothing, and what is said to have
    /// changed has changed, and nothing else.
    #[test]
    fn a_change_makes_what_would_be_made_from_nothing(
        naming in names(),
        page_size in prop::option::of(1..4_usize),
        lists in prop::collection::vec(traits(), 12),
        changes in prop::collection::vec(
            (kinds(), 0..3_usize, 0..6_u8, any::<usize>(), (0..6_u8, 0..9_u8, any::<bool>())), 1..8,
        ),
    ) {
        let layout = layout(naming, page_size);
        let mut lists: BTreeMap<ListKind, Vec<_>> = ListKind::ALL
            .into_iter()
            .zip(lists.chunks(3).map(<[_]>::to_vec))
            .collect();
        let parts = |lists: &BTreeMap<ListKind, Vec<Option<Vec<Traits>>>>| {
            let of_kind = |(kind, lists): (&ListKind, &Vec<Option<Vec<Traits>>>)| {
                let parts = lists.iter().enumerate();
                (*kind, parts.map(|(at, items)| part(*kind, at, items.as_deref())).collect())
            };
            lists.iter().map(of_kind).collect::<BTreeMap<_, Parts>>()
        };
        let mut current = build(&parts(&lists), &layout, &Catalogue::new());
        for (kind, server, how, at, to) in changes {
            let before = current.clone();
            let (whole_before, then) = (build(&parts(&lists), &layout, &Catalogue::new()), lists.clone());
            nudge(&mut lists.get_mut(&kind).unwrap()[server], how, at, to);
            current = build(&parts(&lists), &layout, &before);
            let whole = build(&parts(&lists), &layout, &Catalogue::new());
            for (kind, lists) in &current {
                for (view, same) in lists.views.iter().zip(&whole[kind].views) {
                    prop_assert_eq!(read(view), read(same));
                    prop_assert_eq!(facts(view), facts(same));
                }
            }
            let told = changed_lists(&before, &current);
            prop_assert_eq!(&told, &differences(&whole_before, &whole));
            is_kept(&before, &current, &told, (then == lists).then_some(kind), kind)?;
        }
    }
}

/// What did not change is not only alike, it is the same.
fn is_kept(
    before: &Catalogue,
    now: &Catalogue,
    changed: &ChangedLists,
    untouched: Option<ListKind>,
    touched: ListKind,
) -> Result<(), TestCaseError> {
    for (kind, lists) in now {
        let then = &before[kind];
        if *kind != touched || untouched.is_some() {
            prop_assert!(Arc::ptr_eq(lists, then), "{kind:?} was made again");
        }
        for (at, (view, before)) in lists.views.iter().zip(&then.views).enumerate() {
            if !changed.contains(&(VariantIndex::at(at), *kind)) {
                prop_assert_eq!(addresses(view), addresses(before), "{:?} of {}", kind, at);
            }
        }
        for item in lists.merged.items() {
            let items = then.merged.items().iter();
            let alike = items.filter(|it| {
                (&it.id, &it.json, &it.item_ref) == (&item.id, &item.json, &item.item_ref)
            });
            let mut alike = alike.peekable();
            if alike.peek().is_some() {
                let is_same = alike.any(|it| Arc::ptr_eq(it, item));
                prop_assert!(is_same, "{} was made again", item.id);
            }
        }
    }
    Ok(())
}

fn tools(parts: [&[Traits]; 3]) -> BTreeMap<ListKind, Parts> {
    let parts = parts.iter().enumerate();
    let parts = parts.map(|(at, items)| part(ListKind::Tools, at, Some(items)));
    BTreeMap::from([(ListKind::Tools, parts.collect())])
}

/// SV-23: the tools of the other servers stay what they are, down to the bytes of pages that they fill.
#[test]
fn one_servers_change_leaves_the_others_alone() {
    let layout = layout(Naming::AsNeeded, Some(2));
    let git: &[Traits] = &[(0, 0, true), (1, 0, true)];
    let web: &[Traits] = &[(2, 0, true), (3, 0, true)];
    let before = build(&tools([git, web, &[]]), &layout, &Catalogue::new());
    let other: &[Traits] = &[(2, 0, true), (3, 4, true)];
    let now = build(&tools([git, other, &[]]), &layout, &before);
    let views = |lists: &Catalogue| lists[&ListKind::Tools].views.clone();
    for (view, then) in views(&now).iter().zip(&views(&before)) {
        for name in ["git_item0", "web_item2"] {
            let (tool, then) = (view.tool(name).unwrap(), then.tool(name).unwrap());
            assert!(Arc::ptr_eq(tool, then), "{name}");
        }
        assert_eq!(addresses(view), addresses(then), "the first page");
        let tool = |view: &View| view.tool("web_item3").map(Arc::as_ptr);
        assert_ne!(tool(view), tool(then));
    }
    let all: ChangedLists = variants().map(|at| (at, ListKind::Tools)).collect();
    assert_eq!(changed_lists(&before, &now), all);
}

/// What several variants show alike is there once, whether it was always so or has become so.
#[test]
fn pages_that_say_the_same_are_the_same_bytes() {
    let layout = layout(Naming::AsNeeded, Some(2));
    let git: &[Traits] = &[(0, 0, true), (4, 0, false), (3, 0, true)];
    let before = build(&tools([git, &[], &[]]), &layout, &Catalogue::new());
    let address = |lists: &Catalogue, at: usize| addresses(&lists[&ListKind::Tools].views[at]);
    let [all, compact, read_only, some] = [0, 1, 2, 3].map(|at| address(&before, at));
    assert_eq!(all, some);
    assert_ne!(all, compact);
    assert_ne!(all, read_only);
    let git: &[Traits] = &[(0, 0, true), (4, 0, true), (3, 0, true)];
    let now = build(&tools([git, &[], &[]]), &layout, &before);
    assert_eq!(address(&now, 0), address(&now, 2));
}

/// SV-23: a change that a variant does not show changes nothing there.
#[test]
fn a_change_that_nobody_sees_is_none() {
    let layout = layout(Naming::AsNeeded, None);
    let before = build(
        &tools([&[(0, 0, true), (1, 0, false)], &[], &[]]),
        &layout,
        &Catalogue::new(),
    );
    let now = build(
        &tools([&[(0, 0, true), (1, 1, false)], &[], &[]]),
        &layout,
        &before,
    );
    let ids: Vec<_> = layout.variants.ids().collect();
    let told = changed_lists(&before, &now);
    let told: BTreeSet<_> = told
        .iter()
        .map(|(at, _)| at.get(&ids).unwrap().as_str())
        .collect();
    // Without a first sentence that changed, a tool that writes, or one that is left out.
    assert_eq!(told, BTreeSet::from(["all", "renamed"]));
}

/// A list that comes or goes with its server is a change in every variant.
#[test]
fn a_list_that_comes_or_goes_has_changed() {
    let layout = layout(Naming::AsNeeded, None);
    let there = build(&tools([&[], &[], &[]]), &layout, &Catalogue::new());
    let all: ChangedLists = variants().map(|at| (at, ListKind::Tools)).collect();
    assert_eq!(changed_lists(&Catalogue::new(), &there), all);
    assert_eq!(changed_lists(&there, &Catalogue::new()), all);
    assert_eq!(changed_lists(&there, &there), ChangedLists::new());
}

/// SV-23: what rules for clients make of a variant is no variant, and changes with it.
#[test]
fn a_change_is_said_of_variants_alone() {
    let mut layout = layout(Naming::AsNeeded, None);
    let known = ClientRules::new(&SelectionConfig {
        known_clients: true,
        ..SelectionConfig::default()
    });
    let manners = known.presentations();
    layout.variants = VariantSet::with_presentations(&layout.variants, &manners);
    assert!(!manners.is_empty() && layout.variants.configs().len() == 6 * (1 + manners.len()));
    let before = build(
        &tools([&[(0, 0, true)], &[], &[]]),
        &layout,
        &Catalogue::new(),
    );
    let now = build(&tools([&[(0, 7, true)], &[], &[]]), &layout, &before);
    let told = changed_lists(&before, &now);
    assert!(
        !told.is_empty() && told.iter().all(|(at, _)| at.position() < 6),
        "{told:?}"
    );
    for (variant, manner) in variants().flat_map(|at| manners.iter().map(move |it| (at, *it))) {
        let at = layout.variants.presented_view(variant, manner);
        assert!(at.position() >= 6);
        assert_eq!(
            layout.variants.config(at).variant,
            layout.variants.config(variant.declared_view()).variant
        );
    }
}

#[test]
fn classes_that_see_the_same_hold_one_list() {
    let shared = SharedLists::default();
    let layout = layout(Naming::Never, None);
    let parts = |items: &[Traits]| {
        let mut part = part(ListKind::Tools, 0, Some(items));
        let listing = part.listing.take().unwrap().unwrap();
        let listing = shared.listing(Arc::unwrap_or_clone(listing), None);
        part.listing = Some(Ok(listing));
        vec![part]
    };
    let lists = |items| shared.lists(ListKind::Tools, parts(items), &layout, None, false);
    let (few, more) = ([(0, 0, true)], [(0, 0, true), (1, 0, true)]);
    let base = lists(&few);
    assert!(Arc::ptr_eq(&base, &lists(&few)));
    let other = lists(&more);
    assert!(!Arc::ptr_eq(&base, &other));
    let listing = |lists: &Lists| lists.listings[0].listing.clone().unwrap().unwrap();
    assert!(Arc::ptr_eq(&listing(&base), &listing(&lists(&few))));
    // Lists that are no longer in use are dropped.
    let weak = Arc::downgrade(&other);
    drop(other);
    assert!(weak.upgrade().is_none());
}
