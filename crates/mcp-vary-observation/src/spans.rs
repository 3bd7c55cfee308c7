//! What spans show of a request that arrives, and of the answer of its server.

use std::sync::Arc;

use mcp_vary::json::edit;
use mcp_vary_audit::Transport;
use mcp_vary_metrics::METHODS;
use mcp_vary_traces::{Arrival, Carrier, Outcome, RequestSpan, Tracer, Transport as SpanTransport};
use mcp_vary_wire::revision::Era;

use crate::request_record::AuditedRequest;

/// Begins the span of a request.
pub(super) fn begin(
    tracer: &Arc<Tracer>,
    request: &AuditedRequest<'_>,
) -> Option<Arc<RequestSpan>> {
    let origin = request.origin;
    let principal = request.principal.filter(|person| !person.is_anonymous());
    let transport = match origin.transport {
        Transport::Stdio => SpanTransport::Stdio,
        _ => SpanTransport::Http,
    };
    // Requests without sessions may have the header of a session, which means nothing.
    let session = origin.session.as_ref();
    let legacy_session = session.filter(|_| request.era == Era::Legacy);
    tracer.begin(&Arrival {
        method: METHODS.entry(request.method),
        id: request.id,
        meta: &Carrier::read(|key| request.params.meta.get_str(key)),
        headers: origin.carrier.as_ref(),
        is_known: principal.is_some() || transport == SpanTransport::Stdio,
        principal: principal.map(|principal| principal.id_text()),
        transport,
        address: origin.address,
        session: legacy_session.map(|session| session.secret()),
    })
}

/// The outcome of a request by the result or error that its server sent.
pub(super) fn outcome(answer: Result<&str, &str>, is_tool_call: bool) -> Outcome {
    match answer {
        Ok(result) if is_tool_call && edit::get(result, "isError") == Some("true") => {
            Outcome::ToolError
        }
        Ok(_) => Outcome::Result,
        Err(error) => {
            let code = edit::get(error, "code").and_then(|code| code.parse().ok());
            Outcome::Error(code.unwrap_or_default())
        }
    }
}
