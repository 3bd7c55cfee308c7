//! Every method of the protocol, from the client to the handler that answers it.
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

use super::features::{CalledTool, era, is_remembered};
use super::list::page;
use super::offers::Active;
use super::session::Unbound;
use super::state::StateSeal;
use super::tag::{Outlet, tagging_peer};
use super::vary::{ActiveVariant, Faces, Vary};
use super::watch::Watch;
use super::wire::{unexpected, with_active_variant};

impl ServerHandler for Vary {
    fn get_info(&self) -> ServerConfig {
        let mut info = self
            .handlers()
            .first()
            .map(|handler| handler.info())
            .unwrap_or_default();
        info.capabilities = self.capabilities(info.capabilities);
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.versions()
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        self.check_handshake(&request.capabilities)?;
        context.peer.set_peer_info(request.clone());
        let mut first = None;
        for handler in self.handlers() {
            let asked = ClientRequest::InitializeRequest(InitializeRequest::new(request.clone()));
            match handler.request(asked, context.clone()).await? {
                ServerResult::InitializeResult(result) => first = first.or(Some(result)),
                _ => return Err(unexpected()),
            }
        }
        let mut result = first.ok_or_else(unexpected)?;
        if self.handlers().len() > 1 {
            result.protocol_version = self.negotiate_initialize(&request)?.protocol_version;
        }
        result.capabilities = self.capabilities(result.capabilities);
        self.advertise(&mut result.capabilities, &context);
        Ok(result)
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let first = self.handlers().first().copied().ok_or_else(unexpected)?;
        let asked = ClientRequest::DiscoverRequest(DiscoverRequest::default());
        let answer = first.request(asked, context.clone()).await?;
        let ServerResult::DiscoverResult(mut result) = answer else {
            return Err(unexpected());
        };
        if self.handlers().len() > 1 {
            result.supported_versions = self.versions().into_owned();
        }
        result.capabilities = self.capabilities(result.capabilities);
        self.advertise(&mut result.capabilities, &context);
        if self.offers().is_some() {
            (result.ttl_ms, result.cache_scope) = (0, CacheScope::Private);
        }
        Ok(result)
    }

    async fn list_tools(
        &self,
        params: Option<PaginatedRequestParams>,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let active = self.enter(&mut context)?;
        page(self.offers(), &active, params, context).await
    }

    async fn list_prompts(
        &self,
        params: Option<PaginatedRequestParams>,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let active = self.enter(&mut context)?;
        page(self.offers(), &active, params, context).await
    }

    async fn list_resources(
        &self,
        params: Option<PaginatedRequestParams>,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let active = self.enter(&mut context)?;
        page(self.offers(), &active, params, context).await
    }

    async fn list_resource_templates(
        &self,
        params: Option<PaginatedRequestParams>,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let active = self.enter(&mut context)?;
        page(self.offers(), &active, params, context).await
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let active = self.enter(&mut context)?;
        let missing = Identifier::Tool(request.name.to_string());
        self.keep_features(&mut context);
        tell_of_tool(&active, &request.name, &mut context);
        let mut request = active.face.call(request, &context, active.variant).await?;
        let own = Identifier::Tool(request.name.to_string());
        active.check(&context, &own, &missing)?;
        let arguments = request.arguments.as_ref();
        let seal = StateSeal::new(self.offers(), &active, &own, arguments, &context);
        open_state(&active, seal.as_ref(), &mut request.request_state)?;
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(request));
        match ask(&active, request, missing, context).await? {
            ServerResult::CallToolResult(result) => Ok(result.into()),
            ServerResult::InputRequiredResult(result) => Ok(sealed(seal.as_ref(), result).into()),
            ServerResult::CreateTaskResult(result) => Ok(CallToolResponse::Task(result)),
            _ => Err(unexpected()),
        }
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let active = self.enter(&mut context)?;
        let missing = Identifier::Prompt(request.name.clone());
        self.keep_features(&mut context);
        let mut request = active
            .face
            .prompt(request, &context, active.variant)
            .await?;
        let own = Identifier::Prompt(request.name.clone());
        active.check(&context, &own, &missing)?;
        let arguments = request.arguments.as_ref();
        let seal = StateSeal::new(self.offers(), &active, &own, arguments, &context);
        open_state(&active, seal.as_ref(), &mut request.request_state)?;
        let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(request));
        match ask(&active, request, missing, context).await? {
            ServerResult::GetPromptResult(result) => Ok(result.into()),
            ServerResult::InputRequiredResult(result) => Ok(sealed(seal.as_ref(), result).into()),
            _ => Err(unexpected()),
        }
    }

    async fn read_resource(
        &self,
        mut request: ReadResourceRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let active = self.enter(&mut context)?;
        let era = era(&context);
        let missing = Identifier::Resource(request.uri.clone());
        active.face.check_uri(&missing, era, active.variant)?;
        active.check(&context, &missing, &missing)?;
        let seal = StateSeal::new(self.offers(), &active, &missing, None, &context);
        open_state(&active, seal.as_ref(), &mut request.request_state)?;
        let answer = active.face.handler.read(request, context).await;
        match answer.map_err(|error| active.about(error, missing, era))? {
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
        let active = self.enter(&mut context)?;
        request.r#ref = active
            .face
            .reference(request.r#ref, &context, active.variant)
            .await?;
        let named = match &request.r#ref {
            Reference::Prompt(prompt) => Some(Identifier::Prompt(prompt.name.clone())),
            Reference::Resource(template) => Some(Identifier::Resource(template.uri.clone())),
            _ => None,
        };
        if let Some(named) = named {
            active.check(&context, &named, &named)?;
        }
        let request = ClientRequest::CompleteRequest(CompleteRequest::new(request));
        let answer = active.face.handler.request(request, context).await;
        match answer.map_err(|error| with_active_variant(error, active.variant))? {
            ServerResult::CompleteResult(result) => Ok(result),
            _ => Err(unexpected()),
        }
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let client = context.peer.clone();
        let active = self.enter(&mut context)?;
        let uri = request.uri.clone();
        let missing = Identifier::SubscribedResource(uri.clone());
        active
            .face
            .check_uri(&missing, Era::Legacy, active.variant)?;
        active.check(&context, &missing, &missing)?;
        let is_new = match active.variant {
            None => false,
            Some(variant) => self
                .sessions
                .subscribe(&client, &uri, variant)
                .map_err(|unbound| not_bound(&unbound, &uri, variant))?,
        };
        let request = ClientRequest::SubscribeRequest(SubscribeRequest::new(request));
        let answer = active.face.handler.request(request, context.clone()).await;
        match self.sessions.watch(&client, &active) {
            Some(watch) if answer.is_ok() => watch.add(&[uri], &client, &context).await,
            _ if answer.is_err() && is_new => drop(self.sessions.unsubscribe(&client, &uri)),
            _ => {}
        }
        let about = |error| active.about(error, missing, Era::Legacy);
        answer.map(drop).map_err(about).map_err(|mut error| {
            // Only a read has a code of its own for what is not there.
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
        // Of the variant that the subscription was made in, whatever is selected now.
        if let Some(variant) = self.sessions.unsubscribe(&context.peer, &request.uri) {
            context
                .meta
                .insert(SERVER_VARIANT_META.to_owned(), json!(variant));
        }
        // It changes no variant, so it is not counted as such.
        self.check_required(&context)?;
        let active = self.select(&context)?;
        self.prepare(&active, &mut context);
        let request = ClientRequest::UnsubscribeRequest(UnsubscribeRequest::new(request));
        let answer = active.face.handler.request(request, context).await;
        match active.variant {
            // "Always succeeds": the client is subscribed to nothing either way.
            Some(_) => Ok(()),
            None => answer.map(drop),
        }
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let accepted = self
            .handlers()
            .into_iter()
            .filter_map(|handler| handler.accepts(requested));
        accepted.reduce(either)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.check_required(context.request_context())?;
        let active = self.select(context.request_context())?;
        self.settle(&active, context.request_context())?;
        let Some(variant) = active.variant else {
            return active.face.handler.listen(context).await;
        };
        let mut inner = context.request_context().clone();
        inner.extensions.insert(ActiveVariant(variant.clone()));
        let watch = Arc::new(Watch::new(active.face.clone(), active.permits.cloned()));
        let mut accepted = context.accepted().clone();
        if let Some(uris) = &accepted.resource_subscriptions {
            watch.add(uris, &inner.peer, &inner).await;
            // For us; the client is told only what it asked for.
            accepted.resources_list_changed = Some(true);
        }
        let outlet = Outlet::Stream(context.sink().clone());
        let peer = tagging_peer(&inner.peer, outlet, variant.clone(), watch);
        inner.peer = peer.peer().clone();
        let accepted = SubscriptionsListenRequestParams::new(accepted);
        let request = SubscriptionsListenRequest::new(accepted);
        let request = ClientRequest::SubscriptionsListenRequest(request);
        match active.face.handler.request(request, inner).await {
            Ok(_) => Ok(()),
            // Another variant's handler has something to tell, this one has not.
            Err(error) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                context.cancelled().await;
                Ok(())
            }
            Err(error) => Err(with_active_variant(error, Some(variant))),
        }
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        // Asked without a context, so only what holds in every variant can be said.
        match &self.shared.faces {
            Faces::One(face) => face.tool(name),
            Faces::Many(offers) => {
                let mut tools = offers.faces.iter().map(|face| face.tool(name));
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
        for handler in self.handlers() {
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
            _ => Err(unexpected()),
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
            _ => Err(unexpected()),
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

impl Vary {
    /// Tells every handler.
    async fn tell(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) {
        for handler in self.handlers() {
            if let Err(error) = handler
                .notification(notification.clone(), context.clone())
                .await
            {
                tracing::debug!(%error, "notification refused");
            }
        }
    }

    /// The answer of the first handler that does not say `unknown`: what was asked for belongs to
    /// one of them, whatever the variant.
    async fn ask_any(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
        unknown: ErrorCode,
    ) -> Result<ServerResult, ErrorData> {
        self.check_required(&context)?;
        let mut first = None;
        for handler in self.handlers() {
            match handler.request(request.clone(), context.clone()).await {
                Err(error)
                    if error.code == unknown || error.code == ErrorCode::METHOD_NOT_FOUND =>
                {
                    first.get_or_insert(error);
                }
                answer => return answer,
            }
        }
        Err(first.unwrap_or_else(unexpected))
    }
}

/// The answer of the active face to a request that names `what`.
async fn ask(
    active: &Active<'_>,
    request: ClientRequest,
    what: Identifier,
    context: RequestContext<RoleServer>,
) -> Result<ServerResult, ErrorData> {
    let era = era(&context);
    let answer = active.face.handler.request(request, context).await;
    answer.map_err(|error| active.about(error, what, era))
}

/// The state as the handler made it. Where nothing can have been sealed, none reaches it.
fn open_state(
    active: &Active<'_>,
    seal: Option<&StateSeal<'_>>,
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

fn sealed(seal: Option<&StateSeal<'_>>, mut result: InputRequiredResult) -> InputRequiredResult {
    if let Some(seal) = seal {
        seal.seal(&mut result);
    }
    result
}

/// Tells a handler whose client negotiates what is listed of the tool that is called.
fn tell_of_tool(active: &Active<'_>, name: &str, context: &mut RequestContext<RoleServer>) {
    if !is_remembered(context) {
        return;
    }
    if let Some(tool) = active.face.tool(name) {
        context.extensions.insert(CalledTool::new(tool));
    }
}

fn not_bound(unbound: &Unbound, uri: &str, active: &VariantId) -> ErrorData {
    match unbound {
        Unbound::Elsewhere(bound) => ErrorData::invalid_params(
            "Resource is subscribed in another variant; unsubscribe first",
            Some(json!({"uri": uri, "activeVariant": active, "subscribedVariant": bound})),
        ),
        Unbound::TooMany => ErrorData::invalid_params(
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
