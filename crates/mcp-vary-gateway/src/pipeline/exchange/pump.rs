//! What is said about one call, into the log of its stream.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tracing::debug;

use crate::pipeline::exchange::{Running, Step, unheard_for};
use crate::pipeline::runtime::Lasting;
use crate::session::Session;
use crate::session::replay::Log;

/// Writes what the server says about a call into `log`, until its answer.
///
/// Who reads slowly is waited for. While nobody reads it goes on, for as long and with as many others as
/// requests without a client may.
pub(crate) async fn feed(lasting: Arc<Lasting>, mut running: Box<Running>, log: Arc<Log>) {
    let feeding = Feeding(&log);
    let session = running.client().session.clone();
    let mut alone = None;
    let why = loop {
        if log.is_connected() {
            alone = None;
        } else if alone.is_none() {
            match Alone::begin(&lasting, session.as_deref()) {
                Some(begun) => alone = Some(begun),
                None => break "too many requests run on without their clients",
            }
        }
        tokio::select! {
            biased;
            () = lasting.stopped.cancelled() => break "the gateway stops",
            () = Alone::too_long(alone.as_ref()) => break "the client is gone",
            () = log.changed() => {}
            step = running.next(), if log.has_room() => match step {
                Step::Message(message) => lasting.streams.push(&log, &message),
                Step::Done(reply) => {
                    // The id of the request is free before its answer is read.
                    drop(running);
                    log.conclude(&reply.body);
                    return;
                }
                Step::Cancelled => return,
            },
        }
    };
    debug!(reason = why, "a request was given up");
    lasting.streams.give_up(&log);
    running.give_up(why);
    drop(feeding);
}

/// Ends the log when nothing feeds it any more, for whatever reason.
struct Feeding<'a>(&'a Log);

impl Drop for Feeding<'_> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

/// A request whose client is gone, for the time being.
struct Alone {
    until: Instant,
    _place: OwnedSemaphorePermit,
}

impl Alone {
    fn begin(lasting: &Lasting, session: Option<&Session>) -> Option<Self> {
        let place = Arc::clone(&lasting.unheard).try_acquire_owned().ok()?;
        let time = session.map_or(Duration::ZERO, |it| unheard_for(it, lasting.now()));
        Some(Self {
            until: Instant::now() + time,
            _place: place,
        })
    }

    async fn too_long(alone: Option<&Self>) {
        match alone {
            Some(alone) => tokio::time::sleep_until(alone.until).await,
            None => std::future::pending().await,
        }
    }
}
