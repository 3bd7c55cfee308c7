//! `ServerHandler` for [`VaryServer`]: selects the variant of each request and forwards the request
//! to its handler.
#![expect(deprecated, reason = "clients use logging and legacy subscriptions")]

use std::borrow::Cow;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelTaskRequest,
    CancelledNotification, CancelledNotificationParam, ClientNotification, ClientRequest,
    CompleteRequestParams, CompleteResult, CustomNotification, CustomRequest, CustomResult,
    DiscoverResult, ErrorCode, GetPromptRequestParams, GetPromptResponse, GetTaskParams,
    GetTaskRequest, GetTaskResult, InitializeRequestParams, InitializeResult,
    InitializedNotification, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProgressNotification, ProgressNotificationParam,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, RootsListChangedNotification,
    ServerConfig, ServerResult, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
    Tool, UnsubscribeRequestParams, UpdateTaskParams, UpdateTaskRequest,
};
use rmcp::service::{NotificationContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};

use super::errors::mismatched_result;
use super::rules::{Context, McpResult};
use super::subscriptions::merge_filters;
use super::vary_server::{Handlers, VaryServer};

/// Methods that are answered by a method of the server.
///
/// Their futures are boxed: rmcp spawns a task for each request and moves its future several times, and that future would
/// have room for the largest method.
macro_rules! boxed_methods {
    ($($name:ident($($params:ident: $type:ty)?) -> $result:ty { $handle:ident })*) => {$(
        async fn $name(&self, $($params: $type,)? context: Context) -> McpResult<$result> {
            Box::pin(self.$handle($($params,)? context)).await
        }
    )*};
}

/// Notifications for every handler.
macro_rules! forwarded_notifications {
    ($($name:ident($($params:ident: $type:ty)?) => $variant:ident($notification:expr))*) => {$(
        async fn $name(&self, $($params: $type,)? context: NotificationContext<RoleServer>) {
            let notification = ClientNotification::$variant($notification);
            self.notify_all(notification, context).await;
        }
    )*};
}

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

    async fn listen(&self, context: SubscriptionContext) -> McpResult<()> {
        Box::pin(self.listen_in_variant(context)).await
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

    boxed_methods! {
        initialize(request: InitializeRequestParams) -> InitializeResult { initialize_handlers }
        discover() -> DiscoverResult { discover_handlers }
        list_tools(page: Option<PaginatedRequestParams>) -> ListToolsResult { list_in_variant }
        call_tool(request: CallToolRequestParams) -> CallToolResponse { call_in_variant }
        list_prompts(page: Option<PaginatedRequestParams>) -> ListPromptsResult { list_in_variant }
        get_prompt(request: GetPromptRequestParams) -> GetPromptResponse { prompt_in_variant }
        list_resources(page: Option<PaginatedRequestParams>) -> ListResourcesResult { list_in_variant }
        list_resource_templates(page: Option<PaginatedRequestParams>) -> ListResourceTemplatesResult { list_in_variant }
        read_resource(request: ReadResourceRequestParams) -> ReadResourceResponse { read_in_variant }
        complete(request: CompleteRequestParams) -> CompleteResult { complete_in_variant }
        subscribe(request: SubscribeRequestParams) -> () { subscribe_in_variant }
        unsubscribe(request: UnsubscribeRequestParams) -> () { unsubscribe_in_variant }
        set_level(request: SetLevelRequestParams) -> () { set_level_of_handlers }
        get_task(request: GetTaskParams) -> GetTaskResult { get_task_of_any }
        update_task(request: UpdateTaskParams) -> () { update_task_of_any }
        cancel_task(request: CancelTaskParams) -> () { cancel_task_of_any }
        on_custom_request(request: CustomRequest) -> CustomResult { request_custom_of_any }
    }

    forwarded_notifications! {
        on_cancelled(params: CancelledNotificationParam) => CancelledNotification(CancelledNotification::new(params))
        on_progress(params: ProgressNotificationParam) => ProgressNotification(ProgressNotification::new(params))
        on_initialized() => InitializedNotification(InitializedNotification::default())
        on_roots_list_changed() => RootsListChangedNotification(RootsListChangedNotification::default())
        on_custom_notification(params: CustomNotification) => CustomNotification(params)
    }
}

impl VaryServer {
    async fn request_custom_of_any(
        &self,
        request: CustomRequest,
        context: Context,
    ) -> McpResult<CustomResult> {
        let request = ClientRequest::CustomRequest(request);
        match self
            .request_any(request, context, ErrorCode::METHOD_NOT_FOUND)
            .await?
        {
            ServerResult::CustomResult(result) => Ok(result),
            _ => Err(mismatched_result()),
        }
    }

    async fn get_task_of_any(
        &self,
        params: GetTaskParams,
        context: Context,
    ) -> McpResult<GetTaskResult> {
        let request = ClientRequest::GetTaskRequest(GetTaskRequest::new(params));
        match self
            .request_any(request, context, ErrorCode::INVALID_PARAMS)
            .await?
        {
            ServerResult::GetTaskResult(result) => Ok(result),
            _ => Err(mismatched_result()),
        }
    }

    async fn update_task_of_any(
        &self,
        params: UpdateTaskParams,
        context: Context,
    ) -> McpResult<()> {
        let request = ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(params));
        let answered = self.request_any(request, context, ErrorCode::INVALID_PARAMS);
        answered.await.map(drop)
    }

    async fn cancel_task_of_any(
        &self,
        params: CancelTaskParams,
        context: Context,
    ) -> McpResult<()> {
        let request = ClientRequest::CancelTaskRequest(CancelTaskRequest::new(params));
        let answered = self.request_any(request, context, ErrorCode::INVALID_PARAMS);
        answered.await.map(drop)
    }
}
