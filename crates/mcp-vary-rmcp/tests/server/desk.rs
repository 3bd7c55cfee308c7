//! A server with items for everybody and items for some.

use crate::prelude::*;
use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, Implementation, JsonObject, Reference,
    SubscribeRequestParams, ToolAnnotations,
};

/// Answers with what it received. Unknown names get its own errors.
#[derive(Clone)]
pub(crate) struct Desk {
    /// The names and whether they only read.
    tools: Vec<(&'static str, bool)>,
    prompts: Vec<&'static str>,
    resources: Vec<&'static str>,
    templates: Vec<&'static str>,
}

impl Desk {
    /// Everything.
    pub(crate) fn whole() -> Self {
        Self {
            tools: vec![("search", true), ("wipe", false), ("detonate", true)],
            prompts: vec!["public_hello", "private_hello"],
            resources: vec!["notes:///public/a", "notes:///private/a"],
            templates: vec!["notes:///public/{n}", "notes:///private/{n}"],
        }
    }

    /// What everybody may see.
    pub(crate) fn public() -> Self {
        let mut desk = Self::whole();
        desk.tools.truncate(1);
        desk.prompts.truncate(1);
        desk.resources.truncate(1);
        desk.templates.truncate(1);
        desk
    }
}

fn text(text: &Value) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text.to_string())])
}

impl ServerHandler for Desk {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_completions()
            .build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("desk", "1.0.0"))
    }

    async fn list_tools(&self, _: PageParams, _: Context) -> McpResult<ListToolsResult> {
        let tool = |&(name, reads): &(&'static str, bool)| {
            Tool::new(name, "As it is", JsonObject::new())
                .with_annotations(ToolAnnotations::new().read_only(reads))
        };
        Ok(ListToolsResult::with_all_items(
            self.tools.iter().map(tool).collect(),
        ))
    }

    async fn call_tool(&self, request: CallParams, _: Context) -> CallResult {
        if self.tools.iter().any(|(name, _)| *name == request.name) {
            Ok(text(&json!({&*request.name: request.arguments})).into())
        } else {
            Err(ErrorData::invalid_params("tool not found", None))
        }
    }

    async fn list_prompts(&self, _: PageParams, _: Context) -> McpResult<ListPromptsResult> {
        let prompts = self.prompts.iter();
        let prompts = prompts.map(|name| Prompt::new(*name, Some("As it is"), None));
        Ok(ListPromptsResult::with_all_items(prompts.collect()))
    }

    async fn get_prompt(&self, request: PromptParams, _: Context) -> PromptResult {
        if self.prompts.contains(&&*request.name) {
            let message = PromptMessage::new_text(Role::User, request.name);
            Ok(GetPromptResult::new(vec![message]).into())
        } else {
            Err(ErrorData::invalid_params("prompt not found", None))
        }
    }

    async fn list_resources(&self, _: PageParams, _: Context) -> McpResult<ListResourcesResult> {
        let resources = self.resources.iter();
        let resources = resources.map(|uri| Resource::new(*uri, *uri));
        Ok(ListResourcesResult::with_all_items(resources.collect()))
    }

    async fn list_resource_templates(
        &self,
        _: PageParams,
        _: Context,
    ) -> McpResult<ListResourceTemplatesResult> {
        let templates = self.templates.iter();
        let templates = templates.map(|template| ResourceTemplate::new(*template, *template));
        Ok(ListResourceTemplatesResult::with_all_items(
            templates.collect(),
        ))
    }

    async fn read_resource(&self, request: ReadParams, _: Context) -> ReadResult {
        self.knows(&request.uri)?;
        let contents = ResourceContents::text("a note", request.uri);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: Context,
    ) -> McpResult<CompleteResult> {
        let known = match &request.r#ref {
            Reference::Prompt(prompt) => self.prompts.contains(&&*prompt.name),
            Reference::Resource(template) => self.templates.contains(&&*template.uri),
            _ => false,
        };
        let values = vec![format!("known: {known}")];
        let completion = CompletionInfo::with_all_values(values);
        Ok(CompleteResult::new(completion.unwrap()))
    }

    async fn subscribe(&self, request: SubscribeRequestParams, _: Context) -> McpResult<()> {
        self.knows(&request.uri)
    }
}

impl Desk {
    fn knows(&self, uri: &str) -> McpResult<()> {
        if self.resources.contains(&uri) {
            Ok(())
        } else {
            Err(ErrorData::resource_not_found("no such note", None))
        }
    }
}
