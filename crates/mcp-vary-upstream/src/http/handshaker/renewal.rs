//! Renews the session of a connection when the server has lost it.

use std::sync::Arc;
use std::time::Duration;

use mcp_vary_wire::handshake::Handshake;
use mcp_vary_wire::revision::Revision;
use tokio::time::Instant;

use super::super::attempt::Attempt;
use super::super::attempt::refusal::{is_strange_for_probe, may_mean_lost};
use super::super::session::Session;
use super::Handshaker;
use crate::error::{UpstreamError, without_server};

/// The last attempt to renew the session.
#[derive(Default)]
pub(super) struct Renewal {
    /// When the last check began that came to an end: it holds for what was refused before.
    checked_at: Option<Instant>,
    /// When the next attempt may begin.
    next_at: Option<Instant>,
}

/// Why a session may be gone, and who asks.
#[derive(Clone, Copy)]
pub(in crate::http) struct Doubt {
    /// Whether it is gone by the specification.
    pub(in crate::http) is_conclusive: bool,
    /// Whether the caller waits for the next attempt if it is too early for one.
    pub(in crate::http) can_wait: bool,
}

impl Handshaker {
    /// Finds out whether the server has lost the session `stale`, in which it refused a request, and replaces it, once,
    /// however many calls ask; returns whether there is a new one. The old one stays in use meanwhile.
    ///
    /// "The server MAY terminate the session at any time, after which it MUST respond to requests containing that session
    /// ID with HTTP 404 Not Found" (MCP 2025-11-25, basic/transports, "Session Management"). After a 404, "it MUST start
    /// a new session". Many servers respond in other ways, which can also mean something else: then a list that they
    /// refuse as well shows that the session is gone, and that `initialize` succeeds, that it was the session.
    pub(in crate::http) async fn renew(self: Arc<Self>, stale: Arc<Session>, doubt: Doubt) -> bool {
        let refused_at = Instant::now();
        let mut renewal = self.renewal.lock().await;
        let current = &self.shared.session;
        if current.load().generation != stale.generation {
            return true;
        }
        if renewal.checked_at > Some(refused_at) {
            return false;
        }
        let checked_at = Instant::now();
        let is_lost = doubt.is_conclusive && !current.was_renewed_in_vain();
        if !is_lost && self.is_alive(&stale).await {
            renewal.checked_at = Some(checked_at);
            return false;
        }
        if let Some(next_at) = renewal.next_at.filter(|next_at| *next_at > Instant::now()) {
            if !doubt.can_wait {
                return false;
            }
            tokio::time::sleep_until(next_at).await;
        }
        let attempted_at = Instant::now();
        let is_renewed = self.start_anew().await;
        renewal.checked_at = Some(attempted_at);
        let pause = if is_renewed { PAUSE } else { LONG_PAUSE };
        renewal.next_at = Some(Instant::now() + pause);
        is_renewed
    }

    /// Whether the server answers a list in `session`, which it would refuse if it had lost it. Servers may answer `ping`
    /// before they are initialized. No response at all says nothing about the session.
    async fn is_alive(&self, session: &Arc<Session>) -> bool {
        let call = self.call("tools/list", None, &[]);
        let mut attempt = Attempt::send(&self.shared, Arc::clone(session), call);
        let limit = self.shared.endpoint.limits.probe;
        match tokio::time::timeout(limit, attempt.answer()).await {
            Ok(Ok(answer)) => !answer.outcome().is_err_and(is_strange_for_probe),
            Ok(Err(UpstreamError::Status { status, .. })) => !may_mean_lost(status),
            Ok(Err(
                UpstreamError::Misbehaved { .. }
                | UpstreamError::Redirect { .. }
                | UpstreamError::Credentials {
                    status: Some(_), ..
                },
            )) => false,
            Ok(Err(_)) | Err(_) => true,
        }
    }

    /// Starts a new session; returns whether the server let it.
    async fn start_anew(&self) -> bool {
        let shared = &self.shared;
        let endpoint = &shared.endpoint;
        let initializing = self.initialize(Revision::LATEST_LEGACY);
        let why = match tokio::time::timeout(endpoint.limits.handshake, initializing).await {
            Ok(Ok(handshake)) => {
                tracing::info!(server = %endpoint.server, "session lost, started anew");
                let is_replaced = |first: &Handshake| !first.is_equivalent_to(&handshake);
                if self.first.get().is_some_and(is_replaced) {
                    endpoint.liveness.mark_replaced();
                }
                shared.wait_for_stream().await;
                // The server may have been replaced by one that lists something else.
                shared.inbound.publish_possible_changes();
                return true;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_elapsed) => endpoint.timeout().to_string(),
        };
        let why = without_server(&why, &endpoint.server);
        tracing::debug!(server = %endpoint.server, why, "session refused, and no new one");
        false
    }
}

/// The pause after a session was renewed, before it can be renewed again.
const PAUSE: Duration = Duration::from_millis(100);
/// The pause after an attempt that the server refused.
const LONG_PAUSE: Duration = Duration::from_secs(1);
