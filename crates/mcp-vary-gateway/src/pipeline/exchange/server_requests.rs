//! The server's requests to the client before its answer.

use std::sync::Arc;

use futures_util::future::select_all;
use mcp_vary::json::Members;
use mcp_vary_upstream::ServerRequest;
use mcp_vary_wire::response::{self, RpcError};
use tokio::sync::OwnedSemaphorePermit;

use super::in_flight_request::{InFlightRequest, unless_cancelled};
use super::leases::Leases;
use super::response::{ResponseContext, ResponseEvent};
use super::services::ExchangeServices;
use crate::mrtr::{self, RelayEvent, SuspendedCall, is_input_required};
use mcp_vary_session::pending_server_requests::{self, ForwardedServerRequest};

impl InFlightRequest {
    /// Forwards a request of the server to the client, or refuses it.
    pub(super) fn forward_server_request(
        &mut self,
        request: ServerRequest,
    ) -> Option<ResponseEvent> {
        if let Some(session) = &self.response.client.session {
            let server = &self.response.server;
            let tasks = &self.services.task_registry;
            let client_ids = tasks.client_ids(server, session.client);
            let pending = &self.services.mrtr.pending_server_requests;
            let (forwarded, message) = pending.forward(session, (server, &request), &client_ids)?;
            self.pending_server_requests.push(forwarded);
            return Some(ResponseEvent::Message(message));
        }
        let params = request.params().unwrap_or("{}");
        let support = self
            .response
            .client
            .server_request_support()
            .ensure_supported(request.method(), params);
        // A dropped request is refused.
        self.response.plan.request_state.as_ref()?;
        if let Err(why) = support {
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
        let (Some(exchange), Some(seal)) =
            (self.exchange.take(), &self.response.plan.request_state)
        else {
            return ResponseEvent::Cancelled;
        };
        let progress = self.response.plan.progress.take();
        let call = SuspendedCall {
            exchange,
            input: std::mem::take(&mut self.input),
            // Other clients may call the server while this one answers.
            leases: Leases {
                permit: None,
                ..std::mem::take(&mut self.leases)
            },
            progress: progress.map(|tokens| tokens.upstream),
        };
        let suspended = mrtr::suspend(
            call,
            seal,
            &self.services.mrtr,
            &self.services.suspended_calls,
        );
        self.end();
        ResponseEvent::Done(match suspended {
            Ok(result) => response::result(&self.response.id, result.as_bytes()),
            Err(failure) => self.response.failed(&failure),
        })
    }

    /// Resumes a suspended call with the client's `responses`.
    pub(crate) fn resumed(
        services: Arc<ExchangeServices>,
        mut call: SuspendedCall<Leases>,
        responses: &Members<'_>,
        permit: OwnedSemaphorePermit,
        response: Box<ResponseContext>,
    ) -> Box<Self> {
        call.input.answer(responses);
        let leases = Leases {
            permit: Some(permit),
            ..call.leases
        };
        let mut running = Self::new(services, call.exchange, leases, response);
        running.input = call.input;
        running
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
        self.leases.permit = None;
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
            Some(RelayEvent::Sent(permit, exchange)) => {
                self.leases.permit = Some(permit);
                self.exchange = Some(exchange);
                None
            }
        }
    }
}

/// Waits until one of the requests has ended.
pub(super) async fn server_request_ended(requests: &[ForwardedServerRequest]) -> usize {
    let ended = requests.iter().map(|request| Box::pin(request.over()));
    select_all(ended).await.1
}
