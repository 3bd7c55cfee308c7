//! One attempt to connect: its turn, its first request, and what it tells of the server.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::StatusCode;
use mcp_vary_wire::revision::Era;
use tokio::sync::SemaphorePermit;
use tokio::time::Instant;

use super::shared::Shared;
use super::turns;
use crate::chain::LOOP_REFUSAL;
use crate::config::{Target, UpstreamConfig};
use crate::connect_error::ConnectError;
use crate::connection::UpstreamConnection;
use crate::error::{STDERR_LINES, UpstreamError};
use crate::handshake::Opening;

impl Shared {
    /// Connects once, in the era `preferred` if the server supports it.
    pub(super) async fn attempt(
        &self,
        preferred: Option<Era>,
    ) -> Result<Arc<UpstreamConnection>, ConnectError> {
        if let Some(refusal) = &self.config.refusal {
            return Err(refusal.clone());
        }
        if let Some(circle) = self.config.loop_error.get() {
            return Err(circle.clone());
        }
        let mut opening = Opening::Discover;
        let choosing = async {
            opening = self.choose_opening(preferred).await;
            opening
        };
        let permit = self.turn().await;
        let config = self.config_of_attempt();
        let began = Instant::now();
        let connecting = UpstreamConnection::connect_with(config, choosing, &self.stop);
        let connected = turns::with(permit, connecting).await.map_err(|error| {
            if is_loop(&error) {
                ConnectError::Loop {
                    server: self.config.name.as_str().into(),
                }
            } else {
                error
            }
        });
        self.attempts.count(began.elapsed(), connected.is_ok());
        let is_late = matches!(connected, Err(ConnectError::Timeout { .. }));
        let late = self.late.load(Ordering::Relaxed);
        let late = if is_late { late.saturating_add(1) } else { 0 };
        self.late.store(late, Ordering::Relaxed);
        match &connected {
            Ok(upstream) => {
                self.server_facts.record(upstream.handshake(), opening);
                self.log_cut_variants(upstream);
            }
            // A different server may have replaced it that does not answer the same request.
            Err(ConnectError::Timeout { .. } | ConnectError::Handshake { .. }) => {
                self.server_facts.clear();
            }
            Err(_) => {}
        }
        connected
    }

    /// The turn to start the program; the time to be ready counts from then on.
    async fn turn(&self) -> Option<SemaphorePermit<'static>> {
        if !matches!(self.config.target, Target::Command { .. }) {
            return None;
        }
        *self.turn_began.lock() = None;
        let permit = self.stop.run_until_cancelled(turns::next()).await;
        *self.turn_began.lock() = Some(Instant::now());
        permit.flatten()
    }

    /// The configuration of the next attempt: after one that took too long, a program has twice the time.
    fn config_of_attempt(&self) -> UpstreamConfig {
        let mut config = self.config.clone();
        if matches!(config.target, Target::Command { .. }) {
            let late = self.late.load(Ordering::Relaxed).min(MOST_DOUBLINGS);
            config.limits.handshake = config.limits.handshake.saturating_mul(1 << late);
        }
        config
    }

    /// Logs once for a server that not all of its variants is kept.
    fn log_cut_variants(&self, upstream: &UpstreamConnection) {
        if upstream.handshake().has_cut_variants && self.server_facts.note_cut_variants() {
            tracing::warn!(
                server = self.config.name,
                "the server declares more of its variants than is kept: 32 of them, 1 KiB of each description, 32 short hints of each"
            );
        }
    }

    /// The first request of a connection. A new process of which nothing is known waits a moment for the first client: what
    /// it answers first decides its era.
    async fn choose_opening(&self, mut preferred: Option<Era>) -> Opening {
        let is_first = self.config.target.is_local() && !self.config.era_wait.is_zero();
        if is_first && preferred.is_none() && self.server_facts.is_unknown() {
            let mut era = self.preferred.subscribe();
            let known = era.wait_for(Option::is_some);
            let known = tokio::time::timeout(self.config.era_wait, known).await;
            preferred = known.ok().and_then(|known| *known.ok()?);
        }
        self.server_facts.opening(preferred, is_first)
    }
}

/// Whether the server refused because requests would loop back to this gateway.
fn is_loop(error: &ConnectError) -> bool {
    match error {
        ConnectError::Failed(UpstreamError::Closed { output, .. }) => {
            let is_refusal = |line: &str| {
                line.starts_with(LOOP_REFUSAL)
                    || line.starts_with("error: ") && line.contains(LOOP_MESSAGE)
            };
            let lines = output.split_once(STDERR_LINES);
            lines.is_some_and(|(_, lines)| lines.split(" | ").any(is_refusal))
        }
        ConnectError::Failed(UpstreamError::Status { status, .. }) => {
            *status == StatusCode::LOOP_DETECTED
        }
        _ => false,
    }
}

/// Part of the message of a gateway that exits because its only server leads back to it.
const LOOP_MESSAGE: &str = "is this gateway itself, or leads back to it";

/// How often the time to be ready is doubled.
const MOST_DOUBLINGS: u32 = 3;
