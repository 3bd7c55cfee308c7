//! How much of its tools a view lists, and how it checks their calls.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use mcp_vary_view::{
    ArgumentCheck, DEFAULT_SEARCH_ABOVE, Description, PreparedTool, SchemaStyle, Style,
    ToolOverride, derive,
};
use rmcp::model::{JsonObject, Tool};
use serde_json::json;

use super::tool_search::ToolSearch;
use super::view::View;

/// How much of its tools a view lists, and how it checks their calls.
#[derive(Clone, Default)]
pub(super) struct ToolStyle {
    style: Style,
    /// The handler's names of the tools that keep their compact schemas.
    retained_schemas: Vec<String>,
    /// The number of tools above which the view has a search; `None` for the default.
    search_above: Option<usize>,
    /// Tools that were prepared, by their names in the view. Clones of the view with the same style share them.
    prepared: Arc<Mutex<BTreeMap<String, Prepared>>>,
    search: ToolSearch,
}

/// A tool that was prepared.
#[derive(Clone)]
struct Prepared {
    definition: Arc<str>,
    tool: Arc<PreparedTool>,
}

impl View {
    /// Sets how much of input schemas is listed.
    ///
    /// With [`SchemaStyle::OnDemand`], a client gets every tool with its first sentence and the names
    /// and types of its arguments, a fifth of the tokens. It gets the rest from the tool
    /// `describe_tools`, which the view adds. Calls are checked against the tool's schema before
    /// the handler receives them: a call that does not fit gets the schema in its result, so that a
    /// model repairs it in one step. Tools that declare `destructiveHint: true`, and those with a
    /// user interface, keep a compact schema.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary_rmcp::server::View;
    /// use mcp_vary_rmcp::view::{ArgumentCheck, SchemaStyle};
    ///
    /// let directory = View::new().with_schemas(SchemaStyle::OnDemand);
    ///
    /// // If the handler converts `"5"` to 5 itself, let the check accept both.
    /// let lenient = directory.with_argument_check(ArgumentCheck::TypesOff);
    /// # let _ = lenient;
    /// ```
    #[must_use]
    pub fn with_schemas(mut self, schemas: SchemaStyle) -> Self {
        let style = self.tool_style.style_mut();
        style.schema = schemas;
        (style.description, style.check) = match schemas.is_on_demand() {
            true => (Description::FirstSentence, ArgumentCheck::On),
            false => (style.description, ArgumentCheck::Off),
        };
        self
    }

    /// Sets how much of descriptions is listed. A description that a
    /// [`ToolView`](super::ToolView) sets is listed whole. Call it after
    /// [`with_schemas`](Self::with_schemas).
    #[must_use]
    pub fn with_descriptions(mut self, descriptions: Description) -> Self {
        self.tool_style.style_mut().description = descriptions;
        self
    }

    /// Sets how calls are checked, where schemas are on demand. Call it after
    /// [`with_schemas`](Self::with_schemas).
    #[must_use]
    pub fn with_argument_check(mut self, check: ArgumentCheck) -> Self {
        self.tool_style.style_mut().check = check;
        self
    }

    /// Lists the compact schemas of these tools although schemas are on demand. Use the handler's
    /// names.
    #[must_use]
    pub fn with_kept_schemas<N: Into<String>>(
        mut self,
        names: impl IntoIterator<Item = N>,
    ) -> Self {
        let style = &mut self.tool_style;
        style.prepared = Arc::default();
        style
            .retained_schemas
            .extend(names.into_iter().map(Into::into));
        self
    }

    /// Sets the number of tools above which clients also get the tool `search_tools`, where schemas
    /// are on demand; 300 by default.
    #[must_use]
    pub fn with_search_above(mut self, tools: usize) -> Self {
        self.tool_style.search_above = Some(tools);
        self
    }

    /// Whether clients that see this many tools get a search.
    pub(super) fn has_search(&self, tools: usize) -> bool {
        let above = self.tool_style.search_above;
        self.is_on_demand() && tools > above.unwrap_or(DEFAULT_SEARCH_ABOVE)
    }

    /// The search over the tools that clients see.
    pub(super) fn tool_search(&self) -> &ToolSearch {
        &self.tool_style.search
    }

    /// Whether clients get schemas on demand.
    pub(super) fn is_on_demand(&self) -> bool {
        self.tool_style.style.schema.is_on_demand()
    }

    /// The tool of the handler as the view lists it; `None` if it is hidden.
    pub(super) fn show_tool(&self, tool: Tool) -> Option<Tool> {
        let handler_name = tool.name.clone();
        let shown = self.select_tool(tool)?;
        let prepared = self.prepare(&handler_name, &shown);
        let listed = prepared.as_ref().and_then(|prepared| prepared.tool.json());
        let listed = listed.and_then(|json| serde_json::from_str(json).ok());
        Some(listed.unwrap_or(shown))
    }

    /// What `describe_tools` returns of a tool, by the tool as [`select_tool`](Self::select_tool)
    /// returns it.
    pub(super) fn describe_tool(&self, handler_name: &str, shown: &Tool) -> Option<String> {
        let prepared = self.prepare(handler_name, shown)?;
        prepared.tool.describe(&prepared.definition).ok()
    }

    /// What is wrong with the arguments of a call, as text for the model; `None` if nothing is, or
    /// calls are not checked.
    pub(super) fn check_arguments(
        &self,
        handler_name: &str,
        shown: &Tool,
        arguments: Option<&JsonObject>,
    ) -> Option<String> {
        if self.tool_style.style.check == ArgumentCheck::Off {
            return None;
        }
        let tool = self.prepare(handler_name, shown)?.tool;
        let given = arguments.map_or_else(|| "{}".to_owned(), |given| json!(given).to_string());
        let errors = tool.arguments(&given).err()?;
        let schema = tool.schema_for_errors(&errors);
        Some(mcp_vary_view::refused_call(
            &errors,
            schema.as_deref(),
            None,
        ))
    }

    /// The prepared tool; `None` if the view lists tools whole, or cannot read this one.
    fn prepare(&self, handler_name: &str, shown: &Tool) -> Option<Prepared> {
        let style = self.tool_style.of(handler_name);
        if style == Style::default() {
            return None;
        }
        let definition = serde_json::to_string(shown).ok()?;
        let prepared = &self.tool_style.prepared;
        let mut prepared = prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = prepared.get(&*shown.name)
            && *known.definition == *definition
        {
            return Some(known.clone());
        }
        let untitled = match style.schema.is_on_demand() {
            true => derive::untitled_tool(&definition).ok()?,
            false => definition.clone(),
        };
        let change = ToolOverride {
            description: self.description_of(handler_name).map(str::to_owned),
            ..ToolOverride::default()
        };
        let (tool, _) = PreparedTool::new(&untitled, &change, style).ok()?;
        if prepared.len() >= MAX_PREPARED {
            prepared.clear();
        }
        let tool = Prepared {
            definition: definition.into(),
            tool: Arc::new(tool),
        };
        prepared.insert(shown.name.to_string(), tool.clone());
        Some(tool)
    }
}

impl ToolStyle {
    /// The style, to be changed. Tools that clones of the view prepared in another style are not used.
    fn style_mut(&mut self) -> &mut Style {
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
