//! What is said about one call, into the log of its stream.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tracing::debug;

use crate::pipeline::exchange::ExchangeServices;
use crate::pipeline::exchange::{InFlightRequest, ResponseEvent, orphaned_for};
use crate::session::Session;
use crate::session::replay::ReplayBuffer;

/// Writes what the server says about a call into `log`, until its answer.
///
/// Who reads slowly is waited for. While nobody reads it goes on, for as long and with as many others as
/// requests without a client may.
pub(crate) async fn pump(
    services: Arc<ExchangeServices>,
    mut running: Box<InFlightRequest>,
    log: Arc<ReplayBuffer>,
) {
    let feeding = PumpGuard(&log);
    let session = running.client().session.clone();
    let mut alone = None;
    let why = loop {
        if log.is_connected() {
            alone = None;
        } else if alone.is_none() {
            match DisconnectedDeadline::begin(&services, session.as_deref()) {
                Some(begun) => alone = Some(begun),
                None => break "too many requests run on without their clients",
            }
        }
        tokio::select! {
            biased;
            () = services.shutdown.cancelled() => break "the gateway stops",
            () = DisconnectedDeadline::too_long(alone.as_ref()) => break "the client is gone",
            () = log.changed() => {}
            step = running.next(), if log.has_room() => match step {
                ResponseEvent::Message(message) => services.replay_streams.push(&log, &message),
                ResponseEvent::Done(reply) => {
                    // The id of the request is free before its answer is read.
                    drop(running);
                    log.finish_response(&reply.body);
                    return;
                }
                ResponseEvent::Cancelled => return,
            },
        }
    };
    debug!(reason = why, "a request was given up");
    services.replay_streams.abandon(&log);
    running.abandon(why);
    drop(feeding);
}

/// Ends the log when nothing feeds it any more, for whatever reason.
struct PumpGuard<'a>(&'a ReplayBuffer);

impl Drop for PumpGuard<'_> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

/// A request whose client is gone, for the time being.
struct DisconnectedDeadline {
    until: Instant,
    _permit: OwnedSemaphorePermit,
}

impl DisconnectedDeadline {
    fn begin(services: &ExchangeServices, session: Option<&Session>) -> Option<Self> {
        let place = Arc::clone(&services.orphan_permits)
            .try_acquire_owned()
            .ok()?;
        let time = session.map_or(Duration::ZERO, |it| orphaned_for(it, services.now()));
        Some(Self {
            until: Instant::now() + time,
            _permit: place,
        })
    }

    async fn too_long(alone: Option<&Self>) {
        match alone {
            Some(alone) => tokio::time::sleep_until(alone.until).await,
            None => std::future::pending().await,
        }
    }
}
