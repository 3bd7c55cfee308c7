//! The end of what was admitted: streams outlive their request, and must not outlive the credential.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use mcp_vary_auth::authenticator::Admission;
use tracing::debug;

use super::AuthenticationService;

/// The service of the current configuration; none if clients are not authenticated.
pub(crate) type CurrentAuthentication = Arc<ArcSwapOption<AuthenticationService>>;

/// What a stream needs to end with the credential that opened it.
#[derive(Clone, Debug)]
pub(crate) struct AdmissionLifetime {
    pub(super) admission: Admission,
    /// The service that admitted it.
    pub(super) by: Arc<AuthenticationService>,
    pub(super) current: CurrentAuthentication,
}

impl AdmissionLifetime {
    /// Waits until the credential has ended: until its `exp`, or until its key or issuer was removed, or the entry of
    /// its issuer changed; at most the time between two checks longer.
    pub(crate) async fn ended(self) {
        let period = self.by.settings.stream_check;
        while self.is_admitted() {
            tokio::time::sleep(period).await;
        }
        debug!(principal = %self.admission.principal, "a stream ends with its credential");
    }

    fn is_admitted(&self) -> bool {
        let current = self.current.load();
        // Without a service everybody is admitted.
        let current = current.as_ref();
        current.is_none_or(|service| service.still_admits(&self.by, &self.admission))
    }
}
