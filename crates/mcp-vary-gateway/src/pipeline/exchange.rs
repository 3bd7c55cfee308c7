//! A request in flight: its notifications and its answer, rewritten for the client.

mod failure;
mod implicit_task;
mod in_flight_request;
mod leases;
mod notification;
mod orphaned;
pub(crate) mod pump;
mod response;
mod retry;
mod server_requests;
mod services;
mod undeclared;
mod watching;

use std::borrow::Cow;

use mcp_vary_upstream::{Message, UpstreamError};
use mcp_vary_wire::counters::Counter;
use mcp_vary_wire::response::RpcError;

use self::implicit_task::without_related_task;
use self::in_flight_request::unless_cancelled;
use self::server_requests::server_request_ended;

pub(crate) use self::implicit_task::ImplicitTask;
pub(crate) use self::in_flight_request::{InFlightRequest, cancelled};
pub(crate) use self::leases::Leases;
pub(crate) use self::orphaned::orphaned_for;
pub(crate) use self::response::{ResponseContext, ResponseEvent, ResponsePlan, SkillPlan};
pub(crate) use self::retry::RetryState;
pub(crate) use self::services::ExchangeServices;
pub(crate) use self::undeclared::UndeclaredMethod;

impl InFlightRequest {
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
                (None, _) if self.leases.awaits_task() => Box::pin(self.wait_for_task()).await,
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
            Ok(Message::Answer(answer)) => {
                let outcome = answer.outcome();
                self.observation.server_answered(outcome);
                let mut event = self.answered(outcome);
                if let Some(ResponseEvent::Done(reply)) = &mut event {
                    reply.memory = answer.memory().cloned();
                }
                event
            }
            Err(error) => self.connection_lost(error),
        }
    }

    /// Requests the result of the call's task.
    async fn wait_for_task(&mut self) -> Option<ResponseEvent> {
        let result = self.leases.implicit_task.as_ref()?.request_result()?;
        match unless_cancelled(self.in_flight_guard.as_ref(), result).await {
            None => Some(self.cancel_by_client()),
            Some(Err(error)) => Some(self.fail(&error.into())),
            Some(Ok(exchange)) => {
                self.exchange = Some(exchange);
                None
            }
        }
    }

    /// The event after the loss of the server; `None` if the request may be sent again.
    fn connection_lost(&mut self, error: UpstreamError) -> Option<ResponseEvent> {
        if matches!(error, UpstreamError::NoRoom { .. }) {
            self.services.counters.increment(Counter::RefusedForMemory);
        }
        let is_retryable = self
            .retry
            .as_ref()
            .is_some_and(|retry| retry.is_retryable(&error));
        if !is_retryable {
            return Some(self.fail(&RpcError::from(error)));
        }
        self.exchange = None;
        None
    }

    /// Sends the request again as soon as the server is connected. Returns an event if that fails.
    async fn resend(&mut self) -> Option<ResponseEvent> {
        let Some(retry) = &mut self.retry else {
            return Some(ResponseEvent::Cancelled);
        };
        match unless_cancelled(self.in_flight_guard.as_ref(), retry.resend()).await {
            None => Some(self.cancel_by_client()),
            Some(Err(failure)) => Some(self.fail(&failure)),
            Some(Ok(exchange)) => {
                self.exchange = Some(exchange);
                None
            }
        }
    }

    /// Handles the server's answer, which may only be a step towards the client's.
    fn answered(&mut self, outcome: Result<&str, &str>) -> Option<ResponseEvent> {
        let implicit_task = self.leases.implicit_task.as_mut();
        if implicit_task.is_some_and(|task| task.record_creation(outcome)) {
            self.exchange = None;
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
        let shown = outcome.map(|result| match self.leases.implicit_task {
            Some(_) => without_related_task(result),
            None => Cow::Borrowed(result),
        });
        self.abandon_server_requests();
        self.end();
        ResponseEvent::Done(match shown {
            Ok(result) => {
                self.response.record_links(&result, &self.services);
                self.response.result(&result, &self.services)
            }
            Err(error) => self.response.error_response(error, &self.services),
        })
    }
}
