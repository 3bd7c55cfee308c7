//! The handler of a variant: a server handler, whole or through a view.

use std::fmt;
use std::sync::Arc;

use mcp_vary::error::{Era, Identifier};
use mcp_vary::variant::VariantId;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, GetPromptRequestParams, ListPromptsResult, ListToolsResult, Reference,
    Tool,
};

use super::dyn_handler::DynHandler;
use super::errors::not_found;
use super::features::era;
use super::list_result::list_all;
use super::rules::{Context, McpResult};
use super::view::View;

/// The handler of a variant: a server handler, whole or through a [`View`].
///
/// Any server handler converts into one. To give several variants views of one handler, create it
/// once and clone it: the clones share the handler, so it receives each notification once.
///
/// # Examples
///
/// ```
/// use mcp_vary_rmcp::server::{VariantHandler, View};
/// use rmcp::ServerHandler;
///
/// struct GitHub;
/// impl ServerHandler for GitHub {}
///
/// let all = VariantHandler::new(GitHub);
/// let issues = all.clone().with_view(View::new().with_tools(["search_issues"]));
/// ```
#[derive(Clone)]
pub struct VariantHandler {
    pub(super) inner: Arc<dyn DynHandler>,
    pub(super) view: Option<View>,
}

impl VariantHandler {
    /// Shows everything that `handler` has.
    #[must_use]
    pub fn new(handler: impl ServerHandler) -> Self {
        Self {
            inner: Arc::new(handler),
            view: None,
        }
    }

    /// Shows only what `view` shows; replaces an earlier view.
    #[must_use]
    pub fn with_view(mut self, view: View) -> Self {
        self.view = Some(view);
        self
    }

    /// The tool as this variant shows it, if the handler implements `get_tool`.
    pub(super) fn get_tool(&self, name: &str) -> Option<Tool> {
        let Some(view) = &self.view else {
            return self.inner.find_tool(name);
        };
        view.show_tool(self.inner.find_tool(&view.handler_tool_name(name)?)?)
    }

    /// Translates a tool call to the handler's name and arguments. Through a view, a tool that the
    /// handler does not list is not found.
    pub(super) async fn to_handler_call(
        &self,
        mut call: CallToolRequestParams,
        context: &Context,
        active: Option<&VariantId>,
    ) -> McpResult<CallToolRequestParams> {
        let Some(view) = &self.view else {
            return Ok(call);
        };
        let missing = || {
            not_found(
                Identifier::Tool(call.name.to_string()),
                active,
                era(context),
            )
        };
        let handler_name = view.handler_tool_name(&call.name).ok_or_else(missing)?;
        let tool = match self.inner.find_tool(&handler_name) {
            Some(tool) => Some(tool),
            None => list_all::<ListToolsResult>(&*self.inner, context)
                .await?
                .into_iter()
                .find(|tool| *tool.name == handler_name),
        };
        tool.and_then(|tool| view.show_tool(tool))
            .ok_or_else(missing)?;
        if let Some(fixed) = view.fixed_arguments(&handler_name) {
            let arguments = call.arguments.get_or_insert_default();
            arguments.extend(fixed.clone());
        }
        call.name = handler_name.into();
        Ok(call)
    }

    /// Translates a prompt request to the handler's name and arguments. Through a view, a prompt
    /// that the handler does not list is not found.
    pub(super) async fn to_handler_prompt(
        &self,
        mut request: GetPromptRequestParams,
        context: &Context,
        active: Option<&VariantId>,
    ) -> McpResult<GetPromptRequestParams> {
        let Some(view) = &self.view else {
            return Ok(request);
        };
        request.name = self
            .handler_prompt_name(view, &request.name, context, active)
            .await?;
        if let Some(fixed) = view.fixed_prompt_arguments(&request.name) {
            let arguments = request.arguments.get_or_insert_default();
            arguments.extend(fixed.clone());
        }
        Ok(request)
    }

    /// Translates the reference of a completion to the handler's name.
    pub(super) async fn to_handler_reference(
        &self,
        reference: Reference,
        context: &Context,
        active: Option<&VariantId>,
    ) -> McpResult<Reference> {
        match (reference, &self.view) {
            (Reference::Prompt(mut prompt), Some(view)) => {
                prompt.name = self
                    .handler_prompt_name(view, &prompt.name, context, active)
                    .await?;
                Ok(Reference::Prompt(prompt))
            }
            (Reference::Resource(resource), _) => {
                self.check_uri_visible(
                    &Identifier::Resource(resource.uri.clone()),
                    era(context),
                    active,
                )?;
                Ok(Reference::Resource(resource))
            }
            (reference, _) => Ok(reference),
        }
    }

    /// Returns "not found" if the view hides the resource `what`.
    pub(super) fn check_uri_visible(
        &self,
        what: &Identifier,
        era: Era,
        active: Option<&VariantId>,
    ) -> McpResult<()> {
        let (Identifier::Resource(uri) | Identifier::SubscribedResource(uri)) = what else {
            return Ok(());
        };
        match &self.view {
            Some(view) if !view.is_uri_visible(uri) => Err(not_found(what.clone(), active, era)),
            _ => Ok(()),
        }
    }

    async fn handler_prompt_name(
        &self,
        view: &View,
        name: &str,
        context: &Context,
        active: Option<&VariantId>,
    ) -> McpResult<String> {
        let missing = || not_found(Identifier::Prompt(name.to_owned()), active, era(context));
        let handler_name = view.handler_prompt_name(name).ok_or_else(missing)?;
        let listed = list_all::<ListPromptsResult>(&*self.inner, context).await?;
        let mut prompts = listed.into_iter();
        let prompt = prompts.find(|prompt| prompt.name == handler_name);
        prompt
            .and_then(|prompt| view.show_prompt(prompt))
            .ok_or_else(missing)?;
        Ok(handler_name)
    }
}

impl<H: ServerHandler> From<H> for VariantHandler {
    fn from(handler: H) -> Self {
        Self::new(handler)
    }
}

impl fmt::Debug for VariantHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VariantHandler")
            .field("view", &self.view)
            .finish_non_exhaustive()
    }
}
