//! The session that the header `MCP-Session-Id` names.

use std::sync::Arc;

use http::request::Parts;
use mcp_vary_wire::headers::SESSION_ID;
use mcp_vary_wire::response::RpcError;

use crate::pipeline::snapshot::ConfigSnapshot;
use crate::session::Session;
use crate::session::caller::Caller;

/// Shows a session what its principal may see by now, whose claims may be others than at the last request, so that the
/// headers of servers are others, too.
pub(super) async fn follow_claims(snapshot: &ConfigSnapshot, session: &Session, caller: &Caller) {
    let depends_on_claims = snapshot.config.access.is_some() || snapshot.pool.servers.need_claims();
    if depends_on_claims && session.remember_principal(caller.principal.as_ref()) {
        let hub = &snapshot.services.hub;
        Box::pin(hub.follow_claims(session, &snapshot.placements)).await;
    }
}

/// The session of a legacy request.
///
/// # Errors
///
/// When the header is missing, or no session of the caller has this id.
///
/// > Servers that require a session ID SHOULD respond to requests without an `MCP-Session-Id`
/// > header (other than initialization) with HTTP 400 Bad Request. The server MAY terminate the
/// > session at any time, after which it MUST respond to requests containing that session ID with
/// > HTTP 404 Not Found. (MCP 2025-11-25, basic/transports, "Session Management")
pub(super) fn session_of(
    snapshot: &ConfigSnapshot,
    head: &Parts,
    caller: &Caller,
) -> Result<Arc<Session>, RpcError> {
    let Some(id) = head.headers.get(SESSION_ID) else {
        let why = "the Mcp-Session-Id header is missing; send `initialize` first";
        return Err(RpcError::invalid_request(why));
    };
    let sessions = &snapshot.services.sessions;
    let found = id.to_str().ok().and_then(|id| sessions.find(id));
    let principal = caller.principal.as_ref().map(|principal| principal.id());
    found
        // To others the session is unknown: they learn nothing, and a client whose user has changed begins anew.
        .filter(|session| session.negotiated.principal == principal)
        .filter(|session| snapshot.placements.order_of(session).is_some())
        .ok_or_else(RpcError::session_not_found)
}
