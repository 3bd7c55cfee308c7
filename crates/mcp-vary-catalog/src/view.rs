//! A variant's view of what the servers list: its items, and the bytes of its lists.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use mcp_vary_view::{PreparedTool, UriTemplate, ViewDiagnostic, is_worth_describing, uri_identity};
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use tracing::warn;

use super::gateway_tool::GatewayTool;
use super::item::{Item, ItemRef};
use super::listing::ListKind;
use super::merge::{MergedList, SharedOwners, server_name};
use super::page::{Contents, Page, Pages};
use super::shown::{ItemKind, Prompt, Tool, ViewItem, VisibleItem};
use super::tool_search::{Query, ToolSearch};
use super::visible_items::visible_items;
use crate::layout::Layout;
use crate::list_cursor::CursorIndex;
use crate::variant_config::{NameScope, VariantConfig};

/// A list as a variant shows it.
#[derive(Debug)]
pub struct View {
    /// All items of the merged list as the variant shows them, in order, including those that it does not show.
    items: Vec<Arc<ViewItem>>,
    contents: Contents,
    pages: Result<Pages, RpcError>,
    /// What the variant needed to know about the list as a whole.
    names: NameScope,
    item_refs: BTreeMap<Arc<str>, ItemRef>,
    tools: BTreeMap<Arc<str>, Arc<Tool>>,
    prompts: BTreeMap<Arc<str>, Arc<Prompt>>,
    /// The names of the servers.
    servers: Vec<Arc<str>>,
    owners: SharedOwners,
    cursor_index: OnceLock<CursorIndex>,
    tool_search: OnceLock<Arc<ToolSearch>>,
    lengths: OnceLock<ListLengths>,
    /// The search over the tools that the list had when it was last searched.
    previous_search: Option<Arc<ToolSearch>>,
    /// Maps normalized URIs to listed URIs that are spelled differently. Built when first needed.
    normalized_uris: OnceLock<BTreeMap<Box<str>, Arc<str>>>,
    /// Whether the variant checks the spelling of URIs.
    checks_uris: bool,
    is_complete: bool,
    form: ListForm,
    layout: Layout,
    /// The tools of the gateway that end the list, with their names there.
    pub gateway_tools: Vec<(Arc<str>, GatewayTool)>,
    /// Problems in the variant's configuration that the listed items reveal.
    pub diagnostics: Vec<ViewDiagnostic>,
}

/// The lengths of the definitions of the items that a variant shows, in bytes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ListLengths {
    /// As the servers list them.
    pub merged: usize,
    /// As the variant lists them.
    pub shown: usize,
}

impl View {
    /// Builds the view of `merged` for `face`. The view, its pages and its items are reused from `before` where nothing
    /// has changed; `before` must be from the same `face` and layout. Pages that one of the `others` also has share
    /// their bytes.
    pub fn new(
        variant: &VariantConfig,
        merged: &MergedList,
        layout: &Layout,
        before: Option<&Arc<Self>>,
        others: &[Arc<Self>],
    ) -> Arc<Self> {
        let comparable = before.filter(|view| view.servers == merged.servers);
        let names = variant.names(merged);
        let same =
            comparable.filter(|view| view.names.visible_overrides == names.visible_overrides);
        let (showings, form) = items_in_form((variant, &names), merged, layout, same);
        let mut rules = layout.results.iter();
        let has_output = rules.any(|rule| rule.declares_output_in(&variant.variant.id));
        let is_whole = variant.is_plain() && !has_output && layout.page_size.is_none();
        let passthrough = merged.passthrough.as_ref();
        let whole = if is_whole { passthrough } else { None };
        if let Some(view) = comparable.filter(|view| view.is_current(&showings, merged, whole)) {
            return Arc::clone(view);
        }
        let found = showings
            .iter()
            .flat_map(|item| item.diagnostics.iter().cloned());
        let mut diagnostics: Vec<_> = found.collect();
        let contents = Contents {
            kind: merged.kind,
            frame: Arc::clone(&merged.frame),
            passthrough: whole.cloned(),
            items: visible_items(variant, &names, merged, &showings, &mut diagnostics),
        };
        log_new_collisions(variant, &diagnostics, comparable.map(AsRef::as_ref));
        let known = comparable.and_then(|view| Some((view.pages.as_ref().ok()?, &view.contents)));
        let pages = match &merged.items {
            Ok(_) => {
                let pages = others.iter().filter_map(|view| view.pages.as_ref().ok());
                Ok(Pages::new(&contents, layout, known, &Vec::from_iter(pages)))
            }
            Err(failure) => Err(failure.clone()),
        };
        let checks_uris = variant.selects_resources() || !names.uris.is_empty();
        let mut view = Self {
            items: showings,
            names,
            item_refs: BTreeMap::new(),
            tools: BTreeMap::new(),
            prompts: BTreeMap::new(),
            servers: merged.servers.clone(),
            owners: merged.owners.clone(),
            cursor_index: OnceLock::new(),
            tool_search: OnceLock::new(),
            lengths: OnceLock::new(),
            previous_search: comparable.and_then(|view| view.known_search()).cloned(),
            normalized_uris: OnceLock::new(),
            checks_uris,
            is_complete: merged.is_complete,
            form,
            layout: layout.clone(),
            gateway_tools: Vec::new(),
            contents,
            pages,
            diagnostics,
        };
        view.index_items();
        if merged.kind == ListKind::Tools {
            view.gateway_tools = view.named_gateway_tools(variant, layout.read_result);
        }
        Arc::new(view)
    }

    /// Whether this view is still up to date with these items.
    fn is_current(
        &self,
        showings: &[Arc<ViewItem>],
        merged: &MergedList,
        whole: Option<&Arc<str>>,
    ) -> bool {
        self.items.len() == showings.len()
            && std::iter::zip(&self.items, showings).all(|(one, other)| Arc::ptr_eq(one, other))
            && self.owners == merged.owners
            && self.contents.frame == merged.frame
            && self.contents.passthrough.as_ref() == whole
            && self.pages.as_ref().err() == merged.items.as_ref().err()
            && self.is_complete == merged.is_complete
    }

    fn index_items(&mut self) {
        for item in &self.contents.items {
            let Some(listed) = &item.visible else {
                continue;
            };
            let id = &listed.id;
            match &listed.kind {
                ItemKind::Tool(tool) => match self.tools.get_mut(id) {
                    Some(first) => Arc::make_mut(first).merge(tool),
                    None => drop(self.tools.insert(Arc::clone(id), Arc::clone(tool))),
                },
                // If several have the same name, requests go to the first one.
                ItemKind::Prompt(prompt) => {
                    let entry = self.prompts.entry(Arc::clone(id));
                    entry.or_insert_with(|| Arc::clone(prompt));
                }
                ItemKind::Resource | ItemKind::Template(_) => {}
            }
            let item_ref = self.item_refs.entry(Arc::clone(id));
            item_ref.or_insert_with(|| item.item.item_ref.clone());
        }
    }

    /// The tool that the view lists as `name`.
    pub fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.get(name)
    }

    /// The tool with this reference, under any name.
    pub fn tool_for(&self, item_ref: &ItemRef) -> Option<&Arc<Tool>> {
        self.tools.values().find(|tool| tool.item_ref == *item_ref)
    }

    /// All listed tools: the name in the view, the tool, and its definition.
    pub(super) fn listed_tools(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<Tool>, &str)> {
        let tools = self.shown_tools();
        tools.map(|(id, tool, item)| (id, tool, &*item.json))
    }

    /// All listed tools: the name in the view, the tool, and the item of the merged list.
    pub(super) fn shown_tools(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<Tool>, &Arc<Item>)> {
        self.contents.items.iter().filter_map(|showing| {
            let listed = showing.visible.as_ref()?;
            match &listed.kind {
                ItemKind::Tool(tool) => Some((&listed.id, tool, &showing.item)),
                _ => None,
            }
        })
    }

    /// The tools that match `query`, best first, at most `limit`: JSON objects with `name` and `description`, the first
    /// sentence. The index is built with the first search, and follows the changes of the list.
    pub fn search_tools(&self, query: &Query, limit: usize) -> Vec<String> {
        let search = self.tool_search.get_or_init(|| {
            let previous = self.previous_search.as_deref();
            let items = &self.contents.items;
            Arc::new(ToolSearch::new(items, &self.servers, previous))
        });
        search.find(query, limit)
    }

    fn known_search(&self) -> Option<&Arc<ToolSearch>> {
        self.tool_search.get().or(self.previous_search.as_ref())
    }

    /// The number of listed tools.
    pub fn tool_count(&self) -> usize {
        self.tools.len()
    }

    /// Whether clients of the view get schemas on demand, from `describe_tools`.
    pub fn is_described(&self) -> bool {
        self.form == ListForm::Described
    }

    /// All listed tools: the server, the name there, and the name in the view.
    pub fn tool_names(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let tools = self.tools.iter();
        tools.map(|(name, tool)| {
            let server = &**server_name(&self.servers, &tool.item_ref);
            (server, &*tool.item_ref.upstream_name, &**name)
        })
    }

    pub(super) fn server_name(&self, item: &ItemRef) -> &str {
        server_name(&self.servers, item)
    }

    /// How long the list is as the servers write its items, and as the variant does. What the variant hides is in neither:
    /// its client may not have had it before.
    pub fn lengths(&self) -> ListLengths {
        let shown = |item: &&Arc<ViewItem>| item.visible.is_some();
        let listed = self.items.iter().filter(shown);
        *self.lengths.get_or_init(|| ListLengths {
            merged: listed.map(|item| item.item.json.len()).sum(),
            shown: self.tool_texts().map(str::len).sum(),
        })
    }

    /// The definitions of all listed tools, as legacy clients receive them.
    pub fn tool_texts(&self) -> impl Iterator<Item = &str> {
        let listed = self
            .contents
            .items
            .iter()
            .filter_map(|item| item.visible.as_ref());
        listed.map(|listed| &**listed.text(Era::Legacy))
    }

    /// The prompt that the view lists as `name`.
    pub fn prompt(&self, name: &str) -> Option<&Arc<Prompt>> {
        self.prompts.get(name)
    }

    /// The ids of all listed items, each with its server and its name there.
    pub fn item_refs(&self) -> impl Iterator<Item = (&Arc<str>, &ItemRef)> {
        self.item_refs.iter()
    }

    /// The server of the item that the view lists as `id`, and its name there.
    pub fn item_ref(&self, id: &str) -> Option<&ItemRef> {
        self.item_refs.get(id)
    }

    /// Finds a listed resource or template by the server's URI `upstream_name`.
    pub fn find_by_upstream_name(&self, upstream_name: &str) -> Option<&ItemRef> {
        self.item_ref(&self.names.uris.to_view(upstream_name)?)
    }

    /// Whether the view lists the item with this reference, under any name.
    pub fn contains(&self, item_ref: &ItemRef) -> bool {
        let items = self.contents.items.iter();
        items
            .map(|item| &item.item.item_ref)
            .any(|known| known == item_ref)
    }

    /// Finds a listed resource or template by the view's URI, in any spelling.
    pub fn find_by_uri(&self, uri: &str) -> Option<&ItemRef> {
        if let Some(item_ref) = self.item_ref(uri) {
            return Some(item_ref);
        }
        let identity = uri_identity(uri);
        let same = || self.item_ref(&identity).filter(|_| identity != uri);
        same().or_else(|| self.item_ref(self.normalized_uris().get(&*identity)?))
    }

    fn normalized_uris(&self) -> &BTreeMap<Box<str>, Arc<str>> {
        self.normalized_uris.get_or_init(|| {
            let mut odd = BTreeMap::new();
            for item in &self.contents.items {
                let Some(listed) = &item.visible else {
                    continue;
                };
                if let Cow::Owned(identity) = uri_identity(&listed.id) {
                    let first = odd.entry(identity.into_boxed_str());
                    first.or_insert_with(|| Arc::clone(&listed.id));
                }
            }
            odd
        })
    }

    /// The first template that matches the server's URI `upstream_uri`, with its server. If the variant does not check
    /// the spelling of URIs, an expression may also match slashes.
    pub fn template_for(&self, upstream_uri: &str) -> Option<(&UriTemplate, &ItemRef)> {
        let strictly = self
            .templates()
            .find(|(template, _)| template.matches(upstream_uri));
        let mut loosely = self.templates().filter(|_| !self.checks_uris);
        strictly
            .or_else(|| loosely.find(|(template, _)| template.matches_with_slashes(upstream_uri)))
    }

    fn templates(&self) -> impl Iterator<Item = (&UriTemplate, &ItemRef)> {
        let items = self.contents.items.iter();
        items.filter_map(|item| match &item.visible.as_ref()?.kind {
            ItemKind::Template(template) => Some((template, &item.item.item_ref)),
            _ => None,
        })
    }

    /// Whether clients receive the same list from both views. Two lists that could not be read are equivalent.
    pub fn is_equivalent(&self, other: &Self) -> bool {
        match (&self.pages, &other.pages) {
            (Ok(one), Ok(other)) => one == other,
            (Err(_), Err(_)) => true,
            _ => false,
        }
    }

    /// The first page, or the page at which a client with this `cursor` continues.
    ///
    /// # Errors
    ///
    /// The error of the list if it could not be read, or `None` if the cursor is invalid.
    pub fn page(&self, era: Era, cursor: Option<&str>) -> Result<Page, Option<RpcError>> {
        let pages = self.pages.as_ref().map_err(|failure| failure.clone())?;
        let first = match cursor {
            Some(cursor) => self.cursor_index().position(cursor).ok_or(None)?,
            None => 0,
        };
        let page = pages.starting_at(era, first).cloned();
        // After a change, a cursor may point into the middle of a prepared page.
        Ok(page.unwrap_or_else(|| self.contents.page(era, first, &self.layout)))
    }

    /// The cursor of the page that starts at the item `next`.
    pub fn cursor_at(&self, next: usize) -> String {
        self.cursor_index().cursor_at(next)
    }

    fn cursor_index(&self) -> &CursorIndex {
        self.cursor_index.get_or_init(|| {
            let item_refs = self.contents.items.iter().map(|item| &item.item.item_ref);
            CursorIndex::new(
                item_refs.map(|item_ref| (&**server_name(&self.servers, item_ref), item_ref)),
            )
        })
    }
}

/// How a view lists its items.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ListForm {
    /// As the variant says.
    Plain,
    /// With schemas on demand and `describe_tools`.
    Described,
    /// In their compact form, since `describe_tools` would cost more than open schemas save.
    Compact,
}

/// The items in the form that costs a model least. It depends only on the items that the view shows, so that it reveals
/// nothing of others.
fn items_in_form(
    (variant, names): (&VariantConfig, &NameScope),
    merged: &MergedList,
    layout: &Layout,
    before: Option<&Arc<View>>,
) -> (Vec<Arc<ViewItem>>, ListForm) {
    let before = |is_compact: bool| {
        let in_form = before.filter(|view| (view.form == ListForm::Compact) == is_compact);
        in_form.map(AsRef::as_ref)
    };
    let items = view_items((variant, names), merged, layout, before(false));
    if merged.kind != ListKind::Tools || !variant.style.schema.is_on_demand() {
        return (items, ListForm::Plain);
    }
    let visible = items.iter().filter_map(|item| item.visible.as_ref());
    let tools = visible.filter_map(VisibleItem::prepared_tool);
    if is_worth_describing(tools.map(PreparedTool::saved_tokens).sum()) {
        return (items, ListForm::Described);
    }
    let variant = VariantConfig {
        lists_compact: true,
        ..variant.clone()
    };
    let items = view_items((&variant, names), merged, layout, before(true));
    (items, ListForm::Compact)
}

/// Applies `face` to all items. Items that are unchanged since `before` are reused.
fn view_items(
    (variant, names): (&VariantConfig, &NameScope),
    merged: &MergedList,
    layout: &Layout,
    before: Option<&View>,
) -> Vec<Arc<ViewItem>> {
    let known = before.map_or(&[][..], |view| &view.items);
    let known: BTreeMap<*const Item, &Arc<ViewItem>> =
        known.iter().map(|it| (Arc::as_ptr(&it.item), it)).collect();
    let items = merged.items_with_server();
    let showings = items.map(|(item, server)| match known.get(&Arc::as_ptr(item)) {
        Some(showing) => Arc::clone(showing),
        None => Arc::new(ViewItem::new(
            variant,
            names,
            merged.kind,
            item,
            server,
            &layout.results,
        )),
    });
    showings.collect()
}

/// Logs items that are newly hidden by another item with the same name.
fn log_new_collisions(
    variant: &VariantConfig,
    diagnostics: &[ViewDiagnostic],
    before: Option<&View>,
) {
    const FEW: usize = 20;
    let known = before.map_or(&[][..], |view| &view.diagnostics);
    let new = diagnostics.iter().filter(|diagnostic| {
        matches!(diagnostic, ViewDiagnostic::Collision { .. }) && !known.contains(diagnostic)
    });
    for collision in new.take(FEW) {
        warn!(variant = variant.variant.id.as_str(), %collision, "only one of two can be reached; what the variant renames goes first");
    }
}

#[cfg(test)]
mod tests {
    use mcp_vary_view::{ArgumentOverride, ToolOverride};

    use mcp_vary_wire::era::Caching;

    use super::*;
    use crate::index::ServerIndex;
    use crate::listing;
    use crate::merge::Naming;
    use crate::variant_set::VariantSet;

    fn merged(texts: &[&str]) -> MergedList {
        let item = |text: &&str| {
            let listed = listing::ListedItem {
                id: "x".into(),
                json: (*text).into(),
            };
            let id = Arc::clone(&listed.id);
            Arc::new(Item::new(
                ListKind::Tools,
                ServerIndex::FIRST,
                Era::Legacy,
                &listed,
                id,
            ))
        };
        MergedList {
            kind: ListKind::Tools,
            passthrough: None,
            frame: r#"{"tools":[]}"#.into(),
            items: Ok(texts.iter().map(item).collect()),
            servers: vec!["a".into()],
            is_complete: true,
            owners: SharedOwners::new(),
            collisions: Vec::new(),
        }
    }

    fn layout() -> Layout {
        Layout {
            naming: Naming::Never,
            variants: Arc::new(VariantSet::built_in()),
            results: Arc::default(),
            page_size: None,
            caching: Caching::Never,
            read_result: false,
        }
    }

    const READS: &str = r#"{"name":"x","annotations":{"readOnlyHint":true}}"#;
    const WRITES: &str = r#"{"name":"x","outputSchema":{"type":"object"}}"#;

    #[test]
    fn a_name_that_writes_too_is_not_read_only() {
        let layout = layout();
        let shown = |texts: &[&str]| {
            let merged = merged(texts);
            let view = View::new(&layout.variants.configs()[3], &merged, &layout, None, &[]);
            view.contents.items.len()
        };
        assert_eq!(shown(&[READS, READS]), 2);
        assert_eq!(shown(&[READS, WRITES]), 0);
        assert_eq!(shown(&[WRITES, READS]), 0);
    }

    #[test]
    fn what_one_of_two_tools_promises_is_kept() {
        let layout = layout();
        for order in [[READS, WRITES], [WRITES, READS]] {
            let view = View::new(
                &layout.variants.configs()[0],
                &merged(&order),
                &layout,
                None,
                &[],
            );
            assert!(view.tool("x").unwrap().facts.output_schema);
        }
    }

    /// SV-11: where the tool cannot be read, its arguments cannot be held back.
    #[test]
    fn a_tool_that_cannot_be_read_is_not_shown_with_a_limit() {
        let schema = r#""inputSchema":{"type":"object","properties":{"q":{},"q":{}}}"#;
        let text = format!(r#"{{"name":"x",{schema}}}"#);
        let (merged, layout) = (merged(&[&text]), layout());
        let mut variant = layout.variants.configs()[0].clone();
        let shown = |variant: &VariantConfig| {
            let view = View::new(variant, &merged, &layout, None, &[]);
            view.tool("x").is_some()
        };
        for (said, expected) in [
            (ArgumentOverride::default(), true),
            (
                ArgumentOverride {
                    hidden: true,
                    ..ArgumentOverride::default()
                },
                false,
            ),
        ] {
            let mut change = ToolOverride::default();
            change.arguments.insert("q".into(), said);
            variant.tool_overrides.insert("x".into(), change);
            assert_eq!(shown(&variant), expected);
        }
    }

    /// SV-11: an override holds for what servers call so where clients see nothing of that name.
    #[test]
    fn an_override_by_the_servers_own_name_holds_behind_a_prefix() {
        let item = |own: &str, id: &str, server| {
            let json = format!(r#"{{"name":"{own}"}}"#);
            let (own, json) = (own.into(), json.into());
            let listed = listing::ListedItem { id: own, json };
            Arc::new(Item::new(
                ListKind::Tools,
                ServerIndex::at(server),
                Era::Legacy,
                &listed,
                id.into(),
            ))
        };
        let layout = layout();
        let mut variant = layout.variants.configs()[0].clone();
        let change = ToolOverride {
            title: Some("ours".into()),
            ..ToolOverride::default()
        };
        variant.tool_overrides.insert("search".into(), change);
        let shown = |items: &[Arc<Item>], before| {
            let mut merged = merged(&[]);
            merged.servers = vec!["a".into(), "b".into()];
            merged.items = Ok(items.to_vec());
            let view = View::new(&variant, &merged, &layout, before, &[]);
            let items = view.contents.items.iter().map(|it| {
                let listed = it.visible.as_ref().unwrap();
                let is_ours = listed.text(Era::Legacy).contains("ours");
                format!("{} {is_ours}", listed.id)
            });
            (items.collect::<Vec<_>>(), Arc::clone(&view))
        };
        let both = [item("search", "a_search", 0), item("search", "b_search", 1)];
        let (items, view) = shown(&both, None);
        assert_eq!(items, ["a_search true", "b_search true"]);
        // What clients see by the name is what is meant, from when there is such a thing.
        let three = [both[0].clone(), both[1].clone(), item("x", "search", 1)];
        let (items, view) = shown(&three, Some(&view));
        assert_eq!(items, ["a_search false", "b_search false", "search true"]);
        let (items, _) = shown(&both, Some(&view));
        assert_eq!(items, ["a_search true", "b_search true"]);
    }

    /// SV-11: the name that the operator gives is the operator's, wherever a server lists another of it.
    #[test]
    fn a_name_that_a_variant_gives_is_taken_by_nobody() {
        let item = |id: &str, index: usize| {
            let json = format!(r#"{{"name":"{id}"}}"#);
            let (id, json) = (id.into(), json.into());
            let listed = listing::ListedItem { id, json };
            let id = Arc::clone(&listed.id);
            Arc::new(Item::new(
                ListKind::Tools,
                ServerIndex::at(index),
                Era::Legacy,
                &listed,
                id,
            ))
        };
        let layout = layout();
        let mut variant = layout.variants.configs()[0].clone();
        let change = ToolOverride {
            name: Some("find".into()),
            ..ToolOverride::default()
        };
        variant.tool_overrides.insert("search".into(), change);
        for order in [["search", "find"], ["find", "search"]] {
            let mut merged = merged(&[]);
            merged.items = Ok(order.iter().map(|id| item(id, 0)).collect());
            let view = View::new(&variant, &merged, &layout, None, &[]);
            assert_eq!(&*view.item_ref("find").unwrap().upstream_name, "search");
            assert_eq!(view.contents.items.len(), 1);
            let is_collision = |it: &ViewDiagnostic| matches!(it, ViewDiagnostic::Collision { .. });
            assert_eq!(
                view.diagnostics
                    .iter()
                    .filter(|it| is_collision(it))
                    .count(),
                1
            );
        }
        // Two that are renamed so: the first.
        let both = ToolOverride {
            name: Some("find".into()),
            ..ToolOverride::default()
        };
        variant.tool_overrides.insert("look".into(), both);
        let mut merged = merged(&[]);
        merged.items = Ok(["find", "look", "search"]
            .iter()
            .map(|id| item(id, 0))
            .collect());
        let view = View::new(&variant, &merged, &layout, None, &[]);
        assert_eq!(&*view.item_ref("find").unwrap().upstream_name, "look");
    }
}
