//! The end of streams that only listen, when their listener stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// Ends the streams of a listener one after the other: clients open them again at once, and should not all do so in the
/// same moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Stopping {
    /// Cancelled when streams begin to end.
    pub(super) token: CancellationToken,
    /// How many streams have begun to end.
    ended: Arc<AtomicU32>,
    /// The pause between two streams, in microseconds.
    pause: Arc<AtomicU32>,
}

impl Stopping {
    /// Begins to end streams, all of them in a part of the time `drain`.
    pub(super) fn begin(&self, drain: Duration) {
        let pause = (drain / 5).min(SPREAD) / PAUSES;
        let pause = u32::try_from(pause.as_micros()).unwrap_or(0);
        self.pause.store(pause, Ordering::Relaxed);
        self.token.cancel();
    }

    /// Ready when a stream must end: the first one at once, the next one a little later.
    pub(super) async fn stream_ends(&self) {
        self.token.cancelled().await;
        let pauses = self.ended.fetch_add(1, Ordering::Relaxed) % PAUSES;
        let pause = self.pause.load(Ordering::Relaxed);
        if pauses > 0 {
            tokio::time::sleep(Duration::from_micros(pause.into()) * pauses).await;
        }
    }
}

/// The longest time in which all streams end.
const SPREAD: Duration = Duration::from_secs(2);

/// Of more streams than this, several end in the same moment.
const PAUSES: u32 = 200;
