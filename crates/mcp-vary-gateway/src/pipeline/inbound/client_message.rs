//! Notifications and responses of a client, which the gateway does not answer.

use mcp_vary_wire::envelope::Message;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::RpcError;

use crate::pipeline::snapshot::ConfigSnapshot;
use crate::tasks;
use mcp_vary_session::Session;

/// Handles a notification or a response. Unknown ones are ignored, as JSON-RPC requires.
///
/// # Errors
///
/// When a response answers no request of the gateway.
pub(super) fn receive_client_message(
    snapshot: &ConfigSnapshot,
    session: &Session,
    message: &Message<'_>,
    params: &Params<'_>,
) -> Result<(), RpcError> {
    let services = &snapshot.services;
    let id = session.negotiated.principal.map(|id| id.to_string());
    let principal = id.unwrap_or_default();
    let upstream_ids = |sealed: &str| tasks::upstream_id(&services.cursor_keys, &principal, sealed);
    let server_requests = &services.pending_server_requests;
    match (message.method.as_deref(), message.id) {
        (None, Some(id)) => {
            let outcome = match (message.result, message.error) {
                (Some(result), _) => Ok(result),
                (None, error) => Err(error.unwrap_or_default()),
            };
            if !server_requests.answer(session.client, id, outcome, &upstream_ids) {
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
            server_requests.progress(session.client, params, &upstream_ids);
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
