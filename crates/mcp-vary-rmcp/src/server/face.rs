//! A face: a handler, or a view of it, that a variant shows.

use std::fmt;
use std::sync::Arc;

use mcp_vary::error::{Era, Error, Identifier};
use mcp_vary::variant::VariantId;
use rmcp::model::{
    CallToolRequestParams, GetPromptRequestParams, ListPromptsResult, ListToolsResult, Reference,
    Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::features::era;
use super::inner::Inner;
use super::list::gather;
use super::view::View;
use super::wire::to_error_data;

/// What a variant shows: a handler, or a [`View`] of it.
///
/// Any handler is a face. To give several variants views of one handler, make a face of it and
/// clone that: then the handler hears of each notification once.
///
/// # Examples
///
/// ```
/// use mcp_vary_rmcp::server::{Face, View};
/// use rmcp::ServerHandler;
///
/// struct GitHub;
/// impl ServerHandler for GitHub {}
///
/// let all = Face::new(GitHub);
/// let issues = all.clone().with_view(View::new().with_tools(["search_issues"]));
/// ```
#[derive(Clone)]
pub struct Face {
    pub(super) handler: Arc<dyn Inner>,
    pub(super) view: Option<View>,
}

impl Face {
    /// The whole of `handler`.
    #[must_use]
    pub fn new(handler: impl ServerHandler) -> Self {
        Self {
            handler: Arc::new(handler),
            view: None,
        }
    }

    /// What `view` shows of the handler, in place of an earlier view.
    #[must_use]
    pub fn with_view(mut self, view: View) -> Self {
        self.view = Some(view);
        self
    }

    /// The tool as this face shows it, where the handler can tell.
    pub(super) fn tool(&self, name: &str) -> Option<Tool> {
        let Some(view) = &self.view else {
            return self.handler.tool(name);
        };
        view.tool(self.handler.tool(&view.tool_named(name)?)?)
    }

    /// The call as the handler understands it.
    pub(super) async fn call(
        &self,
        mut call: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        active: Option<&VariantId>,
    ) -> Result<CallToolRequestParams, ErrorData> {
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
        let own = view.tool_named(&call.name).ok_or_else(missing)?;
        let tool = match self.handler.tool(&own) {
            Some(tool) => Some(tool),
            None => gather::<ListToolsResult>(&*self.handler, context)
                .await?
                .into_iter()
                .find(|tool| *tool.name == own),
        };
        tool.and_then(|tool| view.tool(tool)).ok_or_else(missing)?;
        if let Some(fixed) = view.fixed_arguments(&own) {
            let arguments = call.arguments.get_or_insert_default();
            arguments.extend(fixed.clone());
        }
        call.name = own.into();
        Ok(call)
    }

    /// The request for a prompt as the handler understands it.
    pub(super) async fn prompt(
        &self,
        mut request: GetPromptRequestParams,
        context: &RequestContext<RoleServer>,
        active: Option<&VariantId>,
    ) -> Result<GetPromptRequestParams, ErrorData> {
        if let Some(view) = &self.view {
            request.name = self.own_prompt(&request.name, context, active).await?;
            if let Some(fixed) = view.fixed_prompt_arguments(&request.name) {
                let arguments = request.arguments.get_or_insert_default();
                arguments.extend(fixed.clone());
            }
        }
        Ok(request)
    }

    /// The reference of a completion as the handler understands it.
    pub(super) async fn reference(
        &self,
        reference: Reference,
        context: &RequestContext<RoleServer>,
        active: Option<&VariantId>,
    ) -> Result<Reference, ErrorData> {
        match reference {
            Reference::Prompt(mut prompt) if self.view.is_some() => {
                prompt.name = self.own_prompt(&prompt.name, context, active).await?;
                Ok(Reference::Prompt(prompt))
            }
            Reference::Resource(resource) => {
                self.check_uri(
                    &Identifier::Resource(resource.uri.clone()),
                    era(context),
                    active,
                )?;
                Ok(Reference::Resource(resource))
            }
            reference => Ok(reference),
        }
    }

    /// Whether the face shows the resource `what`, or the answer that it does not.
    pub(super) fn check_uri(
        &self,
        what: &Identifier,
        era: Era,
        active: Option<&VariantId>,
    ) -> Result<(), ErrorData> {
        let (Identifier::Resource(uri) | Identifier::SubscribedResource(uri)) = what else {
            return Ok(());
        };
        match &self.view {
            Some(view) if !view.shows_resource(uri) => Err(not_found(what.clone(), active, era)),
            _ => Ok(()),
        }
    }

    async fn own_prompt(
        &self,
        name: &str,
        context: &RequestContext<RoleServer>,
        active: Option<&VariantId>,
    ) -> Result<String, ErrorData> {
        let Some(view) = &self.view else {
            return Ok(name.to_owned());
        };
        let missing = || not_found(Identifier::Prompt(name.to_owned()), active, era(context));
        let own = view.prompt_named(name).ok_or_else(missing)?;
        let prompts = gather::<ListPromptsResult>(&*self.handler, context).await?;
        let prompt = prompts.into_iter().find(|prompt| prompt.name == own);
        prompt
            .and_then(|prompt| view.prompt(prompt))
            .ok_or_else(missing)?;
        Ok(own)
    }
}

impl<H: ServerHandler> From<H> for Face {
    fn from(handler: H) -> Self {
        Self::new(handler)
    }
}

impl fmt::Debug for Face {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Face")
            .field("view", &self.view)
            .finish_non_exhaustive()
    }
}

pub(super) fn not_found(what: Identifier, active: Option<&VariantId>, era: Era) -> ErrorData {
    to_error_data(&Error::NotFound {
        what,
        active: active.cloned(),
        era,
    })
}
