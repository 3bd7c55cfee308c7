//! Pumps the messages of one request into the replay buffer of its stream.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tracing::debug;

use super::orphaned::NEEDED;
use crate::pipeline::exchange::{ExchangeServices, InFlightRequest, ResponseEvent, orphaned_for};
use mcp_vary_http::replay::ReplayBuffer;
use mcp_vary_session::Session;

/// Writes the server's messages of a request into `log`, until its answer.
///
/// It waits for a slow reader. Without a reader it continues, within the time and the number that requests without a
/// client may have.
pub(crate) async fn pump(
    services: Arc<ExchangeServices>,
    mut running: Box<InFlightRequest>,
    log: Arc<ReplayBuffer>,
) {
    let pump_guard = PumpGuard(&log);
    let session = running.client().session.clone();
    let mut disconnected = None;
    let mut evicted = pin!(running.leases.evicted());
    let reason = loop {
        running.leases.set_abandoned(!log.is_connected());
        if log.is_connected() {
            disconnected = None;
        } else if disconnected.is_none() {
            match DisconnectedDeadline::begin(&services, session.as_deref()) {
                Some(deadline) => disconnected = Some(deadline),
                None => break "too many requests run on without their clients",
            }
        }
        tokio::select! {
            biased;
            () = services.shutdown.cancelled() => break "the gateway stops",
            () = DisconnectedDeadline::too_long(disconnected.as_ref()) => break "the client is gone",
            () = &mut evicted => break NEEDED,
            () = log.changed() => {}
            step = running.next(), if log.has_room() => match step {
                ResponseEvent::Message(message) => services.replay_streams.push(&log, &message),
                ResponseEvent::Done(reply) => {
                    // The request's id can be reused before the answer is read.
                    drop(running);
                    log.finish_response(&reply.body);
                    return;
                }
                ResponseEvent::Cancelled => return,
            },
        }
    };
    debug!(reason, "request abandoned");
    services.replay_streams.abandon(&log);
    running.abandon(reason);
    drop(pump_guard);
}

/// Finishes the buffer when the pump ends, for any reason.
struct PumpGuard<'a>(&'a ReplayBuffer);

impl Drop for PumpGuard<'_> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

/// The deadline of a request whose client is disconnected.
struct DisconnectedDeadline {
    until: Instant,
    _permit: OwnedSemaphorePermit,
}

impl DisconnectedDeadline {
    fn begin(services: &ExchangeServices, session: Option<&Session>) -> Option<Self> {
        let permit = Arc::clone(&services.orphan_permits)
            .try_acquire_owned()
            .ok()?;
        let time = session.map_or(Duration::ZERO, |session| {
            orphaned_for(session, services.now())
        });
        Some(Self {
            until: Instant::now() + time,
            _permit: permit,
        })
    }

    async fn too_long(disconnected: Option<&Self>) {
        match disconnected {
            Some(disconnected) => tokio::time::sleep_until(disconnected.until).await,
            None => std::future::pending().await,
        }
    }
}
