//! The parts of the gateway that round trips use.

use std::sync::Arc;

use mcp_vary::cursor::CursorKeys;
use mcp_vary_base::environment::Environment;

use mcp_vary_session::pending_server_requests::PendingServerRequests;

/// The parts of the gateway that round trips use, from its start to its end.
#[derive(Debug)]
pub(crate) struct MrtrServices {
    /// Seal request states.
    pub(crate) cursor_keys: Arc<CursorKeys>,
    pub(crate) environment: Environment,
    /// Distinguishes this gateway from others with the same keys, and from itself before a restart.
    pub(crate) instance: u64,
    /// The requests that clients were sent for servers.
    pub(crate) pending_server_requests: Arc<PendingServerRequests>,
}

impl MrtrServices {
    /// The name that requests to clients give to `server`, if they name servers at all.
    pub(super) fn shown_name<'a>(&self, server: &'a str) -> Option<&'a str> {
        self.pending_server_requests.server_name(server)
    }

    /// Seconds since 1970-01-01 UTC.
    pub(super) fn now(&self) -> u64 {
        (self.environment.now)()
    }

    /// A name that cannot be guessed.
    pub(crate) fn random_name(&self) -> String {
        let mut bytes = [0; 16];
        (self.environment.random)(&mut bytes);
        format!("{:032x}", u128::from_le_bytes(bytes))
    }
}
