//! Who sends a request: credentials are decided on, and the keys that this needs are fetched.
//!
//! The rules are those of `mcp_vary_auth`; here are clock, network and tasks.

mod issuer;
mod lifetime;

use std::fmt;
use std::sync::Arc;

use http::request::Parts;
use http::{Extensions, HeaderValue};
use mcp_vary_access::{Claims, Principal};
use mcp_vary_auth::address::Target;
use mcp_vary_auth::authenticator::{Admission, Denial};
use mcp_vary_auth::challenge::{Challenge, Refusal};
use mcp_vary_auth::credential::Credential;
use mcp_vary_auth::refresh::{FetchReason, KeysUnavailable};
use mcp_vary_auth::scope::Scope;
use mcp_vary_auth::token::{IssuerIndex, TokenVerifier};
use mcp_vary_base::environment::Environment;
use tokio_util::task::TaskTracker;
use tracing::debug;

use self::issuer::{Fetching, IssuerClient};
pub(crate) use self::lifetime::{AdmissionLifetime, CurrentAuthentication};
use crate::settings::authentication::Authentication;

/// The subject of the verified certificate of a connection; an extension of each of its requests.
///
/// # Properties
///
/// It is the first alternative name that is a URI (`URI:spiffe://acme.example/ci`), else an email address
/// (`email:ann@acme.example`), else a DNS name (`DNS:ci.acme.example`), else the distinguished name as RFC 4514 writes
/// it (`CN=ci,O=Acme`). The forms cannot be mistaken for each other, and a value cannot pass for several.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct PeerCertificate(pub(crate) Arc<str>);

/// Decides who sends a request, under one configuration.
pub(crate) struct AuthenticationService {
    settings: Authentication,
    /// In the order of the configuration.
    issuers: Vec<Arc<IssuerClient>>,
    environment: Environment,
    background_tasks: TaskTracker,
}

/// Omits keys and issuers.
impl fmt::Debug for AuthenticationService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let issuers = self.issuers.len();
        f.debug_struct("AuthenticationService")
            .field("issuers", &issuers)
            .finish_non_exhaustive()
    }
}

impl AuthenticationService {
    /// The service of a configuration. Issuers with the same entry as `before` keep their keys.
    pub(crate) fn new(
        settings: Authentication,
        before: Option<&Self>,
        environment: Environment,
        background_tasks: TaskTracker,
    ) -> Self {
        let trusted = settings.authenticator.tokens();
        let trusted = trusted.map_or(&[][..], TokenVerifier::issuers);
        let issuers = std::iter::zip(trusted, &settings.key_sources).map(|(trusted, source)| {
            let known = before.into_iter().flat_map(|before| &before.issuers);
            let mut known = known
                .filter(|known| known.is_of(&trusted.issuer, source))
                .map(Arc::clone);
            let new = || Arc::new(IssuerClient::new(trusted.issuer.clone(), source.clone()));
            known.next().unwrap_or_else(new)
        });
        Self {
            issuers: issuers.collect(),
            settings,
            environment,
            background_tasks,
        }
    }

    /// Fetches the keys of issuers that are due.
    pub(crate) fn fetch_due_keys(&self) {
        for issuer in &self.issuers {
            issuer.begin_fetch(FetchReason::Schedule, &self.fetching());
        }
    }

    fn fetching(&self) -> Fetching<'_> {
        Fetching {
            tasks: &self.background_tasks,
            authenticator: &self.settings.authenticator,
        }
    }

    /// Decides on the head of a request to `target`. It waits for keys that may still arrive.
    ///
    /// # Errors
    ///
    /// The answer to a request that may not pass.
    pub(crate) async fn authenticate(
        &self,
        head: &Parts,
        target: &Target,
    ) -> Result<Admission, Challenge> {
        let first = match self.decide(head, target) {
            Ok(admission) => return Ok(admission),
            Err(denial) => denial,
        };
        let issuer = first.fetch.and_then(|index| self.issuers.get(index.get()));
        let fetched = match issuer {
            Some(issuer) => issuer.newer_keys(&self.fetching()).await,
            None => false,
        };
        let denial = match fetched.then(|| self.decide(head, target)) {
            Some(Ok(admission)) => return Ok(admission),
            Some(Err(denial)) => denial,
            None => first,
        };
        if let Some(reason) = denial.reason {
            debug!(%reason, "token refused");
        }
        Err(self.settings.challenges.answer(&denial.refusal, target))
    }

    fn decide(&self, head: &Parts, target: &Target) -> Result<Admission, Denial> {
        let credential = Credential::read(&head.headers, head.uri.query())?;
        let authenticator = &self.settings.authenticator;
        let certificate = head.extensions.get::<PeerCertificate>();
        if let (Credential::None, Some(PeerCertificate(subject))) = (&credential, certificate)
            && let Ok(principal) = Principal::certificate(subject, Claims::default())
        {
            return Ok(Admission::of(principal));
        }
        let now = (self.environment.now)();
        let keys = |index: IssuerIndex| match self.issuers.get(index.get()) {
            Some(issuer) => issuer.keys(),
            None => Err(KeysUnavailable::NeverLoaded),
        };
        let admission = authenticator.authenticate(credential, target, now, keys)?;
        Ok(with_certificate(admission, &head.extensions))
    }

    /// The header `WWW-Authenticate` of a response to a call that needs `scopes`.
    pub(crate) fn scope_challenge(
        &self,
        scopes: &[String],
        target: &Target,
    ) -> Option<HeaderValue> {
        let scopes = scopes.iter().filter_map(|scope| Scope::parse(scope).ok());
        let refusal = Refusal::InsufficientScope(scopes.collect());
        self.settings
            .challenges
            .answer(&refusal, target)
            .www_authenticate
    }

    /// The protected resource metadata at `path` (RFC 9728, section 3), if there is a document.
    pub(crate) fn metadata(&self, path: &str) -> Option<String> {
        self.settings.metadata.as_ref()?.document(path)
    }

    /// What a stream that `admission` opens needs to end with it. `current` is the service of the configuration at any
    /// later time.
    pub(crate) fn lifetime(
        self: &Arc<Self>,
        admission: Admission,
        current: &CurrentAuthentication,
    ) -> AdmissionLifetime {
        AdmissionLifetime {
            admission,
            by: Arc::clone(self),
            current: Arc::clone(current),
        }
    }

    /// Whether what `before` admitted may go on.
    fn still_admits(&self, before: &Self, admission: &Admission) -> bool {
        let now = (self.environment.now)();
        let authenticator = &self.settings.authenticator;
        authenticator.still_admits(&before.settings.authenticator, admission, now)
    }
}

/// Adds the certificate of the connection to the principal, so that rules can require it.
fn with_certificate(mut admission: Admission, extensions: &Extensions) -> Admission {
    if let Some(PeerCertificate(subject)) = extensions.get::<PeerCertificate>() {
        let principal = Principal::clone(&admission.principal);
        if let Ok(principal) = principal.with_certificate(subject) {
            admission.principal = Arc::new(principal);
        }
    }
    admission
}
