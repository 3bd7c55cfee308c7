//! The end of what was admitted: streams outlive their request, and must not outlive the credential.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use mcp_vary_auth::authenticator::Admission;
use tracing::debug;

use super::service::AuthenticationService;

/// The service of the current configuration; none if clients are not authenticated.
pub type CurrentAuthentication = Arc<ArcSwapOption<AuthenticationService>>;

/// What a stream needs to end with the credential that opened it.
#[derive(Clone, Debug)]
pub struct AdmissionLifetime {
    admission: Admission,
    /// The service that admitted it.
    by: Arc<AuthenticationService>,
    current: CurrentAuthentication,
}

impl AdmissionLifetime {
    /// The lifetime of what `by` has admitted. `current` is the service of the configuration at any later time.
    pub const fn new(
        admission: Admission,
        by: Arc<AuthenticationService>,
        current: CurrentAuthentication,
    ) -> Self {
        Self {
            admission,
            by,
            current,
        }
    }

    /// Waits until the credential has ended: until its `exp`, or until its key or issuer was removed, or the entry of
    /// its issuer changed; at most the time between two checks longer.
    pub async fn ended(self) {
        let period = self.by.stream_check();
        while self.is_admitted() {
            tokio::time::sleep(period).await;
        }
        debug!(principal = %self.admission.principal, "a stream ends with its credential");
    }

    fn is_admitted(&self) -> bool {
        let current = self.current.load();
        // Without a service everybody is admitted.
        let service = current.as_ref();
        service.is_none_or(|service| service.still_admits(&self.by, &self.admission))
    }
}
