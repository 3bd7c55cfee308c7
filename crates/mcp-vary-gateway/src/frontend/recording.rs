//! The record of a request, which a frontend begins: for the audit log, and for the log's line about the request.

use std::borrow::Cow;

use bytes::Bytes;
use http::StatusCode;
use http::request::Parts;
use mcp_vary_audit::{SessionId, trace_id};
use mcp_vary_auth::authenticator::Admission;
use mcp_vary_wire::envelope::Message;
use mcp_vary_wire::headers::SESSION_ID;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::{Reply, RpcError};
use mcp_vary_wire::revision::Era;

use super::peer::ClientAddress;
use crate::audit::{AuditedRequest, Origin, RequestRecord, logs_requests};
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::session::caller::Caller;

/// A message that was received, which may be a request.
pub(super) struct ReceivedRequest<'a> {
    pub(super) era: Era,
    pub(super) message: &'a Message<'a>,
    pub(super) params: &'a Params<'a>,
    /// The bytes that the message was read from, if they may be shared.
    pub(super) bytes: Option<&'a Bytes>,
    pub(super) length: usize,
}

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

/// The caller of a request, with the record of the request if there is an audit log, or if the log shows requests.
///
/// # Errors
///
/// The response to a request that cannot be recorded, and must not do anything for that reason.
pub(super) async fn recorded<'c>(
    snapshot: &ConfigSnapshot,
    caller: &'c Caller,
    received: &ReceivedRequest<'_>,
) -> Result<Cow<'c, Caller>, Reply> {
    let message = received.message;
    let audit = snapshot.services.audit.as_ref();
    let is_recorded = audit.is_some() || logs_requests();
    let request = (message.method.as_ref(), message.id);
    let (true, (Some(method), Some(id))) = (is_recorded, request) else {
        return Ok(Cow::Borrowed(caller));
    };
    let request = AuditedRequest {
        origin: &caller.origin,
        principal: caller.principal.as_ref(),
        era: received.era,
        method,
        id,
        params: received.params,
        message: received.bytes,
        length: received.length,
        config: snapshot.config.digest.as_ref(),
    };
    let begun = match audit {
        Some(audit) => audit.begin(&request).await,
        None => Ok(RequestRecord::of_line(&request)),
    };
    match begun {
        Ok(record) => Ok(Cow::Owned(caller.with_record(record))),
        Err(full) => Err(Reply {
            status: StatusCode::SERVICE_UNAVAILABLE,
            ..RpcError::internal(full.to_string()).reply(Some(id), received.era)
        }),
    }
}
