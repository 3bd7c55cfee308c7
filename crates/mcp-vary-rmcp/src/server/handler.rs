//! `ServerHandler` for [`VaryServer`]: selects the variant of each request and forwards the request
//! to its handler.
#![expect(
    deprecated,
    reason = "the protocol deprecates logging and legacy subscriptions, but clients use them"
)]

use std::borrow::Cow;

use mcp_vary_audit::TargetKind;
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
        self.record(
            "initialize",
            (request, context),
            |request| Subject::handshake(request.client_info.clone()),
            |request, context| self.initialize_handlers(request, context),
        )
        .await
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
        )
        .await
    }

    async fn list_tools(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.record(
            "tools/list",
            (params, context),
            |_| Subject::default(),
            |params, context| self.list_tools_in_variant(params, context),
        )
        .await
    }

    async fn list_prompts(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.record(
            "prompts/list",
            (params, context),
            |_| Subject::default(),
            |params, context| self.list_in_variant(params, context),
        )
        .await
    }

    async fn list_resources(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.record(
            "resources/list",
            (params, context),
            |_| Subject::default(),
            |params, context| self.list_in_variant(params, context),
        )
        .await
    }

    async fn list_resource_templates(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.record(
            "resources/templates/list",
            (params, context),
            |_| Subject::default(),
            |params, context| self.list_in_variant(params, context),
        )
        .await
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.record_outcome(
            "tools/call",
            (request, context),
            |request| Subject::call(TargetKind::Tool, &request.name, request.arguments.as_ref()),
            |request, context| self.call_in_variant(request, context),
            call_outcome,
        )
        .await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.record(
            "prompts/get",
            (request, context),
            |request| {
                Subject::call(
                    TargetKind::Prompt,
                    &request.name,
                    request.arguments.as_ref(),
                )
            },
            |request, context| self.prompt_in_variant(request, context),
        )
        .await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.record(
            "resources/read",
            (request, context),
            |request| Subject::of(TargetKind::Resource, &request.uri),
            |request, context| self.read_in_variant(request, context),
        )
        .await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.record(
            "completion/complete",
            (request, context),
            |request| Subject::reference(&request.r#ref),
            |request, context| self.complete_in_variant(request, context),
        )
        .await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.record(
            "resources/subscribe",
            (request, context),
            |request| Subject::of(TargetKind::Resource, &request.uri),
            |request, context| self.subscribe_in_variant(request, context),
        )
        .await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.record(
            "resources/unsubscribe",
            (request, context),
            |request| Subject::of(TargetKind::Resource, &request.uri),
            |request, context| self.unsubscribe_in_variant(request, context),
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

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.record(
            "logging/setLevel",
            (request, context),
            |_| Subject::default(),
            |request, context| self.set_level_of_handlers(request, context),
        )
        .await
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
        )
        .await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.record(
            "tasks/get",
            (request, context),
            |request| Subject::of(TargetKind::Task, &request.task_id),
            |request, context| async move {
                let request = ClientRequest::GetTaskRequest(GetTaskRequest::new(request));
                match self
                    .request_any(request, context, ErrorCode::INVALID_PARAMS)
                    .await?
                {
                    ServerResult::GetTaskResult(result) => Ok(result),
                    _ => Err(mismatched_result()),
                }
            },
        )
        .await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.record(
            "tasks/update",
            (request, context),
            |request| Subject::of(TargetKind::Task, &request.task_id),
            |request, context| async move {
                let request = ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(request));
                self.request_any(request, context, ErrorCode::INVALID_PARAMS)
                    .await
                    .map(drop)
            },
        )
        .await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.record(
            "tasks/cancel",
            (request, context),
            |request| Subject::of(TargetKind::Task, &request.task_id),
            |request, context| async move {
                let request = ClientRequest::CancelTaskRequest(CancelTaskRequest::new(request));
                self.request_any(request, context, ErrorCode::INVALID_PARAMS)
                    .await
                    .map(drop)
            },
        )
        .await
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
