//! `ServerHandler` for [`VaryServer`]: selects the variant of each request and forwards the request
//! to its handler.
#![expect(
    deprecated,
    reason = "the protocol deprecates logging and legacy subscriptions, but clients use them"
)]

use std::borrow::Cow;

use mcp_vary::error::{Era, Identifier};
use rmcp::model::{
    CacheScope, CallToolRequest, CallToolRequestParams, CallToolResponse, CancelTaskParams,
    CancelTaskRequest, CancelledNotification, CancelledNotificationParam, ClientNotification,
    ClientRequest, CompleteRequest, CompleteRequestParams, CompleteResult, CustomNotification,
    CustomRequest, CustomResult, DiscoverRequest, DiscoverResult, ErrorCode, GetPromptRequest,
    GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskRequest, GetTaskResult,
    InitializeRequest, InitializeRequestParams, InitializeResult, InitializedNotification,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProgressNotification, ProgressNotificationParam, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, Reference, RootsListChangedNotification,
    ServerConfig, ServerResult, SetLevelRequest, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams, UpdateTaskRequest,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::errors::{mismatched_result, with_active_variant};
use super::features::{CalledTool, era, is_negotiating};
use super::pages::page;
use super::request_state::{RequestStateCodec, open_state, seal_state};
use super::selected_handler::SelectedHandler;
use super::subscriptions::merge_filters;
use super::vary_server::{Handlers, VaryServer};

impl ServerHandler for VaryServer {
    fn get_info(&self) -> ServerConfig {
        let mut info = self
            .distinct_handlers()
            .first()
            .map(|handler| handler.server_info())
            .unwrap_or_default();
        info.capabilities = self.merged_capabilities(info.capabilities);
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.protocol_versions()
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
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

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
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

    async fn list_tools(
        &self,
        params: Option<PaginatedRequestParams>,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let active = self.begin_request(&mut context)?;
        page(self.variants(), &active, params, context).await
    }

    async fn list_prompts(
        &self,
        params: Option<PaginatedRequestParams>,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let active = self.begin_request(&mut context)?;
        page(self.variants(), &active, params, context).await
    }

    async fn list_resources(
        &self,
        params: Option<PaginatedRequestParams>,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let active = self.begin_request(&mut context)?;
        page(self.variants(), &active, params, context).await
    }

    async fn list_resource_templates(
        &self,
        params: Option<PaginatedRequestParams>,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let active = self.begin_request(&mut context)?;
        page(self.variants(), &active, params, context).await
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let active = self.begin_request(&mut context)?;
        let client_item = Identifier::Tool(request.name.to_string());
        self.store_features(&mut context);
        store_called_tool(&active, &request.name, &mut context);
        let mut request = active
            .handler
            .to_handler_call(request, &context, active.variant)
            .await?;
        let handler_item = Identifier::Tool(request.name.to_string());
        active.check_permission(&context, &handler_item, &client_item)?;
        let arguments = request.arguments.as_ref();
        let codec =
            RequestStateCodec::new(self.variants(), &active, &handler_item, arguments, &context);
        open_state(&active, codec.as_ref(), &mut request.request_state)?;
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(request));
        match request_selected(&active, request, client_item, context).await? {
            ServerResult::CallToolResult(result) => Ok(result.into()),
            ServerResult::InputRequiredResult(result) => {
                Ok(seal_state(codec.as_ref(), result).into())
            }
            ServerResult::CreateTaskResult(result) => Ok(CallToolResponse::Task(result)),
            _ => Err(mismatched_result()),
        }
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let active = self.begin_request(&mut context)?;
        let client_item = Identifier::Prompt(request.name.clone());
        self.store_features(&mut context);
        let mut request = active
            .handler
            .to_handler_prompt(request, &context, active.variant)
            .await?;
        let handler_item = Identifier::Prompt(request.name.clone());
        active.check_permission(&context, &handler_item, &client_item)?;
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

    async fn read_resource(
        &self,
        mut request: ReadResourceRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let active = self.begin_request(&mut context)?;
        let era = era(&context);
        let client_item = Identifier::Resource(request.uri.clone());
        active
            .handler
            .check_uri_visible(&client_item, era, active.variant)?;
        active.check_permission(&context, &client_item, &client_item)?;
        let codec = RequestStateCodec::new(self.variants(), &active, &client_item, None, &context);
        open_state(&active, codec.as_ref(), &mut request.request_state)?;
        let answer = active
            .handler
            .inner
            .read_resource_directly(request, context)
            .await;
        match answer.map_err(|error| active.describe_error(error, client_item, era))? {
            ReadResourceResponse::Complete(mut result) => {
                if active.variant.is_some() && era == Era::Modern {
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

    async fn complete(
        &self,
        mut request: CompleteRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let active = self.begin_request(&mut context)?;
        request.r#ref = active
            .handler
            .to_handler_reference(request.r#ref, &context, active.variant)
            .await?;
        let named = match &request.r#ref {
            Reference::Prompt(prompt) => Some(Identifier::Prompt(prompt.name.clone())),
            Reference::Resource(template) => Some(Identifier::Resource(template.uri.clone())),
            _ => None,
        };
        if let Some(named) = named {
            active.check_permission(&context, &named, &named)?;
        }
        let request = ClientRequest::CompleteRequest(CompleteRequest::new(request));
        let answer = active.handler.inner.request(request, context).await;
        match answer.map_err(|error| with_active_variant(error, active.variant))? {
            ServerResult::CompleteResult(result) => Ok(result),
            _ => Err(mismatched_result()),
        }
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscribe_in_variant(request, context).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.unsubscribe_in_variant(request, context).await
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.listen_in_variant(context).await
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let accepted = self
            .distinct_handlers()
            .into_iter()
            .filter_map(|handler| handler.accepted_filter(requested));
        accepted.reduce(merge_filters)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        // There is no context here, so only a tool that is the same in every variant can be
        // returned.
        match &self.state.handlers {
            Handlers::Single(handler) => handler.get_tool(name),
            Handlers::Variants(variants) => {
                let mut tools = variants
                    .handlers
                    .iter()
                    .map(|handler| handler.get_tool(name));
                let first = tools.next()??;
                tools
                    .all(|tool| tool.as_ref() == Some(&first))
                    .then_some(first)
            }
        }
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let request = ClientRequest::SetLevelRequest(SetLevelRequest::new(request));
        let mut answer = Err(ErrorData::method_not_found::<
            rmcp::model::SetLevelRequestMethod,
        >());
        for handler in self.distinct_handlers() {
            answer = match (
                handler.request(request.clone(), context.clone()).await,
                answer,
            ) {
                (Err(error), answer) if error.code == ErrorCode::METHOD_NOT_FOUND => answer,
                (Err(error), _) => return Err(error),
                (Ok(_), _) => Ok(()),
            };
        }
        answer
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let request = ClientRequest::CustomRequest(request);
        match self
            .request_any(request, context, ErrorCode::METHOD_NOT_FOUND)
            .await?
        {
            ServerResult::CustomResult(result) => Ok(result),
            _ => Err(mismatched_result()),
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let request = ClientRequest::GetTaskRequest(GetTaskRequest::new(request));
        match self
            .request_any(request, context, ErrorCode::INVALID_PARAMS)
            .await?
        {
            ServerResult::GetTaskResult(result) => Ok(result),
            _ => Err(mismatched_result()),
        }
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let request = ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(request));
        self.request_any(request, context, ErrorCode::INVALID_PARAMS)
            .await
            .map(drop)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let request = ClientRequest::CancelTaskRequest(CancelTaskRequest::new(request));
        self.request_any(request, context, ErrorCode::INVALID_PARAMS)
            .await
            .map(drop)
    }

    async fn on_cancelled(
        &self,
        params: CancelledNotificationParam,
        context: NotificationContext<RoleServer>,
    ) {
        let notification = CancelledNotification::new(params);
        self.notify_all(
            ClientNotification::CancelledNotification(notification),
            context,
        )
        .await;
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        context: NotificationContext<RoleServer>,
    ) {
        let notification = ProgressNotification::new(params);
        self.notify_all(
            ClientNotification::ProgressNotification(notification),
            context,
        )
        .await;
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let notification = InitializedNotification::default();
        self.notify_all(
            ClientNotification::InitializedNotification(notification),
            context,
        )
        .await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        let notification = RootsListChangedNotification::default();
        self.notify_all(
            ClientNotification::RootsListChangedNotification(notification),
            context,
        )
        .await;
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        context: NotificationContext<RoleServer>,
    ) {
        self.notify_all(
            ClientNotification::CustomNotification(notification),
            context,
        )
        .await;
    }
}

/// Sends a request that names `what` to the selected handler.
async fn request_selected(
    active: &SelectedHandler<'_>,
    request: ClientRequest,
    what: Identifier,
    context: RequestContext<RoleServer>,
) -> Result<ServerResult, ErrorData> {
    let era = era(&context);
    let answer = active.handler.inner.request(request, context).await;
    answer.map_err(|error| active.describe_error(error, what, era))
}

/// Stores the listed properties of the called tool, if the client negotiates content.
fn store_called_tool(
    active: &SelectedHandler<'_>,
    name: &str,
    context: &mut RequestContext<RoleServer>,
) {
    if !is_negotiating(context) {
        return;
    }
    if let Some(tool) = active.handler.get_tool(name) {
        context.extensions.insert(CalledTool::new(tool));
    }
}
