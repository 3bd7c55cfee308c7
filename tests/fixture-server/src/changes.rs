//! Telling clients that a list has changed: sessions by a bare notification, subscriptions on their stream.

use crate::state::Shared;

/// Tells everybody who wants to know that the tools are others now.
pub(crate) async fn tools_changed(shared: &Shared) {
    for peer in live_sessions(shared) {
        // A session that ended in between has nothing to be told.
        let _ = peer.notify_tool_list_changed().await;
    }
    for sink in shared.sinks() {
        // Neither has a stream that did not ask for it.
        let _ = sink.notify_tool_list_changed().await;
    }
}

/// Tells everybody who wants to know that the prompts are others now.
pub(crate) async fn prompts_changed(shared: &Shared) {
    for peer in live_sessions(shared) {
        let _ = peer.notify_prompt_list_changed().await;
    }
    for sink in shared.sinks() {
        let _ = sink.notify_prompt_list_changed().await;
    }
}

fn live_sessions(shared: &Shared) -> Vec<rmcp::Peer<rmcp::RoleServer>> {
    let mut sessions = shared.sessions();
    sessions.retain(|peer| !peer.is_transport_closed());
    sessions.clone()
}
