//! `ServerHandler` for [`VaryServer`]: selects the variant of each request and forwards the request
//! to its handler.
#![expect(
    deprecated,
    reason = "the protocol deprecates logging and legacy subscriptions, but clients use them"
)]

use std::borrow::Cow;

use mcp_vary_audit::{Outcome, TargetKind};
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
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::errors::mismatched_result;
use super::request_record::{Subject, call_outcome};
use super::subscriptions::merge_filters;
use super::vary_server::{Handlers, VaryServer};

/// Methods that are recorded, and answered by a method of the server.
macro_rules! recorded_methods {
    ($($name:ident($params:ty) -> $result:ty { $method:literal, $subject:expr, $handle:ident })*) => {$(
        async fn $name(
            &self,
            params: $params,
            context: RequestContext<RoleServer>,
        ) -> Result<$result, ErrorData> {
            let handle = |params, context| self.$handle(params, context);
            self.record($method, (params, context), $subject, handle, |_| Outcome::Allowed)
                .await
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

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        self.record(
            "server/discover",
            ((), context),
            |_| Subject::default(),
            |(), context| self.discover_handlers(context),
            |_| Outcome::Allowed,
        )
        .await
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.record(
            "tools/call",
            (request, context),
            |request| Subject::call(TargetKind::Tool, &request.name, request.arguments.as_ref()),
            |request, context| self.call_in_variant(request, context),
            call_outcome,
        )
        .await
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        Box::pin(async move { self.listen_in_variant(context).await }).await
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
        if self.state.permissions.is_some() {
            // An answer about a hidden tool would differ from one about an unknown tool.
            return None;
        }
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

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method.clone();
        self.record(
            method,
            (request, context),
            |_| Subject::default(),
            |request, context| async move {
                let request = ClientRequest::CustomRequest(request);
                match self
                    .request_any(request, context, ErrorCode::METHOD_NOT_FOUND)
                    .await?
                {
                    ServerResult::CustomResult(result) => Ok(result),
                    _ => Err(mismatched_result()),
                }
            },
            |_| Outcome::Allowed,
        )
        .await
    }

    recorded_methods! {
        initialize(InitializeRequestParams) -> InitializeResult { "initialize", |request| Subject::handshake(request.client_info.clone()), initialize_handlers }
        list_tools(Option<PaginatedRequestParams>) -> ListToolsResult { "tools/list", |_| Subject::default(), list_tools_in_variant }
        list_prompts(Option<PaginatedRequestParams>) -> ListPromptsResult { "prompts/list", |_| Subject::default(), list_in_variant }
        list_resources(Option<PaginatedRequestParams>) -> ListResourcesResult { "resources/list", |_| Subject::default(), list_in_variant }
        list_resource_templates(Option<PaginatedRequestParams>) -> ListResourceTemplatesResult { "resources/templates/list", |_| Subject::default(), list_in_variant }
        get_prompt(GetPromptRequestParams) -> GetPromptResponse { "prompts/get", |request| Subject::call(TargetKind::Prompt, &request.name, request.arguments.as_ref()), prompt_in_variant }
        read_resource(ReadResourceRequestParams) -> ReadResourceResponse { "resources/read", |request| Subject::of(TargetKind::Resource, &request.uri), read_in_variant }
        complete(CompleteRequestParams) -> CompleteResult { "completion/complete", |request| Subject::reference(&request.r#ref), complete_in_variant }
        subscribe(SubscribeRequestParams) -> () { "resources/subscribe", |request| Subject::of(TargetKind::Resource, &request.uri), subscribe_in_variant }
        unsubscribe(UnsubscribeRequestParams) -> () { "resources/unsubscribe", |request| Subject::of(TargetKind::Resource, &request.uri), unsubscribe_in_variant }
        set_level(SetLevelRequestParams) -> () { "logging/setLevel", |_| Subject::default(), set_level_of_handlers }
        get_task(GetTaskParams) -> GetTaskResult { "tasks/get", |request| Subject::of(TargetKind::Task, &request.task_id), get_task_of_any }
        update_task(UpdateTaskParams) -> () { "tasks/update", |request| Subject::of(TargetKind::Task, &request.task_id), update_task_of_any }
        cancel_task(CancelTaskParams) -> () { "tasks/cancel", |request| Subject::of(TargetKind::Task, &request.task_id), cancel_task_of_any }
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
    async fn get_task_of_any(
        &self,
        params: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
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
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let request = ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(params));
        let answered = self.request_any(request, context, ErrorCode::INVALID_PARAMS);
        answered.await.map(drop)
    }

    async fn cancel_task_of_any(
        &self,
        params: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let request = ClientRequest::CancelTaskRequest(CancelTaskRequest::new(params));
        let answered = self.request_any(request, context, ErrorCode::INVALID_PARAMS);
        answered.await.map(drop)
    }
}
