//! Requests whose client has disconnected.

use std::sync::Arc;
use std::time::Duration;

use mcp_vary_upstream::{Exchange, Message};
use mcp_vary_wire::revision::Era;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::in_flight_request::{InFlightRequest, cancelled};
use super::leases::Leases;
use mcp_vary_session::{InFlightGuard, Session};

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
            self.leases.set_abandoned(true);
            let orphan = Orphan {
                exchange,
                guard: self.in_flight_guard.take(),
                _permit: permit,
                leases: std::mem::take(&mut self.leases),
            };
            let running = orphan.run(self.services.shutdown.clone(), self.services.now());
            self.services.background_tasks.spawn(running);
        }
    }
}

/// A request that runs on without its client.
struct Orphan {
    exchange: Exchange,
    guard: Option<InFlightGuard>,
    _permit: OwnedSemaphorePermit,
    leases: Leases,
}

impl Orphan {
    /// Runs to its end; `now` is in seconds since 1970-01-01 UTC.
    async fn run(mut self, shutdown: CancellationToken, now: u64) {
        let guard = self.guard.as_ref();
        let session = guard.map(InFlightGuard::session);
        let timeout = session.map_or(ORPHAN_TIMEOUT, |session| orphaned_for(session, now));
        let exchange = &mut self.exchange;
        let ended = async {
            while let Ok(Message::Notification(_) | Message::Request(_)) = exchange.next().await {}
        };
        let evicted = self.leases.evicted();
        let reason = tokio::select! {
            () = ended => return debug!("a request whose client is gone has ended"),
            () = cancelled(guard) => "cancelled by the client",
            () = tokio::time::sleep(timeout) => "the client is gone",
            () = shutdown.cancelled() => "the gateway stops",
            () = evicted => NEEDED,
        };
        self.exchange.cancel(Some(reason));
    }
}

/// Why a request whose client is gone ends when all dedicated connections are in use.
pub(crate) const NEEDED: &str = "the client is gone, and another one needs the connection";

/// A request without a client is cancelled after this time.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(600);

/// The time for which a request without a client continues: at most until its session expires.
pub(crate) fn orphaned_for(session: &Session, now: u64) -> Duration {
    ORPHAN_TIMEOUT.min(session.remaining(now))
}
