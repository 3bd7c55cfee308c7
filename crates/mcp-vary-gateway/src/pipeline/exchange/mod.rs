//! A request in flight: its notifications and its answer, rewritten for the client.

mod failure;
mod implicit_task;
mod notification;
mod orphaned;
pub(crate) mod pump;
mod response;
mod retry;
mod server_requests;
mod services;
mod undeclared;
mod watching;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

pub(crate) use crate::pipeline::exchange::implicit_task::ImplicitTask;
pub(crate) use crate::pipeline::exchange::response::{ResponseContext, ResponsePlan};
pub(crate) use crate::pipeline::exchange::retry::RetryState;
use crate::pipeline::exchange::server_requests::server_request_ended;
pub(crate) use crate::pipeline::exchange::undeclared::UndeclaredMethod;
use crate::pipeline::request::MethodAction;

use crate::audit::ExchangeObservation;
use crate::mrtr::{InputRelay, InputRequests};
pub(crate) use crate::pipeline::exchange::orphaned::orphaned_for;
pub(crate) use crate::pipeline::exchange::services::ExchangeServices;
use crate::pool::ConnectionUse;
use crate::pool::dedicated::DedicatedLease;
use crate::session::InFlightGuard;
use crate::session::client::Client;
use crate::session::pending_server_requests::ForwardedServerRequest;
use crate::tasks::core_over_ext::{ResultWaiter, WaitEnd, WaitEvent};
use crate::tasks::proxy::TaskConnection;
use mcp_vary_base::memory_budget::Lease;
use mcp_vary_upstream::{Exchange, Message};
use mcp_vary_wire::response::{Reply, RpcError};

/// A request that was forwarded and is not answered yet.
#[derive(Debug)]
pub(crate) struct InFlightRequest {
    /// `None` while the server is lost, or the client has requests to answer.
    exchange: Option<Exchange>,
    leases: Leases,
    /// Sends the request again, if that is safe and no message was forwarded yet.
    retry: Option<RetryState>,
    response: Box<ResponseContext>,
    /// The server's requests that the client has not answered.
    pending_server_requests: Vec<ForwardedServerRequest>,
    /// Relays input requests of a modern server to a legacy client.
    relay: Option<InputRelay>,
    /// The task whose result the client waits for.
    task_result: Option<Box<ResultWaiter>>,
    /// Requests of a legacy server that a modern client has not answered.
    input: InputRequests,
    /// The registration in the client's session, by which the client can cancel; `None` for modern HTTP.
    in_flight_guard: Option<InFlightGuard>,
    /// The memory of the client's message.
    memory: Option<Lease>,
    /// What the audit log, the log, experiments and counters see of it.
    pub(crate) observation: ExchangeObservation,
    services: Arc<ExchangeServices>,
}

/// What a request leases until its server has answered.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    /// The task of a client without tasks; ended before the connection is returned.
    pub(crate) implicit_task: Option<Box<ImplicitTask>>,
    /// A permit for one of the server's concurrent calls.
    pub(crate) permit: Option<OwnedSemaphorePermit>,
    /// The dedicated connection, returned after the exchange has ended.
    pub(crate) dedicated: Option<DedicatedLease>,
    /// Keeps the connections of the client's class open.
    pub(crate) class: Option<ConnectionUse>,
    /// The connection to the server of a proxied task.
    pub(crate) task_connection: Option<Box<TaskConnection>>,
}

impl Leases {
    /// Keeps the connections open for `time` after the request.
    fn keep_for(&self, time: Duration) {
        match (&self.dedicated, &self.class) {
            (Some(dedicated), _) => dedicated.keep_for(time),
            (None, Some(class)) => class.keep_for(time),
            (None, None) => {}
        }
    }
}

/// The next message for the client.
#[derive(Debug)]
pub(crate) enum ResponseEvent {
    /// A whole message that is not the answer: a notification, or a request to the client.
    Message(Bytes),
    /// The response; nothing follows.
    Done(Reply),
    /// The client cancelled; there is no response.
    Cancelled,
}

impl InFlightRequest {
    pub(crate) fn new(
        services: Arc<ExchangeServices>,
        exchange: Exchange,
        leases: Leases,
        response: Box<ResponseContext>,
    ) -> Self {
        Self::with_leases(services, Some(exchange), leases, response)
    }

    /// A request that waits for the result of a task.
    pub(crate) fn awaiting(
        services: Arc<ExchangeServices>,
        waiter: ResultWaiter,
        leases: Leases,
        response: Box<ResponseContext>,
    ) -> Self {
        let mut running = Self::with_leases(services, None, leases, response);
        running.task_result = Some(Box::new(waiter));
        running
    }

    fn with_leases(
        services: Arc<ExchangeServices>,
        exchange: Option<Exchange>,
        leases: Leases,
        response: Box<ResponseContext>,
    ) -> Self {
        let is_tool_call = matches!(response.action, MethodAction::CallTool);
        let observation = ExchangeObservation::new(&response.client.observation, is_tool_call);
        Self {
            exchange,
            leases,
            retry: None,
            response,
            pending_server_requests: Vec::new(),
            relay: None,
            task_result: None,
            input: InputRequests::default(),
            in_flight_guard: None,
            memory: None,
            observation,
            services,
        }
    }

    /// Holds the request's registration in its session until the request has ended.
    pub(crate) fn hold_guard(&mut self, guard: Option<InFlightGuard>) {
        self.in_flight_guard = guard;
    }

    /// Holds the memory of the client's message until the request has ended.
    pub(crate) fn hold_memory(&mut self, memory: Lease) {
        self.memory = Some(memory);
    }

    /// The next notification, or the answer. Safe to drop while it waits.
    pub(crate) async fn next(&mut self) -> ResponseEvent {
        let event = self.next_event().await;
        match &event {
            ResponseEvent::Message(_) => self.observation.status_sent(),
            ResponseEvent::Done(reply) => self.observation.answered(reply),
            ResponseEvent::Cancelled => self.observation.cancelled(),
        }
        event
    }

    async fn next_event(&mut self) -> ResponseEvent {
        // Requests that the client has not answered are sent again.
        if !self.input.is_empty() {
            return self.wait_for_client();
        }
        loop {
            // The futures of rare events are boxed, so that the future of a call stays small.
            let step = match (&self.exchange, &self.relay) {
                (Some(_), _) => self.next_of_server().await,
                (None, Some(relay)) if relay.is_active() => Box::pin(self.next_round_event()).await,
                (None, _) if self.awaits_task() => Box::pin(self.wait_for_task()).await,
                (None, _) if self.task_result.is_some() => Box::pin(self.next_of_task()).await,
                (None, _) => Box::pin(self.resend()).await,
            };
            if let Some(step) = step {
                // A request is not sent again after the client got a message of it.
                self.retry = None;
                return step;
            }
        }
    }

    /// The server's next message, if it is for the client.
    async fn next_of_server(&mut self) -> Option<ResponseEvent> {
        let next = self.exchange.as_mut()?.next();
        let message = tokio::select! {
            biased;
            () = cancelled(self.in_flight_guard.as_ref()) => return Some(self.cancel_by_client()),
            at = server_request_ended(&self.pending_server_requests), if !self.pending_server_requests.is_empty() => {
                return self.pending_server_requests.swap_remove(at).cancel().map(ResponseEvent::Message);
            }
            message = next => message,
        };
        match message {
            Ok(Message::Notification(bytes)) => self
                .response
                .notification(bytes)
                .map(ResponseEvent::Message),
            Ok(Message::Request(request)) => self.forward_server_request(request),
            Ok(Message::Answer(answer)) => self.answered(answer.outcome()),
            Err(error) => self.connection_lost(error),
        }
    }

    /// The next message of the task whose result the client waits for.
    async fn next_of_task(&mut self) -> Option<ResponseEvent> {
        let waiter = self.task_result.as_mut()?;
        let next = waiter.next(&self.response.client);
        Some(
            match unless_cancelled(self.in_flight_guard.as_ref(), next).await {
                None => self.cancel_by_client(),
                Some(WaitEvent::Message(message)) => ResponseEvent::Message(message),
                Some(WaitEvent::End(WaitEnd::Result(result))) => self.done(Ok(&result)),
                Some(WaitEvent::End(WaitEnd::Error(error))) => self.done(Err(&error)),
                Some(WaitEvent::End(WaitEnd::Failed(failure))) => self.fail(&failure),
            },
        )
    }

    /// Handles the server's answer, which may only be a step towards the client's.
    fn answered(&mut self, outcome: Result<&str, &str>) -> Option<ResponseEvent> {
        if self.record_implicit_task(outcome) {
            return None;
        }
        match self.begin_round(outcome) {
            None => Some(self.done(outcome)),
            Some(Ok(())) => None,
            Some(Err(failure)) => Some(self.fail(&failure)),
        }
    }

    fn done(&mut self, outcome: Result<&str, &str>) -> ResponseEvent {
        if let Some(undeclared) = &self.response.plan.undeclared {
            undeclared.record(outcome);
        }
        if let Some(proxied) = outcome.ok().and_then(|result| self.watch(result)) {
            self.abandon_server_requests();
            self.end();
            return ResponseEvent::Done(proxied);
        }
        if let Some(lifetime) = outcome
            .ok()
            .and_then(|result| self.response.task_ttl(result))
        {
            self.leases.keep_for(lifetime);
        }
        if let Some(dedicated) = &self.leases.dedicated {
            dedicated.mark_clean();
        }
        let outcome = outcome.map(|result| self.without_related_task(result));
        self.abandon_server_requests();
        self.end();
        ResponseEvent::Done(match outcome {
            Ok(result) => {
                self.response.record_links(&result, &self.services);
                self.response.result(&result, &self.services)
            }
            Err(error) => self.response.error_response(error, &self.services),
        })
    }

    fn fail(&mut self, failure: &RpcError) -> ResponseEvent {
        self.end();
        ResponseEvent::Done(self.response.failed(failure))
    }

    fn cancel_by_client(&mut self) -> ResponseEvent {
        self.abandon("cancelled by the client");
        self.response.cancelled()
    }

    /// Returns the leases: the server has finished, even if the client has not read the answer yet.
    fn end(&mut self) {
        self.exchange = None;
        self.retry = None;
        self.relay = None;
        self.task_result = None;
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

    /// The client of the request.
    pub(crate) fn client(&self) -> &Client {
        &self.response.client
    }

    /// The client's id of the request, JSON text.
    pub(crate) fn id(&self) -> &str {
        &self.response.id
    }

    pub(crate) fn services(&self) -> &Arc<ExchangeServices> {
        &self.services
    }
}

/// The output of a future; `None` when the client cancels the request or ends its session first.
async fn unless_cancelled<T>(
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
