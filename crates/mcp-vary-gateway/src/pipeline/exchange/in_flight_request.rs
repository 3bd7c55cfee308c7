//! A request in flight, and how it ends.

use std::sync::Arc;

use mcp_vary_base::memory_budget::Lease;
use mcp_vary_upstream::Exchange;
use mcp_vary_wire::response::RpcError;

use super::leases::Leases;
use super::response::{ResponseContext, ResponseEvent};
use super::retry::RetryState;
use super::services::ExchangeServices;
use crate::mrtr::{InputRelay, InputRequests};
use crate::pipeline::request::MethodAction;
use crate::pool::dedicated::{self, DedicatedLease};
use mcp_vary_observation::ExchangeObservation;
use mcp_vary_session::InFlightGuard;
use mcp_vary_session::client::Client;
use mcp_vary_session::pending_server_requests::ForwardedServerRequest;

/// A request that was forwarded and is not answered yet.
#[derive(Debug)]
pub(crate) struct InFlightRequest {
    /// `None` while the server is lost, or the client has requests to answer.
    pub(super) exchange: Option<Exchange>,
    pub(super) leases: Leases,
    /// Sends the request again, if that is safe and no message was forwarded yet.
    pub(crate) retry: Option<RetryState>,
    pub(super) response: Box<ResponseContext>,
    /// The server's requests that the client has not answered.
    pub(super) pending_server_requests: Vec<ForwardedServerRequest>,
    /// Relays input requests of a modern server to a legacy client.
    pub(crate) relay: Option<InputRelay>,
    /// Requests of a legacy server that a modern client has not answered.
    pub(super) input: InputRequests,
    /// The registration in the client's session, by which the client can cancel; `None` for modern HTTP.
    pub(crate) in_flight_guard: Option<InFlightGuard>,
    /// The memory of the client's message.
    pub(crate) memory: Option<Lease>,
    /// What the audit log, the log, experiments and counters see of it.
    pub(crate) observation: ExchangeObservation,
    pub(crate) services: Arc<ExchangeServices>,
}

impl InFlightRequest {
    pub(crate) fn new(
        services: Arc<ExchangeServices>,
        exchange: Exchange,
        leases: Leases,
        response: Box<ResponseContext>,
    ) -> Box<Self> {
        let is_tool_call = matches!(response.action, MethodAction::CallTool);
        let observation = ExchangeObservation::new(&response.client.observation, is_tool_call);
        Box::new(Self {
            exchange: Some(exchange),
            leases,
            retry: None,
            response,
            pending_server_requests: Vec::new(),
            relay: None,
            input: InputRequests::default(),
            in_flight_guard: None,
            memory: None,
            observation,
            services,
        })
    }

    pub(super) fn fail(&mut self, failure: &RpcError) -> ResponseEvent {
        self.end();
        ResponseEvent::Done(self.response.failed(failure))
    }

    pub(super) fn cancel_by_client(&mut self) -> ResponseEvent {
        self.abandon("cancelled by the client");
        self.response.cancelled()
    }

    /// Returns the leases: the server has finished, even if the client has not read the answer yet.
    pub(super) fn end(&mut self) {
        self.exchange = None;
        self.retry = None;
        self.relay = None;
        self.pending_server_requests.clear();
        self.leases = Leases::default();
    }

    /// Ends the request without an answer, and cancels it at the server with this `reason`.
    pub(crate) fn abandon(&mut self, reason: &str) {
        // Over stdio a server's request does not name its call: it may belong to another one.
        if self
            .leases
            .dedicated
            .as_ref()
            .is_some_and(DedicatedLease::has_others)
        {
            self.abandon_server_requests();
        }
        if let Some(exchange) = self.exchange.take() {
            exchange.cancel(Some(reason));
        }
        self.end();
    }

    /// Lets the server's requests wait for their answers after the request has ended.
    pub(super) fn abandon_server_requests(&mut self) {
        let Some(session) = &self.response.client.session else {
            return;
        };
        for request in std::mem::take(&mut self.pending_server_requests) {
            let session = Arc::clone(session);
            let shutdown = self.services.shutdown.clone();
            let waiting = async move { dedicated::wait(request, &session).await };
            let waiting = shutdown.run_until_cancelled_owned(waiting);
            self.services.background_tasks.spawn(waiting);
        }
    }

    /// The client of the request.
    pub(crate) fn client(&self) -> &Client {
        &self.response.client
    }

    /// The client's id of the request, JSON text.
    pub(crate) fn id(&self) -> &str {
        &self.response.id
    }
}

/// The output of a future; `None` when the client cancels the request or ends its session first.
pub(super) async fn unless_cancelled<T>(
    guard: Option<&InFlightGuard>,
    work: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased;
        () = cancelled(guard) => None,
        output = work => Some(output),
    }
}

/// Waits until the client cancels the request or ends its session.
pub(crate) async fn cancelled(guard: Option<&InFlightGuard>) {
    match guard {
        Some(guard) => guard.cancelled().await,
        None => std::future::pending().await,
    }
}
