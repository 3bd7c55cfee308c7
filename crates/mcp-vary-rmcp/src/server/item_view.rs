//! How a view shows single items: tools, prompts, and resources.

use std::sync::Arc;

use mcp_vary_base::setters;
use rmcp::model::{JsonObject, Prompt, Tool, ToolAnnotations};
use serde_json::Value;

/// What all views of items begin with.
macro_rules! name_and_description {
    ($unchanged:literal) => {
        #[doc = $unchanged]
        #[must_use]
        pub fn new() -> Self {
            Self::default()
        }

        setters! {
            /// Sets the name.
            with_name(name: impl Into<String>): name = Some(name.into());
            /// Sets the description.
            with_description(description: impl Into<String>): description = Some(description.into());
        }
    };
}

/// How a variant shows one tool. Unset properties are the handler's.
#[derive(Clone, Debug, Default)]
pub struct ToolView {
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    input_schema: Option<Arc<JsonObject>>,
    output_schema: Option<Option<Arc<JsonObject>>>,
    annotations: Option<ToolAnnotations>,
    pub(super) arguments: JsonObject,
}

impl ToolView {
    name_and_description!("Shows the tool unchanged.");

    setters! {
        /// Sets the input schema. The handler must accept everything that it accepts.
        with_input_schema(schema: JsonObject): input_schema = Some(Arc::new(schema));
        /// Sets or removes the output schema. The handler's results must be valid against it.
        with_output_schema(schema: Option<JsonObject>): output_schema = Some(schema.map(Arc::new));
        /// Sets the annotations. They are hints for clients; the tool works as before.
        with_annotations(annotations: ToolAnnotations): annotations = Some(annotations);
    }

    /// Fixes the argument `name`: it is removed from the input schema, and every call passes
    /// `value`.
    #[must_use]
    pub fn with_argument(mut self, name: impl Into<String>, value: Value) -> Self {
        self.arguments.insert(name.into(), value);
        self
    }

    pub(super) fn apply(&self, tool: &mut Tool) {
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
            remove_arguments(Arc::make_mut(&mut tool.input_schema), &self.arguments);
        }
    }
}

/// How a variant shows one prompt. Unset properties are the handler's.
#[derive(Clone, Debug, Default)]
pub struct PromptView {
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) arguments: JsonObject,
}

impl PromptView {
    name_and_description!("Shows the prompt unchanged.");

    /// Fixes the argument `name`: it is not listed, and every request passes `value`.
    #[must_use]
    pub fn with_argument(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.arguments
            .insert(name.into(), Value::String(value.into()));
        self
    }

    pub(super) fn apply(&self, prompt: &mut Prompt) {
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

/// How a variant describes one resource or template. Unset properties are the handler's.
///
/// The URI cannot change: clients and results refer to the resource by it.
#[derive(Clone, Debug, Default)]
pub struct ResourceView {
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
}

impl ResourceView {
    name_and_description!("Shows the resource unchanged.");

    pub(super) fn apply(&self, name: &mut String, description: &mut Option<String>) {
        if let Some(new_name) = &self.name {
            name.clone_from(new_name);
        }
        if let Some(new_description) = &self.description {
            *description = Some(new_description.clone());
        }
    }
}

fn remove_arguments(schema: &mut JsonObject, fixed: &JsonObject) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.retain(|name, _| !fixed.contains_key(name));
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| name.as_str().is_none_or(|name| !fixed.contains_key(name)));
    }
}
