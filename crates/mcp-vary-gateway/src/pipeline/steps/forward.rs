//! Forwards a request to its server, with the context of its response: on the connection of its class, or on a dedicated one.

use super::{response_plan, round_trips, task_mode};
use crate::mrtr::{self, INPUT_RESPONSES, InputRelay, RoundTrip, read_responses};
use crate::pipeline::exchange::{
    ImplicitTask, InFlightRequest, Leases, ResponseContext, ResponsePlan, RetryState,
};
use crate::pipeline::request::MethodAction;
use crate::pipeline::request_context::{Dispatch, RequestContext, ViewScope};
use crate::pool::ConnectionUse;
use crate::pool::dedicated::DedicatedLease;
use crate::tasks::proxy::{TaskBounds, TaskConnection};
use http::{HeaderName, HeaderValue};
use mcp_vary::json;
use mcp_vary_catalog::index::{ServerIndex, ViewIndex};
use mcp_vary_metrics::Code;
use mcp_vary_session::{BASE_CLASS, Session};
use mcp_vary_traces::{CallSpan, Outcome, Upstream};
use mcp_vary_upstream::sent_request::SentRequest;
use mcp_vary_upstream::{
    Answer, CallerId, OutOfBand, Request, SupervisedConnection, UpstreamConnection,
};
use mcp_vary_wire::envelope;
use mcp_vary_wire::era::{self, ProgressTokens, UpstreamContext};
use mcp_vary_wire::log_level::{level_from_name, level_name};
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use std::borrow::Cow;
use std::sync::{Arc, Weak};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

/// The result of a method's checks: where its request goes, and the plan for its response.
#[derive(Debug)]
pub(crate) struct ForwardRequest {
    /// The view that the request runs under.
    pub(crate) view: ViewIndex,
    pub(crate) server: ServerIndex,
    /// The value of the header `Mcp-Name`.
    pub(crate) name: Option<Arc<str>>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// Whether it may be sent again when the server is lost.
    pub(crate) is_retryable: bool,
    /// Whether its server runs it as a task without the client's knowledge.
    pub(crate) is_implicit_task: bool,
    pub(crate) plan: ResponsePlan,
}

impl ForwardRequest {
    /// A request to `server` whose response stays as it is.
    pub(crate) fn new(view: ViewIndex, server: ServerIndex) -> Self {
        Self {
            view,
            server,
            name: None,
            headers: Vec::new(),
            is_retryable: false,
            is_implicit_task: false,
            plan: ResponsePlan::default(),
        }
    }
}

/// Sends the request to its server: on the connection of the class, or on a dedicated one.
pub(crate) async fn forward(
    context: &mut RequestContext<'_>,
    mut forwarding: ForwardRequest,
) -> Result<Dispatch, RpcError> {
    let scope = context.in_view(forwarding.view);
    let record = scope.client.observation.record();
    if let Some(record) = record {
        let server = scope.server_name(forwarding.server);
        record.set_server(&server, forwarding.name.as_ref());
    }
    forwarding.plan.log_level = log_level(&scope)?;
    forwarding.plan.progress = progress_tokens(&scope)?;
    let round_trip = round_trips::open(scope, forwarding.plan.request_state.as_ref())?;
    if let Some(record) = record {
        record.forwarded();
    }
    // How long a task takes says nothing of the requests about it.
    let is_call = !matches!(scope.action, MethodAction::Task(_));
    let is_tool_call = matches!(scope.action, MethodAction::CallTool);
    let tool = is_tool_call.then_some(forwarding.name.as_deref()).flatten();
    let calls = &scope.snapshot.calls;
    let labels = scope.client.observation.labels();
    let mut counted = is_call.then(|| calls.begin(forwarding.server, labels, tool));
    match start(context, forwarding, round_trip).await {
        Ok((mut in_flight, span)) => {
            in_flight.observation.sent(counted, span);
            Ok(Dispatch::InFlight(in_flight))
        }
        Err(failure) => {
            if let Some(counted) = &mut counted {
                counted.finish(Code::of_error(failure.code()), Instant::now());
            }
            Err(failure)
        }
    }
}

/// The context that turns the answer of an `upstream` server into the client's; boxed, since it passes through many futures.
pub(crate) fn response_context(
    scope: ViewScope<'_>,
    server: ServerIndex,
    mut plan: ResponsePlan,
    upstream: Era,
) -> Box<ResponseContext> {
    if !scope.snapshot.follows_links {
        plan.origin = None;
    }
    Box::new(ResponseContext {
        id: scope.request.id.to_owned(),
        client: Arc::clone(scope.client),
        active_variant: scope.variant_for_errors(),
        action: scope.action,
        server: scope.server_name(server),
        plan,
        uris: response_plan::changed_uris(scope),
        upstream,
    })
}

/// Waits for the server and sends the request, or resumes the suspended call that the request continues. The span is that of
/// a request that was sent.
async fn start(
    context: &mut RequestContext<'_>,
    forwarding: ForwardRequest,
    round_trip: RoundTrip,
) -> Result<(Box<InFlightRequest>, Option<CallSpan>), RpcError> {
    let source = Arc::clone(context.class.source(forwarding.server));
    let permit = source.connection.acquire().await?;
    if let RoundTrip::Suspended(call) = round_trip {
        let resumed = resume_suspended(context, call, permit, forwarding)?;
        return Ok((resumed, None));
    }
    let leased = RequestConnection::to(context, forwarding.server).await?;
    if let Some(level) = forwarding.plan.log_level {
        Box::pin(leased.connection.set_log_level_if_supported(level)).await;
    }
    let upstream = leased.connection.ready().await?;
    round_trip.resume_request(&mut context.request.params, upstream.handshake().era())?;
    let name = forwarding.name.as_deref();
    let span = begin_span(context, &leased.connection, &upstream, name);
    let is_retryable = forwarding.is_retryable;
    let is_implicit_task = forwarding.is_implicit_task;
    let (request, response) = upstream_request(context, &upstream, forwarding, span.as_ref());
    let task_connection = task_connection(context, &leased.connection, &response);
    let sent = SentRequest {
        request,
        supervised: leased.connection,
        connection: upstream,
    };
    let implicit_task = is_implicit_task.then(|| {
        let tracker = context.snapshot.services.background_tasks.clone();
        Box::new(ImplicitTask::new(Arc::new(sent.clone()), tracker))
    });
    let leases = Leases {
        implicit_task,
        permit: Some(permit),
        dedicated: leased.dedicated,
        class: Some(ConnectionUse::new(&context.class)),
        task_connection,
    };
    let sending = send(context, sent, is_retryable, leases, response).await;
    if let (Err(failure), Some(span)) = (&sending, &span) {
        span.end(Outcome::Error(failure.code()));
    }
    Ok((sending?, span))
}

/// Begins the span of the request to the server, and puts its context into `_meta`. Nothing changes for a request that is
/// not sampled, and whose context is in `_meta` or nowhere.
fn begin_span(
    context: &mut RequestContext<'_>,
    connection: &SupervisedConnection,
    upstream: &UpstreamConnection,
    name: Option<&str>,
) -> Option<CallSpan> {
    let span = context.client.observation.begin_call(|| {
        let config = connection.config();
        Upstream {
            server: &config.name,
            target: name,
            revision: upstream.handshake().revision.as_str(),
            address: config.target.host_and_port(),
        }
    });
    let meta = &mut context.request.params.meta;
    for (key, text) in span.iter().flat_map(|span| span.carrier().texts()) {
        match text {
            Some(text) => meta.set(key, json::string(text)),
            None => _ = meta.remove(key),
        }
    }
    span
}

/// The request to the server, and the context of its response.
fn upstream_request(
    context: &mut RequestContext<'_>,
    upstream: &UpstreamConnection,
    forwarding: ForwardRequest,
    span: Option<&CallSpan>,
) -> (Request, Box<ResponseContext>) {
    let server = forwarding.server;
    let mut plan = forwarding.plan;
    let handshake = upstream.handshake();
    let sent = sent_capabilities(context, server, handshake.era());
    let capabilities = sent.as_deref().unwrap_or_else(|| upstream.capabilities());
    response_plan::leave_to_server(context, server, Some(handshake), capabilities, &mut plan);
    let scope = context.in_view(forwarding.view);
    let response = response_context(scope, server, plan, handshake.era());
    let token = response
        .plan
        .progress
        .as_ref()
        .map(|tokens| tokens.upstream.as_str());
    let upstream_context = UpstreamContext {
        revision: handshake.revision,
        capabilities,
        progress_token: token,
        log_level: response.plan.log_level.map(level_name),
    };
    task_mode::rename_related_task(context);
    let params = era::to_upstream_params(&mut context.request.params, &upstream_context);
    let of_round_trip = context.action.round_trip_method().map(Cow::Borrowed);
    let method = of_round_trip.unwrap_or_else(|| Cow::Owned(context.request.method.to_owned()));
    let mut request = Request::new(method, Some(params));
    request.progress_token = token.map(str::to_owned);
    request.name = forwarding.name;
    request.param_headers = forwarding.headers;
    let texts = span.into_iter().flat_map(|span| span.carrier().texts());
    let trace_headers = texts.filter_map(|(key, text)| {
        // What is not valid in a header is in `_meta` alone.
        let value = HeaderValue::from_str(text?).ok()?;
        Some((HeaderName::from_static(key), value))
    });
    request.trace_headers = trace_headers.collect();
    request.caller = Some(CallerId(context.client.id));
    let memory = &context.snapshot.services.memory;
    request.memory = Some(memory.answers_to(context.client.quota_key()));
    request.token = context.client.access_token().cloned();
    request.out_of_band = out_of_band_sink(context, response.plan.log_level);
    (request, response)
}

/// Sends the request, and retains it if it may have to be sent again.
async fn send(
    context: &RequestContext<'_>,
    sent: SentRequest,
    is_retryable: bool,
    leases: Leases,
    response: Box<ResponseContext>,
) -> Result<Box<InFlightRequest>, RpcError> {
    let is_relayed = relays_input(context, response.upstream);
    let retained = (is_retryable || is_relayed).then(|| Arc::new(sent.clone()));
    let exchange = sent.connection.request(sent.request).await?;
    let services = Arc::clone(&context.snapshot.services.exchange);
    let mut in_flight = InFlightRequest::new(services, exchange, leases, response);
    if is_relayed && let Some(sent) = &retained {
        let limit = context.snapshot.config.limits.max_rounds;
        in_flight.relay = Some(InputRelay::new(Arc::clone(sent), limit));
    }
    if is_retryable && let Some(sent) = retained {
        in_flight.retry = Some(RetryState::new(sent));
    }
    Ok(in_flight)
}

/// Resumes a suspended call with the client's responses.
fn resume_suspended(
    context: &RequestContext<'_>,
    call: u64,
    permit: OwnedSemaphorePermit,
    forwarding: ForwardRequest,
) -> Result<Box<InFlightRequest>, RpcError> {
    let server = forwarding.server;
    let mut plan = forwarding.plan;
    let responses = read_responses(context.request.params.members.get(INPUT_RESPONSES))?;
    let services = &context.snapshot.services.exchange;
    let suspended = services.suspended_calls.take(call);
    let call = suspended.ok_or_else(mrtr::unknown_suspended_call)?;
    if let Some(dedicated) = &call.leases.dedicated {
        let connection = dedicated.connection();
        let current = connection.current();
        let handshake = current.as_deref().map(UpstreamConnection::handshake);
        let declared = &connection.config().capabilities;
        response_plan::leave_to_server(context, server, handshake, declared, &mut plan);
    }
    // The server knows only the token of the first request.
    plan.progress = match (plan.progress, &call.progress) {
        (Some(progress), Some(first)) => Some(ProgressTokens {
            upstream: first.clone(),
            ..progress
        }),
        _ => None,
    };
    let scope = context.in_view(forwarding.view);
    // Servers of suspended calls are legacy.
    let response = response_context(scope, server, plan, Era::Legacy);
    let services = Arc::clone(services);
    Ok(InFlightRequest::resumed(
        services, call, &responses, permit, response,
    ))
}

/// The connection of the task that a tool call may create, if the gateway has to proxy the task.
fn task_connection(
    context: &RequestContext<'_>,
    connection: &Arc<SupervisedConnection>,
    response: &ResponseContext,
) -> Option<Box<TaskConnection>> {
    let codec = response.plan.task.as_ref()?;
    let is_proxied = codec.is_proxied() && matches!(context.action, MethodAction::CallTool);
    is_proxied.then(|| {
        let bounds = TaskBounds::of(&context.snapshot.config.limits);
        let mut task_connection = TaskConnection::new(connection, bounds);
        task_connection.progress.clone_from(&response.plan.progress);
        Box::new(task_connection)
    })
}

/// The receiver of the server's messages outside of the call, such as logs: a session until its end, other clients
/// until the answer if they want logs.
fn out_of_band_sink(context: &RequestContext<'_>, log_level: Option<u8>) -> OutOfBand {
    match (&context.client.session, log_level) {
        (Some(session), _) => {
            let session: Weak<Session> = Arc::downgrade(session);
            OutOfBand::Client(session)
        }
        (None, Some(_)) => OutOfBand::Call,
        (None, None) => OutOfBand::Discard,
    }
}

/// Whether the input requests in results of a server of `era` are relayed to the client as requests.
fn relays_input(context: &RequestContext<'_>, era: Era) -> bool {
    let is_between = era == Era::Modern && context.client.session.is_some();
    is_between && context.action.round_trip_method().is_some()
}

/// The tokens of the progress that the client wants to see.
pub(crate) fn progress_tokens(
    context: &RequestContext<'_>,
) -> Result<Option<ProgressTokens>, RpcError> {
    let Some(client) = context.request.params.meta.get(era::PROGRESS_TOKEN) else {
        return Ok(None);
    };
    if !envelope::is_id(client) {
        let why = "`_meta.progressToken` must be a string or an integer";
        return Err(RpcError::invalid_params(why));
    }
    let tokens = &context.snapshot.services.exchange.progress_tokens;
    Ok(Some(ProgressTokens {
        upstream: tokens.next().to_string(),
        client: client.to_owned(),
    }))
}

/// The least severe level that the client wants logged for this request.
pub(crate) fn log_level(context: &RequestContext<'_>) -> Result<Option<u8>, RpcError> {
    if context.client.era() == Era::Legacy {
        let session = context.client.session.as_ref();
        return Ok(session.and_then(|session| session.log_level()));
    }
    let meta = &context.request.params.meta;
    if !meta.contains(era::LOG_LEVEL) {
        return Ok(None);
    }
    let name = meta.get_str(era::LOG_LEVEL);
    let level = name.and_then(|name| level_from_name(&name));
    let invalid =
        || RpcError::invalid_params(format!("`_meta.{}` is not a log level", era::LOG_LEVEL));
    level.map(Some).ok_or_else(invalid)
}

/// The connection on which a request goes to its server.
pub(crate) struct RequestConnection {
    pub(crate) connection: Arc<SupervisedConnection>,
    /// Its lease, if the client has it for itself.
    pub(crate) dedicated: Option<DedicatedLease>,
}

impl RequestConnection {
    /// The client's dedicated connection if the server could send requests before it answers, else that of the class.
    pub(crate) async fn to(
        context: &RequestContext<'_>,
        server: ServerIndex,
    ) -> Result<Self, RpcError> {
        Ok(match dedicated(context, server).await? {
            None => Self {
                connection: Arc::clone(&context.class.source(server).connection),
                dedicated: None,
            },
            Some(lease) => Self {
                connection: Arc::clone(lease.connection()),
                dedicated: Some(lease),
            },
        })
    }

    /// Sends a request that the gateway needs for that of the client, and waits for the answer.
    pub(crate) async fn ask(
        &self,
        context: &RequestContext<'_>,
        method: &'static str,
        params: String,
    ) -> Result<Answer, RpcError> {
        let _permit = self.connection.acquire().await?;
        let mut request = Request::new(method, Some(params));
        request.caller = Some(CallerId(context.client.id));
        request.token = context.client.access_token().cloned();
        let exchange = self.connection.ready().await?.request(request).await?;
        Ok(exchange.answer().await?)
    }
}

/// Leases the client's dedicated connection, if the server could send requests before it answers.
///
/// Modern servers send requests in results. A server that speaks both eras can send them to a client with a session
/// directly, as it would without a gateway.
pub(crate) async fn dedicated(
    context: &RequestContext<'_>,
    server: ServerIndex,
) -> Result<Option<DedicatedLease>, RpcError> {
    if !context.class.accepts_server_requests {
        return Ok(None);
    }
    let shared = context.class.shared().source(server);
    let upstream = shared.connection.ready().await?;
    if upstream.handshake().era() == Era::Modern {
        let may_be_legacy = || shared.connection.server_facts().may_support(Era::Legacy);
        if context.client.session.is_none() || !may_be_legacy() {
            return Ok(None);
        }
    }
    let pool = &context.snapshot.pool;
    let lease = pool.lease_dedicated(&context.class, server, context.client)?;
    if let Some(token) = context.client.access_token() {
        lease.connection().present(token).await;
    }
    lease.ready().await?;
    lease.mirror_subscriptions(shared).await;
    Ok(Some(lease))
}

/// The capabilities that a server of `era` gets with the request, if they may differ from those of the class: a
/// class may have clients with other capabilities, and a server without sessions gets those of each client.
pub(crate) fn sent_capabilities(
    context: &RequestContext<'_>,
    server: ServerIndex,
    era: Era,
) -> Option<Arc<str>> {
    let forwardable = &*context.client.forwardable;
    let may_differ = era == Era::Modern && forwardable != BASE_CLASS;
    let pool = &context.snapshot.pool;
    may_differ.then(|| pool.capabilities_for(&context.class, server, forwardable))
}
