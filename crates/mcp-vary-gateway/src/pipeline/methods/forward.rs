//! Forwards a request to its server, with the context of its response.

use std::borrow::Cow;
use std::sync::{Arc, Weak};

use http::{HeaderName, HeaderValue};
use mcp_vary_catalog::index::{ServerIndex, ViewIndex};
use mcp_vary_results::shaper::Shaper;
use mcp_vary_upstream::sent_request::SentRequest;
use mcp_vary_upstream::{CallerId, OutOfBand, Request, UpstreamConnection};
use mcp_vary_view::UriMap;
use mcp_vary_wire::envelope;
use mcp_vary_wire::era::{self, ProgressTokens, UpstreamContext};
use mcp_vary_wire::handshake::Handshake;
use mcp_vary_wire::log_level::level_name;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::task_dialect;
use tokio::sync::OwnedSemaphorePermit;

use super::RequestContext;
use crate::mrtr::{self, INPUT_RESPONSES, InputRelay, RequestBinding, RoundTrip, read_responses};
use crate::pipeline::exchange::{
    ImplicitTask, InFlightRequest, Leases, ResponseContext, ResponsePlan, RetryState,
};
use crate::pipeline::method_action::MethodAction;
use crate::pipeline::methods::Dispatch;
use crate::pool::ConnectionUse;
use crate::pool::client_declarations::{declare_features, forwards_features};
use crate::pool::dedicated::DedicatedLease;
use crate::session::{BASE_CLASS, Session};

/// The result of a method's checks: where its request goes, and the plan for its response.
#[derive(Debug, Default)]
pub(crate) struct ForwardRequest {
    /// The server of the request.
    pub(crate) server: ServerIndex,
    /// The value of the header `Mcp-Name`.
    pub(crate) name: Option<String>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// What its request states are bound to.
    pub(crate) binding: Option<RequestBinding>,
    /// Whether it may be sent again when the server is lost.
    pub(crate) is_retryable: bool,
    /// Whether its server runs it as a task without the client's knowledge.
    pub(crate) implicit_task: bool,
    pub(crate) plan: ResponsePlan,
}

impl RequestContext<'_> {
    /// Sends the request to its server: on the connection of the class, or on a dedicated one.
    pub(crate) async fn forward(
        &mut self,
        view: ViewIndex,
        mut forwarding: ForwardRequest,
    ) -> Result<Dispatch, RpcError> {
        if let Some(record) = self.client.observation.record() {
            let server = self.server_name(forwarding.server);
            record.set_server(&server, forwarding.name.as_deref());
        }
        let finish = self.response_context(view, &mut forwarding)?;
        let round = self.round_trip(view, finish.request_state.as_ref())?;
        if let Some(record) = self.client.observation.record() {
            record.forwarded();
        }
        // How long a task takes says nothing of the requests about it.
        let is_call = !matches!(self.action, MethodAction::Task(_));
        let calls = &self.snapshot.calls;
        let mut counted = is_call.then(|| calls.begin(forwarding.server));
        match self.start(&mut forwarding, finish, round).await {
            Ok(mut running) => {
                running.observation.count(counted);
                Ok(Dispatch::InFlight(running))
            }
            Err(failure) => {
                if let Some(counted) = &mut counted {
                    counted.fail();
                }
                Err(failure)
            }
        }
    }

    /// Waits for the server and sends the request, or resumes the suspended call that the request continues.
    async fn start(
        &mut self,
        forwarding: &mut ForwardRequest,
        mut finish: Box<ResponseContext>,
        round: RoundTrip,
    ) -> Result<Box<InFlightRequest>, RpcError> {
        let source = Arc::clone(self.class.source(forwarding.server));
        let turn = source.connection.acquire().await?;
        if let RoundTrip::Suspended(call) = round {
            return self.continue_suspended(call, forwarding.server, turn, finish);
        }
        // The server of such a task is modern: it sends its requests in results, so it needs no dedicated connection.
        let has_task = finish.plan.task.as_ref();
        let dedicated = match has_task.is_some_and(|task| task.dialects.is_core_over_ext()) {
            true => None,
            false => self.dedicated_connection(forwarding.server).await?,
        };
        let line = Arc::clone(
            dedicated
                .as_ref()
                .map_or(&source.connection, DedicatedLease::connection),
        );
        if let Some(level) = finish.client.log_level {
            Box::pin(line.set_log_level_if_supported(level)).await;
        }
        let upstream = line.ready().await?;
        finish.upstream = upstream.handshake().era();
        round.resume_request(&mut self.request.params, finish.upstream)?;
        let (is_repeatable, is_by_task) = (forwarding.is_retryable, forwarding.implicit_task);
        let road = self.task_connection(&line, &finish);
        let sent = SentRequest {
            request: self.request(&upstream, &mut finish, forwarding),
            supervised: line,
            connection: upstream,
        };
        let by_task = is_by_task.then(|| {
            let tracker = self.snapshot.services.background_tasks.clone();
            Box::new(ImplicitTask::new(Arc::new(sent.clone()), tracker))
        });
        let taken = Leases {
            permit: Some(turn),
            dedicated,
            class: Some(ConnectionUse::new(&self.class)),
            task_connection: road,
            implicit_task: by_task,
        };
        self.send(sent, is_repeatable, taken, finish).await
    }

    /// The request to the server.
    fn request(
        &mut self,
        upstream: &UpstreamConnection,
        finish: &mut ResponseContext,
        forwarding: &mut ForwardRequest,
    ) -> Request {
        let sent_capabilities = self.sent_capabilities(forwarding.server, finish.upstream);
        let token = finish.progress.as_ref().map(|it| it.upstream.as_str());
        let sent_capabilities = sent_capabilities
            .as_deref()
            .unwrap_or_else(|| upstream.capabilities());
        let (handshake, plan) = (Some(upstream.handshake()), &mut finish.plan);
        self.leave_shaping(forwarding.server, handshake, sent_capabilities, plan);
        let task = finish.plan.task.as_ref();
        let upward = UpstreamContext {
            revision: upstream.handshake().revision,
            capabilities: &match task.is_some_and(|task| task.dialects.is_core_over_ext()) {
                true => task_dialect::with_extension(sent_capabilities),
                false => Cow::Borrowed(sent_capabilities),
            },
            progress_token: token,
            log_level: finish.client.log_level.map(level_name),
        };
        self.relate_upward();
        let params = era::to_upstream_params(&mut self.request.params, &upward);
        let method = self.action.round_trip_method().map(Cow::Borrowed);
        let method = method.unwrap_or_else(|| Cow::Owned(self.request.method.to_owned()));
        let mut request = Request::new(method, Some(params));
        request.progress_token = token.map(str::to_owned);
        request.name = forwarding.name.take();
        request.param_headers = std::mem::take(&mut forwarding.headers);
        request.caller = Some(CallerId(self.client.id));
        request.out_of_band = self.out_of_band_sink(finish.client.log_level);
        request
    }

    /// The receiver of the server's messages outside of the call, such as logs: a session until its end, other clients
    /// until the answer if they want logs.
    fn out_of_band_sink(&self, log_level: Option<u8>) -> OutOfBand {
        match (&self.client.session, log_level) {
            (Some(session), _) => {
                let session: Weak<Session> = Arc::downgrade(session);
                OutOfBand::Client(session)
            }
            (None, Some(_)) => OutOfBand::Call,
            (None, None) => OutOfBand::Discard,
        }
    }

    /// The capabilities that a server of `era` gets with the request, if they may differ from those of the class: a
    /// class may have clients with other capabilities, and a server without sessions gets those of each client.
    pub(crate) fn sent_capabilities(&self, server: ServerIndex, era: Era) -> Option<Arc<str>> {
        let forwardable = &*self.client.forwardable;
        let may_differ = era == Era::Modern && forwardable != BASE_CLASS;
        let classes = &self.snapshot.pool;
        may_differ.then(|| classes.capabilities_for(&self.class, server, forwardable))
    }

    /// Leaves the shaping of the result to the server if that negotiates content itself, and got the client's feature
    /// tags with the `declared` capabilities: nothing is shaped twice.
    pub(crate) fn leave_shaping(
        &self,
        server: ServerIndex,
        handshake: Option<&Handshake>,
        declared: &str,
        plan: &mut ResponsePlan,
    ) {
        let config = self.class.source(server).connection.config();
        let (true, Some(features)) = (forwards_features(config), &self.client.features) else {
            return;
        };
        if handshake.is_some_and(Handshake::negotiates_content)
            && declare_features(declared, features)
        {
            plan.shape = plan.shape.take().and_then(Shaper::after_server);
        }
    }

    /// Sends the request, and retains it if it may have to be sent again.
    async fn send(
        &self,
        sent: SentRequest,
        is_repeatable: bool,
        taken: Leases,
        finish: Box<ResponseContext>,
    ) -> Result<Box<InFlightRequest>, RpcError> {
        let is_relayed = self.relays_input(finish.upstream);
        let kept = (is_repeatable || is_relayed).then(|| Arc::new(sent.clone()));
        let exchange = sent.connection.request(sent.request).await?;
        let services = Arc::clone(&self.snapshot.services.exchange);
        let mut running = Box::new(InFlightRequest::new(services, exchange, taken, finish));
        if let Some(sent) = kept.as_ref().filter(|_| is_relayed) {
            let limit = self.snapshot.config.limits.max_rounds;
            running.relay_with(InputRelay::new(Arc::clone(sent), limit));
        }
        if let Some(sent) = kept.filter(|_| is_repeatable) {
            running.retry_with(RetryState::new(sent));
        }
        Ok(running)
    }

    /// Leases the client's dedicated connection, if the server could send requests before it answers.
    ///
    /// Modern servers send requests in results. A server that speaks both eras can send them to a client with a session
    /// directly, as it would without a gateway.
    pub(crate) async fn dedicated_connection(
        &self,
        server: ServerIndex,
    ) -> Result<Option<DedicatedLease>, RpcError> {
        if !self.class.accepts_server_requests {
            return Ok(None);
        }
        let shared = self.class.shared().source(server);
        let upstream = shared.connection.ready().await?;
        if upstream.handshake().era() == Era::Modern {
            let may_ask = || shared.connection.server_facts().may_support(Era::Legacy);
            if self.client.session.is_none() || !may_ask() {
                return Ok(None);
            }
        }
        let classes = &self.snapshot.pool;
        let held = classes.lease_dedicated(&self.class, server, self.client)?;
        held.ready().await?;
        held.mirror_subscriptions(shared).await;
        Ok(Some(held))
    }

    /// The context that turns the server's answer into the client's; boxed, since it passes through many futures.
    pub(crate) fn response_context(
        &self,
        view: ViewIndex,
        forwarding: &mut ForwardRequest,
    ) -> Result<Box<ResponseContext>, RpcError> {
        let mut client = self.client.clone();
        client.log_level = self.log_level()?;
        let mut downward = std::mem::take(&mut forwarding.plan);
        downward.origin = downward.origin.filter(|_| self.snapshot.follows_links());
        let subject = forwarding.binding.take();
        Ok(Box::new(ResponseContext {
            id: self.request.id.to_owned(),
            client,
            active_variant: self.variant_for_errors(view),
            action: self.action,
            server: self.server_name(forwarding.server),
            source: self.source_name(forwarding.server),
            plan: downward,
            uris: self.changed_uris(view),
            request_state: self.request_state_codec(view, forwarding.server, subject),
            // A placeholder until the connection is known. Servers of suspended calls are legacy.
            upstream: Era::Legacy,
            progress: self.progress()?,
        }))
    }

    /// The URIs that the variant changed, if any.
    pub(crate) fn changed_uris(&self, view: ViewIndex) -> Option<Arc<UriMap>> {
        let uris = self.variant_set().uris(view);
        (!uris.is_empty()).then(|| Arc::clone(uris))
    }

    fn progress(&self) -> Result<Option<ProgressTokens>, RpcError> {
        let Some(theirs) = self.request.params.meta.get(era::PROGRESS_TOKEN) else {
            return Ok(None);
        };
        if !envelope::is_id(theirs) {
            let why = "`_meta.progressToken` must be a string or an integer";
            return Err(RpcError::invalid_params(why));
        }
        let theirs = theirs.to_owned();
        let ours = self
            .snapshot
            .services
            .exchange
            .progress_tokens
            .next()
            .to_string();
        Ok(Some(ProgressTokens {
            upstream: ours,
            client: theirs,
        }))
    }

    /// Whether the input requests in results of a server of `era` are relayed to the client as requests.
    fn relays_input(&self, era: Era) -> bool {
        let is_between = era == Era::Modern && self.client.session.is_some();
        is_between && self.action.round_trip_method().is_some()
    }

    /// Resumes a suspended call with the client's responses.
    fn continue_suspended(
        &self,
        call: u64,
        server: ServerIndex,
        turn: OwnedSemaphorePermit,
        mut finish: Box<ResponseContext>,
    ) -> Result<Box<InFlightRequest>, RpcError> {
        let responses = read_responses(self.request.params.members.get(INPUT_RESPONSES))?;
        let services = &self.snapshot.services.exchange;
        let call = services
            .suspended_calls
            .take(call)
            .ok_or_else(mrtr::unknown_suspended_call)?;
        if let Some(dedicated) = &call.leases.dedicated {
            let connection = dedicated.connection();
            let handshake = connection.current();
            let handshake = handshake.as_deref().map(UpstreamConnection::handshake);
            let declared = &connection.config().capabilities;
            self.leave_shaping(server, handshake, declared, &mut finish.plan);
        }
        // The server knows only the token of the first request.
        finish.progress = match (finish.progress, &call.progress) {
            (Some(progress), Some(ours)) => Some(ProgressTokens {
                upstream: ours.clone(),
                ..progress
            }),
            _ => None,
        };
        let running =
            InFlightRequest::resumed(Arc::clone(services), call, &responses, turn, finish);
        Ok(Box::new(running))
    }
}
