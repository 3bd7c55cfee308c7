//! The two frontends: HTTP and stdio.

pub(crate) mod admin;
mod authentication;
mod batch;
mod connection_timer;
mod connections;
mod cors;
mod endpoint;
pub(crate) mod http;
mod listener_kind;
mod peer;
mod peer_certificate;
pub(crate) mod post;
mod recording;
mod request_body;
mod responses;
#[cfg(test)]
mod session_delivery_tests;
mod session_header;
pub(crate) mod sse_body;
pub(crate) mod stdio;
mod tls;
pub(crate) mod validation;
mod write_timeout;

use std::sync::Arc;
use std::time::Duration;

use crate::gateway::{Endpoint, Gateway};
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::session::{AdmissionError, InFlightGuard, Session};
use crate::tasks;
use mcp_vary_wire::envelope::Message;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::{Reply, RpcError};
use mcp_vary_wire::revision::Era;

/// The time in which a client can read the error for its request at the end.
const FINAL_ERRORS_TIMEOUT: Duration = Duration::from_secs(1);

/// Answers clients that still wait after the drain time with an error, and waits until they are `finished`.
///
/// If another listener still has clients, those need the servers, and no client is answered.
async fn cancel_late_calls(gateway: &Gateway, endpoint: Option<&Endpoint>, finished: impl Future) {
    if endpoint.is_some_and(Endpoint::is_last) {
        gateway.cancel_calls();
        let _ = tokio::time::timeout(FINAL_ERRORS_TIMEOUT, finished).await;
    }
}

/// Registers a request in its session.
pub(crate) fn admit(
    gateway: &ConfigSnapshot,
    session: &Arc<Session>,
    id: &str,
) -> Result<InFlightGuard, Reply> {
    session
        .begin(id, gateway.config.limits.in_flight)
        .map_err(|refused| {
            let why = match refused {
                AdmissionError::IdInUse => "the id belongs to a request that is not answered yet",
                AdmissionError::TooMany => {
                    "too many requests of this session are in flight; wait for answers"
                }
            };
            RpcError::invalid_request(why).reply(Some(id), Era::Legacy)
        })
}

/// Handles a notification or a response. Unknown ones are ignored, as JSON-RPC requires.
///
/// # Errors
///
/// When a response answers no request of the gateway.
pub(crate) fn receive_client_message(
    gateway: &ConfigSnapshot,
    session: &Session,
    message: &Message<'_>,
    params: &Params<'_>,
) -> Result<(), RpcError> {
    let services = &gateway.services;
    let principal = session.negotiated.principal.map(|id| id.to_string());
    let principal = principal.unwrap_or_default();
    let names = |sealed: &str| tasks::upstream_id(&services.cursor_keys, &principal, sealed);
    match (message.method.as_deref(), message.id) {
        (None, Some(id)) => {
            let outcome = match (message.result, message.error) {
                (Some(result), _) => Ok(result),
                (None, error) => Err(error.unwrap_or_default()),
            };
            let questions = &services.pending_server_requests;
            if !questions.answer(session.client, id, outcome, &names) {
                return Err(RpcError::invalid_request(
                    "this gateway has not asked that; if several share the sessions, send what belongs to one \
                     session to the same",
                ));
            }
        }
        (Some("notifications/cancelled"), _) => {
            if let Some(id) = params.members.get("requestId") {
                session.cancel(id);
            }
        }
        (Some("notifications/progress"), _) => {
            let params = message.params.unwrap_or_default();
            services
                .pending_server_requests
                .progress(session.client, params, &names);
        }
        (Some("notifications/roots/list_changed"), _) => {
            services
                .pool
                .dedicated
                .notify_servers(session.client, "notifications/roots/list_changed");
        }
        _ => {}
    }
    Ok(())
}
