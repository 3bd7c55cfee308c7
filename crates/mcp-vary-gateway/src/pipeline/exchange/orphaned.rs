//! A request whose client is gone.

use std::sync::Arc;
use std::time::Duration;

use mcp_vary_upstream::{Exchange, Message};
use mcp_vary_wire::revision::Era;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::{Running, Taken, withdrawn};
use crate::session::{Place, Session};

/// A legacy client that is gone has not cancelled: its request runs on, unheard, and can still be
/// cancelled.
///
/// > Disconnection SHOULD NOT be interpreted as the client cancelling its request.
/// > (MCP 2025-11-25, basic/transports, "Sending Messages to the Server")
///
/// A modern one has; dropping the exchange says so upstream.
impl Drop for Running {
    fn drop(&mut self) {
        if self.finish.client.era() == Era::Modern {
            return;
        }
        self.leave_questions();
        // One too many is cancelled instead, as dropping the exchange does.
        let permit = Arc::clone(&self.lasting.unheard).try_acquire_owned();
        if let (Some(exchange), Ok(permit)) = (self.exchange.take(), permit) {
            let lasting = (self.lasting.stopped.clone(), self.lasting.now());
            let kept = (permit, std::mem::take(&mut self.taken));
            let unheard = run_unheard(exchange, self.place.take(), lasting, kept);
            self.lasting.tasks.spawn(unheard);
        }
    }
}

async fn run_unheard(
    mut exchange: Exchange,
    place: Option<Place>,
    (stopped, now): (CancellationToken, u64),
    _kept: (OwnedSemaphorePermit, Taken),
) {
    let session = place.as_ref().map(Place::session);
    let left = session.map_or(UNHEARD, |session| unheard_for(session, now));
    let ended = async {
        while let Ok(Message::Notification(_) | Message::Request(_)) = exchange.next().await {}
    };
    let reason = tokio::select! {
        () = ended => return debug!("a request whose client is gone has ended"),
        () = withdrawn(place.as_ref()) => "cancelled by the client",
        () = tokio::time::sleep(left) => "the client is gone",
        () = stopped.cancelled() => "the gateway stops",
    };
    exchange.cancel(Some(reason));
}

/// A request whose client is gone is cancelled after this long, however much the server still says.
const UNHEARD: Duration = Duration::from_secs(600);

/// How long a request runs on whose client is gone: nobody can come back to a session that has expired.
pub(crate) fn unheard_for(session: &Session, now: u64) -> Duration {
    UNHEARD.min(session.left(now))
}
