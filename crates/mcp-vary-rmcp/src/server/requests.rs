//! Requests that one handler answers, and the handshakes of all.

use mcp_vary::error::{Era, Identifier};
use rmcp::ServerHandler as _;
use rmcp::model::{
    CacheScope, CallToolRequest, CallToolRequestParams, CallToolResponse, ClientRequest,
    CompleteRequest, CompleteRequestParams, CompleteResult, DiscoverRequest, DiscoverResult,
    GetPromptRequest, GetPromptRequestParams, GetPromptResponse, InitializeRequest,
    InitializeRequestParams, InitializeResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerResult,
};

use super::errors::{mismatched_result, with_active_variant};
use super::features::{CalledTool, era, is_negotiating};
use super::list_result::ListResult;
use super::pages::page;
use super::request_state::{RequestStateCodec, open_state, seal_state};
use super::rules::{Context, McpResult};
use super::selected_handler::SelectedHandler;
use super::vary_server::VaryServer;

impl VaryServer {
    /// Initializes every handler, and merges their results.
    pub(super) async fn initialize_handlers(
        &self,
        request: InitializeRequestParams,
        context: Context,
    ) -> McpResult<InitializeResult> {
        self.check_initialize(&request.capabilities)?;
        context.peer.set_peer_info(request.clone());
        let mut first = None;
        for handler in self.distinct_handlers() {
            let forwarded =
                ClientRequest::InitializeRequest(InitializeRequest::new(request.clone()));
            match handler.request(forwarded, context.clone()).await? {
                ServerResult::InitializeResult(result) => first = first.or(Some(result)),
                _ => return Err(mismatched_result()),
            }
        }
        let mut result = first.ok_or_else(mismatched_result)?;
        if self.distinct_handlers().len() > 1 {
            result.protocol_version = self.negotiate_initialize(&request)?.protocol_version;
        }
        result.capabilities = self.merged_capabilities(result.capabilities);
        self.advertise_extensions(&mut result.capabilities, &context);
        Ok(result)
    }

    /// The discovery of the first handler, with what all handlers have.
    pub(super) async fn discover_handlers(&self, context: Context) -> McpResult<DiscoverResult> {
        let first = self
            .distinct_handlers()
            .first()
            .copied()
            .ok_or_else(mismatched_result)?;
        let forwarded = ClientRequest::DiscoverRequest(DiscoverRequest::default());
        let answer = first.request(forwarded, context.clone()).await?;
        let ServerResult::DiscoverResult(mut result) = answer else {
            return Err(mismatched_result());
        };
        if self.distinct_handlers().len() > 1 {
            result.supported_versions = self.protocol_versions().into_owned();
        }
        result.capabilities = self.merged_capabilities(result.capabilities);
        self.advertise_extensions(&mut result.capabilities, &context);
        if self.variants().is_some() {
            (result.ttl_ms, result.cache_scope) = (0, CacheScope::Private);
        }
        Ok(result)
    }

    /// A page of one of the four lists.
    pub(super) async fn list_in_variant<L: ListResult>(
        &self,
        params: Option<PaginatedRequestParams>,
        mut context: Context,
    ) -> McpResult<L> {
        let active = self.begin_request(&mut context)?;
        page(self.variants(), &active, params, context).await
    }

    /// Calls a tool in the selected variant.
    pub(super) async fn call_in_variant(
        &self,
        request: CallToolRequestParams,
        mut context: Context,
    ) -> McpResult<CallToolResponse> {
        let active = self.begin_request(&mut context)?;
        let client_item = Identifier::Tool(request.name.to_string());
        self.store_features(&mut context);
        store_called_tool(&active, &request.name, &mut context);
        let mut request = active
            .handler
            .to_handler_call(request, &context, active.variant)
            .await?;
        let handler_item = Identifier::Tool(request.name.to_string());
        let arguments = request.arguments.as_ref();
        let codec =
            RequestStateCodec::new(self.variants(), &active, &handler_item, arguments, &context);
        open_state(&active, codec.as_ref(), &mut request.request_state)?;
        let answer = call_selected(&active, request, client_item, context).await?;
        Ok(match answer {
            CallToolResponse::InputRequired(result) => seal_state(codec.as_ref(), result).into(),
            answer => answer,
        })
    }

    /// Gets a prompt in the selected variant.
    pub(super) async fn prompt_in_variant(
        &self,
        request: GetPromptRequestParams,
        mut context: Context,
    ) -> McpResult<GetPromptResponse> {
        let active = self.begin_request(&mut context)?;
        let client_item = Identifier::Prompt(request.name.clone());
        self.store_features(&mut context);
        let mut request = active
            .handler
            .to_handler_prompt(request, &context, active.variant)
            .await?;
        let handler_item = Identifier::Prompt(request.name.clone());
        let arguments = request.arguments.as_ref();
        let codec =
            RequestStateCodec::new(self.variants(), &active, &handler_item, arguments, &context);
        open_state(&active, codec.as_ref(), &mut request.request_state)?;
        let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(request));
        match request_selected(&active, request, client_item, context).await? {
            ServerResult::GetPromptResult(result) => Ok(result.into()),
            ServerResult::InputRequiredResult(result) => {
                Ok(seal_state(codec.as_ref(), result).into())
            }
            _ => Err(mismatched_result()),
        }
    }

    /// Reads a resource in the selected variant.
    pub(super) async fn read_in_variant(
        &self,
        mut request: ReadResourceRequestParams,
        mut context: Context,
    ) -> McpResult<ReadResourceResponse> {
        let active = self.begin_request(&mut context)?;
        let client_era = era(&context);
        let client_item = Identifier::Resource(request.uri.clone());
        active
            .handler
            .check_uri_visible(&client_item, client_era, active.variant)?;
        let codec = RequestStateCodec::new(self.variants(), &active, &client_item, None, &context);
        open_state(&active, codec.as_ref(), &mut request.request_state)?;
        let answer = active
            .handler
            .inner
            .read_resource_directly(request, context)
            .await;
        match answer.map_err(|error| active.describe_error(error, client_item, client_era))? {
            ReadResourceResponse::Complete(mut result) => {
                if active.variant.is_some() && client_era == Era::Modern {
                    (result.ttl_ms, result.cache_scope) = (Some(0), Some(CacheScope::Private));
                }
                Ok(result.into())
            }
            ReadResourceResponse::InputRequired(result) => {
                Ok(seal_state(codec.as_ref(), result).into())
            }
            answer => Ok(answer),
        }
    }

    /// Completes an argument in the selected variant.
    pub(super) async fn complete_in_variant(
        &self,
        mut request: CompleteRequestParams,
        mut context: Context,
    ) -> McpResult<CompleteResult> {
        let active = self.begin_request(&mut context)?;
        request.r#ref = active
            .handler
            .to_handler_reference(request.r#ref, &context, active.variant)
            .await?;
        let request = ClientRequest::CompleteRequest(CompleteRequest::new(request));
        let answer = active.handler.inner.request(request, context).await;
        match answer.map_err(|error| with_active_variant(error, active.variant))? {
            ServerResult::CompleteResult(result) => Ok(result),
            _ => Err(mismatched_result()),
        }
    }
}

/// Sends a request that names `what` to the selected handler.
async fn request_selected(
    active: &SelectedHandler<'_>,
    request: ClientRequest,
    what: Identifier,
    context: Context,
) -> McpResult<ServerResult> {
    let client_era = era(&context);
    let answer = active.handler.inner.request(request, context).await;
    answer.map_err(|error| active.describe_error(error, what, client_era))
}

/// Calls a tool of the selected handler.
async fn call_selected(
    active: &SelectedHandler<'_>,
    request: CallToolRequestParams,
    what: Identifier,
    context: Context,
) -> McpResult<CallToolResponse> {
    if era(&context) == Era::Modern {
        // rmcp has checked the request, and checks the answer.
        let handler = &active.handler.inner;
        let answer = handler.call_tool_directly(request, context).await;
        return answer.map_err(|error| active.describe_error(error, what, Era::Modern));
    }
    // rmcp adapts the result to the revision of a legacy client.
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(request));
    match request_selected(active, request, what, context).await? {
        ServerResult::CallToolResult(result) => Ok(result.into()),
        ServerResult::InputRequiredResult(result) => Ok(result.into()),
        ServerResult::CreateTaskResult(result) => Ok(CallToolResponse::Task(result)),
        _ => Err(mismatched_result()),
    }
}

/// Stores the listed properties of the called tool, if the client negotiates content.
fn store_called_tool(active: &SelectedHandler<'_>, name: &str, context: &mut Context) {
    if !is_negotiating(context) {
        return;
    }
    if let Some(tool) = active.handler.get_tool(name) {
        context.extensions.insert(CalledTool::new(tool));
    }
}
