//! From where an HTTP request comes, for the audit log.

use http::request::Parts;
use mcp_vary_audit::{SessionId, trace_id};
use mcp_vary_auth::authenticator::Admission;
use mcp_vary_wire::headers::SESSION_ID;

use super::peer::ClientAddress;
use crate::audit::Origin;
use crate::pipeline::snapshot::ConfigSnapshot;

/// From where an HTTP request comes; empty without an audit log.
pub(super) fn origin(
    snapshot: &ConfigSnapshot,
    head: &Parts,
    admission: Option<&Admission>,
) -> Origin {
    if snapshot.services.audit.is_none() {
        return Origin::default();
    }
    let text = |name: &str| head.headers.get(name)?.to_str().ok();
    let address = head.extensions.get::<ClientAddress>();
    Origin {
        address: address.map(|ClientAddress(address)| *address),
        session: text(SESSION_ID.as_str()).map(|id| SessionId::new(id.into())),
        trace_id: text("traceparent").and_then(trace_id),
        oauth_client: admission.and_then(|admission| admission.client_id.clone()),
        ..Origin::default()
    }
}
