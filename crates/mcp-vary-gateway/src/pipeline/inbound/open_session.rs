//! `initialize` over any transport: the session that it opens.

use mcp_vary::feature::Features;
use mcp_vary_wire::counters::Counter;
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::RpcError;

use super::sender::{MessageSource, Sender};
use crate::pipeline::methods::initialize::initialize;
use crate::pipeline::snapshot::ConfigSnapshot;

/// Opens the session of an `initialize` with these `params`, which are `written` so. Returns its result, and the id of the
/// session unless the connection has one client.
///
/// # Errors
///
/// When no session can be opened here, or the params are wrong.
pub(super) async fn open_session(
    sender: &mut Sender<'_, '_>,
    params: &Params<'_>,
    written: Option<&str>,
) -> Result<(String, Option<String>), RpcError> {
    let refusal = match &sender.source {
        MessageSource::Connection(sessions) if sessions.legacy().is_some() => {
            Some("`initialize` was sent before; one connection is one session")
        }
        MessageSource::Batch => Some("`initialize` must not be part of a batch"),
        _ => None,
    };
    if let Some(why) = refusal {
        return Err(RpcError::invalid_request(why));
    }
    let snapshot = sender.snapshot;
    let caller = &*sender.caller;
    let (negotiated, result) = initialize(snapshot, caller, params).await?;
    caller.observation.speaks(negotiated.revision);
    let declared = count_tags(negotiated.features.as_deref());
    let sessions = &snapshot.services.sessions;
    let (id, session) = if let MessageSource::Connection(connection_sessions) = &mut sender.source {
        let session = sessions.open_stdio(negotiated);
        connection_sessions.open(&session, written.unwrap_or_default());
        (None, session)
    } else {
        let (id, session) = sessions.open(negotiated, snapshot.config.session_lifetime);
        (Some(id), session)
    };
    session.remember_principal(caller.principal.as_ref());
    let remaining = count_tags(session.negotiated.features.as_deref());
    count_dropped_tags(snapshot, declared.saturating_sub(remaining));
    if let Some(record) = caller.observation.record() {
        if let Some(id) = &id {
            record.set_session(id);
        }
        record.use_variant(Some(session.client), || None);
    }
    Ok((result, id))
}

fn count_tags(features: Option<&Features>) -> usize {
    features.map_or(0, |features| features.tags().len())
}

/// Counts the declared feature tags for which the id of a session has no room.
fn count_dropped_tags(snapshot: &ConfigSnapshot, dropped: usize) {
    if dropped > 0 {
        let services = &snapshot.services;
        services.counters.add(Counter::DroppedTags, dropped as u64);
        services.ignored_declarations.tags_dropped(dropped);
    }
}
