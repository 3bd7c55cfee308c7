//! How a variant shows what the servers list: as the operator configured it, or as one of the four built-in variants.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mcp_vary::feature::Features;
use mcp_vary::variant::ServerVariant;
use mcp_vary_results::uri_rewriter;
use mcp_vary_view::{
    ArgumentOverride, Candidate, PreparedPrompt, PreparedTool, PromptOverride, ResourceOverride,
    Rule, SchemaStyle, Selection, Style, ToolOverride, UriMap, ViewDiagnostic, derive,
};

use super::access::AccessView;
use super::item::Item;
use super::listing::ListKind;
use super::merge::MergedList;

mcp_vary_base::defaults! {
    /// The configuration of a variant: whom it is for, which items it shows, and how.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary::variant::ServerVariant;
    /// use mcp_vary_catalog::variant_config::{Base, VariantConfig};
    ///
    /// let variant = ServerVariant::new("review".parse()?, "For code review");
    /// let mut config = VariantConfig::new(variant).with_base(Base::ReadOnly);
    /// config.tools = serde_json::from_str(r#"{"exclude": ["admin_*"]}"#).unwrap();
    /// # Ok::<(), mcp_vary::variant::VariantIdError>(())
    /// ```
    #[derive(Clone, Debug)]
    pub struct VariantConfig {
        /// A variant that shows everything unchanged.
        #[must_use]
        pub fn new(variant: ServerVariant);
        /// How clients see it: its id, description, hints and status.
        pub variant: ServerVariant = variant,
        /// What the variant starts from.
        pub base: Base = Base::default(),
        /// Which tools it shows, by their names in `standard`.
        pub tools: Selection = Selection::default(),
        /// Which resources and templates it shows, by URI.
        pub resources: Selection = Selection::default(),
        /// Which prompts it shows.
        pub prompts: Selection = Selection::default(),
        /// Which skills it shows, by their paths.
        pub skills: Selection = Selection::default(),
        /// The style that applies to all items.
        pub style: Style = Style::default(),
        /// Overrides for single tools, by their names in `standard`.
        pub tool_overrides: BTreeMap<String, ToolOverride> = BTreeMap::new(),
        /// Overrides for single prompts.
        pub prompt_overrides: BTreeMap<String, PromptOverride> = BTreeMap::new(),
        /// Overrides for single resources and templates, by URI.
        pub resource_overrides: BTreeMap<String, ResourceOverride> = BTreeMap::new(),
        /// The features assumed for clients that declare none.
        pub features: Option<Arc<Features>> = None,
        /// What the clients of the view may see at all; `None` without access rules.
        pub(crate) access: Option<Arc<AccessView>> = None,
        /// Whether tools are listed in their compact form although schemas are on demand, since describing them would cost
        /// more.
        pub(crate) lists_compact: bool = false,
        /// Tools that are listed with their compact schemas although schemas are on demand.
        pub keep_schemas: Vec<Rule> = Vec::new(),
        /// With schemas on demand: the number of tools above which clients get a tool that searches them.
        pub search_above: usize = DEFAULT_SEARCH_ABOVE,
    }
}

pub use mcp_vary_view::DEFAULT_SEARCH_ABOVE;

impl VariantConfig {
    /// Sets what the variant starts from.
    #[must_use]
    pub fn with_base(mut self, base: Base) -> Self {
        self.base = base;
        self
    }
}

/// What a variant starts from: one of the built-in variants.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Base {
    /// Everything as the servers list it.
    #[default]
    Standard,
    /// First sentences of descriptions, and of other prose only what callers need. The same inputs are accepted.
    Compact,
    /// Only tools that declare `readOnlyHint`.
    ReadOnly,
}

impl Base {
    /// The item as this base shows it, or `None` if it does not.
    fn show(self, kind: ListKind, item: &str) -> Option<Cow<'_, str>> {
        match (self, kind) {
            (Self::Compact, _) => Some(compact(kind, item)),
            (Self::ReadOnly, ListKind::Tools) if !derive::is_read_only(item) => None,
            (Self::Standard | Self::ReadOnly, _) => Some(Cow::Borrowed(item)),
        }
    }
}

/// An item that cannot be parsed is shown unchanged rather than dropped.
fn compact(kind: ListKind, item: &str) -> Cow<'_, str> {
    let derived = match kind {
        ListKind::Tools => derive::compact_tool(item),
        ListKind::Prompts => derive::compact_prompt(item),
        ListKind::Resources | ListKind::Templates => derive::compact_resource(item),
    };
    derived.map_or(Cow::Borrowed(item), Cow::Owned)
}

/// An item as a variant shows it, and what calls need.
#[derive(Debug)]
pub struct RenderedItem<'a> {
    /// The item of the merged list.
    pub item: &'a Item,
    /// What the variant calls it.
    pub id: Arc<str>,
    /// The item as the variant lists it.
    pub json: Cow<'a, str>,
    /// How a call is rewritten. If `None`, it is forwarded unchanged.
    pub call: Option<Prepared>,
}

/// What a variant needs to know about a list as a whole.
#[derive(Debug, Default)]
pub struct NameScope {
    /// Maps the server's URIs of resources and templates to the variant's URIs, and back.
    pub uris: UriMap,
    /// The names of overrides that are names of listed items.
    pub visible_overrides: BTreeSet<String>,
}

impl NameScope {
    /// The definition of a tool with the variant's URI of the tool's user interface. `None` if the variant does not
    /// change that URI.
    fn with_view_page(&self, tool: &str) -> Option<String> {
        match uri_rewriter::rewrite_tool(&self.uris, tool) {
            Cow::Owned(page) if !self.uris.is_empty() => Some(page),
            _ => None,
        }
    }

    /// The override for `item`: by the name that clients see, else by the server's own name if no listed item has that
    /// name. So an override keeps fixing or hiding arguments when another server is added and names get prefixes.
    fn find_override<'c, T>(&self, changes: &'c BTreeMap<String, T>, item: &Item) -> Option<&'c T> {
        let upstream_name = &*item.item_ref.upstream_name;
        let by_own = || {
            changes
                .get(upstream_name)
                .filter(|_| !self.visible_overrides.contains(upstream_name))
        };
        changes.get(&*item.id).or_else(by_own)
    }
}

/// How calls of a tool or prompt that a variant changes are rewritten.
#[derive(Debug)]
pub enum Prepared {
    /// A call of a tool.
    Tool(Box<PreparedTool>),
    /// A request for a prompt.
    Prompt(PreparedPrompt),
}

impl VariantConfig {
    /// Whether it shows everything unchanged, byte for byte.
    pub fn is_plain(&self) -> bool {
        let nothing = Selection::default();
        self.base == Base::Standard
            && self.access.is_none()
            && self.style == Style::default()
            && [&self.tools, &self.resources, &self.prompts, &self.skills]
                .iter()
                .all(|selection| **selection == nothing)
            && self.tool_overrides.is_empty()
            && self.prompt_overrides.is_empty()
            && self.resource_overrides.is_empty()
    }

    /// Whether `server` may have something that the clients of the variant cannot reach: an item that it does not select
    /// or access rules do not allow, or an argument that it hides or fixes.
    pub fn hides_something_of(&self, server: &str) -> bool {
        let access = self.access.as_ref();
        let access = access.map(|access| access.server_access(server, ""));
        let tools = self.tool_overrides.values().map(|tool| &tool.arguments);
        let prompts = self.prompt_overrides.values().map(|it| &it.arguments);
        let mut arguments = tools.chain(prompts).flat_map(BTreeMap::values);
        self.base == Base::ReadOnly
            || access.is_some_and(|access| !access.unconditional)
            || self.may_leave_out_of(server)
            || arguments.any(|argument| argument.hidden || argument.fixed.is_some())
    }

    /// Whether it may not select an item of `server`.
    pub fn may_leave_out_of(&self, server: &str) -> bool {
        let selections = [&self.tools, &self.resources, &self.prompts, &self.skills];
        selections.iter().any(|it| it.may_hide_of(server))
    }

    /// Whether it shows some resources and hides others.
    pub fn selects_resources(&self) -> bool {
        self.access.is_some() || self.resources != Selection::default()
    }

    /// Whether a prompt that it does not list may be hidden or renamed, and not only unknown to the gateway.
    pub fn selects_prompts(&self) -> bool {
        self.access.is_some()
            || self.prompts != Selection::default()
            || !self.prompt_overrides.is_empty()
    }

    /// Whether access rules let the clients of the view see an item.
    fn may_show(&self, kind: ListKind, item: &Item, server: &str) -> bool {
        let access = self.access.as_ref();
        access.is_none_or(|access| access.shows(kind, item, server))
    }

    /// Which items of a list it shows.
    pub fn selection(&self, kind: ListKind) -> &Selection {
        match kind {
            ListKind::Tools => &self.tools,
            ListKind::Resources | ListKind::Templates => &self.resources,
            ListKind::Prompts => &self.prompts,
        }
    }

    /// The ids of the items that have overrides.
    pub fn overridden(&self, kind: ListKind) -> Vec<&str> {
        match kind {
            ListKind::Tools => self.tool_overrides.keys().map(String::as_str).collect(),
            ListKind::Prompts => self.prompt_overrides.keys().map(String::as_str).collect(),
            ListKind::Resources | ListKind::Templates => {
                self.resource_overrides.keys().map(String::as_str).collect()
            }
        }
    }

    /// Maps the server's URIs of resources and templates to the variant's URIs, and back. A URI that it assigns is
    /// reserved, even if the resource does not exist.
    pub fn uris(&self) -> UriMap {
        let moves = self.resource_overrides.iter();
        UriMap::new(moves.filter_map(|(upstream_uri, change)| {
            Some((upstream_uri.as_str(), change.uri.as_deref()?))
        }))
    }

    /// What showing an item of `merged` needs to know about the whole list.
    pub fn names(&self, merged: &MergedList) -> NameScope {
        let mut overridden = BTreeSet::from_iter(self.overridden(merged.kind));
        if !overridden.is_empty() {
            let ids: BTreeSet<&str> = merged.items().iter().map(|item| &*item.id).collect();
            overridden.retain(|name| ids.contains(name));
        }
        NameScope {
            uris: self.uris(),
            visible_overrides: overridden.into_iter().map(str::to_owned).collect(),
        }
    }

    /// The item as this variant shows it, or `None` if it does not.
    pub fn show<'a>(
        &self,
        names: &NameScope,
        kind: ListKind,
        item: &'a Item,
        server: &str,
        diagnostics: &mut Vec<ViewDiagnostic>,
    ) -> Option<RenderedItem<'a>> {
        if !self.may_show(kind, item, server) {
            return None;
        }
        let listed = candidate(item, server);
        let json = self.start_of(kind, &item.json)?;
        let is_shown = match kind {
            ListKind::Resources => {
                self.resources.selects_resource(listed) && self.selects_file(listed)
            }
            ListKind::Templates => self.resources.selects_resource(listed),
            ListKind::Tools | ListKind::Prompts => self.selection(kind).selects(listed),
        };
        if !is_shown {
            return None;
        }
        let mut shown = RenderedItem {
            item,
            id: Arc::clone(&item.id),
            json,
            call: None,
        };
        match kind {
            ListKind::Tools => self.show_tool(names, &mut shown, server, diagnostics)?,
            ListKind::Prompts => self.show_prompt(names, &mut shown, diagnostics)?,
            ListKind::Resources | ListKind::Templates => {
                self.show_resource(&names.uris, &mut shown, diagnostics)?
            }
        }
        Some(shown)
    }

    /// The item as the base shows it, or `None` if it does not. Tools whose schemas are on demand keep theirs here: the
    /// whole schema is needed to describe the tool, and to check calls.
    fn start_of<'a>(&self, kind: ListKind, item: &'a str) -> Option<Cow<'a, str>> {
        if kind != ListKind::Tools || !self.style.schema.is_on_demand() {
            return self.base.show(kind, item);
        }
        let is_shown = self.base != Base::ReadOnly || derive::is_read_only(item);
        let untitled = derive::untitled_tool(item);
        is_shown.then(|| untitled.map_or(Cow::Borrowed(item), Cow::Owned))
    }

    /// The style in which `item` is listed.
    fn style_of(&self, item: &Item, server: &str) -> Style {
        let listed = candidate(item, server);
        let is_kept = self.keep_schemas.iter().any(|rule| rule.matches(listed));
        let mut style = self.style;
        if style.schema.is_on_demand() && is_kept {
            style.schema = SchemaStyle::Compact;
        }
        style
    }

    fn show_tool(
        &self,
        names: &NameScope,
        shown: &mut RenderedItem<'_>,
        server: &str,
        diagnostics: &mut Vec<ViewDiagnostic>,
    ) -> Option<()> {
        if let Some(json) = names.with_view_page(&shown.json) {
            shown.json = Cow::Owned(json);
        }
        let change = names.find_override(&self.tool_overrides, shown.item);
        if change.is_none() && self.style == Style::default() {
            return Some(());
        }
        let unchanged = ToolOverride::default();
        let applied = change.unwrap_or(&unchanged);
        let prepared = if self.lists_compact {
            PreparedTool::compact(&shown.json, applied, self.style)
        } else {
            let style = self.style_of(shown.item, server);
            PreparedTool::new(&shown.json, applied, style)
        };
        let Ok((tool, found)) = prepared else {
            return unless_restricted(change.map(|change| &change.arguments));
        };
        diagnostics.extend(found);
        if let Some(json) = tool.json() {
            shown.json = Cow::Owned(json.to_owned());
        }
        if tool.name() != &*shown.id {
            shown.id = tool.name().into();
        }
        let is_needed = !tool.forwards_arguments_unchanged() || self.style.schema.is_on_demand();
        shown.call = is_needed.then(|| Prepared::Tool(Box::new(tool)));
        Some(())
    }

    fn show_prompt(
        &self,
        names: &NameScope,
        shown: &mut RenderedItem<'_>,
        diagnostics: &mut Vec<ViewDiagnostic>,
    ) -> Option<()> {
        let change = names.find_override(&self.prompt_overrides, shown.item);
        if change.is_none() && self.style == Style::default() {
            return Some(());
        }
        let unchanged = PromptOverride::default();
        let prepared = PreparedPrompt::new(&shown.json, change.unwrap_or(&unchanged), self.style);
        let Ok((prompt, found)) = prepared else {
            return unless_restricted(change.map(|change| &change.arguments));
        };
        diagnostics.extend(found);
        if let Some(json) = prompt.json() {
            shown.json = Cow::Owned(json.to_owned());
        }
        if prompt.name() != &*shown.id {
            shown.id = prompt.name().into();
        }
        let changes_arguments = change.is_some_and(|change| !change.arguments.is_empty());
        shown.call = changes_arguments.then_some(Prepared::Prompt(prompt));
        Some(())
    }

    fn show_resource(
        &self,
        uris: &UriMap,
        shown: &mut RenderedItem<'_>,
        diagnostics: &mut Vec<ViewDiagnostic>,
    ) -> Option<()> {
        let upstream_uri = &*shown.item.id;
        let change = self.resource_overrides.get(upstream_uri);
        if change.is_none() && uris.is_empty() && self.style == Style::default() {
            return Some(());
        }
        let mut applied = change.cloned().unwrap_or_default();
        diagnostics.extend(unfit_uri(upstream_uri, applied.uri.as_deref()));
        let Some(uri) = uris.to_view(upstream_uri) else {
            diagnostics.extend(uri_taken(uris, upstream_uri));
            return None;
        };
        applied.uri = (uri != upstream_uri).then(|| uri.clone().into_owned());
        match applied.prepare(&shown.json, self.style) {
            Ok(Some(json)) => shown.json = Cow::Owned(json),
            Ok(None) => {}
            // The item would be listed with a URI that the variant does not use for it.
            Err(_) if applied.uri.is_some() => return None,
            Err(_) => {}
        }
        if let Some(uri) = applied.uri {
            shown.id = uri.into();
        }
        Some(())
    }
}

fn unfit_uri(upstream_uri: &str, uri: Option<&str>) -> Option<ViewDiagnostic> {
    let why = UriMap::check(upstream_uri, uri?).err()?;
    let key = format!("resources.{upstream_uri}.uri");
    Some(ViewDiagnostic::InvalidUri { key, reason: why })
}

fn uri_taken(uris: &UriMap, upstream_uri: &str) -> Option<ViewDiagnostic> {
    let (by, uri) = uris.conflict(upstream_uri)?;
    Some(ViewDiagnostic::UriTaken {
        key: format!("resources.{by}.uri"),
        upstream_uri: upstream_uri.to_owned(),
        uri: uri.into_owned(),
    })
}

/// An item that cannot be parsed is listed unchanged, unless the variant hides or fixes one of its arguments.
fn unless_restricted(arguments: Option<&BTreeMap<String, ArgumentOverride>>) -> Option<()> {
    let mut changes = arguments.into_iter().flat_map(BTreeMap::values);
    let is_free = changes.all(|change| !change.hidden && change.fixed.is_none());
    is_free.then_some(())
}

/// The properties of an item that a selection matches.
pub fn candidate<'a>(item: &'a Item, server: &'a str) -> Candidate<'a> {
    Candidate {
        name: &item.id,
        upstream_name: &item.item_ref.upstream_name,
        server,
        hints: item.tool.as_ref().map(|tool| tool.hints),
    }
}
