//! The server's requests to the client before its answer.

use std::sync::Arc;

use futures_util::future::select_all;
use mcp_vary::json::Members;
use mcp_vary_upstream::ServerRequest;
use mcp_vary_wire::response::{self, RpcError};
use tokio::sync::OwnedSemaphorePermit;

use super::{InFlightRequest, Leases, ResponseContext, ResponseEvent, unless_cancelled};
use crate::mrtr::{self, InputRelay, RelayEvent, SuspendedCall, is_input_required};
use crate::pipeline::exchange::ExchangeServices;
use crate::pool::dedicated;
use crate::session::pending_server_requests::{self, ForwardedServerRequest};

impl InFlightRequest {
    /// Forwards a request of the server to the client, or refuses it.
    pub(super) fn forward_server_request(
        &mut self,
        request: ServerRequest,
    ) -> Option<ResponseEvent> {
        if let Some(session) = &self.response.client.session {
            let (registry, server) = (&self.services.task_registry, &self.response.server);
            let names = registry.client_ids(&self.response.source, session.client);
            let questions = &self.services.mrtr.pending_server_requests;
            let (question, message) = questions.forward(session, (server, &request), &names)?;
            self.pending_server_requests.push(question);
            return Some(ResponseEvent::Message(message));
        }
        let params = request.params().unwrap_or("{}");
        let may_be_asked = self
            .response
            .client
            .server_request_support()
            .ensure_supported(request.method(), params);
        // A dropped request is refused.
        self.response.request_state.as_ref()?;
        if let Err(why) = may_be_asked {
            pending_server_requests::refuse(&request, &why);
            return None;
        }
        if let Some(dedicated) = &self.leases.dedicated {
            dedicated.note_request(&request);
        }
        self.input.add(request);
        Some(self.wait_for_client())
    }

    /// Ends the client's request with the server's requests. The call continues when the client retries.
    pub(super) fn wait_for_client(&mut self) -> ResponseEvent {
        let (Some(exchange), Some(seal)) = (self.exchange.take(), &self.response.request_state)
        else {
            return ResponseEvent::Cancelled;
        };
        let call = SuspendedCall {
            exchange,
            input: std::mem::take(&mut self.input),
            // Other clients may call the server while this one answers.
            leases: Leases {
                turn: None,
                ..std::mem::take(&mut self.leases)
            },
            progress: self
                .response
                .progress
                .take()
                .map(|progress| progress.upstream),
        };
        let held = mrtr::suspend(
            call,
            seal,
            &self.services.mrtr,
            &self.services.suspended_calls,
        );
        self.end();
        ResponseEvent::Done(match held {
            Ok(result) => response::result(&self.response.id, result.as_bytes()),
            Err(failure) => self.response.failed(&failure),
        })
    }

    /// Resumes a suspended call with the client's `responses`.
    pub(crate) fn resumed(
        services: Arc<ExchangeServices>,
        mut call: SuspendedCall<Leases>,
        responses: &Members<'_>,
        turn: OwnedSemaphorePermit,
        finish: Box<ResponseContext>,
    ) -> Self {
        call.input.answer(responses);
        let taken = Leases {
            turn: Some(turn),
            ..call.leases
        };
        let mut running = Self::new(services, call.exchange, taken, finish);
        running.input = call.input;
        running
    }

    /// Relays the input requests in a result to the client.
    pub(crate) fn relay_with(&mut self, relay: InputRelay) {
        self.relay = Some(relay);
    }

    /// Starts to relay the input requests in a modern server's result to a legacy client; `None` if there are none.
    pub(super) fn begin_round(
        &mut self,
        outcome: Result<&str, &str>,
    ) -> Option<Result<(), RpcError>> {
        let relay = self.relay.as_mut()?;
        let result = outcome.ok().filter(|result| is_input_required(result))?;
        let session = self.response.client.session.as_ref()?;
        let client = (&**session, self.response.client.server_request_support());
        let begun = relay.begin(result, client, &self.services.mrtr);
        // The server does not work on the request while the client answers.
        self.exchange = None;
        self.retry = None;
        self.leases.turn = None;
        Some(begun)
    }

    /// The next message of a round trip for the client, or its error.
    pub(super) async fn next_round_event(&mut self) -> Option<ResponseEvent> {
        let relay = self.relay.as_mut()?;
        let next = unless_cancelled(self.in_flight_guard.as_ref(), relay.next());
        match next.await {
            None => Some(self.cancel_by_client()),
            Some(RelayEvent::Message(message)) => Some(ResponseEvent::Message(message)),
            Some(RelayEvent::Failed(failure)) => Some(self.fail(&failure)),
            Some(RelayEvent::Sent(turn, exchange)) => {
                self.leases.turn = Some(turn);
                self.exchange = Some(exchange);
                None
            }
        }
    }

    /// Lets the server's requests wait for their answers after the request has ended.
    pub(super) fn abandon_server_requests(&mut self) {
        let Some(session) = &self.response.client.session else {
            return;
        };
        for question in std::mem::take(&mut self.pending_server_requests) {
            let (session, stopped) = (Arc::clone(session), self.services.shutdown.clone());
            let waiting = async move { dedicated::wait(question, &session).await };
            let waiting = stopped.run_until_cancelled_owned(waiting);
            self.services.background_tasks.spawn(waiting);
        }
    }
}

/// Waits until one of the requests has ended.
pub(super) async fn server_request_ended(questions: &[ForwardedServerRequest]) -> usize {
    let over = questions.iter().map(|question| Box::pin(question.over()));
    select_all(over).await.1
}
