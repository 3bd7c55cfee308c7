//! From where a request comes, and who sends it.

use std::net::IpAddr;
use std::sync::Arc;

use mcp_vary_access::Principal;
use mcp_vary_audit::{Actor, SessionId, Text, Transport};
use mcp_vary_traces::Carrier;
use mcp_vary_wire::revision::Era;

/// From where a request comes, beside its principal.
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "the gateway builds it")]
pub struct Origin {
    /// Over what it comes.
    pub transport: Transport,
    /// The address of the client; behind a trusted proxy, the one that the proxy reports.
    pub address: Option<IpAddr>,
    /// The id of the session, as the client sent it.
    pub session: Option<SessionId>,
    /// The trace in the headers.
    pub trace_id: Option<[u8; 16]>,
    /// The context in the headers, if requests are traced.
    pub carrier: Option<Carrier>,
    /// The client that the token was issued to.
    pub oauth_client: Option<Arc<str>>,
}

/// A principal as records have it; `None` for anonymous ones.
pub(super) fn actor(principal: &Principal, oauth_client: Option<&Arc<str>>) -> Option<Arc<Actor>> {
    let mut actor = Actor::of(principal)?;
    actor.client_id = oauth_client.map(Text::shared);
    Some(Arc::new(actor))
}

/// The protocol revisions of an era, as metrics and the page have them.
pub(crate) const fn revisions_of(era: Era) -> &'static str {
    match era {
        Era::Legacy => "before-2026-07-28",
        Era::Modern => "2026-07-28",
    }
}
