//! Views: the items of a handler that a variant shows, and their names.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use rmcp::model::{JsonObject, Prompt, Resource, ResourceTemplate, Tool};

use super::item_view::{PromptView, ResourceView, ToolView};

type Filter<T> = Arc<dyn Fn(&T) -> bool + Send + Sync>;

/// The items of a handler that a variant shows, and how it describes them.
///
/// # Properties
///
/// An empty view shows everything unchanged. Hidden items cannot be called, read or subscribed to
/// either; requests for them get the same error as for items that do not exist. A view is not an
/// access control: a handler must check permissions itself, or the gateway in front of it.
///
/// # Examples
///
/// ```
/// use mcp_vary_rmcp::server::{ToolView, View};
/// use serde_json::json;
///
/// let view = View::new()
///     .with_tools(["search_issues", "create_issue"])
///     .with_tool(
///         "create_issue",
///         ToolView::new()
///             .with_name("new_issue")
///             .with_description("Opens an issue")
///             .with_argument("draft", json!(true)),
///     );
///
/// // By annotation instead of by name.
/// let read_only = View::new().with_tools_where(|tool| {
///     let annotations = tool.annotations.as_ref();
///     annotations.and_then(|hints| hints.read_only_hint) == Some(true)
/// });
/// ```
#[derive(Clone, Default)]
pub struct View {
    tools: Option<Filter<Tool>>,
    prompts: Option<Filter<Prompt>>,
    resources: Option<Filter<str>>,
    by_tool: BTreeMap<String, ToolView>,
    by_prompt: BTreeMap<String, PromptView>,
    by_resource: BTreeMap<String, ResourceView>,
    duplicates: Vec<String>,
}

impl View {
    /// Shows everything unchanged.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Shows only the tools with these names. Use the handler's names.
    #[must_use]
    pub fn with_tools<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        let shown: Vec<String> = names.into_iter().map(Into::into).collect();
        self.with_tools_where(move |tool| shown.iter().any(|name| *name == tool.name))
    }

    /// Shows only the tools for which `filter` returns `true`. It gets each tool as the handler
    /// lists it.
    #[must_use]
    pub fn with_tools_where(
        mut self,
        filter: impl Fn(&Tool) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.tools = Some(Arc::new(filter));
        self
    }

    /// Shows only the prompts with these names. Use the handler's names.
    #[must_use]
    pub fn with_prompts<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        let shown: Vec<String> = names.into_iter().map(Into::into).collect();
        self.prompts = Some(Arc::new(move |prompt: &Prompt| {
            shown.contains(&prompt.name)
        }));
        self
    }

    /// Shows only the resources for whose URI, and the templates for whose text, `filter` returns
    /// `true`.
    #[must_use]
    pub fn with_resources_where(
        mut self,
        filter: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.resources = Some(Arc::new(filter));
        self
    }

    /// Changes how the handler's tool `name` is shown.
    #[must_use]
    pub fn with_tool(mut self, name: impl Into<String>, tool: ToolView) -> Self {
        let key = name.into();
        if self.by_tool.insert(key.clone(), tool).is_some() {
            self.duplicates.push(key);
        }
        self
    }

    /// Changes how the handler's prompt `name` is shown.
    #[must_use]
    pub fn with_prompt(mut self, name: impl Into<String>, prompt: PromptView) -> Self {
        let key = name.into();
        if self.by_prompt.insert(key.clone(), prompt).is_some() {
            self.duplicates.push(key);
        }
        self
    }

    /// Changes the description of the resource with this URI, or of the template with this text.
    #[must_use]
    pub fn with_resource(mut self, uri: impl Into<String>, resource: ResourceView) -> Self {
        let key = uri.into();
        if self.by_resource.insert(key.clone(), resource).is_some() {
            self.duplicates.push(key);
        }
        self
    }

    /// The problems of this view, as sentences.
    pub(super) fn diagnostics(&self) -> Vec<String> {
        let mut problems: Vec<String> = self
            .duplicates
            .iter()
            .map(|name| format!("`{name}` is described twice; keep one description"))
            .collect();
        let tools = self.by_tool.values().map(|tool| tool.name.as_deref());
        problems.extend(name_diagnostics("tool", tools));
        let prompts = self.by_prompt.values().map(|prompt| prompt.name.as_deref());
        problems.extend(name_diagnostics("prompt", prompts));
        problems
    }

    /// The handler's name of the tool shown as `name`; `None` if no tool has that name.
    pub(super) fn handler_tool_name(&self, name: &str) -> Option<String> {
        handler_name(
            name,
            self.by_tool
                .iter()
                .map(|(name, tool)| (name, tool.name.as_deref())),
        )
    }

    /// The handler's name of the prompt shown as `name`; `None` if no prompt has that name.
    pub(super) fn handler_prompt_name(&self, name: &str) -> Option<String> {
        handler_name(
            name,
            self.by_prompt
                .iter()
                .map(|(name, prompt)| (name, prompt.name.as_deref())),
        )
    }

    /// The tool as the view shows it; `None` if it is hidden.
    pub(super) fn show_tool(&self, mut tool: Tool) -> Option<Tool> {
        if self.tools.as_ref().is_some_and(|filter| !filter(&tool)) {
            return None;
        }
        let view = self.by_tool.get(&*tool.name);
        // A tool is hidden if another tool was given its name.
        if view.is_none_or(|view| view.name.is_none())
            && self
                .handler_tool_name(&tool.name)
                .is_none_or(|name| name != *tool.name)
        {
            return None;
        }
        if let Some(view) = view {
            view.apply(&mut tool);
        }
        Some(tool)
    }

    /// The prompt as the view shows it; `None` if it is hidden.
    pub(super) fn show_prompt(&self, mut prompt: Prompt) -> Option<Prompt> {
        if self.prompts.as_ref().is_some_and(|filter| !filter(&prompt)) {
            return None;
        }
        let view = self.by_prompt.get(&prompt.name);
        if view.is_none_or(|view| view.name.is_none())
            && self
                .handler_prompt_name(&prompt.name)
                .is_none_or(|name| name != prompt.name)
        {
            return None;
        }
        if let Some(view) = view {
            view.apply(&mut prompt);
        }
        Some(prompt)
    }

    /// The resource as the view shows it; `None` if it is hidden.
    pub(super) fn show_resource(&self, mut resource: Resource) -> Option<Resource> {
        if let Some(view) = self.by_resource.get(&resource.uri) {
            view.apply(&mut resource.name, &mut resource.description);
        }
        self.is_uri_visible(&resource.uri).then_some(resource)
    }

    /// The template as the view shows it; `None` if it is hidden.
    pub(super) fn show_template(&self, mut template: ResourceTemplate) -> Option<ResourceTemplate> {
        if let Some(view) = self.by_resource.get(&template.uri_template) {
            view.apply(&mut template.name, &mut template.description);
        }
        self.is_uri_visible(&template.uri_template)
            .then_some(template)
    }

    /// Whether the view shows this resource URI or template.
    pub(super) fn is_uri_visible(&self, uri: &str) -> bool {
        self.resources.as_ref().is_none_or(|filter| filter(uri))
    }

    /// The fixed arguments of the handler's tool `name`.
    pub(super) fn fixed_arguments(&self, name: &str) -> Option<&JsonObject> {
        let fixed = &self.by_tool.get(name)?.arguments;
        (!fixed.is_empty()).then_some(fixed)
    }

    /// The fixed arguments of the handler's prompt `name`.
    pub(super) fn fixed_prompt_arguments(&self, name: &str) -> Option<&JsonObject> {
        let fixed = &self.by_prompt.get(name)?.arguments;
        (!fixed.is_empty()).then_some(fixed)
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("tools", &self.by_tool)
            .field("prompts", &self.by_prompt)
            .field("resources", &self.by_resource)
            .finish_non_exhaustive()
    }
}

/// Finds the handler's name of the item shown as `name`. `names` are pairs of the handler's name
/// and the new name.
fn handler_name<'a>(
    name: &str,
    mut names: impl Iterator<Item = (&'a String, Option<&'a str>)> + Clone,
) -> Option<String> {
    if let Some((original, _)) = names.clone().find(|(_, new)| *new == Some(name)) {
        return Some(original.clone());
    }
    let is_renamed = names.any(|(original, new)| original == name && new.is_some());
    (!is_renamed).then(|| name.to_owned())
}

fn name_diagnostics<'a>(what: &str, names: impl Iterator<Item = Option<&'a str>>) -> Vec<String> {
    let mut seen = Vec::new();
    let mut problems = Vec::new();
    for name in names.flatten() {
        if name.is_empty() {
            problems.push(format!("a {what} has an empty name; give it another"));
        } else if seen.contains(&name) {
            problems.push(format!("two {what}s are named `{name}`; rename one"));
        }
        seen.push(name);
    }
    problems
}
