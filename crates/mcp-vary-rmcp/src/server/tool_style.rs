//! How much of its tools a view lists, and how it checks their calls.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use mcp_vary_base::lock::Lock;
use mcp_vary_view::{
    ArgumentCheck, DEFAULT_SEARCH_ABOVE, Description, PreparedTool, SchemaStyle, Style,
    ToolOverride, derive,
};
use rmcp::model::Tool;

use super::tool_search::ToolSearch;

/// How much of its tools a view lists, and how it checks their calls.
#[derive(Clone, Default)]
pub(super) struct ToolStyle {
    style: Style,
    /// The handler's names of the tools that keep their compact schemas.
    retained_schemas: Vec<String>,
    /// The number of tools above which the view has a search; `None` for the default.
    pub(super) search_above: Option<usize>,
    /// Tools that were prepared, by their names in the view. Clones of the view with the same style share them.
    prepared: Arc<Lock<BTreeMap<String, ListedTool>>>,
    /// The search over the tools that clients see.
    pub(super) search: ToolSearch,
}

/// A tool as a view lists it.
#[derive(Clone)]
pub(super) struct ListedTool {
    pub(super) definition: Arc<str>,
    pub(super) tool: Arc<PreparedTool>,
}

impl ToolStyle {
    pub(super) fn set_schemas(&mut self, schemas: SchemaStyle) {
        let style = self.style_mut();
        style.schema = schemas;
        if schemas.is_on_demand() {
            style.description = Description::FirstSentence;
            style.check = ArgumentCheck::On;
        } else {
            style.check = ArgumentCheck::Off;
        }
    }

    pub(super) fn retain_schemas(&mut self, names: impl Iterator<Item = String>) {
        self.prepared = Arc::default();
        self.retained_schemas.extend(names);
    }

    /// Whether clients that see this many tools get a search.
    pub(super) fn has_search(&self, tools: usize) -> bool {
        let above = self.search_above.unwrap_or(DEFAULT_SEARCH_ABOVE);
        self.is_on_demand() && tools > above
    }

    /// Whether clients get schemas on demand.
    pub(super) fn is_on_demand(&self) -> bool {
        self.style.schema.is_on_demand()
    }

    pub(super) fn checks_arguments(&self) -> bool {
        self.style.check != ArgumentCheck::Off
    }

    /// The tool as it is listed, with a description that the view sets; `None` if tools are listed whole, or this one cannot
    /// be read.
    pub(super) fn prepare(
        &self,
        handler_name: &str,
        shown: &Tool,
        description: Option<&str>,
    ) -> Option<ListedTool> {
        let style = self.of(handler_name);
        if style == Style::default() {
            return None;
        }
        let definition = serde_json::to_string(shown).ok()?;
        let mut prepared = self.prepared.lock();
        if let Some(known) = prepared.get(&*shown.name)
            && *known.definition == *definition
        {
            return Some(known.clone());
        }
        let untitled = if style.schema.is_on_demand() {
            derive::untitled_tool(&definition).ok()?
        } else {
            definition.clone()
        };
        let change = ToolOverride {
            description: description.map(str::to_owned),
            ..ToolOverride::default()
        };
        let (tool, _) = PreparedTool::new(&untitled, &change, style).ok()?;
        if prepared.len() >= MAX_PREPARED {
            prepared.clear();
        }
        let tool = ListedTool {
            definition: definition.into(),
            tool: Arc::new(tool),
        };
        prepared.insert(shown.name.to_string(), tool.clone());
        Some(tool)
    }

    /// The style, to be changed. Tools that clones of the view prepared in another style are not used.
    pub(super) fn style_mut(&mut self) -> &mut Style {
        self.prepared = Arc::default();
        &mut self.style
    }

    /// The style in which the handler's tool `name` is listed.
    fn of(&self, name: &str) -> Style {
        let mut style = self.style;
        if style.schema.is_on_demand()
            && self
                .retained_schemas
                .iter()
                .any(|retained| retained == name)
        {
            style.schema = SchemaStyle::Compact;
        }
        style
    }
}

impl fmt::Debug for ToolStyle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolStyle")
            .field("style", &self.style)
            .field("retained_schemas", &self.retained_schemas)
            .finish_non_exhaustive()
    }
}

/// The largest number of prepared tools of a view. Beyond it they are prepared anew.
const MAX_PREPARED: usize = 8192;
