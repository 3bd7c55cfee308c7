//! `ServerHandler` for [`VaryServer`]: selects the variant of each request and forwards the request
//! to its handler.
#![expect(
    deprecated,
    reason = "logging and legacy subscriptions are on their way out of the protocol, but clients have them"
)]

use std::borrow::Cow;
use std::sync::Arc;

use mcp_vary::error::{Era, Identifier};
use mcp_vary::extension::SERVER_VARIANT_META;
use mcp_vary::variant::VariantId;
use rmcp::model::{
    CacheScope, CallToolRequest, CallToolRequestParams, CallToolResponse, CancelTaskParams,
    CancelTaskRequest, CancelledNotification, CancelledNotificationParam, ClientNotification,
    ClientRequest, CompleteRequest, CompleteRequestParams, CompleteResult, CustomNotification,
    CustomRequest, CustomResult, DiscoverRequest, DiscoverResult, ErrorCode, GetPromptRequest,
    GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskRequest, GetTaskResult,
    InitializeRequest, InitializeRequestParams, InitializeResult, InitializedNotification,
    InputRequiredResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProgressNotification, ProgressNotificationParam,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, Reference,
    RootsListChangedNotification, ServerConfig, ServerResult, SetLevelRequest,
    SetLevelRequestParams, SubscribeRequest, SubscribeRequestParams, SubscriptionFilter,
    SubscriptionsListenRequest, SubscriptionsListenRequestParams, Tool, UnsubscribeRequest,
    UnsubscribeRequestParams, UpdateTaskParams, UpdateTaskRequest,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::json;

use super::errors::{mismatched_result, with_active_variant};
use super::features::{CalledTool, era, is_negotiating};
use super::pages::page;
use super::request_state::RequestStateCodec;
use super::resource_watch::ResourceWatch;
use super::session::BindError;
use super::tagging_peer::{NotificationSender, tagging_peer};
use super::variant_set::SelectedHandler;
use super::vary_server::{ActiveVariant, Handlers, VaryServer};

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
            let asked = ClientRequest::InitializeRequest(InitializeRequest::new(request.clone()));
            match handler.request(asked, context.clone()).await? {
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
        let asked = ClientRequest::DiscoverRequest(DiscoverRequest::default());
        let answer = first.request(asked, context.clone()).await?;
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
        let missing = Identifier::Tool(request.name.to_string());
        self.store_features(&mut context);
        tell_of_tool(&active, &request.name, &mut context);
        let mut request = active
            .handler
            .to_handler_call(request, &context, active.variant)
            .await?;
        let own = Identifier::Tool(request.name.to_string());
        active.check_permission(&context, &own, &missing)?;
        let arguments = request.arguments.as_ref();
        let seal = RequestStateCodec::new(self.variants(), &active, &own, arguments, &context);
        open_state(&active, seal.as_ref(), &mut request.request_state)?;
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(request));
        match ask(&active, request, missing, context).await? {
            ServerResult::CallToolResult(result) => Ok(result.into()),
            ServerResult::InputRequiredResult(result) => Ok(sealed(seal.as_ref(), result).into()),
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
        let missing = Identifier::Prompt(request.name.clone());
        self.store_features(&mut context);
        let mut request = active
            .handler
            .to_handler_prompt(request, &context, active.variant)
            .await?;
        let own = Identifier::Prompt(request.name.clone());
        active.check_permission(&context, &own, &missing)?;
        let arguments = request.arguments.as_ref();
        let seal = RequestStateCodec::new(self.variants(), &active, &own, arguments, &context);
        open_state(&active, seal.as_ref(), &mut request.request_state)?;
        let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(request));
        match ask(&active, request, missing, context).await? {
            ServerResult::GetPromptResult(result) => Ok(result.into()),
            ServerResult::InputRequiredResult(result) => Ok(sealed(seal.as_ref(), result).into()),
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
        let missing = Identifier::Resource(request.uri.clone());
        active
            .handler
            .check_uri_visible(&missing, era, active.variant)?;
        active.check_permission(&context, &missing, &missing)?;
        let seal = RequestStateCodec::new(self.variants(), &active, &missing, None, &context);
        open_state(&active, seal.as_ref(), &mut request.request_state)?;
        let answer = active
            .handler
            .handler
            .read_resource_directly(request, context)
            .await;
        match answer.map_err(|error| active.describe_error(error, missing, era))? {
            ReadResourceResponse::Complete(mut result) => {
                if active.variant.is_some() && era == Era::Modern {
                    (result.ttl_ms, result.cache_scope) = (Some(0), Some(CacheScope::Private));
                }
                Ok(result.into())
            }
            ReadResourceResponse::InputRequired(result) => Ok(sealed(seal.as_ref(), result).into()),
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
        let answer = active.handler.handler.request(request, context).await;
        match answer.map_err(|error| with_active_variant(error, active.variant))? {
            ServerResult::CompleteResult(result) => Ok(result),
            _ => Err(mismatched_result()),
        }
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let client = context.peer.clone();
        let active = self.begin_request(&mut context)?;
        let uri = request.uri.clone();
        let missing = Identifier::SubscribedResource(uri.clone());
        active
            .handler
            .check_uri_visible(&missing, Era::Legacy, active.variant)?;
        active.check_permission(&context, &missing, &missing)?;
        let is_new = match active.variant {
            None => false,
            Some(variant) => self
                .sessions
                .bind_subscription(&client, &uri, variant)
                .map_err(|unbound| not_bound(&unbound, &uri, variant))?,
        };
        let request = ClientRequest::SubscribeRequest(SubscribeRequest::new(request));
        let answer = active
            .handler
            .handler
            .request(request, context.clone())
            .await;
        match self.sessions.watch_for(&client, &active) {
            Some(watch) if answer.is_ok() => watch.add(&[uri], &client, &context).await,
            _ if answer.is_err() && is_new => {
                drop(self.sessions.remove_subscription(&client, &uri))
            }
            _ => {}
        }
        let about = |error| active.describe_error(error, missing, Era::Legacy);
        answer.map(drop).map_err(about).map_err(|mut error| {
            // Only `resources/read` has an error code of its own for unknown resources.
            if active.variant.is_some() && error.code == ErrorCode::RESOURCE_NOT_FOUND {
                error.code = ErrorCode::INVALID_PARAMS;
            }
            error
        })
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // Unsubscribe in the variant of the subscription, whatever the request selects.
        if let Some(variant) = self
            .sessions
            .remove_subscription(&context.peer, &request.uri)
        {
            context
                .meta
                .insert(SERVER_VARIANT_META.to_owned(), json!(variant));
        }
        // Unsubscribing does not change the variant, so it does not count as a switch.
        self.check_required(&context)?;
        let active = self.select_variant(&context)?;
        self.prepare_context(&active, &mut context);
        let request = ClientRequest::UnsubscribeRequest(UnsubscribeRequest::new(request));
        let answer = active.handler.handler.request(request, context).await;
        match active.variant {
            // "Always succeeds": the client is not subscribed afterwards in any case.
            Some(_) => Ok(()),
            None => answer.map(drop),
        }
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let accepted = self
            .distinct_handlers()
            .into_iter()
            .filter_map(|handler| handler.accepted_filter(requested));
        accepted.reduce(either)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.check_required(context.request_context())?;
        let active = self.select_variant(context.request_context())?;
        self.record_selection(&active, context.request_context())?;
        let Some(variant) = active.variant else {
            return active.handler.handler.listen(context).await;
        };
        let mut inner = context.request_context().clone();
        inner.extensions.insert(ActiveVariant(variant.clone()));
        let watch = Arc::new(ResourceWatch::new(
            active.handler.clone(),
            active.permission.cloned(),
        ));
        let mut accepted = context.accepted().clone();
        if let Some(uris) = &accepted.resource_subscriptions {
            watch.add(uris, &inner.peer, &inner).await;
            // The watch needs it; the client receives only what it asked for.
            accepted.resources_list_changed = Some(true);
        }
        let outlet = NotificationSender::Stream(context.sink().clone());
        let peer = tagging_peer(&inner.peer, outlet, variant.clone(), watch);
        inner.peer = peer.peer().clone();
        let accepted = SubscriptionsListenRequestParams::new(accepted);
        let request = SubscriptionsListenRequest::new(accepted);
        let request = ClientRequest::SubscriptionsListenRequest(request);
        match active.handler.handler.request(request, inner).await {
            Ok(_) => Ok(()),
            // Another variant's handler has notifications to send, this one has none.
            Err(error) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                context.cancelled().await;
                Ok(())
            }
            Err(error) => Err(with_active_variant(error, Some(variant))),
        }
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        // There is no context here, so only a tool that is the same in every variant can be
        // returned.
        match &self.state.handlers {
            Handlers::Single(face) => face.get_tool(name),
            Handlers::Variants(offers) => {
                let mut tools = offers.handlers.iter().map(|face| face.get_tool(name));
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
            .ask_any(request, context, ErrorCode::METHOD_NOT_FOUND)
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
            .ask_any(request, context, ErrorCode::INVALID_PARAMS)
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
        self.ask_any(request, context, ErrorCode::INVALID_PARAMS)
            .await
            .map(drop)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let request = ClientRequest::CancelTaskRequest(CancelTaskRequest::new(request));
        self.ask_any(request, context, ErrorCode::INVALID_PARAMS)
            .await
            .map(drop)
    }

    async fn on_cancelled(
        &self,
        params: CancelledNotificationParam,
        context: NotificationContext<RoleServer>,
    ) {
        let notification = CancelledNotification::new(params);
        self.tell(
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
        self.tell(
            ClientNotification::ProgressNotification(notification),
            context,
        )
        .await;
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let notification = InitializedNotification::default();
        self.tell(
            ClientNotification::InitializedNotification(notification),
            context,
        )
        .await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        let notification = RootsListChangedNotification::default();
        self.tell(
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
        self.tell(
            ClientNotification::CustomNotification(notification),
            context,
        )
        .await;
    }
}

impl VaryServer {
    /// Sends `notification` to every handler.
    async fn tell(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) {
        for handler in self.distinct_handlers() {
            if let Err(error) = handler.notify(notification.clone(), context.clone()).await {
                tracing::debug!(%error, "notification rejected by a handler");
            }
        }
    }

    /// Sends a request to each handler until one returns something other than the error `unknown`.
    /// Tasks and custom requests belong to one handler, whatever the selected variant.
    async fn ask_any(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
        unknown: ErrorCode,
    ) -> Result<ServerResult, ErrorData> {
        self.check_required(&context)?;
        let mut first = None;
        for handler in self.distinct_handlers() {
            match handler.request(request.clone(), context.clone()).await {
                Err(error)
                    if error.code == unknown || error.code == ErrorCode::METHOD_NOT_FOUND =>
                {
                    first.get_or_insert(error);
                }
                answer => return answer,
            }
        }
        Err(first.unwrap_or_else(mismatched_result))
    }
}

/// Sends a request that names `what` to the selected handler.
async fn ask(
    active: &SelectedHandler<'_>,
    request: ClientRequest,
    what: Identifier,
    context: RequestContext<RoleServer>,
) -> Result<ServerResult, ErrorData> {
    let era = era(&context);
    let answer = active.handler.handler.request(request, context).await;
    answer.map_err(|error| active.describe_error(error, what, era))
}

/// Replaces the sealed state by the handler's. If no state can have been sealed, the handler gets
/// none.
fn open_state(
    active: &SelectedHandler<'_>,
    seal: Option<&RequestStateCodec<'_>>,
    state: &mut Option<String>,
) -> Result<(), ErrorData> {
    match seal {
        Some(seal) => seal.open(state),
        None => {
            state.take_if(|_| active.variant.is_some());
            Ok(())
        }
    }
}

fn sealed(
    seal: Option<&RequestStateCodec<'_>>,
    mut result: InputRequiredResult,
) -> InputRequiredResult {
    if let Some(seal) = seal {
        seal.seal(&mut result);
    }
    result
}

/// Stores the listed properties of the called tool, if the client negotiates content.
fn tell_of_tool(
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

fn not_bound(unbound: &BindError, uri: &str, active: &VariantId) -> ErrorData {
    match unbound {
        BindError::OtherVariant(bound) => ErrorData::invalid_params(
            "Resource is subscribed in another variant; unsubscribe first",
            Some(json!({"uri": uri, "activeVariant": active, "subscribedVariant": bound})),
        ),
        BindError::TooManySubscriptions => ErrorData::invalid_params(
            "Too many subscriptions in this session",
            Some(json!({"uri": uri, "activeVariant": active})),
        ),
    }
}

fn either(one: SubscriptionFilter, other: SubscriptionFilter) -> SubscriptionFilter {
    let mut all = one;
    all.tools_list_changed = all.tools_list_changed.max(other.tools_list_changed);
    all.prompts_list_changed = all.prompts_list_changed.max(other.prompts_list_changed);
    all.resources_list_changed = all.resources_list_changed.max(other.resources_list_changed);
    let uris = other.resource_subscriptions.into_iter().flatten();
    for uri in uris {
        let known = all.resource_subscriptions.get_or_insert_default();
        if !known.contains(&uri) {
            known.push(uri);
        }
    }
    all
}
