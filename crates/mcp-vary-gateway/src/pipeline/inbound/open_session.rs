//! `initialize` over any transport: the session that it opens.

use std::sync::Arc;

use mcp_vary::feature::Features;
use mcp_vary_wire::counters::Counter;
use mcp_vary_wire::response::{self, Reply, RpcError};

use super::source::MessageSource;
use crate::pipeline::methods::initialize::initialize;
use crate::pipeline::request::IncomingRequest;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::session::Session;
use crate::session::caller::Caller;

/// A session that `initialize` opened.
pub(crate) struct OpenedSession {
    pub(crate) reply: Reply,
    /// The id for the header; `None` on a connection of its own.
    pub(crate) id: Option<String>,
}

/// Answers `initialize`, whose params are `written`, and opens the session.
///
/// # Errors
///
/// When no session can be opened here, or the params are wrong.
pub(super) async fn open_session(
    snapshot: &ConfigSnapshot,
    request: &IncomingRequest<'_>,
    written: Option<&str>,
    caller: &Caller,
    source: &mut MessageSource<'_, '_>,
) -> Result<OpenedSession, RpcError> {
    let refusal = match source {
        MessageSource::Connection(sessions) if sessions.legacy().is_some() => {
            Some("`initialize` was sent before; one connection is one session")
        }
        MessageSource::Batch(_) => Some("`initialize` must not be part of a batch"),
        _ => None,
    };
    if let Some(why) = refusal {
        return Err(RpcError::invalid_request(why));
    }
    let (negotiated, result) = initialize(snapshot, caller, &request.params).await?;
    let declared = count_tags(negotiated.features.as_deref());
    let (id, session) = match source {
        MessageSource::Connection(sessions) => {
            let session = snapshot.services.sessions.open_stdio(negotiated);
            sessions.open(&session, written.unwrap_or_default());
            (None, session)
        }
        _ => {
            let lifetime = snapshot.config.session_lifetime;
            let (id, session) = snapshot.services.sessions.open(negotiated, lifetime);
            (Some(id), session)
        }
    };
    session.remember_principal(caller.principal.as_ref());
    count_dropped_tags(snapshot, declared, &session);
    if let Some(record) = caller.observation.record() {
        if let Some(id) = &id {
            record.set_session(id);
        }
        record.use_variant(Some(session.client), || None);
    }
    let reply = response::result(request.id, result.as_bytes());
    Ok(OpenedSession { reply, id })
}

/// Counts the `declared` feature tags for which the id of the session has no room.
fn count_dropped_tags(snapshot: &ConfigSnapshot, declared: usize, session: &Arc<Session>) {
    let dropped = declared.saturating_sub(count_tags(session.negotiated.features.as_deref()));
    if dropped > 0 {
        let services = &snapshot.services;
        services.counters.add(Counter::DroppedTags, dropped as u64);
        services.ignored_declarations.tags_dropped(dropped);
    }
}

fn count_tags(features: Option<&Features>) -> usize {
    features.map_or(0, |features| features.tags().len())
}
