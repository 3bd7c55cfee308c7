//! Requests whose client has disconnected.

use std::sync::Arc;
use std::time::Duration;

use mcp_vary_upstream::{Exchange, Message};
use mcp_vary_wire::revision::Era;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::{InFlightRequest, Leases, cancelled};
use crate::session::{InFlightGuard, Session};

/// Continues the request of a legacy client that has disconnected. The request can still be cancelled.
///
/// > Disconnection SHOULD NOT be interpreted as the client cancelling its request.
/// > (MCP 2025-11-25, basic/transports, "Sending Messages to the Server")
///
/// A modern client cancels by disconnecting: dropping the exchange cancels the request at the server.
impl Drop for InFlightRequest {
    fn drop(&mut self) {
        if self.response.client.era() == Era::Modern {
            return;
        }
        self.abandon_server_requests();
        // Beyond the limit it is cancelled, by dropping the exchange.
        let permit = Arc::clone(&self.services.orphan_permits).try_acquire_owned();
        if let (Some(exchange), Ok(permit)) = (self.exchange.take(), permit) {
            let services = (self.services.shutdown.clone(), self.services.now());
            let kept = (permit, std::mem::take(&mut self.leases));
            let unheard = run_orphaned(exchange, self.in_flight_guard.take(), services, kept);
            self.services.background_tasks.spawn(unheard);
        }
    }
}

async fn run_orphaned(
    mut exchange: Exchange,
    place: Option<InFlightGuard>,
    (stopped, now): (CancellationToken, u64),
    _kept: (OwnedSemaphorePermit, Leases),
) {
    let session = place.as_ref().map(InFlightGuard::session);
    let left = session.map_or(ORPHAN_TIMEOUT, |session| orphaned_for(session, now));
    let ended = async {
        while let Ok(Message::Notification(_) | Message::Request(_)) = exchange.next().await {}
    };
    let reason = tokio::select! {
        () = ended => return debug!("a request whose client is gone has ended"),
        () = cancelled(place.as_ref()) => "cancelled by the client",
        () = tokio::time::sleep(left) => "the client is gone",
        () = stopped.cancelled() => "the gateway stops",
    };
    exchange.cancel(Some(reason));
}

/// A request without a client is cancelled after this time.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(600);

/// The time for which a request without a client continues: at most until its session expires.
pub(crate) fn orphaned_for(session: &Session, now: u64) -> Duration {
    ORPHAN_TIMEOUT.min(session.remaining(now))
}
