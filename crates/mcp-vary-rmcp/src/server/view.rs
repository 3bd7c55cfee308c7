//! A view: what one variant shows of a handler, and under which names.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use rmcp::model::{JsonObject, Prompt, Resource, ResourceTemplate, Tool, ToolAnnotations};
use serde_json::Value;

type Shows<T> = Arc<dyn Fn(&T) -> bool + Send + Sync>;

/// What one variant shows of a handler.
///
/// # Properties
///
/// A view without any setting shows everything as it is. What it does not show cannot be called,
/// read or fetched either, and answers as if it did not exist. A view is no permission: a handler
/// that must refuse something to someone does so itself.
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
    tools: Option<Shows<Tool>>,
    prompts: Option<Shows<Prompt>>,
    resources: Option<Shows<str>>,
    by_tool: BTreeMap<String, ToolView>,
    by_prompt: BTreeMap<String, PromptView>,
    by_resource: BTreeMap<String, ResourceView>,
    twice: Vec<String>,
}

impl View {
    /// Everything as it is.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Shows only the tools that the handler calls `names`.
    #[must_use]
    pub fn with_tools<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        self.with_tools_where(move |tool| names.iter().any(|name| *name == tool.name))
    }

    /// Shows only the tools that `shows` holds of, as the handler lists them.
    #[must_use]
    pub fn with_tools_where(
        mut self,
        shows: impl Fn(&Tool) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.tools = Some(Arc::new(shows));
        self
    }

    /// Shows only the prompts that the handler calls `names`.
    #[must_use]
    pub fn with_prompts<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        self.prompts = Some(Arc::new(move |prompt: &Prompt| {
            names.contains(&prompt.name)
        }));
        self
    }

    /// Shows only the resources whose URI, and the templates whose text, `shows` holds of.
    #[must_use]
    pub fn with_resources_where(
        mut self,
        shows: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.resources = Some(Arc::new(shows));
        self
    }

    /// Shows the tool that the handler calls `name` in another way.
    #[must_use]
    pub fn with_tool(mut self, name: impl Into<String>, tool: ToolView) -> Self {
        let name = name.into();
        if self.by_tool.insert(name.clone(), tool).is_some() {
            self.twice.push(name);
        }
        self
    }

    /// Shows the prompt that the handler calls `name` in another way.
    #[must_use]
    pub fn with_prompt(mut self, name: impl Into<String>, prompt: PromptView) -> Self {
        let name = name.into();
        if self.by_prompt.insert(name.clone(), prompt).is_some() {
            self.twice.push(name);
        }
        self
    }

    /// Describes the resource with this URI, or the template with this text, in another way.
    #[must_use]
    pub fn with_resource(mut self, uri: impl Into<String>, resource: ResourceView) -> Self {
        let uri = uri.into();
        if self.by_resource.insert(uri.clone(), resource).is_some() {
            self.twice.push(uri);
        }
        self
    }

    /// What cannot be meant, as sentences.
    pub(super) fn mistakes(&self) -> Vec<String> {
        let mut mistakes: Vec<String> = self
            .twice
            .iter()
            .map(|name| format!("`{name}` is described twice; keep one description"))
            .collect();
        let tools = self.by_tool.values().map(|tool| tool.name.as_deref());
        mistakes.extend(names_mistakes("tool", tools));
        let prompts = self.by_prompt.values().map(|prompt| prompt.name.as_deref());
        mistakes.extend(names_mistakes("prompt", prompts));
        mistakes
    }

    /// The handler's name of the tool that is shown as `name`; none when it can be none.
    pub(super) fn tool_named(&self, name: &str) -> Option<String> {
        original(
            name,
            self.by_tool
                .iter()
                .map(|(own, tool)| (own, tool.name.as_deref())),
        )
    }

    /// The handler's name of the prompt that is shown as `name`; none when it can be none.
    pub(super) fn prompt_named(&self, name: &str) -> Option<String> {
        original(
            name,
            self.by_prompt
                .iter()
                .map(|(own, prompt)| (own, prompt.name.as_deref())),
        )
    }

    /// The tool as it is shown; none when it is not.
    pub(super) fn tool(&self, mut tool: Tool) -> Option<Tool> {
        if self.tools.as_ref().is_some_and(|shows| !shows(&tool)) {
            return None;
        }
        let view = self.by_tool.get(&*tool.name);
        // A name that was given to another tool leaves no room for its first owner.
        if view.is_none_or(|view| view.name.is_none())
            && self
                .tool_named(&tool.name)
                .is_none_or(|own| own != *tool.name)
        {
            return None;
        }
        if let Some(view) = view {
            view.apply(&mut tool);
        }
        Some(tool)
    }

    /// The prompt as it is shown; none when it is not.
    pub(super) fn prompt(&self, mut prompt: Prompt) -> Option<Prompt> {
        if self.prompts.as_ref().is_some_and(|shows| !shows(&prompt)) {
            return None;
        }
        let view = self.by_prompt.get(&prompt.name);
        if view.is_none_or(|view| view.name.is_none())
            && self
                .prompt_named(&prompt.name)
                .is_none_or(|own| own != prompt.name)
        {
            return None;
        }
        if let Some(view) = view {
            view.apply(&mut prompt);
        }
        Some(prompt)
    }

    /// The resource as it is shown; none when it is not.
    pub(super) fn resource(&self, mut resource: Resource) -> Option<Resource> {
        if let Some(view) = self.by_resource.get(&resource.uri) {
            view.apply(&mut resource.name, &mut resource.description);
        }
        self.shows_resource(&resource.uri).then_some(resource)
    }

    /// The template as it is shown; none when it is not.
    pub(super) fn template(&self, mut template: ResourceTemplate) -> Option<ResourceTemplate> {
        if let Some(view) = self.by_resource.get(&template.uri_template) {
            view.apply(&mut template.name, &mut template.description);
        }
        self.shows_resource(&template.uri_template)
            .then_some(template)
    }

    /// Whether a resource, or a template, is shown.
    pub(super) fn shows_resource(&self, uri: &str) -> bool {
        self.resources.as_ref().is_none_or(|shows| shows(uri))
    }

    /// What a call to the handler's tool `name` always says.
    pub(super) fn fixed_arguments(&self, name: &str) -> Option<&JsonObject> {
        let fixed = &self.by_tool.get(name)?.arguments;
        (!fixed.is_empty()).then_some(fixed)
    }

    /// What a request for the handler's prompt `name` always says.
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

/// How a variant shows one tool; what is not set stays as the handler has it.
#[derive(Clone, Debug, Default)]
pub struct ToolView {
    name: Option<String>,
    description: Option<String>,
    input_schema: Option<Arc<JsonObject>>,
    output_schema: Option<Option<Arc<JsonObject>>>,
    annotations: Option<ToolAnnotations>,
    arguments: JsonObject,
}

impl ToolView {
    /// The tool as the handler has it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Its name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Its description.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Its input schema. What it accepts, the handler must accept.
    #[must_use]
    pub fn with_input_schema(mut self, schema: JsonObject) -> Self {
        self.input_schema = Some(Arc::new(schema));
        self
    }

    /// Its output schema, or that it has none. The handler's results must be valid against it.
    #[must_use]
    pub fn with_output_schema(mut self, schema: Option<JsonObject>) -> Self {
        self.output_schema = Some(schema.map(Arc::new));
        self
    }

    /// Its annotations. They are hints to clients and change nothing of what the tool does.
    #[must_use]
    pub fn with_annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.annotations = Some(annotations);
        self
    }

    /// Fixes the argument `name`: it leaves the input schema, and every call says `value`.
    #[must_use]
    pub fn with_argument(mut self, name: impl Into<String>, value: Value) -> Self {
        self.arguments.insert(name.into(), value);
        self
    }

    fn apply(&self, tool: &mut Tool) {
        if let Some(name) = &self.name {
            tool.name = name.clone().into();
        }
        if let Some(description) = &self.description {
            tool.description = Some(description.clone().into());
        }
        if let Some(schema) = &self.input_schema {
            tool.input_schema = schema.clone();
        }
        if let Some(schema) = &self.output_schema {
            tool.output_schema = schema.clone();
        }
        if let Some(annotations) = &self.annotations {
            tool.annotations = Some(annotations.clone());
        }
        if !self.arguments.is_empty() {
            without_arguments(Arc::make_mut(&mut tool.input_schema), &self.arguments);
        }
    }
}

/// How a variant shows one prompt; what is not set stays as the handler has it.
#[derive(Clone, Debug, Default)]
pub struct PromptView {
    name: Option<String>,
    description: Option<String>,
    arguments: JsonObject,
}

impl PromptView {
    /// The prompt as the handler has it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Its name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Its description.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Fixes the argument `name`: it is not listed, and every request says `value`.
    #[must_use]
    pub fn with_argument(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.arguments
            .insert(name.into(), Value::String(value.into()));
        self
    }

    fn apply(&self, prompt: &mut Prompt) {
        if let Some(name) = &self.name {
            prompt.name.clone_from(name);
        }
        if let Some(description) = &self.description {
            prompt.description = Some(description.clone());
        }
        if let Some(arguments) = &mut prompt.arguments {
            arguments.retain(|argument| !self.arguments.contains_key(&argument.name));
        }
    }
}

/// How a variant describes one resource or template; what is not set stays as the handler has it.
///
/// Its URI is how everybody refers to it, and so is not the view's to change.
#[derive(Clone, Debug, Default)]
pub struct ResourceView {
    name: Option<String>,
    description: Option<String>,
}

impl ResourceView {
    /// The resource as the handler has it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Its name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Its description.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    fn apply(&self, name: &mut String, description: &mut Option<String>) {
        if let Some(own) = &self.name {
            name.clone_from(own);
        }
        if let Some(own) = &self.description {
            *description = Some(own.clone());
        }
    }
}

fn without_arguments(schema: &mut JsonObject, fixed: &JsonObject) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.retain(|name, _| !fixed.contains_key(name));
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| name.as_str().is_none_or(|name| !fixed.contains_key(name)));
    }
}

/// The own name of what is shown as `name`, given each own name and what it is shown as.
fn original<'a>(
    name: &str,
    mut views: impl Iterator<Item = (&'a String, Option<&'a str>)> + Clone,
) -> Option<String> {
    if let Some((own, _)) = views.clone().find(|(_, shown)| *shown == Some(name)) {
        return Some(own.clone());
    }
    let is_renamed = views.any(|(own, shown)| own == name && shown.is_some());
    (!is_renamed).then(|| name.to_owned())
}

fn names_mistakes<'a>(what: &str, names: impl Iterator<Item = Option<&'a str>>) -> Vec<String> {
    let mut seen = Vec::new();
    let mut mistakes = Vec::new();
    for name in names.flatten() {
        if name.is_empty() {
            mistakes.push(format!("a {what} is renamed to nothing; give it a name"));
        } else if seen.contains(&name) {
            mistakes.push(format!("two {what}s are named `{name}`; rename one"));
        }
        seen.push(name);
    }
    mistakes
}
