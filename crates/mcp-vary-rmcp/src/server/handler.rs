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
use super::request_record::{Subject, conclude, conclude_call};
use super::subscriptions::merge_filters;
use super::vary_server::{Handlers, VaryServer};

/// The futures of requests are boxed: rmcp spawns a task for each request and moves its future several times, and the
/// future has room for the largest method.
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
        mut context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        Box::pin(async move {
            let subject = || Subject::handshake(request.client_info.clone());
            let record = self
                .begin_record("initialize", subject, &mut context)
                .await?;
            conclude(record, self.initialize_handlers(request, context).await)
        })
        .await
    }

    async fn discover(
        &self,
        mut context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        Box::pin(async move {
            let record = self
                .begin_record("server/discover", Subject::default, &mut context)
                .await?;
            conclude(record, self.discover_handlers(context).await)
        })
        .await
    }

    async fn list_tools(
        &self,
        params: Option<PaginatedRequestParams>,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Box::pin(async move {
            let record = self
                .begin_record("tools/list", Subject::default, &mut context)
                .await?;
            conclude(record, self.list_tools_in_variant(params, context).await)
        })
        .await
    }

    async fn list_prompts(
        &self,
        params: Option<PaginatedRequestParams>,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Box::pin(async move {
            let record = self
                .begin_record("prompts/list", Subject::default, &mut context)
                .await?;
            conclude(record, self.list_in_variant(params, context).await)
        })
        .await
    }

    async fn list_resources(
        &self,
        params: Option<PaginatedRequestParams>,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Box::pin(async move {
            let record = self
                .begin_record("resources/list", Subject::default, &mut context)
                .await?;
            conclude(record, self.list_in_variant(params, context).await)
        })
        .await
    }

    async fn list_resource_templates(
        &self,
        params: Option<PaginatedRequestParams>,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Box::pin(async move {
            let record = self
                .begin_record("resources/templates/list", Subject::default, &mut context)
                .await?;
            conclude(record, self.list_in_variant(params, context).await)
        })
        .await
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Box::pin(async move {
            let subject =
                || Subject::call(TargetKind::Tool, &request.name, request.arguments.as_ref());
            let record = self
                .begin_record("tools/call", subject, &mut context)
                .await?;
            conclude_call(record, self.call_in_variant(request, context).await)
        })
        .await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        Box::pin(async move {
            let subject = || {
                Subject::call(
                    TargetKind::Prompt,
                    &request.name,
                    request.arguments.as_ref(),
                )
            };
            let record = self
                .begin_record("prompts/get", subject, &mut context)
                .await?;
            conclude(record, self.prompt_in_variant(request, context).await)
        })
        .await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Box::pin(async move {
            let subject = || Subject::of(TargetKind::Resource, &request.uri);
            let record = self
                .begin_record("resources/read", subject, &mut context)
                .await?;
            conclude(record, self.read_in_variant(request, context).await)
        })
        .await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Box::pin(async move {
            let subject = || Subject::reference(&request.r#ref);
            let record = self
                .begin_record("completion/complete", subject, &mut context)
                .await?;
            conclude(record, self.complete_in_variant(request, context).await)
        })
        .await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Box::pin(async move {
            let subject = || Subject::of(TargetKind::Resource, &request.uri);
            let record = self
                .begin_record("resources/subscribe", subject, &mut context)
                .await?;
            conclude(record, self.subscribe_in_variant(request, context).await)
        })
        .await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Box::pin(async move {
            let subject = || Subject::of(TargetKind::Resource, &request.uri);
            let record = self
                .begin_record("resources/unsubscribe", subject, &mut context)
                .await?;
            conclude(record, self.unsubscribe_in_variant(request, context).await)
        })
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
        mut context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Box::pin(async move {
            let subject = Subject::default;
            let record = self
                .begin_record("logging/setLevel", subject, &mut context)
                .await?;
            conclude(record, self.set_level_of_handlers(request, context).await)
        })
        .await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Box::pin(async move {
            let record = self
                .begin_record(&request.method, Subject::default, &mut context)
                .await?;
            let request = ClientRequest::CustomRequest(request);
            let answer = self
                .request_any(request, context, ErrorCode::METHOD_NOT_FOUND)
                .await;
            conclude(
                record,
                answer.and_then(|result| match result {
                    ServerResult::CustomResult(result) => Ok(result),
                    _ => Err(mismatched_result()),
                }),
            )
        })
        .await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Box::pin(async move {
            let subject = || Subject::of(TargetKind::Task, &request.task_id);
            let record = self
                .begin_record("tasks/get", subject, &mut context)
                .await?;
            let request = ClientRequest::GetTaskRequest(GetTaskRequest::new(request));
            let answer = self
                .request_any(request, context, ErrorCode::INVALID_PARAMS)
                .await;
            conclude(
                record,
                answer.and_then(|result| match result {
                    ServerResult::GetTaskResult(result) => Ok(result),
                    _ => Err(mismatched_result()),
                }),
            )
        })
        .await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Box::pin(async move {
            let subject = || Subject::of(TargetKind::Task, &request.task_id);
            let record = self
                .begin_record("tasks/update", subject, &mut context)
                .await?;
            let request = ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(request));
            let answer = self
                .request_any(request, context, ErrorCode::INVALID_PARAMS)
                .await;
            conclude(record, answer.map(drop))
        })
        .await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Box::pin(async move {
            let subject = || Subject::of(TargetKind::Task, &request.task_id);
            let record = self
                .begin_record("tasks/cancel", subject, &mut context)
                .await?;
            let request = ClientRequest::CancelTaskRequest(CancelTaskRequest::new(request));
            let answer = self
                .request_any(request, context, ErrorCode::INVALID_PARAMS)
                .await;
            conclude(record, answer.map(drop))
        })
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
