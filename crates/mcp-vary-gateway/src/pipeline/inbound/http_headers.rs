//! What the headers of an HTTP request say about its message: the revision, and the session.

use std::sync::Arc;

use http::HeaderMap;
use mcp_vary_wire::headers::{self, SESSION_ID, VERSION};
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Revision;

use crate::pipeline::snapshot::ConfigSnapshot;
use crate::session::Session;
use crate::session::caller::Caller;
use crate::session::client::{check_version, modern_version};

/// The revision in the version header, if there is one.
///
/// > If the server receives a request with an invalid or unsupported `MCP-Protocol-Version`, it MUST
/// > respond with `400 Bad Request`. (MCP 2025-11-25, basic/transports, "Protocol Version Header")
pub(crate) fn requested_version(headers: &HeaderMap) -> Result<Option<Revision>, RpcError> {
    let Some(version) = headers.get(VERSION) else {
        return Ok(None);
    };
    let version = String::from_utf8_lossy(version.as_bytes());
    Revision::parse(&version)
        .map(Some)
        .ok_or_else(|| RpcError::unsupported_version(&version))
}

/// Compares the headers of a modern request with its body.
pub(super) fn check_modern(
    headers: &HeaderMap,
    method: &str,
    params: &Params<'_>,
) -> Result<(), RpcError> {
    let named = headers::name_key(method).and_then(|key| params.members.get_text(key));
    let version = headers
        .get(VERSION)
        .ok_or_else(|| RpcError::header_mismatch("MCP-Protocol-Version header is missing"))?;
    let in_body = modern_version(params)?;
    if version.as_bytes() != in_body.as_bytes() {
        return Err(RpcError::header_mismatch(
            "MCP-Protocol-Version header value does not match the body",
        ));
    }
    check_version(&in_body)?;
    headers::check_standard(headers, method, named.as_deref())
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
pub(crate) fn session_of(
    snapshot: &ConfigSnapshot,
    headers: &HeaderMap,
    caller: &Caller,
) -> Result<Arc<Session>, RpcError> {
    let Some(id) = headers.get(SESSION_ID) else {
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

/// Shows a session what its principal may see now. The claims of the principal, and with them the headers of servers, may
/// have changed since the last request.
pub(crate) async fn follow_claims(snapshot: &ConfigSnapshot, session: &Session, caller: &Caller) {
    let depends_on_claims = snapshot.config.access.is_some() || snapshot.pool.servers.need_claims();
    if depends_on_claims && session.remember_principal(caller.principal.as_ref()) {
        let hub = &snapshot.services.hub;
        Box::pin(hub.follow_claims(session, &snapshot.placements)).await;
    }
}
