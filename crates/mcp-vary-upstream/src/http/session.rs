//! What the handshake fixed, and how to fix it anew when the server has forgotten it.

use std::sync::Arc;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use mcp_vary_wire::headers::{SESSION_ID, VERSION};
use mcp_vary_wire::list_kind::Kind;
use mcp_vary_wire::log_level::level_name;
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::revision::Revision;

use super::exchange::Exchange;
use super::{Connection, JSON, JSON_OR_STREAM};
use crate::error::UpstreamError;
use crate::message::Event;

/// A session of the endpoint, or for a modern one the headers alone.
#[derive(Debug)]
pub(crate) struct Session {
    pub(super) era: Era,
    /// All headers that each request carries.
    pub(super) headers: HeaderMap,
    pub(super) id: Option<HeaderValue>,
    pub(super) generation: u64,
}

impl Session {
    /// `configured` with our own headers, which count more.
    pub(super) fn new(
        configured: &HeaderMap,
        revision: Revision,
        is_agreed: bool,
        mut id: Option<HeaderValue>,
        generation: u64,
    ) -> Self {
        let mut headers = configured.clone();
        headers.insert(ACCEPT, JSON_OR_STREAM);
        headers.insert(CONTENT_TYPE, JSON);
        // Earlier revisions do not know the header, and `initialize` itself comes without.
        if is_agreed && revision >= Revision::V2025_06_18 {
            let version = HeaderValue::from_static(revision.as_str());
            headers.insert(VERSION, version);
        }
        if let Some(id) = &mut id {
            // Whoever knows it can speak in the session.
            id.set_sensitive(true);
            headers.insert(SESSION_ID, id.clone());
        }
        Self {
            era: revision.era(),
            headers,
            id,
            generation,
        }
    }
}

impl Connection {
    /// Replaces the session `stale`, once, however many calls ask for it.
    ///
    /// "When a client receives HTTP 404 in response to a request containing an `MCP-Session-Id`, it
    /// MUST start a new session" (MCP 2025-11-25, basic/transports, "Session Management").
    pub(super) async fn renew(self: Arc<Self>, stale: u64) -> Result<(), UpstreamError> {
        let _turn = self.renewal.lock().await;
        if self.session.load().generation != stale {
            return Ok(());
        }
        tracing::info!(server = %self.server, "session expired, started anew");
        let limit = self.limits.handshake;
        match tokio::time::timeout(limit, self.initialize(Revision::LATEST_LEGACY)).await {
            Ok(Ok(hello)) => {
                if self
                    .handshake
                    .get()
                    .is_some_and(|first| !first.is_equivalent_to(&hello))
                {
                    self.liveness.mark_replaced();
                }
                self.wait_for_stream().await;
            }
            Ok(Err(error)) => {
                let reason =
                    format!("its session expired and a new one could not be started: {error}");
                let server = Arc::clone(&self.server);
                return Err(UpstreamError::Unreachable { server, reason });
            }
            Err(_elapsed) => return Err(self.timeout()),
        }
        // The server may have been replaced by one that lists something else.
        for kind in Kind::ALL {
            let _ = self.events.send(Event::ListMayHaveChanged(kind));
        }
        Ok(())
    }

    /// Gives a new session the log level that the one before had, as far as that goes.
    pub(super) async fn restore_log_level(self: &Arc<Self>, session: &Arc<Session>) {
        let Some(level) = self.log_level.current() else {
            return;
        };
        let params = format!(r#"{{"level":"{}"}}"#, level_name(level));
        let call = self.call("logging/setLevel", &params);
        let mut exchange = Exchange::send(Arc::clone(self), Arc::clone(session), call);
        let asked = tokio::time::timeout(self.limits.probe, exchange.answer()).await;
        if !matches!(asked, Ok(Ok(answer)) if answer.outcome().is_ok()) {
            tracing::warn!(server = %self.server, "the log level of its new session was not set");
            self.log_level.forget();
        }
    }
}
